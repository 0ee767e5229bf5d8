"""Reads the JSON of the log strictly, and writes it compactly."""

import json
import math
from collections.abc import Mapping
from typing import Any, NoReturn

Json = dict[str, Any]

_MOST_KEYS = 16


def _plain_mapping(value: Any) -> Any:
    # A MappingProxyType or other Mapping in an action's field.
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} can't be written as JSON")


encoder = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain_mapping)


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


def load(text: str) -> Any:
    """The JSON value of `text`; ValueError or RecursionError if it isn't valid in a log."""
    if not text.isascii() or "\\u" in text:
        # The slow way: an escape may repeat a key in another form, or be an unpaired surrogate.
        value = _decode_unique(text)
        encoder.encode(value).encode()
        return value
    value = _decode(text)
    if type(value) is dict:
        if len(value) > _MOST_KEYS:
            return _decode_unique(text)  # otherwise each key would be searched in the whole line
        for key in value:
            if text.count(f'"{key}"') > 1:
                return _decode_unique(text)
    return value


def reason(error: BaseException) -> str:
    if isinstance(error, UnicodeDecodeError):
        return f"byte {error.start} is not UTF-8"
    if isinstance(error, UnicodeEncodeError):
        return "it has an unpaired surrogate"
    if isinstance(error, RecursionError):
        return "the nesting is too deep"
    return str(error)


def json_text(value: Any) -> str:
    """`value` as compact JSON text, as Delta writes lists and objects in operation parameters."""
    return encoder.encode(value)
