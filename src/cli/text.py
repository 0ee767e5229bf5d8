"""Values as text for people: counts, times, and text from a table without control characters."""

import re
from datetime import UTC, datetime

# C0 and C1 controls, surrogates, line separators, invisible characters and those that change the direction of text.
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e0fff]"
)


def safe(text: object, most: int | None = None) -> str:
    """`text` with escapes for everything that a terminal may act on; cut to `most` characters.

    A table's log is written by others: its values may hold escape codes that recolour, overwrite or hide lines.
    """
    plain = str(text)
    if most is not None and len(plain) > most:
        plain = f"{plain[: max(most - 1, 0)]}…"
    return _UNSAFE.sub(_escape, plain)


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    names = {9: r"\t", 10: r"\n", 13: r"\r", 27: r"\e"}
    if code in names:
        return names[code]
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def one_line(text: object) -> str:
    """A message in one line, without control characters."""
    return safe(" ".join(str(text).split()))


def first_line(text: object) -> str:
    """The first line of a message that has text in it."""
    return next((line for line in str(text).splitlines() if line.strip()), "").strip()


def count(number: int | None, noun: str = "", plural: str | None = None) -> str:
    """A number with separators, and its noun in the right form."""
    if number is None:
        return f"unknown {plural or noun + 's'}" if noun else "unknown"
    text = f"{number:,}"
    return text if not noun else f"{text} {noun if number == 1 else plural or noun + 's'}"


def time(milliseconds: int | None) -> str:
    """A time in UTC, for people."""
    moment = _moment(milliseconds)
    return "unknown" if moment is None else moment.strftime("%Y-%m-%d %H:%M:%S")


def iso(milliseconds: int | None) -> str | None:
    """A time in UTC by ISO 8601, for programs; `None` for a time that has no such form."""
    moment = _moment(milliseconds)
    return None if moment is None else moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _moment(milliseconds: int | None) -> datetime | None:
    if milliseconds is None:
        return None
    try:
        return datetime.fromtimestamp(milliseconds // 1000, UTC).replace(microsecond=milliseconds % 1000 * 1000)
    except (OverflowError, ValueError, OSError):
        return None


def shown(uri: str) -> str:
    """A table's URI without user information, as messages have it; a local path without `file://`."""
    from ..logstore.common.uri import local_path, scheme_of
    from ..logstore.common.uri import shown as without_secrets

    return local_path(uri) if scheme_of(uri) == "file" else without_secrets(uri)
