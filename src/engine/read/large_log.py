"""Planning over a large log: Spark's executors read its checkpoint, and the driver gets the files that a scan needs.

Up to `LOG_DRIVER_BYTES` of checkpoint the driver has the columns of all files in memory, which is faster to plan with.
Beyond it each task reads a share of the row groups (`core.log.checkpoint_shares`), takes out what later commits
supersede and judges the rest as the driver would, by `core.skipping.pruning`: one replay and pruning, elsewhere.
The executors need tablelog, and for object stores the package of fsspec's implementation. What goes wrong there is the
driver's to judge: it then reads the log by itself, for it knows how to recover a version or what to say of it.
"""

import logging
import weakref
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import PythonException

from ...core.log.checkpoint_file import ParquetFile
from ...core.log.checkpoint_shares import RowGroupSplit, left, parted, pieces_to_prune
from ...core.log.columns import ADD_TYPES, FILE_SCHEMA, table_of
from ...core.log.replay import Totals
from ...core.protocol import schema as schemas
from ...core.protocol.actions import AddFile, FileKey
from ...core.protocol.partition_values import column_of
from ...core.skipping import predicates, pruning, stats
from ...errors import TablelogError, UnsupportedEnvironmentError
from ...logstore.data_files import DataFiles, FileSystem, file_system
from ...settings.honoured import LOG_DRIVER_BYTES, SNAPSHOT_PARTITIONS
from ..jvm import settings
from . import deletion_vectors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ...core.deltalog import DeltaLog
    from ...core.table.snapshot import Snapshot

logger = logging.getLogger(__name__)

_COUNTED = ("num_files", "size_in_bytes", "num_deletion_vectors", "num_deleted_records")
"""The first fields of `Totals`."""

Work: TypeAlias = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""From the numbers of tasks to rows, of which `trouble` is a column. It is pickled."""
Choice: TypeAlias = Callable[[pa.Table], tuple[pa.Table, int]]
"""From a piece of the live files to those that are wanted, and how many partition values had left. It is pickled."""


@dataclass(frozen=True)
class PlannedFiles:
    """The chosen `files`, with the columns of `Snapshot.files`; of which, and how many partition values had left."""

    files: pa.Table
    totals: Totals
    after_partitions: int

    @property
    def total(self) -> int:
        """Of how many files they were chosen."""
        return self.totals.num_files


@dataclass(frozen=True)
class Filters:
    """Which files may hold a row of `partition` and `data`, predicates by physical names.

    `zone` is the time zone of partition timestamps that name none.

    `tuples`, where there are any, are the partition values (`tuples_of`) that are wanted.
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
class OneOfEachTuple:
    """One file of each tuple of partition values in a piece."""

    partition_columns: tuple[str, ...]

    def __call__(self, piece: pa.Table) -> tuple[pa.Table, int]:
        tuples = tuples_of(piece, self.partition_columns)
        firsts = pc.index_in(tuples.unique(), value_set=tuples)
        return piece.take(firsts), piece.num_rows


def tuples_of(files: pa.Table, partition_columns: Collection[str]) -> pa.Array:
    """The partition values of each file as one text, another for every other tuple."""
    parts: list[Any] = [pa.repeat(pa.scalar(""), files.num_rows)]
    for name in partition_columns:
        values = column_of(files.column("partitionValues"), name)
        # With its length before it no value can be taken for the end of one and the beginning of another.
        parts += [pc.fill_null(pc.binary_length(values).cast(pa.string()), "null"), pc.fill_null(values, "")]
    return pc.binary_join_element_wise(*parts, ":")


def is_large(spark: "SparkSession", snapshot: "Snapshot") -> bool:
    """Whether a version's log is so large that no scan may cost what all of its files do."""
    base = snapshot.base
    if base is None or not base.files:
        return False
    return base.size_in_bytes > settings.of(spark, LOG_DRIVER_BYTES)


def wanted(spark: "SparkSession", snapshot: "Snapshot") -> bool:
    """Whether Spark reads the log: it is large, and the driver doesn't have its columns in memory by now."""
    return is_large(spark, snapshot) and snapshot.base is not None and not snapshot.base.loaded


def chosen(
    spark: "SparkSession",
    log: "DeltaLog",
    snapshot: "Snapshot",
    choice: Choice,
    columns: Collection[schemas.Column] | None,
) -> PlannedFiles | None:
    """The files of a version that `choice` picks by the statistics of `columns` (physical names; none of `None`).

    `None` where the executors can't read the log, for whatever reason. Raises ChecksumMismatchError.
    """
    reading = reading_of(spark, log, snapshot)
    rows = None if reading is None else reading.run(spark, Choosing(reading, choice, columns), Choosing.SCHEMA)
    if rows is None:
        return None
    found = put_together(snapshot, choice, rows)
    snapshot.verify(found.totals)
    return found


def reading_of(spark: "SparkSession", log: "DeltaLog", snapshot: "Snapshot") -> "Reading | None":
    """What the tasks of a job over a version's large log read; `None` where only the driver has the log."""
    try:
        return reading_in(log, snapshot, settings.of(spark, SNAPSHOT_PARTITIONS) or 1)
    except UnsupportedEnvironmentError as error:
        logger.info("%s: its large log is read by the driver: %s", snapshot.table, error)
        return None


def reading_in(log: "DeltaLog", snapshot: "Snapshot", count: int) -> "Reading":
    """`reading_of` in at most `count` tasks; UnsupportedEnvironmentError where only the driver has the log."""
    files = snapshot.base.files if snapshot.base is not None else None
    assert files is not None
    places = {path.rpartition("/")[0] for path, _ in files}
    systems = {place: file_system(place, log.conf, log.storage_options) for place in places}
    parts = parted(files, count)
    tasks = [parts[number::count] for number in range(min(count, len(parts)))]
    return Reading(snapshot.table, systems, tasks, frozenset(snapshot.overlay))


