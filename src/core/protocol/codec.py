"""Converts actions to JSON lines and back (PROTOCOL.md, "Actions").

Reading is strict for known fields and ignores unknown ones: an unknown action or field is skipped, a known field with a
wrong type raises `CorruptLogError`. `commitInfo` is free-form, so nothing in it is an error: unknown fields, and fields
of an unexpected type, are kept in `CommitInfo.extra` and written back.

As in Delta, missing optional fields aren't written; a null partition value stays a JSON null.
"""

import json
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn

from ...errors import CorruptLogError, InvalidArgumentError
from .actions import (
    Action,
    AddCDCFile,
    AddFile,
    CheckpointMetadata,
    CommitInfo,
    DeletionVectorDescriptor,
    DomainMetadata,
    Format,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
    Sidecar,
)

Json = dict[str, Any]

_LONG_MIN, _LONG_MAX = -(2**63), 2**63 - 1
_INT_MAX = 2**31 - 1
_MOST_KEYS = 16


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


def _str(obj: Json, key: str) -> str:
    value = obj.get(key)
    if type(value) is str:
        return value
    _wrong(obj, key, "a string")


def _opt_str(obj: Json, key: str) -> str | None:
    value = obj.get(key)
    if value is None or type(value) is str:
        return value
    _wrong(obj, key, "a string")


def _long(obj: Json, key: str) -> int:
    value = obj.get(key)
    if type(value) is int and _LONG_MIN <= value <= _LONG_MAX:
        return value
    _wrong(obj, key, "a 64-bit integer")


def _opt_long(obj: Json, key: str) -> int | None:
    value = obj.get(key)
    if value is None or (type(value) is int and _LONG_MIN <= value <= _LONG_MAX):
        return value
    _wrong(obj, key, "a 64-bit integer")


def _bool(obj: Json, key: str) -> bool:
    value = obj.get(key)
    if type(value) is bool:
        return value
    _wrong(obj, key, "a boolean")


def _opt_bool(obj: Json, key: str) -> bool | None:
    value = obj.get(key)
    if value is None or type(value) is bool:
        return value
    _wrong(obj, key, "a boolean")


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


def _is_str(value: Any) -> bool:
    return type(value) is str


def _is_long(value: Any) -> bool:
    return type(value) is int and _LONG_MIN <= value <= _LONG_MAX


def _is_bool(value: Any) -> bool:
    return type(value) is bool


def _is_object(value: Any) -> bool:
    return type(value) is dict


# JSON name, field, check; in the order in which Delta writes them.
_COMMIT_INFO: tuple[tuple[str, str, Callable[[Any], bool]], ...] = (
    ("inCommitTimestamp", "in_commit_timestamp", _is_long),
    ("timestamp", "timestamp", _is_long),
    ("userId", "user_id", _is_str),
    ("userName", "user_name", _is_str),
    ("operation", "operation", _is_str),
    ("operationParameters", "operation_parameters", _is_object),
    ("clusterId", "cluster_id", _is_str),
    ("readVersion", "read_version", _is_long),
    ("isolationLevel", "isolation_level", _is_str),
    ("isBlindAppend", "is_blind_append", _is_bool),
    ("operationMetrics", "operation_metrics", _is_object),
    ("userMetadata", "user_metadata", _is_str),
    ("tags", "tags", _is_object),
    ("engineInfo", "engine_info", _is_str),
    ("txnId", "txn_id", _is_str),
)
_COMMIT_INFO_FIELDS = {name: (field, check) for name, field, check in _COMMIT_INFO}


def _parse_commit_info(obj: Json) -> CommitInfo:
    known: Json = {}
    extra: Json = {}
    for name, value in obj.items():
        entry = _COMMIT_INFO_FIELDS.get(name)
        if entry is not None and entry[1](value):
            known[entry[0]] = value
        elif value is not None:
            extra[name] = value
    return CommitInfo(**known, extra=extra)


_PARSERS: dict[str, Callable[[Json], Action]] = {
    "add": _parse_add,
    "remove": _parse_remove,
    "commitInfo": _parse_commit_info,
    "metaData": _parse_metadata,
    "protocol": _parse_protocol,
    "txn": _parse_txn,
    "domainMetadata": _parse_domain,
    "cdc": _parse_cdc,
    "checkpointMetadata": _parse_checkpoint_metadata,
    "sidecar": _parse_sidecar,
}


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"the number {text[:40]} is out of range")
    return value


