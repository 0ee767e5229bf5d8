"""Tables in numbered buckets on the local disk: for rows that are too many for memory."""

from collections.abc import Iterator

import pyarrow as pa

from .temporary_files import Buckets


class TableBuckets:
    """Tables in numbered buckets; each bucket returns its tables in order. `use` is as in `Buckets`."""

    def __init__(self, count: int, use: str) -> None:
        self._buckets = Buckets(count, use)

    def put(self, bucket: int, table: pa.Table) -> None:
        """Append a table. Raises StorageError."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
            writer.write_table(table)
        self._buckets.put(bucket, bytes(sink.getvalue()))

    def tables(self, bucket: int) -> Iterator[pa.Table]:
        """The tables of a bucket."""
        return (pa.ipc.open_stream(data).read_all() for data in self._buckets.pieces(bucket))

    def close(self) -> None:
        """Delete the data."""
        self._buckets.close()
