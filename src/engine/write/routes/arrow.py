"""Data files written by Python workers, with pyarrow and fsspec: for storage that Spark's JVM can't access.

The workers need pyarrow and the storage's fsspec package, but not tablelog: the task function is pickled by value. Each
file is created on the worker's disk and uploaded whole, under a name that is unique to the task attempt. The worker
returns the footer, from which the driver derives the statistics. Files of failed or duplicate attempts are found by one
listing of the write's own directory, and deleted.
"""

import logging
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ....clock import SystemClock
from ....core.protocol import paths
from ....core.protocol.schema import StructField, StructType, quoted
from ....errors import StorageError, UnsupportedEnvironmentError, UnsupportedFeatureError
from ....logstore.common.uri import scheme_of, shown
from ....logstore.data_files import DataFiles, path_in
from ....logstore.s3.settings import EXPIRED
from ...jvm import plans, worker_python
from ...sql.conform import without_empty
from ...storage import access_errors
from ..write_spec import DataFile, WriteSpec
from . import driver, spark_writer

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

logger = logging.getLogger(__name__)

_RESULT = "name string, size bigint, footer binary, partition binary"
_ROW_GROUP_BYTES = 64 << 20
_CODECS = {**driver.CODECS, "brotli": "brotli", "lz4_raw": "lz4"}
_SUFFIXES = {**driver.SUFFIXES, "brotli": ".br", "lz4_raw": ".lz4raw"}


class ArrowRoute:
    """Implements `WriteRoute` by Python workers. `files` is the table's storage."""

    def __init__(self, files: DataFiles, below: str = "") -> None:
        self._directory = f"{below}/data-{uuid.uuid4()}" if below else f"data-{uuid.uuid4()}"
        self.prefix = f"{self._directory}/"
        self._files = files
        self._ran = False
        self._published = False
        self._saved: list[str] = []

    def write(self, df: "DataFrame", spec: WriteSpec) -> list[DataFile]:
        import pyarrow as pa
        import pyarrow.parquet as pq
        from pyspark.errors import PythonException

        task = _task(self._plan(df, spec))
        if spec.partition_columns:
            # Nulls and empty strings are the same partition, so they must be adjacent.
            fields = map(StructField, spec.partition_columns, spec.partition_types)
            df = without_empty(df, StructType(tuple(fields)), spec.partition_columns)
            df = df.sortWithinPartitions(*map(quoted, spec.partition_columns))
        self._ran = True
        plain = df.toDF(*(f"c{i}" for i in range(len(df.columns))))  # mapInArrow doesn't support names with a dot
        try:
            batches = plans.collected(plain.mapInArrow(task, _RESULT))
        except PythonException as error:
            reason = worker_python.unusable(str(error), "writes the data files")
            if reason is None:
                raise
            raise UnsupportedEnvironmentError(f"{spec.table}: the Python of Spark's executors {reason}") from error
        if not batches:
            return []
        written = pa.Table.from_batches(batches).sort_by("name").to_pydict()
        now = SystemClock().now_ms()
        described = [spec.described(pq.read_metadata(pa.BufferReader(footer))) for footer in written["footer"]]
        values = pa.concat_tables([pa.ipc.open_stream(stream).read_all() for stream in written["partition"]])
        texts = spec.texts_of(values.columns, len(described))
        return [
            DataFile(self.prefix + name, text, size, now, rows, stats)
            for name, size, text, (rows, stats) in zip(written["name"], written["size"], texts, described, strict=True)
        ]

    def _plan(self, df: "DataFrame", spec: WriteSpec) -> dict[str, Any]:
        """The task's plan, in types that need no tablelog. Raises an error for what Arrow can't write like Spark."""
        if not driver.is_exact(spec.schema):
            raise UnsupportedFeatureError(
                f"{spec.table}: Python workers write its data files, but Arrow can't represent all of its column types "
                "(variant, a user-defined type, or a struct without fields). Add the jar of a Hadoop file system for "
                f"{scheme_of(spec.table)} to Spark's class path, so that Spark writes the files itself"
            )
        if spec.codec not in _CODECS:
            raise UnsupportedEnvironmentError(
                f"{spec.table}: Python workers write its data files, and they don't support the compression "
                f"{spec.codec}; they support {', '.join(_CODECS)}"
            )
        wanted = driver.file_schema(spec.schema)
        return {
            "implementation": self._files.system.implementation,
            "options": dict(self._files.system.options),
            "expired": EXPIRED,
            "directory": path_in(f"{spec.table.rstrip('/')}/{self._directory}"),
            "shown": f"{shown(spec.table).rstrip('/')}/{self._directory}",
            "schema": wanted,
            "partition_columns": list(spec.partition_columns),
            "data_columns": list(spec.data_schema.names),
            "leaves": {f.name: _leaf_paths(f) for f in wanted},
            "limit": spec.max_records,
            "null": paths.NULL_PARTITION,
            "suffix": f"{_SUFFIXES[spec.codec]}.parquet",
            "row_group_bytes": _ROW_GROUP_BYTES,
            "refusal": access_errors.refusal_in_task(),
            "remedy": access_errors.remedy(),
            "marks": driver.marks(spec.data_schema, df.sparkSession.version),
            "parquet": {
                **driver.PARQUET,
                "use_dictionary": driver.dictionary_paths(driver.file_schema(spec.data_schema)),
                "compression": _CODECS[spec.codec],
                "data_page_version": "2.0" if "2" in (spec.options.parquet_version or "") else "1.0",
            },
        }

    def save(self, name: str, make: "Callable[[pa.NativeFile], None]") -> tuple[int, int]:
        import pyarrow as pa

        with pa.BufferOutputStream() as stream:
            make(stream)
            data = stream.getvalue().to_pybytes()
        self._saved.append(name)
        self._files.write(name, data)
        return len(data), SystemClock().now_ms()

    def publish(self, names: Sequence[str], *, durable: bool) -> None:
        if self._ran:
            found = set(self._files.list(self._directory))
            self._files.delete(found - set(names))
            missing = [name for name in names if name not in found and not self._files.exists(name)]
            if missing:
                raise spark_writer.elsewhere(
                    self._files.root, f"wrote {len(names)} files, and the driver doesn't find {len(missing)} of them"
                )
        if durable and names and scheme_of(self._files.root) == "file":
            from .local import sync

            sync(self._files.path, names)
        self._published = True

    def clear(self) -> None:
        if self._published or not (self._ran or self._saved):
            return
        try:
            if self._ran or scheme_of(self._files.root) == "file":
                self._files.delete_all(self._directory)
            else:
                self._files.delete(self._saved)
        except StorageError as error:
            logger.warning("%s: files of a failed write remain below %s: %s", self._files.root, self.prefix, error)

    def remove(self, names: Sequence[str]) -> None:
        self._files.delete(names)


