"""The number of rows of a version, from the statistics of its files."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..core.table.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class RowCount:
    """The live rows (`None`: a file doesn't say how many it has), and the rows deleted by deletion vectors."""

    live: int | None
    deleted: int


def live_rows(snapshot: "Snapshot") -> RowCount:
    """Count the rows of a version without reading a data file."""
    import pyarrow.compute as pc

    from ..core.log.columns import exact_sum

    files = snapshot.files
    deleted = exact_sum(pc.struct_field(files.column("deletionVector"), "cardinality"))
    records = snapshot.num_records()
    if records.null_count:
        return RowCount(None, deleted)
    return RowCount(exact_sum(records) - deleted, deleted)
