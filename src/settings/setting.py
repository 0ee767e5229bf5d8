"""A setting: the key, the values that it may have, and what it does."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from ..errors import InvalidArgumentError, TablelogError

T_co = TypeVar("T_co", covariant=True)

_SIZE_UNITS = {"": 0, "b": 0, "k": 10, "kb": 10, "m": 20, "mb": 20, "g": 30, "gb": 30, "t": 40, "tb": 40}
_SIZE = re.compile(r"(\d{1,18})\s*([a-z]*)", re.ASCII)
_WHOLE = re.compile(r"\d{1,18}", re.ASCII)


@dataclass(frozen=True)
class Values(Generic[T_co]):
    """What a setting may hold.

    `parse` makes the value of a text and raises ValueError for a text that isn't allowed; `allowed` says what is, so
    that it continues "it needs to be".
    """

    parse: Callable[[str], T_co]
    allowed: str


@dataclass(frozen=True)
class Setting(Generic[T_co]):
    """One key of the session's configuration.

    Args:
        key: The key as users write it.
        default: The value where the key isn't set.
        values: What the key may hold.
        help: One line for the reference page.
        unit: What a number counts.
        shown_default: The default as the reference page shows it, where `default` doesn't tell.
        per_operation: The value belongs to one operation, and isn't kept with the handle of a table.
        error: The class of the error for a wrong value.
    """

    key: str
    default: T_co
    values: Values[T_co]
    help: str
    unit: str = ""
    shown_default: str = ""
    per_operation: bool = False
    error: type[TablelogError] = InvalidArgumentError

    def of(self, conf: Mapping[str, str]) -> T_co:
        """The value in a configuration, or the default. Raises `error`."""
        text = conf.get(self.key)
        return self.default if text is None else self.parsed(text)

    def parsed(self, text: str) -> T_co:
        """The value of a text. Raises `error`, with the key, the text and what is allowed."""
        try:
            return self.values.parse(str(text))
        except ValueError:
            raise self.error(f"{self.key} is {str(text).strip()!r}: it needs to be {self.values.allowed}") from None


@dataclass(frozen=True, slots=True)
class Family:
    """Keys with a common `prefix`; `rest` is what follows it, as the reference page shows it."""

    prefix: str
    rest: str
    help: str


@dataclass(frozen=True, slots=True)
class Unsupported:
    """A key of Delta that has no effect here. `why` completes the sentence of the warning."""

    key: str
    why: str


def _flag(text: str) -> bool:
    folded = text.strip().lower()
    if folded not in ("true", "false"):
        raise ValueError(text)
    return folded == "true"


def _whole(text: str) -> int:
    if not _WHOLE.fullmatch(text.strip()):
        raise ValueError(text)
    return int(text)


def _positive(text: str) -> int:
    number = _whole(text)
    if number == 0:
        raise ValueError(text)
    return number


def _ratio(text: str) -> float:
    ratio = float(text)
    if not 0 <= ratio <= 1:
        raise ValueError(text)
    return ratio


def _bytes(text: str, plain: int = 0) -> int:
    match = _SIZE.fullmatch(text.strip().lower())
    if match is None or match[2] not in _SIZE_UNITS:
        raise ValueError(text)
    return int(match[1]) << (_SIZE_UNITS[match[2]] if match[2] else plain)


def choice(*names: str, empty: str | None = None) -> Values[str]:
    """One of some names in any case, as they are spelled here; `empty` is what the empty text means."""
    spelled = {name.lower(): name for name in names}
    if empty is not None:
        spelled[""] = empty

    def parse(text: str) -> str:
        name = spelled.get(text.strip().lower())
        if name is None:
            raise ValueError(text)
        return name

    return Values(parse, f"{', '.join(names[:-1])} or {names[-1]}")


TEXT = Values[str](str, "a text")
FLAG = Values[bool](_flag, "true or false")
WHOLE = Values[int](_whole, "a whole number from 0 on")
INTEGER = Values[int](int, "a whole number")
POSITIVE = Values[int](_positive, "a whole number from 1 on")
RATIO = Values[float](_ratio, "a number between 0 and 1")
BYTES = Values[int](_bytes, "a number of bytes, such as 134217728 or 128MB")
MEBIBYTES = Values[int](
    lambda text: _bytes(text, 20), "a size: a number of MiB, such as 512, or one with a unit: 512MB"
)
"""Bytes; a number without a unit counts MiB."""
