"""What a scan reads: one value for all routes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .extra_columns import NO_EXTRA_COLUMNS, ExtraColumns

if TYPE_CHECKING:
    import pyarrow as pa

    from ...core.table.snapshot import Snapshot


@dataclass(frozen=True, slots=True, eq=False)
class ScanSpec:
    """The version, the files and the columns of a scan.

    `snapshot` is the version to read if `pinned`. If not, it is the version with which the frame was resolved, and the
    native route reads the newest version at each execution. `files` is a subset of the snapshot's files, None for all.
    The columns of `extra` follow the table's columns. `file_number` and `row_index` are the names of two more columns:
    the index of the record's file in `files` (else in `snapshot.files`), and the record's index in its data file.
    `options` are options of Spark and Hadoop for reading Parquet files.
    """

    snapshot: "Snapshot"
    pinned: bool = True
    files: "pa.Table | None" = None
    extra: ExtraColumns = NO_EXTRA_COLUMNS
    file_number: str | None = None
    row_index: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def added_names(self) -> list[str]:
        """The names of the columns after the table's, in their order."""
        return [*(f.name for f in self.extra.fields), *self._index_names]

    @property
    def constant_names(self) -> list[str]:
        """`added_names` without the columns that are stored in the data files."""
        return [*(f.name for f in self.extra.per_file_fields), *self._index_names]

    @property
    def _index_names(self) -> list[str]:
        return [name for name in (self.file_number, self.row_index) if name is not None]
