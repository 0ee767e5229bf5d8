"""The Parquet files of checkpoints: classic ones, parts, sidecars, and the top level of V2.

They hold rows of actions in row groups of a limited size, with checksums of the pages and of the footer.
"""

import io
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from ..log.parquet_footer import sealed
from ..protocol.actions import Action
from . import checkpoint_rows as rows

_REPEATED = [f"{kind}.partitionValues.key_value.{part}" for kind in ("add", "remove") for part in ("key", "value")]
"""The columns with a dictionary; the values of the others are mostly distinct, and a dictionary doubles the time."""
NO_BOUND = 1 << 62


class MemorySink(io.RawIOBase):
    """Collects written data in small pieces, whose memory is reused: allocating new memory takes time."""

    def __init__(self) -> None:
        super().__init__()
        self._pieces: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        piece = bytes(data)  # no copy if it is `bytes`
        self._pieces.append(piece)
        return len(piece)

    def take(self) -> list[bytes]:
        """The pieces written since the last call."""
        pieces, self._pieces = self._pieces, []
        return pieces


class _Sealing(io.RawIOBase):
    """Passes on written data until `hold` is set; later data is collected in `held`."""

    def __init__(self, sink: IO[bytes] | io.RawIOBase) -> None:
        super().__init__()
        self._sink = sink
        self.hold = False
        self.held: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        if self.hold:
            self.held.append(bytes(data))
            return len(self.held[-1])
        return self._sink.write(data) or 0


class CheckpointFile:
    """Writes one Parquet file: rows of one kind after another, in row groups of a limited size.

    Its pages and its footer have checksums (`parquet_footer`).
    """

    def __init__(self, schema: pa.Schema, sink: IO[bytes] | io.RawIOBase, at_once: int) -> None:
        self._schema = schema
        self._at_once = at_once
        self._sink = sink
        self._sealing = _Sealing(sink)
        self._writer = pq.ParquetWriter(
            self._sealing,
            schema,
            compression="snappy",
            use_compliant_nested_type=True,
            use_dictionary=_REPEATED,
            write_page_checksum=True,
        )
        self._waiting: list[pa.RecordBatch] = []
        self.rows = 0

    def put(self, kind: str, column: pa.Array) -> None:
        if len(column) == 0:
            return
        arrays = [column if f.name == kind else pa.nulls(len(column), f.type) for f in self._schema]
        self._waiting.append(pa.record_batch(arrays, schema=self._schema))
        self.rows += len(column)
        if sum(batch.num_rows for batch in self._waiting) >= self._at_once:
            self._flush()

    def _flush(self) -> None:
        if self._waiting:
            table = pa.Table.from_batches(self._waiting, self._schema)
            self._writer.write_table(table, row_group_size=2 * rows.PIECE_ROWS)
            self._waiting.clear()

    def close(self) -> None:
        self._flush()
        self._sealing.hold = True
        self._writer.close()
        if self._sealing.held:
            self._sink.write(sealed(b"".join(self._sealing.held)))
            self._sealing.held = []


def top_level(actions: Sequence[Action], add_type: pa.DataType) -> bytes:
    """The top level of a V2 checkpoint as Parquet."""
    buffer = io.BytesIO()
    file = CheckpointFile(rows.top_level_schema(add_type), buffer, rows.PIECE_ROWS)
    for kind, column in rows.structs(actions):
        file.put(kind, column)
    file.close()
    return buffer.getvalue()


def filled(
    layout: rows.CheckpointLayout, columns: Iterable[tuple[str, pa.Array]], most: int
) -> Iterator[tuple[bytes, int]]:
    """Sidecars of at most `most` rows each, as Parquet: (bytes, rows). `columns` are rows of `add` and `remove`."""
    schema = rows.sidecar_schema(layout.type)
    buffer, file = io.BytesIO(), None
    for kind, column in columns:
        start = 0
        while start < len(column):
            if file is None:
                buffer = io.BytesIO()
                file = CheckpointFile(schema, buffer, rows.PIECE_ROWS)
            part = column.slice(start, most - file.rows)
            file.put(kind, part)
            start += len(part)
            if file.rows >= most:
                file.close()
                yield buffer.getvalue(), file.rows
                file = None
    if file is not None:
        file.close()
        yield buffer.getvalue(), file.rows
