"""Row tracking in the log: the row ids that a commit assigns (PROTOCOL.md, "Row Tracking").

The rows of a file have consecutive ids from its `baseRowId`, in file order. Each id is assigned once: the metadata
domain `delta.rowTracking` has the highest assigned id. The engine handles materialised ids, in hidden columns of the
files; the names of these columns are in the metadata.
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
    """Whether the protocol has the feature: then files get row ids, unless row tracking is suspended."""
    return FEATURE in features.supported(protocol)


def suspended(metadata: Metadata) -> bool:
    """Whether files of a table that supports row tracking lose their row ids, and get none."""
    return bool(properties.get(metadata.configuration, "rowTrackingSuspended"))


def without_ids(add: AddFile) -> AddFile:
    """The file without row ids."""
    return replace(add, base_row_id=None, default_row_commit_version=None)


def enabled(protocol: Protocol, metadata: Metadata) -> bool:
    """Whether every row of the table has a stable id that commands preserve."""
    return supported(protocol) and bool(properties.get(metadata.configuration, "enableRowTracking"))


def check(configuration: Mapping[str, str]) -> None:
    """Raise `InvalidArgumentError` if row tracking is both enabled and suspended."""
    if properties.get(configuration, "enableRowTracking") and properties.get(configuration, "rowTrackingSuspended"):
        raise InvalidArgumentError(
            f"{ENABLED} and {SUSPENDED} can't both be true: set one of them to false",
            condition="DELTA_ROW_TRACKING_ILLEGAL_PROPERTY_COMBINATION",
            parameters={"property1": ENABLED, "property2": SUSPENDED},
        )


def high_water_mark(domains: Mapping[str, DomainMetadata]) -> int:
    """The highest row id that was ever assigned; -1: none."""
    domain = domains.get(DOMAIN)
    return _NONE_YET if domain is None else mark_of(domain)


def mark_of(action: DomainMetadata) -> int:
    """The high-water mark in the domain; `CorruptLogError` if there is no valid one."""
    if action.removed:
        return _NONE_YET
    try:
        value = json.loads(action.configuration)["rowIdHighWaterMark"]
        if type(value) is not int:
            raise ValueError("not a whole number")
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptLogError(
            f"the metadata domain {DOMAIN} has no valid rowIdHighWaterMark ({error}): {action.configuration!r}"
        ) from None
    return value


def mark(value: int) -> DomainMetadata:
    """The action with the high-water mark."""
    return DomainMetadata(DOMAIN, json.dumps({"rowIdHighWaterMark": value}, separators=(",", ":")), removed=False)


def with_column_names(
    metadata: Metadata,
    old: Metadata | None,
    protocol: Protocol,
    *,
    new_id: Callable[[], str] = lambda: str(uuid.uuid4()),
) -> Metadata:
    """The metadata with the names of the hidden columns; existing names of the table are kept.

    Names from elsewhere (a clone's source) are replaced; without the feature they are removed. `InvalidArgumentError`
    if a column of the table has such a name.
    """
    configuration = {key: value for key, value in metadata.configuration.items() if key not in COLUMN_KEYS}
    if supported(protocol):
        current = {} if old is None else old.configuration
        names = {key: current.get(key) or prefix + new_id() for key, prefix in _PREFIXES.items()}
        for field in parse_schema(metadata.schema_string):
            if field.name in names.values() or physical_name(field) in names.values():
                raise InvalidArgumentError(
                    f"the table uses the column name {field.name!r} for its row ids: choose another column name"
                )
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
    """The actions of the commit `version`, with the row ids of its files.

    Existing ids are kept, and new ids are higher. `highest` is the high-water mark before the commit. While row
    tracking is suspended, files have no ids. `InvalidArgumentError` for a file with an unknown number of rows.
    """
    if not supported(protocol) or not any(isinstance(action, AddFile) for action in actions):
        return actions
    no_ids = suspended(metadata)
    result: list[Action] = []
    reached = highest
    if not no_ids:
        existing = [(a.base_row_id, a.stats) for a in actions if isinstance(a, AddFile) and a.base_row_id is not None]
        reached = max([highest, *(base + (num_records(text) or 0) - 1 for base, text in existing if base > highest)])
    for action in actions:
        if isinstance(action, AddFile):
            if no_ids:
                action = without_ids(action)
            else:
                base, since = action.base_row_id, action.default_row_commit_version
                if base is None:
                    count = num_records(action.stats)
                    if count is None:
                        raise unknown_count(action.path)
                    base, reached = reached + 1, reached + count
                action = replace(
                    action, base_row_id=base, default_row_commit_version=version if since is None else since
                )
        result.append(action)
    if reached != highest:
        result.append(mark(reached))
    return tuple(result)


def unknown_count(path: str) -> InvalidArgumentError:
    """The error for a file that can't get row ids."""
    return InvalidArgumentError(
        f"the file {path} can't get row ids, because its statistics don't have its number of rows: the table has the "
        "feature rowTracking, which needs it"
    )
