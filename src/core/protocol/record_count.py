"""The number of rows of a data file, from its statistics (PROTOCOL.md, "Per-file Statistics")."""

import json
import re

_COUNT_FIRST = re.compile(r'\{"numRecords":(\d+)[,}]')


def num_records(text: str | None) -> int | None:
    """The number of rows in a file by its `add.stats`, including deleted rows; None: unknown."""
    if text is None:
        return None
    if (match := _COUNT_FIRST.match(text)) is not None:
        return int(match[1])
    try:
        count = json.loads(text).get("numRecords")
    except (ValueError, AttributeError):
        return None
    return count if type(count) is int else None
