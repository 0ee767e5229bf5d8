"""The ids of rows, and the versions that wrote them last (PROTOCOL.md, "Reader Requirements for Row Tracking").

What a file's hidden columns say goes first: commands that write a row again put its id there. Else an id is the row's
place in the file, counted from the `baseRowId` that the log has for the file.
"""

from typing import TYPE_CHECKING

from ...core.protocol import row_tracking
from ...core.protocol import schema as schemas
from ...core.protocol.schema import StructField
from ..sql.hidden_names import free_names
from . import scan
from .extra_columns import Beside

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession

    from ...core.deltalog import DeltaLog
    from ...core.protocol.actions import Metadata
    from ...core.table.snapshot import Snapshot

_ADDED = ("__tablelog_base_row_id", "__tablelog_row_version", "__tablelog_row_place")


def columns(metadata: "Metadata") -> tuple[str, str]:
    """What data files call the row id and the commit version of a row, in a table whose row tracking is enabled."""
    known = metadata.configuration
    return known[row_tracking.ROW_ID_COLUMN], known[row_tracking.ROW_COMMIT_VERSION_COLUMN]


def fields(names: tuple[str, ...]) -> tuple[StructField, ...]:
    """Such columns, as files have them."""
    return tuple(StructField(name, schemas.LONG) for name in names)


def frame(
    spark: "SparkSession",
    log: "DeltaLog",
    names: tuple[str, str],
    *,
    snapshot: "Snapshot | None" = None,
    files: "pa.Table | None" = None,
    file_number: str | None = None,
    row_index: str | None = None,
) -> "DataFrame":
    """`scan.frame` of a table whose row tracking is enabled, with the row id and the commit version behind its columns.

    `names` is what these two are called.
    """
    from pyspark.sql import functions as F

    analysed = snapshot if snapshot is not None else log.snapshot()
    stored = fields(columns(analysed.metadata))
    asked = [name for name in (file_number, row_index) if name is not None]
    taken = {*scan.columns_of(analysed), *(f.name for f in stored), *asked}
    base, since, own_place = free_names(_ADDED, taken)
    told = (
        (StructField(base, schemas.LONG), "baseRowId"),
        (StructField(since, schemas.LONG), "defaultRowCommitVersion"),
    )
    place = row_index or own_place
    found = scan.frame(
        spark,
        log,
        snapshot=snapshot,
        files=files,
        beside=Beside(stored, told),
        file_number=file_number,
        row_index=place,
    )

    def column(name: str) -> "Column":
        return found["`" + name.replace("`", "``") + "`"]

    row_id, version = (column(f.name) for f in stored)
    return found.select(
        *(column(name) for name in analysed.schema.names),
        F.coalesce(row_id, column(base) + column(place)).alias(names[0]),
        F.coalesce(version, column(since)).alias(names[1]),
        *map(column, asked),
    )
