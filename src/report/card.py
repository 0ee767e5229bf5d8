"""A few lines of HTML about a table, for a notebook. It costs no request besides the one for the newest version."""

from collections.abc import Sequence

from ..core.protocol.features import supported
from ..core.table.snapshot import Snapshot
from ..logstore.common.uri import local_path, scheme_of, shown
from ..pages import escaped
from ..units import size
from .text import count, cut, number, time

_FRAME = (
    "display:inline-block;max-width:100%;box-sizing:border-box;border:1px solid #8886;border-left:4px solid #2f6fd0;"
    "border-radius:6px;padding:.6em 1em;font:14px/1.5 system-ui,sans-serif;text-align:left;overflow-wrap:anywhere"
)
_MOST_COLUMNS = 12


def card(snapshot: Snapshot) -> str:
    """The name, the version, the size and the columns of a table. Its style works on light and dark backgrounds."""
    location = local_path(snapshot.table) if scheme_of(snapshot.table) == "file" else shown(snapshot.table)
    name = snapshot.metadata.name or location.rstrip("/").rpartition("/")[2] or location
    totals = snapshot.totals()
    facts = {
        "Location": location if len(location) < 300 else cut(location, 300),
        "Version": f"{snapshot.version} of {time(snapshot.timestamp_ms)}",
        "Files": None if totals is None else f"{number(totals.num_files)}, {size(totals.size_in_bytes)}",
        "Partitioned by": ", ".join(snapshot.partition_columns),
        "Columns": f"{count(len(snapshot.schema), 'column')}: {_some([field.name for field in snapshot.schema])}",
        "Features": _some(sorted(supported(snapshot.protocol))),
    }
    rows = "".join(
        f'<div style="display:flex;gap:1em"><span style="flex:0 0 7.5em;opacity:.72">{name_}</span>'
        f'<span style="min-width:0">{escaped(value)}</span></div>'
        for name_, value in facts.items()
        if value
    )
    title = f'<strong style="font-size:1.15em">{escaped(cut(name, 120))}</strong>'
    return f'<div style="{_FRAME}">{title} <span style="opacity:.72">Delta table</span>{rows}</div>'


def _some(names: Sequence[str]) -> str:
    more = len(names) - _MOST_COLUMNS
    return ", ".join(cut(name, 40) for name in names[:_MOST_COLUMNS]) + (f" and {more:,} more" if more > 0 else "")
