"""The text of the commands that a report advises. Most are SQL, which `spark.sql` runs in an enabled session."""

import json
import shlex
from collections.abc import Sequence

from .facts import Values


def table(location: str) -> str:
    """The table in SQL, by its path."""
    return f"delta.{column(location)}"


def column(name: str) -> str:
    """A name in SQL."""
    return f"`{name.replace('`', '``')}`"


def dotted(path: Sequence[str]) -> str:
    """The name of a column, or of a field of a struct, in SQL."""
    return ".".join(map(column, path))


def literal(text: str) -> str:
    """A string literal in SQL."""
    quoted = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{quoted}'"


def partitions(values: Sequence[Values]) -> str:
    """The condition on partition columns for these partitions; "" for a table without partitions."""
    if not values or not values[0]:
        return ""
    names = [name for name, _ in values[0]]
    if len(names) == 1 and all(value is not None for ((_, value),) in values):
        texts = [literal(value or "") for ((_, value),) in values]
        return f"{column(names[0])} = {texts[0]}" if len(texts) == 1 else f"{column(names[0])} IN ({', '.join(texts)})"
    parts = [" AND ".join(_equals(name, value) for name, value in group) for group in values]
    return parts[0] if len(parts) == 1 else " OR ".join(f"({part})" for part in parts)


def _equals(name: str, value: str | None) -> str:
    return f"{column(name)} IS NULL" if value is None else f"{column(name)} = {literal(value)}"


def optimize(location: str, where: str = "", zorder_by: Sequence[Sequence[str]] = ()) -> str:
    """OPTIMIZE of a table."""
    by = f"\nZORDER BY ({', '.join(map(dotted, zorder_by))})" if zorder_by else ""
    condition = f"\nWHERE {where}" if where else ""
    return f"OPTIMIZE {table(location)}{condition}{by}"


def vacuum(location: str) -> str:
    """VACUUM of a table with the table's own retention."""
    return f"VACUUM {table(location)}"


def purge(location: str) -> str:
    """The rewrite of files with deleted rows."""
    return f"REORG TABLE {table(location)} APPLY (PURGE)"


def set_property(location: str, key: str, value: str) -> str:
    """Set a property of a table."""
    return f"ALTER TABLE {table(location)}\nSET TBLPROPERTIES ({literal(key)} = {literal(value)})"


def checkpoint(location: str) -> str:
    """Write a checkpoint, in Python: there is no SQL for it."""
    return f"from tablelog.core import DeltaLog\n\nDeltaLog.for_path({json.dumps(location)}).checkpoint()"


def repair(location: str) -> str:
    """List what is wrong with a log, and repair it, by the command line."""
    quoted = shlex.quote(location)
    return f"tablelog check {quoted}\ntablelog repair {quoted}"