def _no_duplicates(pairs: list[tuple[str, Any]]) -> Json:
    obj = dict(pairs)
    if len(obj) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise ValueError(f"the key {key[:60]!r} occurs twice in one object")
            seen.add(key)
    return obj


_decode = json.JSONDecoder(parse_constant=_no_constant, parse_float=_finite).decode
_decode_unique = json.JSONDecoder(
    parse_constant=_no_constant, parse_float=_finite, object_pairs_hook=_no_duplicates
).decode


def _load(text: str) -> Any:
    """The JSON value of `text`; ValueError or RecursionError if it isn't valid in a log."""
    if not text.isascii() or "\\u" in text:
        # The slow way: an escape may repeat a key in another form, or be an unpaired surrogate.
        value = _decode_unique(text)
        _encoder.encode(value).encode()
        return value
    value = _decode(text)
    if type(value) is dict:
        if len(value) > _MOST_KEYS:
            return _decode_unique(text)  # otherwise each key would be searched in the whole line
        for key in value:
            if text.count(f'"{key}"') > 1:
                return _decode_unique(text)
    return value


def _reason(error: BaseException) -> str:
    if isinstance(error, UnicodeDecodeError):
        return f"byte {error.start} is not UTF-8"
    if isinstance(error, UnicodeEncodeError):
        return "it has an unpaired surrogate"
    if isinstance(error, RecursionError):
        return "the nesting is too deep"
    return str(error)


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
        obj = _load(text)  # type: ignore[arg-type]
    except (ValueError, RecursionError) as error:
        raise CorruptLogError(f"not a line of JSON: {_reason(error)}") from None
    if type(obj) is not dict:
        raise CorruptLogError(f"an action should be an object, not {_shown(obj)}")
    action: Action | None = None
    action_name: str | None = None
    for name, body in obj.items():
        parser = _PARSERS.get(name)
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


def parse_commit(data: bytes) -> list[Action]:
    """The actions of a whole commit file (or of a JSON checkpoint), in order, without unknown ones.

    `CorruptLogError` names the line (counted from 1). PROTOCOL.md, "Delta Log Entries".
    """
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise CorruptLogError(f"line {line}: not a line of JSON: {_reason(error)}") from None
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


def _put(obj: Json, key: str, value: Any) -> None:
    if value is not None:
        obj[key] = value


def _dv_json(dv: DeletionVectorDescriptor) -> Json:
    obj: Json = {"storageType": dv.storage_type, "pathOrInlineDv": dv.path_or_inline_dv}
    if dv.offset is not None:
        obj["offset"] = dv.offset
    obj["sizeInBytes"] = dv.size_in_bytes
    obj["cardinality"] = dv.cardinality
    return obj


def _add_json(a: AddFile) -> Json:
    obj: Json = {
        "path": a.path,
        "partitionValues": a.partition_values,
        "size": a.size,
        "modificationTime": a.modification_time,
        "dataChange": a.data_change,
    }
    if a.stats is not None:
        obj["stats"] = a.stats
    if a.tags is not None:
        obj["tags"] = a.tags
    if a.deletion_vector is not None:
        obj["deletionVector"] = _dv_json(a.deletion_vector)
    if a.base_row_id is not None:
        obj["baseRowId"] = a.base_row_id
    if a.default_row_commit_version is not None:
        obj["defaultRowCommitVersion"] = a.default_row_commit_version
    if a.clustering_provider is not None:
        obj["clusteringProvider"] = a.clustering_provider
    return obj


def _remove_json(r: RemoveFile) -> Json:
    obj: Json = {"path": r.path}
    _put(obj, "deletionTimestamp", r.deletion_timestamp)
    obj["dataChange"] = r.data_change
    _put(obj, "extendedFileMetadata", r.extended_file_metadata)
    _put(obj, "partitionValues", r.partition_values)
    _put(obj, "size", r.size)
    _put(obj, "stats", r.stats)
    _put(obj, "tags", r.tags)
    if r.deletion_vector is not None:
        obj["deletionVector"] = _dv_json(r.deletion_vector)
    _put(obj, "baseRowId", r.base_row_id)
    _put(obj, "defaultRowCommitVersion", r.default_row_commit_version)
    return obj


