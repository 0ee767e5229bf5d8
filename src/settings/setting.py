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
    """The values that a setting may have.

    `parse` converts a string to a value and raises ValueError if the string isn't allowed. `allowed` describes the
    allowed values; it completes the sentence "it must be ...".
    """

    parse: Callable[[str], T_co]
    allowed: str


@dataclass(frozen=True)
class Setting(Generic[T_co]):
    """One key of the session's configuration.

    Args:
        key: The key as users write it.
        default: The value if the key isn't set.
        values: The allowed values.
        help: One line for the reference page.
        unit: The unit of a number.
        shown_default: The text for the default on the reference page, if `default` alone doesn't describe it.
        per_operation: The value belongs to one operation and isn't stored in the handle of a table.
        error: The class of the error for an invalid value.
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
        """Convert a string to a value. Raises `error`, which names the key, the string and the allowed values."""
        try:
            return self.values.parse(str(text))
        except ValueError:
            raise self.error(f"{self.key} is {str(text).strip()!r}: it must be {self.values.allowed}") from None


@dataclass(frozen=True, slots=True)
class Family:
    """Keys with a common `prefix`. `rest` is the placeholder for the remaining part on the reference page."""

    prefix: str
    rest: str
    help: str


@dataclass(frozen=True, slots=True)
class Unsupported:
    """A key of Delta that has no effect in tablelog. `why` is the reason, for the warning."""

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
    """One of `names`, compared without case; the value is the name as spelled here. `empty` is the value for ""."""
    spelled = {name.lower(): name for name in names}
    if empty is not None:
        spelled[""] = empty

    def parse(text: str) -> str:
        name = spelled.get(text.strip().lower())
        if name is None:
            raise ValueError(text)
        return name

    return Values(parse, f"{', '.join(names[:-1])} or {names[-1]}")


TEXT = Values[str](str, "a string")
FLAG = Values[bool](_flag, "true or false")
WHOLE = Values[int](_whole, "a whole number, 0 or larger")
INTEGER = Values[int](int, "a whole number")
POSITIVE = Values[int](_positive, "a whole number, 1 or larger")
RATIO = Values[float](_ratio, "a number between 0 and 1")
BYTES = Values[int](_bytes, "a number of bytes, such as 134217728 or 128MB")
MEBIBYTES = Values[int](
    lambda text: _bytes(text, 20), "a number of MiB, such as 512, or a size with a unit, such as 512MB"
)
"""A size in bytes. A number without a unit is a number of MiB."""
