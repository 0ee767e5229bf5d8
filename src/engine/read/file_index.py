"""A Spark `FileIndex` in Python: Spark's planner asks it which files to read, and then reads them itself.

Spark doesn't apply the partition filters again, so they are applied exactly, by Spark's own evaluation over the
distinct tuples of values; data filters are hints, answered from the statistics in the log.
"""

import logging
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from ...core.protocol import paths
from ...core.protocol import schema as schemas
from ...core.skipping import predicates, pruning
from ...core.skipping.generation import derived
from ..jvm import settings
from ..jvm.callbacks import Connections, carried
from ..jvm.classes import FILE_INDEX
from ..jvm.gateway import Gateway, JavaObject
from ..sql import generation
from ..sql.column_names import columns_read, with_extra
from ..sql.predicates import translate
from ..storage import external_files
from . import errors as read_errors
from . import large_log
from .bulk_listing import Listing, uris
from .extra_columns import NOTHING, Beside
from .pinned_versions import Newest, Pinned, VersionSource, check_readable_as

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ...core.deltalog import DeltaLog
    from ...core.table.snapshot import Snapshot
    from .deletion_vectors import Hidden

logger = logging.getLogger(__name__)

_UNKNOWN_SIZE = (1 << 63) - 1  # what Spark takes where it doesn't know: too large to broadcast
SKIPPING_KEY = "spark.databricks.delta.stats.skipping"


@dataclass(frozen=True)
class Plan:
    """What one scan reads: of `total` files `after_partitions` are left by partition, `files` by statistics too."""

    version: int
    total: int
    after_partitions: int
    files: int
    size: int
    indices: pa.Array | None  # int32; None: all


