"""What a frame may have beside the columns of its table, whatever the route."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from ...core.protocol import schema as schemas

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True)
class Beside:
    """Columns that stand behind those of the table.

    `stored` are in data files by their own names, and null where a file has none. `told` are the same for all rows of
    a file, each with the column of `files` (rows of `Snapshot.files`, or of the like) that has it.
    """

    stored: tuple[schemas.StructField, ...] = ()
    told: tuple[tuple[schemas.StructField, str], ...] = ()

    @property
    def fields(self) -> tuple[schemas.StructField, ...]:
        return (*self.stored, *self.told_fields)

    @property
    def told_fields(self) -> tuple[schemas.StructField, ...]:
        return tuple(f for f, _ in self.told)

    def values(self, files: pa.Table) -> "Iterator[pa.Array]":
        """A column for each of `told_fields`."""
        for f, name in self.told:
            yield files.column(name).combine_chunks().cast(schemas.arrow_type(f.data_type))


NOTHING = Beside()
