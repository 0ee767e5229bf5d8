"""Actions from JSON lines (PROTOCOL.md, "Actions").

Parsing is strict for known fields and ignores unknown ones: an unknown action or field is skipped, a known field with a
wrong type raises `CorruptLogError`.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NoReturn, TypeVar

from ....errors import CorruptLogError
from ..actions import (
    Action,
    AddCDCFile,
    AddFile,
    CheckpointMetadata,
    DeletionVectorDescriptor,
    DomainMetadata,
    Format,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
    Sidecar,
)
from .commit_info import LONG_MAX, LONG_MIN, parse_commit_info
from .strict_json import Json, load, reason

_INT_MAX = 2**31 - 1

_Plain = TypeVar("_Plain", str, bool)


class _Invalid(Exception):
    """An invalid field; becomes a CorruptLogError that names the action."""


def _wrong(obj: Json, key: str, expected: str) -> NoReturn:
    value = obj.get(key)
    if value is None:
        raise _Invalid(f"the required field {key!r} is missing or null")
    raise _Invalid(f"{key!r} should be {expected}, not {_shown(value)}")


def _shown(value: Any) -> str:
    # The value may be very long or deeply nested, so it isn't printed completely.
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "an array"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _required(kind: type[_Plain], expected: str, obj: Json, key: str) -> _Plain:
    value = obj.get(key)
    if type(value) is kind:
        return value
    _wrong(obj, key, expected)


def _optional(kind: type[_Plain], expected: str, obj: Json, key: str) -> _Plain | None:
    value = obj.get(key)
    if value is None or type(value) is kind:
        return value
    _wrong(obj, key, expected)


_str, _opt_str = partial(_required, str, "a string"), partial(_optional, str, "a string")
_bool, _opt_bool = partial(_required, bool, "a boolean"), partial(_optional, bool, "a boolean")


def _long(obj: Json, key: str) -> int:
    value = obj.get(key)
    if type(value) is int and LONG_MIN <= value <= LONG_MAX:
        return value
    _wrong(obj, key, "a 64-bit integer")


def _opt_long(obj: Json, key: str) -> int | None:
    value = obj.get(key)
    if value is None or (type(value) is int and LONG_MIN <= value <= LONG_MAX):
        return value
    _wrong(obj, key, "a 64-bit integer")


def _opt_map(obj: Json, key: str) -> Any:
    # Null values are kept: they are valid in partitionValues and harmless in tags.
    value = obj.get(key)
    if value is None:
        return None
    if type(value) is dict:
        for item in value.values():
            if item is not None and type(item) is not str:
                raise _Invalid(f"{key!r} should map to strings, but contains {_shown(item)}")
        return value
    _wrong(obj, key, "an object of strings")


def _map(obj: Json, key: str) -> Any:
    value = _opt_map(obj, key)
    if value is None:
        _wrong(obj, key, "an object of strings")
    return value


def _strings(obj: Json, key: str) -> tuple[str, ...] | None:
    value = obj.get(key)
    if value is None:
        return None
    if type(value) is list and all(type(item) is str for item in value):
        return tuple(value)
    _wrong(obj, key, "an array of strings")


def _deletion_vector(obj: Json) -> DeletionVectorDescriptor | None:
    dv = obj.get("deletionVector")
    if dv is None:
        return None
    if type(dv) is not dict:
        _wrong(obj, "deletionVector", "an object")
    descriptor = DeletionVectorDescriptor(
        storage_type=_str(dv, "storageType"),
        path_or_inline_dv=_str(dv, "pathOrInlineDv"),
        size_in_bytes=_long(dv, "sizeInBytes"),
        cardinality=_long(dv, "cardinality"),
        offset=_opt_long(dv, "offset"),
    )
    # Both are an Int in the protocol and in checkpoints.
    for key, value in (("sizeInBytes", descriptor.size_in_bytes), ("offset", descriptor.offset or 0)):
        if not -_INT_MAX - 1 <= value <= _INT_MAX:
            _wrong(dv, key, "a 32-bit integer")
    return descriptor


def _parse_add(obj: Json) -> AddFile:
    return AddFile(
        _str(obj, "path"),
        _map(obj, "partitionValues"),
        _long(obj, "size"),
        _long(obj, "modificationTime"),
        _bool(obj, "dataChange"),
        _opt_str(obj, "stats"),
        _opt_map(obj, "tags"),
        _deletion_vector(obj) if "deletionVector" in obj else None,
        _opt_long(obj, "baseRowId"),
        _opt_long(obj, "defaultRowCommitVersion"),
        _opt_str(obj, "clusteringProvider"),
    )


def _parse_remove(obj: Json) -> RemoveFile:
    return RemoveFile(
        _str(obj, "path"),
        _opt_long(obj, "deletionTimestamp"),
        _bool(obj, "dataChange"),
        _opt_bool(obj, "extendedFileMetadata"),
        _opt_map(obj, "partitionValues"),
        _opt_long(obj, "size"),
        _opt_str(obj, "stats"),
        _opt_map(obj, "tags"),
        _deletion_vector(obj) if "deletionVector" in obj else None,
        _opt_long(obj, "baseRowId"),
        _opt_long(obj, "defaultRowCommitVersion"),
    )


def _parse_cdc(obj: Json) -> AddCDCFile:
    return AddCDCFile(
        path=_str(obj, "path"),
        partition_values=_map(obj, "partitionValues"),
        size=_long(obj, "size"),
        data_change=bool(_opt_bool(obj, "dataChange")),
        tags=_opt_map(obj, "tags"),
    )


def _parse_metadata(obj: Json) -> Metadata:
    configuration = _opt_map(obj, "configuration") or {}
    if None in configuration.values():
        raise _Invalid("'configuration' should map to strings, but contains null")
    form = obj.get("format")
    if form is not None and type(form) is not dict:
        _wrong(obj, "format", "an object")
    return Metadata(
        id=_str(obj, "id"),
        # Delta has written metaData without a schema for a table without columns.
        schema_string=_opt_str(obj, "schemaString") or "",
        partition_columns=_strings(obj, "partitionColumns") or (),
        configuration=configuration,
        format=Format() if form is None else Format(_str(form, "provider"), _opt_map(form, "options") or {}),
        name=_opt_str(obj, "name"),
        description=_opt_str(obj, "description"),
        created_time=_opt_long(obj, "createdTime"),
    )


def _parse_protocol(obj: Json) -> Protocol:
    reader, writer = _long(obj, "minReaderVersion"), _long(obj, "minWriterVersion")
    if not (0 <= reader <= _INT_MAX and 0 <= writer <= _INT_MAX):
        raise _Invalid(f"the versions ({reader}, {writer}) are out of range")
    reader_features, writer_features = _strings(obj, "readerFeatures"), _strings(obj, "writerFeatures")
    return Protocol(
        reader,
        writer,
        None if reader_features is None else frozenset(reader_features),
        None if writer_features is None else frozenset(writer_features),
    )


def _parse_txn(obj: Json) -> SetTransaction:
    return SetTransaction(_str(obj, "appId"), _long(obj, "version"), _opt_long(obj, "lastUpdated"))


def _parse_domain(obj: Json) -> DomainMetadata:
    return DomainMetadata(_str(obj, "domain"), _str(obj, "configuration"), _bool(obj, "removed"))


def _parse_checkpoint_metadata(obj: Json) -> CheckpointMetadata:
    return CheckpointMetadata(_long(obj, "version"), _opt_map(obj, "tags"))


def _parse_sidecar(obj: Json) -> Sidecar:
    return Sidecar(_str(obj, "path"), _long(obj, "sizeInBytes"), _long(obj, "modificationTime"), _opt_map(obj, "tags"))


PARSERS: dict[str, Callable[[Json], Action]] = {
    "add": _parse_add,
    "remove": _parse_remove,
    "commitInfo": parse_commit_info,
    "metaData": _parse_metadata,
    "protocol": _parse_protocol,
    "txn": _parse_txn,
    "domainMetadata": _parse_domain,
    "cdc": _parse_cdc,
    "checkpointMetadata": _parse_checkpoint_metadata,
    "sidecar": _parse_sidecar,
}


def parse_line(text: str | bytes) -> Action | None:
    """The action on one line of a commit or of a JSON checkpoint.

    Returns `None` for a blank line and for an action that isn't in this version of the protocol. Raises
    `CorruptLogError`, with the reason, for invalid JSON, a known field with a wrong type, a missing required field, or
    more than one action. PROTOCOL.md, "Actions".
    """
    try:
        if type(text) is bytes:
            text = text.decode()
        if not text or text.isspace():
            return None
        obj = load(text)  # type: ignore[arg-type]
    except (ValueError, RecursionError) as error:
        raise CorruptLogError(f"not a line of JSON: {reason(error)}") from None
    if type(obj) is not dict:
        raise CorruptLogError(f"an action should be an object, not {_shown(obj)}")
    action: Action | None = None
    action_name: str | None = None
    for name, body in obj.items():
        parser = PARSERS.get(name)
        if parser is None or body is None:
            continue
        if action_name is not None:
            raise CorruptLogError(f"one line has two actions, {action_name!r} and {name!r}")
        action_name = name
        if type(body) is not dict:
            raise CorruptLogError(f"the action {name!r} should be an object, not {_shown(body)}")
        try:
            action = parser(body)
        except _Invalid as error:
            raise CorruptLogError(f"the action {name!r} is damaged: {error}") from None
    return action


def names_action(text: bytes) -> bool:
    """Whether a line has the name of an action that this version of the protocol has, whatever follows it."""
    try:
        obj = load(text.decode())
    except (ValueError, RecursionError):
        return False
    return isinstance(obj, dict) and not PARSERS.keys().isdisjoint(obj)


def parse_commit(data: bytes) -> list[Action]:
    """The actions of a whole commit file (or of a JSON checkpoint), in order, without unknown ones.

    `CorruptLogError` names the line (counted from 1). PROTOCOL.md, "Delta Log Entries".
    """
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise CorruptLogError(f"line {line}: not a line of JSON: {reason(error)}") from None
    actions: list[Action] = []
    # Only a line feed ends a line: U+2028 and similar characters are allowed in a JSON string.
    for number, line_text in enumerate(text.split("\n"), 1):
        try:
            action = parse_line(line_text)
        except CorruptLogError as error:
            raise CorruptLogError(f"line {number}: {error}") from None
        if action is not None:
            actions.append(action)
    return actions
