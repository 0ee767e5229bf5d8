"""A Parquet file of a checkpoint that is open: its footer, and what is asked of its schema again and again."""

from collections.abc import Sequence
from functools import cached_property
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq

from ...errors import CorruptLogError
from .column_types import fits
from .columns import ADD_TYPES
from .parquet_footer import footer_of, most_decoded
from .parquet_pages import pages_of

_BATCH_ROWS = 1 << 16


class OpenParquet:
    """Raises CorruptLogError if its columns of `add` have types that a checkpoint can't have; ValueError or Arrow's
    errors for an invalid file.
    """

    def __init__(self, data: bytes | IO[bytes]) -> None:
        self._data = data
        self.footer = footer_of(data)
        self.file = pq.ParquetFile(
            pa.BufferReader(data) if isinstance(data, bytes) else data,
            metadata=self.footer.metadata,
            # Spark writes the timestamps of stats_parsed as INT96: nanoseconds would overflow for the year 9999.
            coerce_int96_timestamp_unit="us",
            page_checksum_verification=True,
        )
        schema = self.file.schema_arrow
        self.kinds: dict[str, dict[str, pa.DataType]] = {
            kind.name: {field.name: field.type for field in kind.type} if pa.types.is_struct(kind.type) else {}
            for kind in schema
        }
        """For each kind of row, the types of its columns."""
        # Checked before any column is returned: for later damage the commits can't be used instead.
        for name, type_ in self.kinds.get("add", {}).items():
            if name in ADD_TYPES and not fits(type_, ADD_TYPES[name]):
                raise CorruptLogError(f"add.{name} has the type {type_}")

    @cached_property
    def leaves(self) -> list[str]:
        """The dotted paths of the columns in the file, in their order."""
        schema = self.file.schema
        return [schema.column(index).path for index in range(len(schema))]

    @cached_property
    def _paths(self) -> frozenset[str]:
        """The leaves and all columns above them."""
        parts = [leaf.split(".") for leaf in self.leaves]
        return frozenset(".".join(names[: end + 1]) for names in parts for end in range(len(names)))

    def existing(self, kind: str, names: Sequence[str]) -> list[str]:
        """The given columns of a kind, or dotted paths below them, that exist in the file."""
        return [path for path in (f"{kind}.{name}" for name in names) if path in self._paths]

    def row_groups(self, leaf: str, indices: Sequence[int]) -> list[int]:
        """Those of `indices` that may have rows of a kind, by the null count of a leaf that all its rows have."""
        column = self.leaves.index(leaf) if leaf in self.leaves else None
        found = []
        for index in indices:
            group = self.footer.row_groups[index]
            nulls = None if column is None else group.columns[column].nulls
            # A group without rows has no pages, and a writer may give any place for them.
            if group.num_rows and (nulls is None or nulls < group.num_rows):
                found.append(index)
        return found

    @property
    def most_decoded(self) -> int:
        """The most bytes that may be decoded from it."""
        return most_decoded(self.footer.size)

    def batch_rows(self, groups: Sequence[int], paths: Sequence[str]) -> int:
        """The number of rows to decode at once. CorruptLogError if the pages of these columns decompress to too much.

        Each row may contain the longest text of a dictionary: the longer that can be, the fewer rows at once.
        """
        if not isinstance(self._data, bytes):
            return _BATCH_ROWS
        total = longest = 0
        starts = tuple(f"{path}." for path in paths)
        columns = [index for index, leaf in enumerate(self.leaves) if f"{leaf}.".startswith(starts)]
        for group in groups:
            for index in columns:
                column = self.footer.row_groups[group].columns[index]
                pages = pages_of(self._data, column.start, column.size)
                total, longest = total + pages.decompressed, max(longest, pages.dictionary)
                if total > self.most_decoded:
                    raise CorruptLogError(
                        f"it decompresses to more than {self.most_decoded} bytes, but has {self.footer.size}"
                    )
        return max(1, min(_BATCH_ROWS, self.most_decoded // max(longest, 1)))
