"""Plans scans over a large log: Spark's executors read the checkpoint, and the driver gets only the files of the scan.

If the checkpoint has at most `LOG_DRIVER_BYTES`, the driver loads the columns of all files, which plans faster.
Otherwise each task reads a share of the row groups (`core.log.checkpoint_shares`), removes the files that later commits
supersede, and prunes the rest by `core.skipping.pruning`, the same code as on the driver.
The executors need tablelog, and for object stores the package of the fsspec implementation. After any failure there,
the driver reads the log itself, because it can recover a version or raise the right error.
"""

import logging
import re
import weakref
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import PythonException

from ...core.log.checkpoint_file import ParquetFile
from ...core.log.checkpoint_shares import RowGroupSplit, left, parted, pieces_to_prune, texts_of
from ...core.log.columns import ADD_TYPES, FILE_SCHEMA, counted, table_of
from ...core.log.replay import Totals
from ...core.protocol import schema as schemas
from ...core.protocol.actions import AddFile, FileKey
from ...core.protocol.partition_values import column_of
from ...core.skipping import predicates, pruning, stats
from ...errors import StorageError, TablelogError, UnsupportedEnvironmentError
from ...logstore.data_files import DataFiles, FileSystem, file_system
from ...settings.declarations import LOG_DRIVER_BYTES, SNAPSHOT_PARTITIONS
from ...settings.spark_own import MAX_RESULT_SIZE
from ..jvm.connection import java_errors, settings
from ..jvm.worker_python import Work, with_tablelog
from . import deletion_vectors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ...core.deltalog import DeltaLog
    from ...core.log.checkpoint import CheckpointState
    from ...core.table.snapshot import Snapshot

logger = logging.getLogger(__name__)

_WITH_TEXT = FILE_SCHEMA.append(pa.field("stats", ADD_TYPES["stats"]))
NO_FILES = _WITH_TEXT.empty_table()
_ROW = "row"
"""The index of a file in its row group, until the statistics of the selected files are read."""
_NO_PYTHON = re.compile("Cannot run program .*")
_COUNTED = ("num_files", "size_in_bytes", "num_deletion_vectors", "num_deleted_records")
"""The first fields of `Totals`."""
_SELECTED = ("after_partitions", "selected")
"""The numbers of files that a part has after the selection by partition values, and after the whole selection."""

Choice: TypeAlias = Callable[[pa.Table], tuple[pa.Table, int]]
"""Maps a piece of the live files to the selected files, and the number left by partition values. It is pickled."""
Chooser: TypeAlias = Callable[
    ["SparkSession", "DeltaLog", "Snapshot", Choice, Collection[schemas.Column] | None], "PlannedFiles | None"
]
"""Selects the files of a version: `chosen` with some of its options, or `file_groups.planned`."""


