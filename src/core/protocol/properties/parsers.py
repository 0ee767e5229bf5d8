"""Parsers of the values of table properties: each returns the typed value, or raises `ValueError` with the reason."""

import re
from collections.abc import Callable

from ..schema import Column, unquoted

_UNITS_MS = {
    "week": 7 * 86_400_000,
    "day": 86_400_000,
    "hour": 3_600_000,
    "minute": 60_000,
    "second": 1_000,
    "millisecond": 1,
}
_PART = re.compile(r"([+-]?)\s*(\d+)(?:\.(\d{1,9}))?\s+([a-z]+)(?:\s+|$)", re.ASCII)


def interval_ms(text: str) -> int:
    """Milliseconds of a calendar interval in Delta's forms: `interval 2 days 3 hours`, `1 week`, any case.

    `ValueError` for months and years, which have no fixed length, for a negative sum and for anything else.
    """
    body = text.strip().lower()
    if body == "interval" or body.startswith("interval "):
        body = body[len("interval") :].strip()
    if not body:
        raise ValueError("the interval is empty")
    micros, position = 0, 0
    while position < len(body):
        match = _PART.match(body, position)
        if match is None:
            raise ValueError(f"{text!r} is not an interval")
        sign, whole, fraction, name = match.groups()
        unit = name.removesuffix("s")
        if unit in ("month", "year"):
            raise ValueError("months and years have no fixed length")
        if unit not in _UNITS_MS and unit != "microsecond":
            raise ValueError(f"{name!r} is not a unit of time")
        if fraction and unit != "second":
            raise ValueError("only seconds may have a fraction")
        part = int(whole) * (1 if unit == "microsecond" else _UNITS_MS[unit] * 1_000)
        if fraction:
            part += int(fraction.ljust(9, "0")) // 1_000
        micros += -part if sign == "-" else part
        position = match.end()
    if micros < 0:
        raise ValueError("the interval is negative")
    return micros // 1_000


def boolean(text: str) -> bool:
    folded = text.lower()
    if folded not in ("true", "false"):
        raise ValueError("neither true nor false")
    return folded == "true"


def integer(low: int | None, high: int = 2**31 - 1) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not re.fullmatch(r"[+-]?\d+", text, re.ASCII):
            raise ValueError("not a whole number")
        value = int(text)
        if value > high or (low is not None and value < low):
            raise ValueError("out of range")
        return value

    return parse


def one_of(*names: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        for name in names:
            if text.lower() == name.lower():
                return name
        raise ValueError(f"not one of {', '.join(names)}")

    return parse


def any_text(text: str) -> str:
    return text


def formats(text: str) -> tuple[str, ...]:
    names = tuple(text.split(",")) if text else ()
    if len(set(names)) != len(names) or not set(names) <= {"iceberg", "hudi"}:
        raise ValueError("not a list of iceberg and hudi")
    return names


def parquet_version(text: str) -> str:
    if not re.fullmatch(r"1\.0\.0|2\.\d+\.\d+", text, re.ASCII):
        raise ValueError("neither 1.0.0 nor 2.x.y")
    return text


def column_list(text: str) -> tuple[Column, ...]:
    """The columns of `delta.dataSkippingStatsColumns`: `a, b.c, ``odd name``.d`. An empty text, which Delta writes when
    all of them were dropped, has no columns. `ValueError` if it isn't a list.
    """
    if not text.strip():
        return ()
    part = r"(?:`(?:[^`]|``)+`|[^\s`.,]+)"
    name = rf"{part}(?:\.{part})*"
    if not re.fullmatch(rf"\s*{name}\s*(?:,\s*{name}\s*)*", text):
        raise ValueError("not a list of column names")
    return tuple(tuple(map(unquoted, re.findall(part, match[0]))) for match in re.finditer(name, text))
