"""The live files of a large checkpoint in parts and pieces, for callers that can't hold all of them in memory.

Each piece is compared separately with the later commits, by the same rules as in replay.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from ...errors import CorruptLogError
from ..protocol.actions import FileKey
from ..protocol.paths import canonical_column
from .checkpoint_file import Damage, ParquetFile
from .column_types import fitted
from .columns import ADD_TYPES, FILE_SCHEMA, REMOVE_SCHEMA, mask_of
from .replay import covered, path_set

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


def removed_pieces(file: ParquetFile) -> Iterator[pa.Table]:
    """The tombstones in a Parquet file of a checkpoint, with the columns of `REMOVE_SCHEMA`."""
    for rows in file.structs("remove", REMOVE_SCHEMA.names):
        with Damage(file.name, file.blame):
            existing = {field.name: child for field, child in zip(rows.type, rows.flatten(), strict=True)}
            columns = [_typed(existing.get(field.name), len(rows), field.type) for field in REMOVE_SCHEMA]
            if columns[0].null_count:
                raise CorruptLogError("a file has no path")
        yield pa.table(columns, schema=REMOVE_SCHEMA)


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


def texts_of(file: ParquetFile, rows: pa.Array) -> pa.ChunkedArray:
    """The statistics of some files that a Parquet file of a checkpoint adds, as JSON text.

    `rows` are ascending indices among all files that it adds. Statistics that exist only as structs become text.
    """
    from ..skipping.stats_text import stats_texts

    file.open()
    texts = pa.chunked_array([pa.nulls(len(rows), ADD_TYPES["stats"])])
    if "stats" in file.add_fields:
        chunks = _taken(file, "stats", rows)
        with Damage(file.name, file.blame):
            texts = pa.chunked_array([fitted(chunk, ADD_TYPES["stats"]) for chunk in chunks], ADD_TYPES["stats"])
    if texts.null_count and "stats_parsed" in file.add_fields:
        parsed = _taken(file, "stats_parsed", rows)
        with Damage(file.name, file.blame):
            texts = stats_texts(texts, pa.chunked_array(parsed))
    return texts


def _taken(file: ParquetFile, name: str, rows: pa.Array) -> list[pa.Array]:
    chunks: list[pa.Array] = []
    first = 0
    for batch in file.structs("add", [name]):
        inside = pc.and_(pc.greater_equal(rows, first), pc.less(rows, first + len(batch)))
        own = pc.subtract(rows.filter(inside), first)
        first += len(batch)
        if len(own):
            chunks.append(batch.flatten()[0].take(own))
    return chunks


def left(pieces: Iterable[pa.Table], table: str, superseded: Collection[FileKey]) -> Iterator[pa.Table]:
    """The rows of each piece that no later action supersedes; `table` is the table's root."""
    paths = path_set(superseded)  # once: for each piece it would take longer than the piece
    for piece in pieces:
        rows = covered(canonical_column(piece.column("path"), table), piece.column("deletionVector"), superseded, paths)
        if rows:
            keep = bytearray(b"\x01") * piece.num_rows
            for row in rows:
                keep[row] = 0
            piece = piece.filter(mask_of(keep))
        yield piece
