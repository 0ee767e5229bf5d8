"""The properties that a user sets on a table, or that a session sets on every new table: which are valid."""

import logging
from collections.abc import Mapping
from typing import Final

from ....errors import InvalidArgumentError, UnsupportedFeatureError
from ....settings.declarations import ALLOW_ARBITRARY_PROPERTIES, PROPERTY_DEFAULTS
from .declarations import CONSTRAINT_PREFIX, FEATURE_PREFIX, PROPERTIES, Property, get

_log = logging.getLogger(__name__)

_UNIFORM_PREFIX: Final = "delta.universalformat.config."


def is_protocol_property(key: str) -> bool:
    """Whether the key requests protocol versions or features, and so is never stored in the metadata."""
    return key.startswith(FEATURE_PREFIX) or key in (
        "delta.minReaderVersion",
        "delta.minWriterVersion",
        "delta.ignoreProtocolDefaults",
    )


def without_protocol_properties(configuration: Mapping[str, str]) -> dict[str, str]:
    """The part of a requested configuration that is stored in `metaData`."""
    return {key: value for key, value in configuration.items() if not is_protocol_property(key)}


def proper_key(key: str) -> str:
    """A key as it is stored: Delta's properties in canonical case, others unchanged."""
    known = PROPERTIES.get(key.lower().removeprefix("delta.")) if key.lower().startswith("delta.") else None
    return key if known is None else known.key


def editable(key: str) -> bool:
    """Whether a user may set and unset the property."""
    known = PROPERTIES.get(key.lower().removeprefix("delta.")) if key.lower().startswith("delta.") else None
    return known is None or known.editable


def validate(
    configuration: Mapping[str, str], *, allow_arbitrary: bool = False, existing: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The properties that a user sets, with keys in canonical case.

    Keys that don't start with `delta.` are the user's own and don't change. `InvalidArgumentError`, which names the
    key, for an unknown `delta.*` key (unless `allow_arbitrary`), an invalid value, a property that can't be set, or a
    log
    retention that is shorter than that of deleted files. `existing` are the table's other properties.
    """
    result: dict[str, str] = {}
    for key, value in configuration.items():
        folded = key.lower()
        if not folded.startswith("delta.") or folded.startswith(CONSTRAINT_PREFIX):
            result[key] = value
            continue
        if folded.startswith((FEATURE_PREFIX, _UNIFORM_PREFIX)):
            result[folded] = value
            continue
        known = PROPERTIES.get(folded.removeprefix("delta."))
        if known is None:
            if not allow_arbitrary:
                raise InvalidArgumentError(
                    f"{key} is not a table property that this version of tablelog knows: correct it, or set "
                    f"{ALLOW_ARBITRARY_PROPERTIES.key} to true to store it as it is",
                    condition="DELTA_UNKNOWN_CONFIGURATION",
                    parameters={"config": key, "disableCheckConfig": ALLOW_ARBITRARY_PROPERTIES.key},
                )
            _log.warning("storing the table property %s, which this version of tablelog doesn't know", key)
            result[key] = value
            continue
        if not known.editable:
            raise InvalidArgumentError(
                f"the table property {known.key} can't be set: it {known.help}",
                condition="DELTA_CANNOT_MODIFY_TABLE_PROPERTY",
                parameters={"prop": known.key},
            )
        if "hudi" in _formats(known, value) or (known.check(value) and known.foreign):
            raise UnsupportedFeatureError(
                f"the table property {known.key} can't be set to {value!r}: it needs a feature that "
                "tablelog doesn't have",
                (known.name,),
            )
        result[known.key] = value
    retention = {"delta.logRetentionDuration", "delta.deletedFileRetentionDuration"} & result.keys()
    if retention:
        both = {**(existing or {}), **result}
        log_ms, files_ms = get(both, "logRetentionDuration"), get(both, "deletedFileRetentionDuration")
        if log_ms < files_ms:
            raise InvalidArgumentError(
                "delta.logRetentionDuration must be at least delta.deletedFileRetentionDuration "
                f"({log_ms} ms < {files_ms} ms): set both"
            )
    return result


def _formats(known: Property, value: str) -> tuple[str, ...]:
    """The formats that the property `delta.universalFormat.enabledFormats` lists; none for another property."""
    return known.check(value) if known is PROPERTIES["universalformat.enabledformats"] else ()


def defaults_from(conf: Mapping[str, str] | None) -> dict[str, str]:
    """The properties that a session sets on every new table (`spark.databricks.delta.properties.defaults.*`).

    Protocol versions and features are handled by `features.protocol_for_new_table`. An unknown property is logged, an
    invalid value raises `InvalidArgumentError`.
    """
    defaults: dict[str, str] = {}
    for full_key, value in (conf or {}).items():
        if not full_key.startswith(PROPERTY_DEFAULTS.prefix):
            continue
        name = full_key.removeprefix(PROPERTY_DEFAULTS.prefix)
        key = f"delta.{name}"
        if is_protocol_property(key):
            continue
        known = PROPERTIES.get(name.lower())
        if known is None:
            _log.warning("%s is ignored: %s is not a table property that tablelog knows", full_key, key)
            continue
        known.check(value, full_key)
        defaults[known.key] = value
    return defaults
