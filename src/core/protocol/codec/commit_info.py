"""`commitInfo` from JSON and to JSON (PROTOCOL.md, "Commit Provenance Information").

It is free-form, so nothing in it is an error: unknown fields, and fields of an unexpected type, are kept in
`CommitInfo.extra` and written back.
"""

from collections.abc import Callable, Mapping
from typing import Any

from ..actions import CommitInfo
from .strict_json import Json, encoder

LONG_MIN, LONG_MAX = -(2**63), 2**63 - 1


def _is_str(value: Any) -> bool:
    return type(value) is str


def _is_long(value: Any) -> bool:
    return type(value) is int and LONG_MIN <= value <= LONG_MAX


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


def parse_commit_info(obj: Json) -> CommitInfo:
    known: Json = {}
    extra: Json = {}
    for name, value in obj.items():
        entry = _COMMIT_INFO_FIELDS.get(name)
        if entry is not None and entry[1](value):
            known[entry[0]] = value
        elif value is not None:
            extra[name] = value
    return CommitInfo(**known, extra=extra)


def commit_info_json(info: CommitInfo) -> Json:
    obj: Json = {}
    for name, field, _ in _COMMIT_INFO:
        value = getattr(info, field)
        if value is not None:
            obj[name] = value
    if info.extra:
        for name, value in info.extra.items():
            obj.setdefault(name, value)
    return obj


def operation_parameters(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """An operation's parameters in Delta's form in `commitInfo`: a list or an object becomes JSON text.

    Strings, numbers and booleans don't change; `None` is left out.
    """
    return {
        key: encoder.encode(value) if isinstance(value, list | tuple | Mapping) else value
        for key, value in parameters.items()
        if value is not None
    }