def put_together(snapshot: "Snapshot", choice: Choice, rows: pa.Table) -> PlannedFiles:
    """What the tasks found, and what the commits after the checkpoint added."""
    files = [pa.ipc.open_stream(data).read_all() for data in rows.column("files").to_pylist()]
    counted = Totals(*(sum(rows.column(name).to_pylist()) for name in _COUNTED))
    after = sum(rows.column("after_partitions").to_pylist())
    adds = [file for file in snapshot.overlay.values() if isinstance(file, AddFile)]
    if adds:
        own, of_these = choice(table_of(adds, FILE_SCHEMA.append(pa.field("stats", ADD_TYPES["stats"]))))
        files.append(own.select(FILE_SCHEMA.names))
        counted = counted.changed((1, add.size, add.deletion_vector) for add in adds)
        after += of_these
    return PlannedFiles(pa.concat_tables(files) if files else FILE_SCHEMA.empty_table(), counted, after)


@dataclass(frozen=True)
class Reading:
    """What the tasks of a job read: `tasks` are the parts of each. It goes to the executors, and may hold secrets."""

    table: str
    systems: Mapping[str, FileSystem]
    tasks: list[list[RowGroupSplit]]
    superseded: frozenset[FileKey]

    def run(self, spark: "SparkSession", work: "Work", schema: str) -> pa.Table | None:
        """The rows that a job makes of the parts; `None` where it had trouble, which is the driver's to judge."""
        tasks = len(self.tasks)
        try:
            rows = spark.range(0, tasks, 1, tasks).mapInArrow(work, schema).toArrow()
        except PythonException as error:  # before a task's own code began: the executors' Python has no tablelog, say
            told = str(error).strip().rpartition("\n")[2]
            logger.warning("%s: the driver reads its log by itself, for the executors' Python: %s", self.table, told)
            return None
        trouble = [text for text in rows.column("trouble").to_pylist() if text is not None]
        if trouble:
            logger.warning("%s: the driver reads its large log by itself, for %s", self.table, trouble[0])
            return None
        return rows

    def parts(self, numbers: Iterator[pa.RecordBatch]) -> Iterator[RowGroupSplit]:
        """The parts of the tasks with these numbers."""
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                yield from self.tasks[number]

    def opened(self, part: RowGroupSplit) -> ParquetFile:
        place, _, name = part.path.rpartition("/")
        files = DataFiles(place, self.systems[place])
        plain = unquote(name) if ":" in place else name  # a URI is encoded, a bare path isn't
        return ParquetFile(name, lambda: files.open(plain), (), share=part.share, of=part.of)


@dataclass(frozen=True)
class Choosing:
    """The work of `chosen`."""

    SCHEMA = ", ".join([f"{name} long" for name in (*_COUNTED, "after_partitions")]) + ", files binary, trouble string"

    reading: Reading
    choice: Choice
    columns: Collection[schemas.Column] | None

    def __call__(self, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return map(self._of_part, self.reading.parts(numbers))

    def _of_part(self, part: RowGroupSplit) -> pa.RecordBatch:
        counted = [0] * len(_COUNTED)
        after = 0
        sink = pa.BufferOutputStream()
        trouble: str | None = None
        try:
            with pa.ipc.new_stream(sink, FILE_SCHEMA, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
                for piece in pieces_to_prune(self.reading.opened(part), self.columns):
                    own = left(piece, self.reading.table, self.reading.superseded)
                    files, kept = self.choice(own)
                    counted = [before + more for before, more in zip(counted, _count(own), strict=True)]
                    after += kept
                    writer.write_table(files.select(FILE_SCHEMA.names))
        except (TablelogError, OSError) as error:
            trouble = f"{type(error).__name__}: {error}"
        numbers = dict(zip((*_COUNTED, "after_partitions"), (*counted, after), strict=True))
        arrays = [pa.array([number], pa.int64()) for number in numbers.values()]
        arrays += [pa.array([sink.getvalue().to_pybytes()], pa.binary()), pa.array([trouble], pa.string())]
        return pa.record_batch(arrays, names=[*numbers, "files", "trouble"])


def _count(files: pa.Table) -> list[int]:
    vectors = pc.struct_field(files.column("deletionVector"), "cardinality").drop_null()
    return [files.num_rows, pc.sum(files.column("size")).as_py() or 0, len(vectors), pc.sum(vectors).as_py() or 0]


# --- deletion vectors that do not ride --------------------------------------------------------------------------------


@dataclass(frozen=True)
class _LargeVectors:
    schema: schemas.StructType

    def __call__(self, piece: pa.Table) -> tuple[pa.Table, int]:
        files = piece.filter(deletion_vectors.of_large_files(piece))
        records = stats.read(files, (), self.schema).num_records
        return files.filter(pc.fill_null(pc.greater(records, deletion_vectors.MOST_ROWS), False)), piece.num_rows


_large_vectors: "weakref.WeakKeyDictionary[Snapshot, pa.Table]" = weakref.WeakKeyDictionary()


def too_large(spark: "SparkSession", log: "DeltaLog", snapshot: "Snapshot") -> pa.Table:
    """`deletion_vectors.too_large` of a version with a large log; asked once of a snapshot."""
    known = _large_vectors.get(snapshot)
    if known is None:
        found = chosen(spark, log, snapshot, _LargeVectors(snapshot.mapping.physical), ())
        known = deletion_vectors.too_large(snapshot) if found is None else found.files
        _large_vectors[snapshot] = known
    return known
