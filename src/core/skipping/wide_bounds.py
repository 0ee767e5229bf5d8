"""Statistics of a file that gets a deletion vector (PROTOCOL.md, "Per-file Statistics").

Bounds and null counts then apply to all rows in the file, including deleted ones: `tightBounds` is false.
"""

import json
from typing import Any

_DECODER = json.JSONDecoder()
_WHITE = " \t\n\r"


def widened(stats: str | None, deleted: int) -> str | None:
    """The statistics with `tightBounds` false; `None` if they don't have the number of rows.

    `deleted` is the number of rows that the file's vector has deleted so far. If null counts don't include those, the
    count of a column with only nulls is corrected; other counts above 0 are no longer exact. Bounds keep their exact
    text.
    """
    members = _members(stats or "")
    records = _integer(members.get("numRecords"))
    if records is None:
        return None
    if deleted and "nullCount" in members and members.get("tightBounds") != "false":
        counts = _recounted(json.loads(members["nullCount"]), records - deleted, records)
        members["nullCount"] = json.dumps(counts, ensure_ascii=False, separators=(",", ":"))
    members["tightBounds"] = "false"
    return "{" + ",".join(f"{json.dumps(key)}:{value}" for key, value in members.items()) + "}"


def bare(records: int) -> str:
    """The minimal statistics of a file with a deletion vector: the number of rows in it."""
    return f'{{"numRecords":{records},"tightBounds":false}}'


def _recounted(counts: Any, live: int, records: int) -> Any:
    if isinstance(counts, dict):
        return {key: _recounted(value, live, records) for key, value in counts.items()}
    return records if counts == live else counts


def _integer(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdigit() else None


def _members(text: str) -> dict[str, str]:
    """The members of a JSON object, with the exact text of each value; empty if the text isn't an object."""
    members: dict[str, str] = {}
    try:
        at = _past(text, 0, "{")
        while text[at] != "}":
            if members:
                at = _past(text, at, ",")
            key, at = _DECODER.raw_decode(text, at)
            start = _past(text, at, ":")
            _, at = _DECODER.raw_decode(text, start)
            members[str(key)] = text[start:at]
            at = _blank(text, at)
    except (ValueError, IndexError):
        return {}
    return members


def _past(text: str, at: int, mark: str) -> int:
    at = _blank(text, at)
    if text[at] != mark:
        raise ValueError(mark)
    return _blank(text, at + 1)


def _blank(text: str, at: int) -> int:
    while text[at] in _WHITE:
        at += 1
    return at
