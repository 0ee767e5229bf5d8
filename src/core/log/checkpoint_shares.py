"""The live files of a large checkpoint in parts and pieces, for callers that can't hold all of them in memory.

Each piece is compared separately with the later commits, by the same rules as in replay.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from ...errors import CorruptLogError
from ..protocol.actions import FileKey
from ..protocol.paths import canonical_column
from .checkpoint_file import Damage, ParquetFile, fitted
from .columns import ADD_TYPES, FILE_SCHEMA, mask_of
from .replay import covered

if TYPE_CHECKING:
    from ..protocol.schema import Column


@dataclass(frozen=True, slots=True)
class RowGroupSplit:
    """Row groups of the Parquet file at `path`: those whose index modulo `of` is `share`."""

    path: str
    share: int = 0
    of: int = 1


def parted(files: Sequence[tuple[str, int]], count: int) -> list[RowGroupSplit]:
    """About `count` parts of similar size, of `files` as (path, bytes); at least one part for each file."""
    total = max(sum(size for _, size in files), 1)
    shares = [(path, max(1, round(size * count / total))) for path, size in files]
    return [RowGroupSplit(path, share, of) for path, of in shares for share in range(of)]


def parsed_leaves(columns: "Collection[Column]") -> list[str]:
    """The leaves of `stats_parsed` with the statistics of these columns, as dotted paths below it."""
    names = [".".join(column) for column in columns]
    bounds = [f"{kind}.{name}" for kind in ("minValues", "maxValues", "nullCount") for name in names]
    return ["numRecords", "tightBounds", *bounds]


def pieces(file: ParquetFile, stats: Sequence[str]) -> Iterator[pa.Table]:
    """The files that a Parquet file of a checkpoint adds: the columns of `FILE_SCHEMA`, and those of `stats`.

    `stats` may contain "stats", which is null if it doesn't exist, and "stats_parsed" or dotted paths below it, which
    is left out if it doesn't exist.
    """
    for rows in file.structs("add", [*FILE_SCHEMA.names, *stats]):
        with Damage(file.name, file.blame):
            existing = {field.name: child for field, child in zip(rows.type, rows.flatten(), strict=True)}
            names = [*FILE_SCHEMA.names, *(["stats"] if "stats" in stats else [])]
            columns = {name: _typed(existing.get(name), len(rows), ADD_TYPES[name]) for name in names}
            for name in ("path", "size"):
                if columns[name].null_count:
                    raise CorruptLogError(f"a file has no {name}")
            if "stats_parsed" in existing:
                columns["stats_parsed"] = existing["stats_parsed"]
        yield pa.table(columns)


def _typed(column: pa.Array | None, rows: int, type_: pa.DataType) -> pa.Array:
    if column is None:
        return pa.nulls(rows, type_)
    return fitted(column, type_)


def pieces_to_prune(file: ParquetFile, columns: "Collection[Column] | None") -> Iterator[pa.Table]:
    """`pieces` with the statistics of these columns (physical names): as structs if there are any, else as JSON text.

    `None`: without statistics.
    """
    file.open()
    if columns is None:
        return pieces(file, ())
    if "stats_parsed" in file.add_fields:
        return pieces(file, [f"stats_parsed.{leaf}" for leaf in parsed_leaves(columns)])
    return pieces(file, ["stats"])


def left(piece: pa.Table, table: str, superseded: Collection[FileKey]) -> pa.Table:
    """The rows of a piece that no later action supersedes; `table` is the table's root."""
    superseded_rows = covered(canonical_column(piece.column("path"), table), piece.column("deletionVector"), superseded)
    if not superseded_rows:
        return piece
    keep = bytearray(b"\x01") * piece.num_rows
    for row in superseded_rows:
        keep[row] = 0
    return piece.filter(mask_of(keep))