class FileIndex:
    """What the JVM sees as `org.apache.spark.sql.execution.datasources.FileIndex`."""

    def __init__(
        self,
        gateway: Gateway,
        spark: "SparkSession",
        source: VersionSource,
        *,
        files: pa.Table | None = None,
        file_number: str | None = None,
        beside: Beside = NOTHING,
        hidden: "Hidden | None" = None,
        log: "DeltaLog | None" = None,
    ) -> None:
        """`schema` and the values have the names that data files have; see `scan.frame` for the arguments.

        With `log` a scan of a table whose log is large is planned by Spark (`large_log`).
        """
        self._gateway = gateway
        self._spark = spark
        self._source = source
        self._files = files
        self._file_number = file_number
        self._beside = beside
        self._hidden = hidden
        self._log = log
        analysed = source.analysed
        self.table = analysed.table
        self.schema = columns_read(with_extra(analysed.mapping, beside.stored))
        self.values_schema = _values_schema(
            self.schema, analysed.mapping.physical_partition_columns, hidden, beside, file_number
        )
        self._newest_seen = analysed
        self._own: Listing | None = None
        _indexes[self._identity] = self

    def held(self, snapshot: "Snapshot") -> "FileIndex":
        """The same of one version for ever; SchemaChangedError where the frame can't read it."""
        check_readable_as(self._source.analysed, snapshot)
        return FileIndex(
            self._gateway,
            self._spark,
            Pinned(snapshot),
            file_number=self._file_number,
            beside=self._beside,
            hidden=self._hidden,
            log=self._log,
        )

    # --- which files ----------------------------------------------------------------------------------------------

    def listing(self, snapshot: "Snapshot") -> Listing:
        """The listing of this frame's files in a snapshot, shared between frames where they read all of it."""
        zone = settings.time_zone(self._spark)
        if self._files is not None:
            if self._own is None:
                self._own = self._new_listing(self._files, zone)
            return self._own
        hidden = None if self._hidden is None else self._hidden.key
        key = (id(self._gateway), zone, self.values_schema, hidden, self._beside.told)
        return _shared(snapshot, key, lambda: self._new_listing(snapshot.files, zone))

    def _new_listing(self, files: pa.Table, zone: str) -> Listing:
        return Listing(
            self._gateway,
            self._spark,
            self.table,
            files,
            self.values_schema,
            hidden=self._hidden,
            beside=self._beside,
            numbered=self._file_number is not None,
            time_zone=zone,
        )

    def plan(self, partition_filters: JavaObject, data_filters: JavaObject) -> tuple[Plan, Listing]:
        """Which files a scan with these filters (Scala `Seq`s of Catalyst expressions) reads."""
        snapshot = self._source.at(self._gateway.execution_id())
        self._newest_seen = snapshot
        large = self._log is not None and self._files is None and self._file_number is None
        large = large and large_log.is_large(self._spark, snapshot)
        if large and large_log.wanted(self._spark, snapshot):
            found = self._plan_by_spark(snapshot, partition_filters, data_filters)
            if found is not None:
                return found
        listing = self.listing(snapshot)
        read_errors.remember(snapshot.table, snapshot.version, listing)
        total = len(listing)
        kept: pa.Array | None = None
        if total and not partition_filters.isEmpty():
            kept = listing.matching(partition_filters)
        after_partitions = total if kept is None else int(pc.sum(kept).as_py() or 0)
        if after_partitions and not data_filters.isEmpty():
            may = self._may_match(snapshot, data_filters)
            if may is not None:
                kept = may if kept is None else pc.and_(kept, may)
        indices = None if kept is None else pc.indices_nonzero(kept).cast(pa.int32())
        chosen = listing.files if indices is None else listing.files.take(indices)
        size = int(pc.sum(chosen.column("size")).as_py() or 0)
        if large:  # the JVM gets objects of these files alone
            listing, indices = self._new_listing(chosen, settings.time_zone(self._spark)), None
            read_errors.remember(snapshot.table, snapshot.version, listing)
        plan = Plan(snapshot.version, total, after_partitions, chosen.num_rows, size, indices)
        logger.debug(
            "%s version %d: %d of %d files to read (%d after partition filters)",
            self.table,
            plan.version,
            plan.files,
            plan.total,
            plan.after_partitions,
        )
        return plan, listing

    def _plan_by_spark(
        self, snapshot: "Snapshot", partition_filters: JavaObject, data_filters: JavaObject
    ) -> tuple[Plan, Listing] | None:
        """`plan` with a listing of nothing but the files to read; None where the driver has to find them."""
        assert self._log is not None
        mapping, zone = snapshot.mapping, settings.time_zone(self._spark)
        of_values = translate(self._gateway, partition_filters, self.schema)
        of_rows = predicates.with_columns(self._wanted(snapshot, data_filters), mapping.to_physical)
        names = mapping.physical_partition_columns
        tuples = None
        if not predicates.translated(of_values):
            # What only Spark can evaluate it does over one file of each tuple of partition values.
            ones = large_log.chosen(self._spark, self._log, snapshot, large_log.OneOfEachTuple(names), None)
            if ones is None:
                return None
            matching = self._new_listing(ones.files, zone).matching(partition_filters)
            tuples = large_log.tuples_of(ones.files.filter(matching), names)
        filters = large_log.Filters(of_values, of_rows, mapping.physical, names, zone, tuples)
        columns = predicates.columns(of_rows)
        found = large_log.chosen(self._spark, self._log, snapshot, filters, columns or None)
        if found is None:
            return None
        files, after_partitions = found.files, found.after_partitions
        listing = self._new_listing(files, zone)
        if files.num_rows and not partition_filters.isEmpty():
            # Exactly, for Spark doesn't apply them again.
            files = files.filter(listing.matching(partition_filters))
            after_partitions -= len(listing) - files.num_rows
            if files.num_rows < len(listing):
                listing = self._new_listing(files, zone)
        read_errors.remember(snapshot.table, snapshot.version, listing)
        size = int(pc.sum(files.column("size")).as_py() or 0)
        return Plan(snapshot.version, found.total, after_partitions, files.num_rows, size, None), listing

    def _wanted(self, snapshot: "Snapshot", data_filters: JavaObject) -> predicates.Predicate:
        """What the filters say that statistics and generated partition columns can answer, by logical names."""
        parts = generation.partition_columns(self._spark, snapshot)
        skipping = self._skipping()
        if not (skipping or parts):
            return predicates.TRUE
        # Of what isn't the table's there are no statistics.
        known = self.schema.without([f.name for f in self._beside.stored])
        told = predicates.with_columns(translate(self._gateway, data_filters, known), snapshot.mapping.to_logical)
        return predicates.all_of([told if skipping else predicates.TRUE, derived(told, parts)])

    def _may_match(self, snapshot: "Snapshot", data_filters: JavaObject) -> pa.Array | None:
        """Which files may hold a row of the filters; None: all."""
        wanted = self._wanted(snapshot, data_filters)
        if wanted == predicates.TRUE:
            return None
        zone = settings.time_zone(self._spark)
        if self._files is None:
            return snapshot.prune_mask(wanted, time_zone=zone)
        # Statistics help where the subset came with them.
        mapping = snapshot.mapping
        wanted = predicates.with_columns(wanted, mapping.to_physical)
        columns = mapping.physical_partition_columns
        return pruning.may_match(self._files, wanted, mapping.physical, columns, time_zone=zone)

    def _skipping(self) -> bool:
        return str(self._spark.conf.get(SKIPPING_KEY, "true")).lower() != "false"

    # --- FileIndex ------------------------------------------------------------------------------------------------

    @carried
    def listFiles(self, partition_filters: JavaObject, data_filters: JavaObject) -> JavaObject:
        with Connections.of(self._gateway).entered():
            plan, listing = self.plan(partition_filters, data_filters)
            chosen = listing.files if plan.indices is None else listing.files.take(plan.indices)
            external_files.check_files(self._spark, self.table, plan.version, chosen)
            if plan.indices is None or plan.files == plan.total:
                return listing.everything
            return listing.subset(plan.indices)

    @carried
    def inputFiles(self) -> JavaObject:
        with Connections.of(self._gateway).entered():
            return self._gateway.strings(uris(self.table, self.listing(self._source.at(None)).files))

    @carried
    def rootPaths(self) -> JavaObject:
        return self._root_paths

    @cached_property
    def _root_paths(self) -> JavaObject:
        """The table's path twice, for Spark's own writer takes a relation only if it has exactly one root path.

        That writer would add files that no commit names, or delete the directory with its log. What else Spark does
        with root paths (what a cached plan reads, what a query reads that it overwrites) needs the path and no count.
        """
        root = self._gateway.path(paths.absolute_uri(self.table, ""))
        return self._gateway.seq([root, root])

    @carried
    def partitionSchema(self) -> JavaObject:
        return self.partition_schema

    @cached_property
    def partition_schema(self) -> JavaObject:
        """The JVM's schema of the values that a file carries."""
        return self._gateway.schema(schemas.to_json(self.values_schema))

    @carried
    def sizeInBytes(self) -> int:
        with Connections.of(self._gateway).entered():
            if self._files is not None:
                return int(pc.sum(self._files.column("size")).as_py() or 0)
            if large_log.wanted(self._spark, self._newest_seen):
                self._newest_seen.seed_totals_from_checksum()
                totals = self._newest_seen.totals()
                return _UNKNOWN_SIZE if totals is None else totals.size_in_bytes
            return int(self._newest_seen.size_in_bytes)

    @carried
    def metadataOpsTimeNs(self) -> JavaObject:
        return self._gateway.none

    @carried
    def isTimeTravel(self) -> bool:
        return False

    @carried
    def refresh(self) -> None:
        return None

    @carried
    def hashCode(self) -> int:
        return hash(self._identity) & 0x7FFFFFFF

    @carried
    def equals(self, other: JavaObject) -> bool:
        # The other is a JVM proxy, even where there is a FileIndex behind it.
        return other is not None and other.toString() == self._identity

    @carried
    def toString(self) -> str:
        _indexes[self._identity] = self  # one of the same text that was there may be gone
        return self._identity

    @cached_property
    def _identity(self) -> str:
        """Frames with the same text read the same, so that one finds what the other cached."""
        analysed = self._source.analysed
        if self._files is not None:
            what = f"{self._files.num_rows} files, subset {id(self):x}"
        else:
            what = "newest" if isinstance(self._source, Newest) else "pinned"
        if self._file_number is not None:
            what += f", numbered by {self._file_number}"
        if self._beside.fields:
            what += f", beside it {', '.join(f.name for f in self._beside.fields)}"
        if self._hidden is not None and self._hidden.joined:
            what += f", {len(self._hidden.joined)} deletion vectors joined ({hash(self._hidden.key):x})"
        return f"tablelog[{self.table}, version {analysed.version}, {what}, id {analysed.metadata.id}]"

    class Java:
        implements: ClassVar[list[str]] = [FILE_INDEX]


