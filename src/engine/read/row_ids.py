"""Row IDs and row commit versions (PROTOCOL.md, "Reader Requirements for Row Tracking").

If a file has the materialized columns, their values apply: commands that rewrite a row store its ID there. Otherwise
the row ID is the row's index in the file plus the `baseRowId` of the file.
"""

from typing import TYPE_CHECKING

from ...core.protocol import row_tracking
from ...core.protocol import schema as schemas
from ...core.protocol.schema import StructField
from ..sql.hidden_names import free_names
from . import scan
from .extra_columns import ExtraColumns

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession

    from ...core.deltalog import DeltaLog
    from ...core.protocol.actions import Metadata
    from ...core.table.snapshot import Snapshot

_ADDED = ("__tablelog_base_row_id", "__tablelog_row_version", "__tablelog_row_place")


def columns(metadata: "Metadata") -> tuple[str, str]:
    """Physical names of the row ID and row commit version columns of a table with row tracking enabled."""
    known = metadata.configuration
    return known[row_tracking.ROW_ID_COLUMN], known[row_tracking.ROW_COMMIT_VERSION_COLUMN]


def fields(names: tuple[str, ...]) -> tuple[StructField, ...]:
    """The fields of these columns in data files."""
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
    options: "Mapping[str, str] | None" = None,
) -> "DataFrame":
    """`scan.frame` of a table with row tracking enabled, with row ID and row commit version after its columns.

    `names` are the names of these two columns in the frame.
    """
    from pyspark.sql import functions as F

    analysed = snapshot if snapshot is not None else log.snapshot()
    stored = fields(columns(analysed.metadata))
    requested = [name for name in (file_number, row_index) if name is not None]
    taken = {*scan.columns_of(analysed), *(f.name for f in stored), *requested}
    base, since, own_place = free_names(_ADDED, taken)
    constants = (
        (StructField(base, schemas.LONG), "baseRowId"),
        (StructField(since, schemas.LONG), "defaultRowCommitVersion"),
    )
    place = row_index or own_place
    rows = scan.frame(
        spark,
        log,
        snapshot=snapshot,
        files=files,
        extra=ExtraColumns(stored, constants),
        file_number=file_number,
        row_index=place,
        options=options,
    )

    def column(name: str) -> "Column":
        return rows[schemas.quoted(name)]

    row_id, version = (column(f.name) for f in stored)
    return rows.select(
        *(column(name) for name in analysed.schema.names),
        F.coalesce(row_id, column(base) + column(place)).alias(names[0]),
        F.coalesce(version, column(since)).alias(names[1]),
        *map(column, requested),
    )