def _cdc_json(c: AddCDCFile) -> Json:
    obj: Json = {"path": c.path, "partitionValues": c.partition_values, "size": c.size}
    _put(obj, "tags", c.tags)
    obj["dataChange"] = c.data_change
    return obj


def _metadata_json(m: Metadata) -> Json:
    obj: Json = {"id": m.id}
    _put(obj, "name", m.name)
    _put(obj, "description", m.description)
    obj["format"] = {"provider": m.format.provider, "options": m.format.options}
    if m.schema_string:
        obj["schemaString"] = m.schema_string
    obj["partitionColumns"] = m.partition_columns
    obj["configuration"] = m.configuration
    _put(obj, "createdTime", m.created_time)
    return obj


def _protocol_json(p: Protocol) -> Json:
    obj: Json = {"minReaderVersion": p.min_reader_version, "minWriterVersion": p.min_writer_version}
    if p.reader_features is not None:
        obj["readerFeatures"] = sorted(p.reader_features)
    if p.writer_features is not None:
        obj["writerFeatures"] = sorted(p.writer_features)
    return obj


def _txn_json(t: SetTransaction) -> Json:
    obj: Json = {"appId": t.app_id, "version": t.version}
    _put(obj, "lastUpdated", t.last_updated)
    return obj


def _domain_json(d: DomainMetadata) -> Json:
    return {"domain": d.domain, "configuration": d.configuration, "removed": d.removed}


def _checkpoint_metadata_json(c: CheckpointMetadata) -> Json:
    obj: Json = {"version": c.version}
    _put(obj, "tags", c.tags)
    return obj


def _sidecar_json(s: Sidecar) -> Json:
    obj: Json = {"path": s.path, "sizeInBytes": s.size_in_bytes, "modificationTime": s.modification_time}
    _put(obj, "tags", s.tags)
    return obj


def _commit_info_json(c: CommitInfo) -> Json:
    obj: Json = {}
    for name, field, _ in _COMMIT_INFO:
        value = getattr(c, field)
        if value is not None:
            obj[name] = value
    if c.extra:
        for name, value in c.extra.items():
            obj.setdefault(name, value)
    return obj


_WRITERS: dict[type, tuple[str, Callable[[Any], Json]]] = {
    AddFile: ("add", _add_json),
    RemoveFile: ("remove", _remove_json),
    AddCDCFile: ("cdc", _cdc_json),
    CommitInfo: ("commitInfo", _commit_info_json),
    Metadata: ("metaData", _metadata_json),
    Protocol: ("protocol", _protocol_json),
    SetTransaction: ("txn", _txn_json),
    DomainMetadata: ("domainMetadata", _domain_json),
    CheckpointMetadata: ("checkpointMetadata", _checkpoint_metadata_json),
    Sidecar: ("sidecar", _sidecar_json),
}


def _plain_mapping(value: Any) -> Any:
    # A MappingProxyType or other Mapping in an action's field.
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} can't be written as JSON")


_encoder = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain_mapping)


def to_json(action: Action) -> str:
    """The action as one line of JSON without a line feed, in Delta's order of fields.

    `InvalidArgumentError` if a value can't be written as JSON (such as NaN).
    """
    name, write = _WRITERS[type(action)]
    try:
        return _encoder.encode({name: write(action)})
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidArgumentError(f"the action {name!r} can't be written: {_reason(error)}") from None


def serialise(actions: Iterable[Action]) -> bytes:
    """The content of a commit file: one line with a line feed for each action (PROTOCOL.md, "Delta Log Entries").

    `InvalidArgumentError` if a text isn't valid Unicode or a value can't be written as JSON.
    """
    lines = [to_json(action) for action in actions]
    lines.append("")
    try:
        return "\n".join(lines).encode()
    except UnicodeEncodeError as error:
        raise InvalidArgumentError(f"the commit can't be written as UTF-8: {_reason(error)}") from None


def json_text(value: Any) -> str:
    """`value` as compact JSON text, as Delta writes lists and objects in operation parameters."""
    return _encoder.encode(value)


def operation_parameters(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """An operation's parameters in Delta's form in `commitInfo`: a list or an object becomes JSON text.

    Strings, numbers and booleans don't change; `None` is left out.
    """
    return {
        key: _encoder.encode(value) if isinstance(value, list | tuple | Mapping) else value
        for key, value in parameters.items()
        if value is not None
    }
