"""Reads data files in Spark's Python workers by pyarrow: for the Arrow route, and for streams of Spark Connect.

Everything is defined inside a function, so that it is pickled by value: executors need pyarrow and the storage's fsspec
package, but not tablelog.
"""

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from ....logstore.s3.settings import EXPIRED
from ...storage import access_errors

Systems: TypeAlias = Mapping[str, tuple[str, Mapping[str, Any]]]
"""`scheme://authority` -> the fsspec file system there, as `module:Class`, and its options."""

Read: TypeAlias = Callable[[Systems, Any, Sequence[dict[str, Any]]], Iterator[Any]]


def file_reader() -> Read:
    """A function that reads planned files (`arrow_plan.plan`) as record batches of a schema (`arrow_plan.marked`).

    A file at a place that isn't in the systems is on a local disk.
    """
    footer_size, most_ahead = 64 << 10, 16  # Arrow's first request has the last 64 KiB of a file
    field_id, expired = b"PARQUET:field_id", EXPIRED
    refusal_of, remedy = access_errors.refusal_in_task(), access_errors.remedy()

    class Ranges(io.RawIOBase):
        """A file in a store, read by range requests; its size is known from the log."""

        def __init__(self, systems: Systems, file: dict[str, Any]) -> None:
            from importlib import import_module

            super().__init__()
            (module, _, kind), options = systems[file["place"]][0].partition(":"), systems[file["place"]][1]
            try:
                file_system = getattr(import_module(module), kind)
            except ImportError as error:
                raise ImportError(
                    "tablelog.errors.UnsupportedEnvironmentError: the Python of Spark's executors lacks the package "
                    f"{error.name or module}, which reads {file['path']}: install it there, or send it with "
                    "spark.archives"
                ) from None
            self._system = file_system(**options)
            self._renews = not options.get("key")  # else the credentials are fixed
            self._file = file
            self._at = 0
            self._tail = b""  # the bytes of the first request: the footer, or a whole small file

        def read_footer(self) -> None:
            """Make the first request, which Arrow would make."""
            start = max(0, self._file["size"] - footer_size)
            self._tail = self._fetch(start, self._file["size"])

        def readable(self) -> bool:
            return True

        def seekable(self) -> bool:
            return True

        def tell(self) -> int:
            return self._at

        def seek(self, offset: int, whence: int = 0) -> int:
            self._at = (0, self._at, self._file["size"])[whence] + offset
            return self._at

        def read(self, size: int | None = -1, /) -> bytes:
            end = self._file["size"] if size is None or size < 0 else min(self._at + size, self._file["size"])
            if end <= self._at:
                return b""
            if self._at >= self._file["size"] - len(self._tail):
                start = self._at - self._file["size"]
                self._at = end
                return (
                    self._tail[start:][: end - self._file["size"]] if end < self._file["size"] else self._tail[start:]
                )
            data = self._fetch(self._at, end)
            self._at += len(data)
            if not self._tail and self._at == self._file["size"]:
                self._tail = data
            return data

        def _fetch(self, start: int, end: int) -> bytes:
            try:
                try:
                    return bytes(self._system.cat_file(self._file["path"], start=start, end=end))
                except OSError as error:
                    reply = getattr(error.__cause__, "response", None) or {}
                    if reply.get("Error", {}).get("Code") not in expired or not self._renews:
                        raise
                self._system.connect(refresh=True)  # takes the credentials again from their source
                return bytes(self._system.cat_file(self._file["path"], start=start, end=end))
            except Exception as error:
                refusal = refusal_of(error)
                if refusal is None and isinstance(error, FileNotFoundError):
                    raise
                typed = "StorageError" if refusal is None else "StorageAccessError"
                reason = " ".join(f"{type(error).__name__}: {error}".split())
                reason = reason if refusal is None else f"{refusal}. {remedy}"
                raise OSError(f"tablelog.errors.{typed}: {self._file['named']} can't be read: {reason}") from error

    def read(systems: Systems, arrow: Any, files: Sequence[dict[str, Any]]) -> Iterator[Any]:
        import pyarrow as pa

        for file, opened_file in ahead(systems, files):
            try:
                yield from read_file(systems, arrow, file, opened_file())
            except FileNotFoundError:
                raise FileNotFoundError(
                    f"tablelog.errors.MissingDataFileError: {file['named']} doesn't exist. Restore it, or remove it "
                    "from the table."
                ) from None
            except (pa.ArrowException, OSError) as error:
                if "tablelog.errors." in str(error):
                    raise
                reason = " ".join(str(error).split())
                raise ValueError(
                    f"tablelog.errors.UnreadableDataFileError: {file['named']} can't be read as a Parquet file of that "
                    f"table: {reason}. Restore the file, or remove it from the table."
                ) from None

    def opened(systems: Systems, file: dict[str, Any]) -> Any:
        """What Arrow reads the file from; of a remote file, the footer has been read."""
        if file["place"] not in systems:
            return file["path"]
        source = Ranges(systems, file)
        source.read_footer()
        return source

    def ahead(systems: Systems, files: Sequence[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], Callable[[], Any]]]:
        """Each file, and a function that waits for what `opened` returns for it.

        The next files are opened while one is read: a request takes longer than a small file's rows. How many is
        doubled with each file up to `most_ahead`, so that a query that ends early, as with LIMIT, opens few in vain.
        """
        from collections import deque
        from concurrent.futures import ThreadPoolExecutor

        waiting, pending, window = deque(files), deque[Any](), 1
        pool = ThreadPoolExecutor(most_ahead, thread_name_prefix="tablelog-read")
        try:
            while waiting or pending:
                while waiting and len(pending) < window:
                    file = waiting.popleft()
                    pending.append((file, pool.submit(opened, systems, file).result))
                window = min(2 * window, most_ahead)
                yield pending.popleft()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def read_file(systems: Systems, arrow: Any, file: dict[str, Any], source: Any) -> Iterator[Any]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        remote = file["place"] in systems
        with pq.ParquetFile(source, coerce_int96_timestamp_unit="us", pre_buffer=remote) as parquet:
            metadata = parquet.schema_arrow.metadata or {}
            legacy = b"org.apache.spark.legacyDateTime" in metadata or b"org.apache.spark.legacyINT96" in metadata
            stored = list(parquet.schema_arrow)
            computed = {*file["constants"], file.get("row_index")}
            places = {f.name: place(stored, f) for f in arrow if f.name not in computed}
            wanted = [stored[at].name for at in places.values() if at is not None]
            deleted, start = file.get("deleted"), 0
            for batch in parquet.iter_batches(batch_size=32_768, columns=wanted):
                rows = batch.num_rows
                indexes = pa.array(range(start, start + rows), pa.int64()) if file.get("row_index") else None
                stay = None if deleted is None else live(deleted, start, rows)
                start += rows
                if stay is not None:
                    indexes = None if indexes is None else indexes.filter(stay)
                    batch, rows = batch.filter(stay) if wanted else batch, stay.true_count
                columns = []
                for field in arrow:
                    at = places.get(field.name)
                    if field.name in file["constants"]:
                        columns.append(pa.repeat(file["constants"][field.name].cast(field.type)[0], rows))
                    elif field.name == file.get("row_index"):
                        columns.append(indexes)
                    elif at is not None:
                        columns.append(fitted(batch.column(stored[at].name), field.type, legacy, field.name))
                    else:
                        columns.append(pa.nulls(rows, field.type))
                yield pa.RecordBatch.from_arrays(columns, schema=arrow)

    def place(stored: list[Any], field: Any) -> int | None:
        """The index of the file's field that has the column: by the ID or the name in its metadata, else its name."""
        marks = field.metadata or {}
        if b"id" in marks:
            return next(
                (i for i, candidate in enumerate(stored) if (candidate.metadata or {}).get(field_id) == marks[b"id"]),
                None,
            )
        name = marks.get(b"name", field.name.encode()).decode().lower()
        return next((i for i, candidate in enumerate(stored) if candidate.name.lower() == name), None)

    def is_marked(kind: Any) -> bool:
        import pyarrow as pa

        fields = [kind.field(i) for i in range(kind.num_fields)] if pa.types.is_nested(kind) else []
        return any(f.metadata or is_marked(f.type) for f in fields)

    def live(deleted: bytes, start: int, rows: int) -> Any:
        """For each row from `start` on, whether its bit is not set; rows after the last byte are live."""
        import pyarrow as pa
        import pyarrow.compute as pc

        bits = pa.Array.from_buffers(pa.bool_(), 8 * len(deleted), [None, pa.py_buffer(deleted)]).slice(start, rows)
        return pa.concat_arrays([pc.invert(bits), pa.repeat(pa.scalar(True), rows - len(bits))])

    def fitted(values: Any, kind: Any, legacy: bool, name: str) -> Any:
        """Cast an Arrow array to a type: struct fields are matched by name, ignoring case; missing ones are null."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if legacy and (pa.types.is_date(values.type) or pa.types.is_timestamp(values.type)):
            days = values.cast(pa.timestamp("us")).cast(pa.int64()) if len(values) else values
            earliest = pc.min(days).as_py() if len(values) else None
            if earliest is not None and earliest < -2_208_988_800_000_000:  # 1900-01-01
                raise ValueError(
                    f"tablelog.errors.UnsupportedEnvironmentError: the column {name} holds dates before 1900 in the "
                    "calendar of Spark 2, which the Arrow route can't read: use a classic session"
                )
        if values.type == kind and not is_marked(kind):
            return values
        if pa.types.is_dictionary(values.type):
            return fitted(values.dictionary_decode(), kind, legacy, name)
        if pa.types.is_struct(kind) and pa.types.is_struct(values.type):
            stored = list(values.type)
            places = [place(stored, f) for f in kind]
            children = [
                pa.nulls(len(values), f.type)
                if at is None
                else fitted(values.field(at), f.type, legacy, f"{name}.{f.name}")
                for f, at in zip(kind, places, strict=True)
            ]
            return pa.StructArray.from_arrays(children, fields=list(kind), mask=values.is_null())
        if pa.types.is_list(kind) and pa.types.is_list(values.type):
            inner = fitted(values.values, kind.value_type, legacy, name)
            return pa.ListArray.from_arrays(values.offsets, inner, type=kind, mask=values.is_null())
        if pa.types.is_map(kind) and pa.types.is_map(values.type):
            keys = fitted(values.keys, kind.key_type, legacy, name)
            items = fitted(values.items, kind.item_type, legacy, name)
            return pa.MapArray.from_arrays(values.offsets, keys, items, type=kind, mask=values.is_null())
        return values.cast(kind)

    return read