def _values_schema(
    schema: schemas.StructType,
    partition_columns: tuple[str, ...],
    hidden: "Hidden | None",
    beside: Beside,
    file_number: str | None,
) -> schemas.StructType:
    """The partition columns, in their own order, the hidden columns, what is told of a file, its number the last."""
    fields = [f for f in (schema.get(name) for name in partition_columns) if f is not None]
    if hidden is not None:
        fields.extend(hidden.fields)
    fields.extend(beside.told_fields)
    if file_number is not None:
        fields.append(schemas.StructField(file_number, schemas.INTEGER, nullable=False))
    return schemas.StructType(tuple(fields))


def index_of(location: str) -> FileIndex | None:
    """The index whose `toString` this is, while a frame holds it."""
    return _indexes.get(location)


_indexes: "weakref.WeakValueDictionary[str, FileIndex]" = weakref.WeakValueDictionary()
_listings_lock = threading.Lock()
_listings: "OrderedDict[weakref.ref[Snapshot], dict[Any, Listing]]" = OrderedDict()
_MOST_FILES = 400_000  # in the listings that are kept for snapshots which nobody may ask for again


def _shared(snapshot: "Snapshot", key: Any, make: Callable[[], Listing]) -> Listing:
    """The one listing of a snapshot for a key. It lives as long as the snapshot, if there is room."""
    of = weakref.ref(snapshot)
    with _listings_lock:
        for gone in [one for one in _listings if one() is None]:
            del _listings[gone]
        own = _listings.setdefault(of, {})
        _listings.move_to_end(of)
        found = own.get(key)
    if found is not None:
        return found
    made = make()
    with _listings_lock:
        found = own.setdefault(key, made)
        while (
            len(_listings) > 1 and sum(len(one) for kept in _listings.values() for one in kept.values()) > _MOST_FILES
        ):
            _listings.popitem(last=False)
        return found
