"""Row tracking in the log: which ids a commit's rows get (PROTOCOL.md, "Row Tracking").

A file's rows have the ids from its `baseRowId` on, in the order in which they lie in it. They are given out once: the
metadata domain `delta.rowTracking` says the highest that ever was. Materialised ids, in hidden columns of the files,
are the engine's; their names stand in the metadata.
"""

import json
import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from ...errors import CorruptLogError, InvalidArgumentError
from . import features, properties
from .actions import Action, AddFile, DomainMetadata, Metadata, Protocol
from .column_mapping import physical_name
from .record_count import num_records
from .schema import parse_schema

FEATURE: Final = "rowTracking"
DOMAIN: Final = "delta.rowTracking"
ENABLED: Final = "delta.enableRowTracking"
SUSPENDED: Final = "delta.rowTrackingSuspended"
ROW_ID_COLUMN: Final = "delta.rowTracking.materializedRowIdColumnName"
ROW_COMMIT_VERSION_COLUMN: Final = "delta.rowTracking.materializedRowCommitVersionColumnName"
COLUMN_KEYS: Final = (ROW_ID_COLUMN, ROW_COMMIT_VERSION_COLUMN)
PRESERVED_TAG: Final = "delta.rowTracking.preserved"
BACKFILL: Final = "ROW TRACKING BACKFILL"
UNBACKFILL: Final = "ROW TRACKING UNBACKFILL"

_PREFIXES = {ROW_ID_COLUMN: "_row-id-col-", ROW_COMMIT_VERSION_COLUMN: "_row-commit-version-col-"}
_NONE_YET = -1


def supported(protocol: Protocol) -> bool:
    """Whether the protocol has the feature: then files get row ids, unless that is suspended."""
    return FEATURE in features.supported(protocol)


def enabled(protocol: Protocol, metadata: Metadata) -> bool:
    """Whether every row of the table has a stable id that commands keep."""
    return supported(protocol) and bool(properties.get(metadata.configuration, "enableRowTracking"))


def check(configuration: Mapping[str, str]) -> None:
    """`InvalidArgumentError` where row tracking is both enabled and suspended."""
    if properties.get(configuration, "enableRowTracking") and properties.get(configuration, "rowTrackingSuspended"):
        raise InvalidArgumentError(
            f"{ENABLED} and {SUSPENDED} can't both be true",
            condition="DELTA_ROW_TRACKING_ILLEGAL_PROPERTY_COMBINATION",
            parameters={"property1": ENABLED, "property2": SUSPENDED},
        )


def high_water_mark(domains: Mapping[str, DomainMetadata]) -> int:
    """The highest row id that was ever given out; -1: none."""
    found = domains.get(DOMAIN)
    return _NONE_YET if found is None else mark_of(found)


def mark_of(action: DomainMetadata) -> int:
    """What the domain says; `CorruptLogError` where it says nothing that can be used."""
    if action.removed:
        return _NONE_YET
    try:
        value = json.loads(action.configuration)["rowIdHighWaterMark"]
        if type(value) is not int:
            raise ValueError("not a whole number")
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptLogError(
            f"the metadata domain {DOMAIN} doesn't hold a rowIdHighWaterMark ({error}): {action.configuration!r}"
        ) from None
    return value


def mark(value: int) -> DomainMetadata:
    """The action that says how far ids are given out."""
    return DomainMetadata(DOMAIN, json.dumps({"rowIdHighWaterMark": value}, separators=(",", ":")), removed=False)


def with_column_names(
    metadata: Metadata,
    old: Metadata | None,
    protocol: Protocol,
    *,
    new_id: Callable[[], str] = lambda: str(uuid.uuid4()),
) -> Metadata:
    """The metadata with the names of the hidden columns, those of the table where it has them.

    Names that come from elsewhere (a clone's source) are replaced; without the feature there are none.
    `InvalidArgumentError` where a column of the table has such a name.
    """
    configuration = {key: value for key, value in metadata.configuration.items() if key not in COLUMN_KEYS}
    if supported(protocol):
        known = {} if old is None else old.configuration
        names = {key: known.get(key) or prefix + new_id() for key, prefix in _PREFIXES.items()}
        for f in parse_schema(metadata.schema_string):
            if f.name in names.values() or physical_name(f) in names.values():
                raise InvalidArgumentError(f"the column name {f.name!r} is taken: the table keeps row ids under it")
        configuration |= names
    return metadata if configuration == metadata.configuration else replace(metadata, configuration=configuration)


def assigned(
    actions: tuple[Action, ...],
    protocol: Protocol,
    metadata: Metadata,
    *,
    version: int,
    highest: int,
) -> tuple[Action, ...]:
    """The actions of the commit `version`, with the ids that its files get.

    Files that have ids already keep them, and what is given out lies above. `highest` is the high-water mark below the
    commit. While tracking is suspended, no file has ids. `InvalidArgumentError` for a file whose rows nobody has
    counted.
    """
    if not supported(protocol) or not any(isinstance(action, AddFile) for action in actions):
        return actions
    suspended = bool(properties.get(metadata.configuration, "rowTrackingSuspended"))
    result: list[Action] = []
    reached = highest
    if not suspended:
        kept = [(a.base_row_id, a.stats) for a in actions if isinstance(a, AddFile) and a.base_row_id is not None]
        reached = max([highest, *(base + (num_records(text) or 0) - 1 for base, text in kept if base > highest)])
    for action in actions:
        if isinstance(action, AddFile):
            if suspended:
                action = replace(action, base_row_id=None, default_row_commit_version=None)
            else:
                base, since = action.base_row_id, action.default_row_commit_version
                if base is None:
                    count = num_records(action.stats)
                    if count is None:
                        raise InvalidArgumentError(
                            f"the file {action.path} can't get row ids, for its statistics don't say how many rows it "
                            "has: the table has the feature rowTracking"
                        )
                    base, reached = reached + 1, reached + count
                action = replace(
                    action, base_row_id=base, default_row_commit_version=version if since is None else since
                )
        result.append(action)
    if reached != highest:
        result.append(mark(reached))
    return tuple(result)
