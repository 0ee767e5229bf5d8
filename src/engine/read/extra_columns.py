"""Columns that a frame has in addition to the columns of its table, on any route."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from ...core.protocol import schema as schemas

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True)
class ExtraColumns:
    """Columns after those of the table.

    `stored` are columns of the data files, by these names; they are null for a file that lacks them. `per_file` are
    constant in each file, each with the name of the column of `files` (such as `Snapshot.files`) that has the value.
    """

    stored: tuple[schemas.StructField, ...] = ()
    per_file: tuple[tuple[schemas.StructField, str], ...] = ()

    @property
    def fields(self) -> tuple[schemas.StructField, ...]:
        return (*self.stored, *self.per_file_fields)

    @property
    def per_file_fields(self) -> tuple[schemas.StructField, ...]:
        return tuple(f for f, _ in self.per_file)

    def values(self, files: pa.Table) -> "Iterator[pa.Array]":
        """A column of constants for each of `per_file_fields`."""
        for field, name in self.per_file:
            yield files.column(name).combine_chunks().cast(schemas.arrow_type(field.data_type))


NO_EXTRA_COLUMNS = ExtraColumns()
