"""The keys in the commands' JSON, and those that scripts depend on: `golden/command_line_keys.json`."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

GOLDEN = Path(__file__).parents[1] / "golden" / "command_line_keys.json"

_OPEN = {
    *("operationParameters", "operationMetrics", "properties", "packages"),
    *("schema", "stats", "partitionValues", "actions", "rows", "declared", "versions"),
}
"""Members whose own keys are a table's, the log's or the environment's."""


def stable() -> dict[str, list[str]]:
    """The keys of each command; a changed one needs an entry in CHANGELOG.md."""
    keys: dict[str, list[str]] = json.loads(GOLDEN.read_text(encoding="utf-8"))
    return keys


def keys_of(document: Any) -> list[str]:
    """The keys in a document as paths, such as `history[].version`."""
    return sorted({*_paths(document, "")})


def _paths(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _paths(item, f"{path}[]")
    elif isinstance(value, dict):
        for name, item in value.items():
            below = f"{path}.{name}" if path else name
            yield below
            if name not in _OPEN:
                yield from _paths(item, below)
