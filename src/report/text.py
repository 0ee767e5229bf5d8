"""Numbers and times as text."""

from datetime import UTC, datetime


def number(value: float | None) -> str:
    """A number in full, with separators."""
    if value is None:
        return "unknown"
    return f"{value:,.0f}" if value == int(value) or value >= 99.95 else f"{value:,.1f}"


def count(value: int, noun: str, plural: str | None = None) -> str:
    """A number and its noun in the right form."""
    return f"{value:,} {noun if value == 1 else plural or noun + 's'}"


def short(value: float | None) -> str:
    """A number with three digits: 1.23 M."""
    if value is None:
        return "unknown"
    unit = 0
    units = ("", " k", " M", " bn", " tn", " qd")
    while abs(value) >= 999.5 and unit < len(units) - 1:
        value, unit = value / 1000, unit + 1
    if unit == 0 and value == int(value):
        return f"{value:.0f}"
    digits = 0 if abs(value) >= 99.95 else 1 if abs(value) >= 9.995 else 2
    text = f"{value:.{digits}f}"
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text}{units[unit]}"


def percent(share: float) -> str:
    """A share as a percentage; a share above 0 isn't shown as 0 %, and one below 1 not as 100 %."""
    value = 100 * share
    if 0 < value < 0.1:
        return "< 0.1 %"
    if 99.9 < value < 100:
        return "> 99.9 %"
    return f"{value:.0f} %" if value >= 9.95 or value == int(value) else f"{value:.1f} %"


def time(milliseconds: int | None) -> str:
    """A time in UTC, to the minute."""
    moment = _moment(milliseconds)
    return "unknown" if moment is None else moment.strftime("%Y-%m-%d %H:%M UTC")


def date(milliseconds: int) -> str:
    """The date of a time in UTC."""
    moment = _moment(milliseconds)
    return "unknown" if moment is None else moment.strftime("%Y-%m-%d")


def clock(milliseconds: int) -> str:
    """The time of the day in UTC."""
    moment = _moment(milliseconds)
    return "unknown" if moment is None else moment.strftime("%H:%M:%S")


def duration(milliseconds: float) -> str:
    """A duration in its largest fitting unit."""
    seconds = milliseconds / 1000
    for unit, length in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= length:
            value = seconds / length
            shown = f"{value:.0f}" if value >= 9.95 else f"{value:.1f}".removesuffix(".0")
            return f"{shown} {unit}{'' if shown == '1' else 's'}"
    return f"{seconds:.0f} second{'' if round(seconds) == 1 else 's'}"


def cut(value: str, most: int) -> str:
    """Text of at most so many characters."""
    return value if len(value) <= most else f"{value[: most - 1]}…"


def _moment(milliseconds: int | None) -> datetime | None:
    if milliseconds is None:
        return None
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return None