def _leaf_paths(field: "pa.Field") -> list[str]:
    """The paths of the Parquet leaf columns of a field."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    pq.write_metadata(pa.schema([field]), sink)
    schema = pq.read_metadata(pa.BufferReader(sink.getvalue())).schema
    return [schema.column(i).path for i in range(len(schema))]


def _task(plan: Mapping[str, Any]) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """The task function; it uses only names defined inside (see the module's docstring).

    The rows of a task are sorted by partition values.
    """

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        import errno
        import os
        import re
        import tempfile
        import uuid
        from collections.abc import Iterator
        from contextlib import suppress
        from importlib import import_module
        from itertools import pairwise

        import pyarrow as pa
        import pyarrow.compute as pc
        import pyarrow.parquet as pq
        from pyspark import TaskContext

        module, _, kind = plan["implementation"].partition(":")
        try:  # before rows are computed
            file_system = getattr(import_module(module), kind)
        except ImportError as error:
            raise ImportError(
                "tablelog.errors.UnsupportedEnvironmentError: the Python of Spark's executors lacks the package "
                f"{error.name or module}, which writes to {plan['shown']}: install it there, or send it with "
                "spark.archives"
            ) from None
        attempt = uuid.uuid4()
        context: Any = TaskContext.get()
        number = context.partitionId()
        schema, by, limit = plan["schema"], plan["partition_columns"], plan["limit"]
        scratch = next((d for d in os.environ.get("SPARK_LOCAL_DIRS", "").split(",") if os.path.isdir(d)), None)
        files_written = 0

        def failure(name: str, error: Exception) -> OSError:
            where, refusal = f"writing {plan['shown']}/{name}", plan["refusal"](error)
            if refusal is not None:
                return OSError(f"tablelog.errors.StorageAccessError: {where}: {refusal}. {plan['remedy']}")
            kind = "StorageMissingError" if isinstance(error, FileNotFoundError) else "StorageError"
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            return OSError(f"tablelog.errors.{kind}: {where}: {reason}")

        def of_own_disk(error: OSError) -> OSError:
            lacking = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.ENOENT)
            if error.errno not in lacking or "tablelog.errors." in str(error):
                return error
            return OSError(
                f"tablelog.errors.StorageError: writing {plan['shown']}: an executor can't write to its own disk, in "
                f"{scratch or tempfile.gettempdir()}, where files wait for upload: {os.strerror(error.errno)}. "
                "Make room there, or give the worker a directory on another disk (SPARK_LOCAL_DIRS)"
            )

        def put(system: Any, path: str, target: str) -> None:
            try:
                system.put_file(path, target)
            except OSError as error:
                reply = getattr(error.__cause__, "response", None) or {}
                if reply.get("Error", {}).get("Code") not in plan["expired"] or plan["options"].get("key"):
                    raise
                system.connect(refresh=True)  # takes the credentials again from their source
                system.put_file(path, target)

        def text(value: Any) -> str:
            try:
                return str(value.cast(pa.string())[0].as_py() or "")
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError, UnicodeDecodeError):  # bytes that aren't UTF-8
                return str(value.cast(pa.binary())[0].as_py().hex())

        def escaped(name: str) -> str:
            # Like Hive; also a trailing dot, which Azure removes.
            return re.sub("[\x00-\x1f\"#%'*/:=?\\\\\x7f{\\[\\]^]|\\.$", lambda match: f"%{ord(match[0]):02X}", name)

        def has_nan(values: Any) -> bool:
            if pa.types.is_floating(values.type):
                return bool(pc.any(pc.is_nan(values)).as_py())
            if pa.types.is_struct(values.type):
                return any(has_nan(pc.struct_field(values, [i])) for i in range(values.type.num_fields))
            return False

        def bits(values: Any) -> Any:  # compares NaN as equal to itself
            return values.view(f"int{values.type.bit_width}") if pa.types.is_floating(values.type) else values

        def starts(batch: Any) -> list[int]:
            ends = {0, batch.num_rows}
            for name in by:
                ends.update(pc.run_end_encode(bits(batch.column(name))).run_ends.to_pylist())
            return sorted(ends)

        class Partition:
            """The files of one combination of partition values (a batch of one row)."""

            def __init__(self, values: Any) -> None:
                self.values = values
                parts = [f"{escaped(n)}={escaped(text(values.column(n))) or plan['null']}/" for n in by]
                self.below = "".join(parts)
                self.pending: list[Any] = []
                self.waiting = self.rows = 0  # bytes, rows of the file
                self.nan: set[str] = set()
                self.path = ""
                self.writer: Any = None

            def holds(self, values: Any) -> bool:
                return all(bits(a).equals(bits(b)) for a, b in zip(self.values.columns, values.columns, strict=True))

            def add(self, rows: Any) -> Iterator[Any]:
                while rows.num_rows:
                    room = limit - self.rows if limit else rows.num_rows
                    part, rows = rows.slice(0, room), rows.slice(room)
                    self.pending.append(part)
                    self.waiting += part.nbytes
                    self.rows += part.num_rows
                    if self.rows == limit:
                        yield from self.finish()
                    elif self.waiting >= plan["row_group_bytes"]:
                        yield from self.flush()

            def flush(self) -> Iterator[Any]:
                table = pa.Table.from_batches(self.pending)
                self.pending, self.waiting = [], 0
                # Arrow omits NaN from a footer's bounds, and Spark, for which NaN is the largest number, would skip
                # rows.
                nan = {name for name in table.column_names if has_nan(table.column(name))}
                if self.writer is not None and not nan <= self.nan:
                    yield self.uploaded()
                    self.rows = table.num_rows
                if self.writer is None:
                    self.nan = nan
                    known = [p for name in table.column_names if name not in nan for p in plan["leaves"][name]]
                    handle, self.path = tempfile.mkstemp(prefix="tablelog-", suffix=".parquet", dir=scratch)
                    os.close(handle)
                    self.writer = pq.ParquetWriter(
                        self.path, table.schema, write_statistics=known if nan else True, **plan["parquet"]
                    )
                self.writer.write_table(table)

            def finish(self) -> Iterator[Any]:
                if self.pending:
                    yield from self.flush()
                if self.writer is not None:
                    yield self.uploaded()
                self.rows = 0

            def uploaded(self) -> Any:
                nonlocal files_written
                self.writer.add_key_value_metadata(plan["marks"])
                self.writer.close()
                self.writer = None
                name = f"{self.below}part-{number:05d}-{attempt}.c{files_written:03d}{plan['suffix']}"
                files_written += 1
                sink, values = pa.BufferOutputStream(), pa.BufferOutputStream()
                pq.read_metadata(self.path).write_metadata_file(sink)
                with pa.ipc.new_stream(values, self.values.schema) as stream:
                    stream.write_batch(self.values)
                size = os.path.getsize(self.path)
                try:
                    put(file_system(**plan["options"]), self.path, f"{plan['directory']}/{name}")
                except Exception as error:
                    raise failure(name, error) from error
                os.unlink(self.path)
                return pa.RecordBatch.from_pydict(
                    {
                        "name": [name],
                        "size": pa.array([size], pa.int64()),
                        "footer": [sink.getvalue().to_pybytes()],
                        "partition": [values.getvalue().to_pybytes()],
                    }
                )

            def drop(self) -> None:
                if self.writer is not None:
                    with suppress(OSError):  # the disk is full
                        self.writer.close()
                if os.path.exists(self.path):
                    os.unlink(self.path)

        current: Any = None
        try:
            for batch in batches:
                # Spark labels timestamps with the session's time zone; only the label changes, not the instant.
                arrays = [batch.column(i).cast(f.type) for i, f in enumerate(schema)]
                rows = pa.RecordBatch.from_arrays(arrays, schema=schema)
                for start, end in pairwise(starts(rows)):
                    part = rows.slice(start, end - start)
                    values = part.slice(0, 1).select(by)
                    if current is None or not current.holds(values):
                        if current is not None:
                            yield from current.finish()
                        current = Partition(values)
                    yield from current.add(part.select(plan["data_columns"]))
            if current is not None:
                yield from current.finish()
        except OSError as error:
            raise of_own_disk(error) from error
        finally:
            if current is not None:
                current.drop()

    return run
