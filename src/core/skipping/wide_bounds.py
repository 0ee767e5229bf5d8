"""Statistics of a file whose rows a deletion vector begins to delete (PROTOCOL.md, "Per-file Statistics").

From then on bounds and counts of nulls are those of all rows that lie in the file: `tightBounds` is false.
"""

import json
from typing import Any

_DECODER = json.JSONDecoder()
_WHITE = " \t\n\r"


def widened(stats: str | None, deleted: int) -> str | None:
    """The statistics with `tightBounds` false; `None` where they don't say how many rows lie in the file.

    `deleted`: how many rows the file's vector has deleted so far. Where the counts of nulls leave those out, a column
    of nothing but nulls is counted anew; other counts above 0 promise nothing from now on. Bounds stay as they are
    spelt, digit by digit.
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
    """The least that the statistics of a file with a deletion vector say: how many rows lie in it."""
    return f'{{"numRecords":{records},"tightBounds":false}}'


def _recounted(counts: Any, live: int, records: int) -> Any:
    if isinstance(counts, dict):
        return {key: _recounted(value, live, records) for key, value in counts.items()}
    return records if counts == live else counts


def _integer(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdigit() else None


def _members(text: str) -> dict[str, str]:
    """The members of a JSON object, each value as it is spelt; none where the text is no object."""
    found: dict[str, str] = {}
    try:
        at = _past(text, 0, "{")
        while text[at] != "}":
            if found:
                at = _past(text, at, ",")
            key, at = _DECODER.raw_decode(text, at)
            start = _past(text, at, ":")
            _, at = _DECODER.raw_decode(text, start)
            found[str(key)] = text[start:at]
            at = _blank(text, at)
    except (ValueError, IndexError):
        return {}
    return found


def _past(text: str, at: int, mark: str) -> int:
    at = _blank(text, at)
    if text[at] != mark:
        raise ValueError(mark)
    return _blank(text, at + 1)


def _blank(text: str, at: int) -> int:
    while text[at] in _WHITE:
        at += 1
    return at