class FileGroups(Protocol):
    """Selected files that are too many for the driver, in groups: see `file_groups`."""

    @property
    def num_files(self) -> int:
        """The number of files in all groups."""

    def __iter__(self) -> Iterator[pa.Table]:
        """The groups, each read when it is needed."""

    def by_partition(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """The files in other groups: those of a partition are in one, unless they are too many."""


@dataclass(frozen=True)
class PlannedFiles:
    """The selected `files`, with the columns of `Snapshot.files`; the totals of all files; and the partial count.

    `files` may also have their statistics as JSON text (`stats`). If too many files are selected, `files` is empty, and
    `groups` has them.
    """

    files: pa.Table
    totals: Totals
    after_partitions: int
    groups: FileGroups | None = None

    @property
    def total(self) -> int:
        """The number of files before the selection."""
        return self.totals.num_files


@dataclass(frozen=True)
class Filters:
    """Selects files that may have a row that fulfils `partition` and `data`, predicates by physical names.

    `zone` is the time zone of partition timestamps without one. `tuples`, if given, are the allowed partition values
    (results of `tuples_of`).
    """

    partition: predicates.Predicate
    data: predicates.Predicate
    schema: schemas.StructType
    partition_columns: tuple[str, ...]
    zone: str
    tuples: pa.Array | None = None

    def __call__(self, piece: pa.Table) -> tuple[pa.Table, int]:
        kept = piece.filter(self._may_match(piece, self.partition, use_stats=False))
        if self.tuples is not None:
            kept = kept.filter(pc.is_in(tuples_of(kept, self.partition_columns), value_set=self.tuples))
        return kept.filter(self._may_match(kept, self.data)), kept.num_rows

    def _may_match(
        self, files: pa.Table, predicate: predicates.Predicate, *, use_stats: bool = True
    ) -> pa.BooleanArray:
        return pruning.may_match(
            files, predicate, self.schema, self.partition_columns, use_stats=use_stats, time_zone=self.zone
        )


@dataclass(frozen=True)
class Then:
    """Selects by `second` among the files that `first` selects."""

    first: Choice
    second: Choice

    def __call__(self, piece: pa.Table) -> tuple[pa.Table, int]:
        files, after_partitions = self.first(piece)
        return self.second(files)[0], after_partitions


@dataclass(frozen=True)
class OneOfEachTuple:
    """Selects one file per tuple of partition values in a piece."""

    partition_columns: tuple[str, ...]

    def __call__(self, piece: pa.Table) -> tuple[pa.Table, int]:
        tuples = tuples_of(piece, self.partition_columns)
        firsts = pc.index_in(tuples.unique(), value_set=tuples)
        return piece.take(firsts), piece.num_rows


def tuples_of(files: pa.Table, partition_columns: Collection[str]) -> pa.Array:
    """The partition values of each file as one text; distinct tuples have distinct texts."""
    parts: list[Any] = [pa.repeat(pa.scalar(""), files.num_rows)]
    for name in partition_columns:
        values = column_of(files.column("partitionValues"), name)
        # The length prefix makes the concatenation unambiguous.
        parts += [pc.fill_null(pc.binary_length(values).cast(pa.string()), "null"), pc.fill_null(values, "")]
    return pc.binary_join_element_wise(*parts, ":")


def is_large(spark: "SparkSession", snapshot: "Snapshot") -> bool:
    """Whether the log of a version is so large that a scan must not load all of its files."""
    base = snapshot.base
    if base is None or not base.files:
        return False
    return base.size_in_bytes > settings.of(spark, LOG_DRIVER_BYTES)


def wanted(spark: "SparkSession", snapshot: "Snapshot") -> bool:
    """Whether Spark reads the log: it is large, and its columns are not loaded on the driver yet."""
    return is_large(spark, snapshot) and snapshot.base is not None and not snapshot.base.loaded


def chosen(
    spark: "SparkSession",
    log: "DeltaLog",
    snapshot: "Snapshot",
    choice: Choice,
    columns: Collection[schemas.Column] | None,
    *,
    texts: bool = False,
) -> PlannedFiles | None:
    """The files of a version that `choice` selects by the statistics of `columns` (physical names; `None`: none).

    With `texts`, the selected files have their statistics as JSON text. Returns `None` if the executors can't read the
    log, for any reason. Raises ChecksumMismatchError.
    """
    reading = reading_for(spark, log, snapshot)
    work = None if reading is None else Choosing(reading, choice, columns, texts=texts)
    rows = None if reading is None or work is None else reading.run(spark, work, Choosing.SCHEMA)
    if rows is None:
        return None
    planned = put_together(snapshot, choice, rows, texts=texts)
    snapshot.verify(planned.totals)
    return planned


def reading_for(spark: "SparkSession", log: "DeltaLog", snapshot: "Snapshot") -> "Reading | None":
    """As `reading_of`, or a reading in the driver, if the checkpoint is in temporary files of the driver."""
    base = snapshot.base
    return reading_of(spark, log, snapshot) if base is None or base.in_log else _of_driver(snapshot, base)


def reading_of(spark: "SparkSession", log: "DeltaLog", snapshot: "Snapshot") -> "Reading | None":
    """The inputs of a job that reads a version's large log; `None` if only the driver can access the log."""
    if snapshot.base is not None and not snapshot.base.in_log:
        return None
    try:
        return reading_in(log, snapshot, settings.of(spark, SNAPSHOT_PARTITIONS) or 1)
    except UnsupportedEnvironmentError as error:
        logger.info("%s: the driver reads the large log; the executors can't: %s", snapshot.table, error)
        return None


def reading_in(log: "DeltaLog", snapshot: "Snapshot", count: int) -> "Reading":
    """The inputs of a job with at most `count` tasks that reads a version's large log.

    Raises UnsupportedEnvironmentError if only the driver can access the log.
    """
    files = snapshot.base.files if snapshot.base is not None else None
    assert files is not None
    places = {path.rpartition("/")[0] for path, _ in files}
    systems = {place: file_system(place, log.conf, log.storage_options) for place in places}
    parts = parted(files, count)
    tasks = [parts[number::count] for number in range(min(count, len(parts)))]
    return Reading(snapshot.table, systems, tasks, frozenset(snapshot.overlay))


def put_together(snapshot: "Snapshot", choice: Choice, rows: pa.Table, *, texts: bool = False) -> PlannedFiles:
    """Combine the results of the tasks with the commits after the checkpoint."""
    schema = _WITH_TEXT if texts else FILE_SCHEMA
    files = sent(rows)
    totals = Totals(*(sum(rows.column(name).to_pylist()) for name in _COUNTED))
    after = sum(rows.column("after_partitions").to_pylist())
    adds = [file for file in snapshot.overlay.values() if isinstance(file, AddFile)]
    if adds:
        own, of_these = choice(table_of(adds, _WITH_TEXT))
        files.append(own.select(schema.names))
        totals = totals.changed((1, add.size, add.deletion_vector) for add in adds)
        after += of_these
    return PlannedFiles(pa.concat_tables(files) if files else schema.empty_table(), totals, after)


def sent(rows: pa.Table) -> list[pa.Table]:
    """The files in the result rows of `Choosing`: a table for each part that sent its files."""
    return [pa.ipc.open_stream(data).read_all() for data in rows.column("files").to_pylist() if data is not None]


@dataclass(frozen=True)
class Reading:
    """The inputs of a job: `tasks` are the parts of each task. It is sent to the executors and may contain secrets."""

    table: str
    systems: Mapping[str, FileSystem]
    tasks: list[list[RowGroupSplit]]
    superseded: frozenset[FileKey]

    def run(self, spark: "SparkSession", work: Work, schema: str) -> pa.Table | None:
        """Run the job and return its result rows; `None` if a task failed: then the driver reads the log itself.

        `work` maps the numbers of tasks to result rows, with the column `trouble` for an error. It is pickled.
        """
        tasks = len(self.tasks)
        try:
            rows = spark.range(0, tasks, 1, tasks).mapInArrow(with_tablelog(work), schema).toArrow()
        except (PythonException, UnsupportedEnvironmentError) as error:  # before the task's code
            reason = str(error).strip().rpartition("\n")[2]
            logger.warning("%s: the driver reads the large log itself: %s", self.table, reason)
            return None
        except java_errors.thrown_by_java() as error:
            no_python = _NO_PYTHON.search(java_errors.text_with_causes(java_errors.java_exception(error)))
            if no_python is not None:
                logger.warning("%s: the driver reads the large log itself: %s", self.table, no_python[0])
                return None
            if MAX_RESULT_SIZE.key not in str(error):
                raise
            logger.warning(
                "%s: the driver reads the log itself; the selected files exceed %s", self.table, MAX_RESULT_SIZE.key
            )
            return None
        trouble = [text for text in rows.column("trouble").to_pylist() if text is not None]
        if trouble:
            logger.warning("%s: the driver reads the large log itself; a task failed: %s", self.table, trouble[0])
            return None
        return rows

    def run_here(self, work: Work) -> pa.Table:
        """Run the work in the driver's process. Raises StorageError if a file can't be read."""
        numbers = pa.record_batch([pa.array(range(len(self.tasks)), pa.int64())], ["id"])
        rows = pa.Table.from_batches(work(iter([numbers])))
        trouble = [text for text in rows.column("trouble").to_pylist() if text is not None]
        if trouble:
            raise StorageError(f"{self.table}: the driver can't read a file of its log: {trouble[0]}")
        return rows

    def parts(self, numbers: Iterator[pa.RecordBatch]) -> Iterator[RowGroupSplit]:
        """The parts of the tasks with these numbers."""
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                yield from self.tasks[number]

    def opened(self, part: RowGroupSplit) -> ParquetFile:
        place, _, name = part.path.rpartition("/")
        files = DataFiles(place, self.systems[place])
        plain = unquote(name) if ":" in place else name  # a URI is URL-encoded, a plain path isn't
        return ParquetFile(name, lambda: files.open(plain), (), share=part.share, of=part.of)


@dataclass(frozen=True)
class _OfDriver(Reading):
    """Reads a checkpoint in temporary files of the driver, in the driver: one part after the other."""

    base: "CheckpointState"

    def run(self, spark: "SparkSession", work: Work, schema: str) -> pa.Table | None:
        """Run the work here. Raises StorageError if a file can't be read."""
        return self.run_here(work)

    def opened(self, part: RowGroupSplit) -> ParquetFile:
        return ParquetFile(part.path, partial(self.base.open_file, part.path), ())


def _of_driver(snapshot: "Snapshot", base: "CheckpointState") -> _OfDriver:
    tasks = [[RowGroupSplit(path)] for path, _ in base.files or ()]
    return _OfDriver(snapshot.table, {}, tasks, frozenset(snapshot.overlay), base)


@dataclass(frozen=True)
class Choosing:
    """The task function of `chosen`: a result row for each part.

    A part with more than `most` selected files sends only their number.
    """

    SCHEMA = ", ".join([f"{name} long" for name in (*_COUNTED, *_SELECTED)]) + ", files binary, trouble string"

    reading: Reading
    choice: Choice
    columns: Collection[schemas.Column] | None
    texts: bool = False
    most: int | None = None

    def __call__(self, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return map(self._of_part, self.reading.parts(numbers))

    def _of_part(self, part: RowGroupSplit) -> pa.RecordBatch:
        totals = Totals()
        after = count = 0
        sink = pa.BufferOutputStream()
        trouble: str | None = None
        schema = _WITH_TEXT if self.texts else FILE_SCHEMA
        try:
            with pa.ipc.new_stream(sink, schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
                file = self.reading.opened(part)
                for group in file.by_row_group() if self.texts else [file]:
                    selected = []
                    for own, files, kept in self._pieces(group):
                        totals += counted(own)
                        after += kept
                        count += files.num_rows
                        if self._sends(count):
                            selected.append(files.select([*FILE_SCHEMA.names, *([_ROW] if self.texts else [])]))
                    if self._sends(count):
                        for files in self._with_texts(group, selected) if self.texts else selected:
                            writer.write_table(files)
        except (TablelogError, OSError) as error:
            trouble = f"{type(error).__name__}: {error}"
        numbers = {name: getattr(totals, name) for name in _COUNTED} | {"after_partitions": after, "selected": count}
        data = sink.getvalue().to_pybytes() if self._sends(count) else None
        arrays = [pa.array([number], pa.int64()) for number in numbers.values()]
        arrays += [pa.array([data], pa.binary()), pa.array([trouble], pa.string())]
        return pa.record_batch(arrays, names=[*numbers, "files", "trouble"])

    def _sends(self, count: int) -> bool:
        return self.most is None or count <= self.most

    def _pieces(self, file: ParquetFile) -> Iterator[tuple[pa.Table, pa.Table, int]]:
        """The live files of each piece, those of them that are selected, and the number left by partition values."""
        for own in left(self._numbered(file), self.reading.table, self.reading.superseded):
            yield own, *self.choice(own)

    def _numbered(self, file: ParquetFile) -> Iterator[pa.Table]:
        first = 0
        for piece in pieces_to_prune(file, self.columns):
            if self.texts:
                piece = piece.append_column(_ROW, pa.array(range(first, first + piece.num_rows), pa.int64()))
                first += piece.num_rows
            yield piece

    def _with_texts(self, group: ParquetFile, selected: list[pa.Table]) -> list[pa.Table]:
        """The selected files of a row group with their statistics as text.

        The texts are most of the bytes of a checkpoint. So they are decoded only where a file is selected.
        """
        found = [one for one in selected if one.num_rows]
        if not found:
            return []
        files = pa.concat_tables(found)
        texts = texts_of(group, pa.concat_arrays(files.column(_ROW).chunks))
        return [files.select(FILE_SCHEMA.names).append_column("stats", texts)]


# --- deletion vectors too large for bitmaps -----------------------------------------------------------------------


@dataclass(frozen=True)
class _LargeVectors:
    schema: schemas.StructType

    def __call__(self, piece: pa.Table) -> tuple[pa.Table, int]:
        files = piece.filter(deletion_vectors.of_large_files(piece))
        records = stats.read(files, (), self.schema).num_records
        return files.filter(pc.fill_null(pc.greater(records, deletion_vectors.MOST_ROWS), False)), piece.num_rows


_large_vectors: "weakref.WeakKeyDictionary[Snapshot, pa.Table]" = weakref.WeakKeyDictionary()


def too_large(spark: "SparkSession", log: "DeltaLog", snapshot: "Snapshot") -> pa.Table:
    """`deletion_vectors.too_large` for a version with a large log; computed once per snapshot."""
    known = _large_vectors.get(snapshot)
    if known is None:
        planned = chosen(spark, log, snapshot, _LargeVectors(snapshot.mapping.physical), ())
        known = deletion_vectors.too_large(snapshot) if planned is None else planned.files
        _large_vectors[snapshot] = known
    return known
