"""The files of a scan: Spark's planner requests them by a `FileIndex`, and then reads them itself.

Spark doesn't apply partition filters again, so they are applied exactly, by Spark's own evaluation on the distinct
tuples of values. Data filters only skip files, by the statistics in the log.
"""

import itertools
import logging
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from ...core.log.columns import exact_sum
from ...core.protocol import paths
from ...core.protocol import schema as schemas
from ...core.skipping import predicates, pruning
from ...core.skipping.generation import derived
from ...error_context import sets_table
from ...settings.declarations import STATS_SKIPPING
from ..jvm.connection import settings
from ..jvm.connection.callbacks import Connections, carried
from ..jvm.connection.compiled import compiled_instance
from ..jvm.connection.gateway import Gateway, JavaObject
from ..jvm.registry.classes import FILE_INDEX, FILE_INDEX_CLASS, class_name
from ..sql import generation
from ..sql.column_names import columns_read, with_extra
from ..sql.predicates import translate
from ..storage import external_files
from . import large_log, read_errors
from .bulk_listing import Listing, uris
from .pinned_versions import Newest, Pinned, VersionSource, check_readable_as
from .scan_spec import ScanSpec

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ...core.deltalog import DeltaLog
    from ...core.table.snapshot import Snapshot
    from .deletion_vectors import Hidden

logger = logging.getLogger(__name__)

_UNKNOWN_SIZE = (1 << 63) - 1  # Spark's own default for an unknown size: too large to broadcast


@dataclass(frozen=True)
class Plan:
    """The files of one scan: of `total` files, `after_partitions` remain by partition, `files` also by statistics."""

    version: int
    total: int
    after_partitions: int
    files: int
    size: int
    indices: pa.Array | None  # int32; None: all


class FileIndex:
    """Implements the methods of the JVM's `FileIndex` that select files; `DeltaFileIndex.java` has the others."""

    def __init__(
        self,
        gateway: Gateway,
        spark: "SparkSession",
        source: VersionSource,
        spec: ScanSpec,
        *,
        hidden: "Hidden | None" = None,
        log: "DeltaLog | None" = None,
    ) -> None:
        """`source` gives the version of each execution. `schema` and the values have physical column names.

        With `log`, a scan of a table with a large log is planned by Spark (`large_log`).
        """
        self._gateway = gateway
        self._spark = spark
        self._source = source
        self._spec = spec
        self._hidden = hidden
        self._log = log
        analysed = source.analysed
        self.table = analysed.table
        self.schema = columns_read(with_extra(analysed.mapping, spec.extra.stored))
        self.values_schema = _values_schema(self.schema, analysed.mapping.physical_partition_columns, hidden, spec)
        self._newest_seen = analysed
        self._own: Listing | None = None
        self._key = str(next(_keys))
        _indexes[self._key] = self

    @sets_table
    def held(self, snapshot: "Snapshot") -> "FileIndex":
        """A copy pinned to one version. Raises SchemaChangedError if the frame can't read that version."""
        check_readable_as(self._source.analysed, snapshot)
        return FileIndex(
            self._gateway,
            self._spark,
            Pinned(snapshot),
            replace(self._spec, files=None),
            hidden=self._hidden,
            log=self._log,
        )

    @property
    def reads_newest(self) -> bool:
        """Whether each execution reads the version that is the newest then."""
        return self._spec.files is None and isinstance(self._source, Newest)

    # --- which files ----------------------------------------------------------------------------------------------

    def listing(self, snapshot: "Snapshot") -> Listing:
        """The listing of this frame's files in a snapshot, shared between frames that read all files."""
        zone = settings.time_zone(self._spark)
        if self._spec.files is not None:
            if self._own is None:
                self._own = self._new_listing(self._spec.files, zone)
            return self._own
        hidden = None if self._hidden is None else self._hidden.key
        key = (id(self._gateway), zone, self.values_schema, hidden, self._spec.extra.per_file)
        return _shared(snapshot, key, lambda: self._new_listing(snapshot.files, zone))

    def _new_listing(self, files: pa.Table, zone: str) -> Listing:
        return Listing(
            self._gateway,
            self._spark,
            self.table,
            files,
            self.values_schema,
            hidden=self._hidden,
            extra=self._spec.extra,
            numbered=self._spec.file_number is not None,
            time_zone=zone,
        )

    @sets_table
    def plan(self, partition_filters: JavaObject, data_filters: JavaObject) -> tuple[Plan, Listing]:
        """The files that a scan with these filters (Scala `Seq`s of Catalyst expressions) reads."""
        snapshot = self._source.at(self._gateway.execution_id())
        self._newest_seen = snapshot
        large = self._log is not None and self._spec.files is None and self._spec.file_number is None
        large = large and large_log.is_large(self._spark, snapshot)
        if large and large_log.wanted(self._spark, snapshot):
            planned = self._plan_by_spark(snapshot, partition_filters, data_filters)
            if planned is not None:
                return planned
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
        size = _size(chosen)
        if large:  # create JVM objects only for the selected files
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
        """Select the files by a Spark job, and list only these; None if the driver has to read the log itself."""
        planned = self.planned(snapshot, partition_filters, data_filters)
        if planned is None:
            return None
        zone = settings.time_zone(self._spark)
        files, after_partitions = planned.files, planned.after_partitions
        listing = self._new_listing(files, zone)
        if files.num_rows and not partition_filters.isEmpty():
            # Applied exactly, because Spark doesn't apply them again.
            files = files.filter(listing.matching(partition_filters))
            after_partitions -= len(listing) - files.num_rows
            if files.num_rows < len(listing):
                listing = self._new_listing(files, zone)
        read_errors.remember(snapshot.table, snapshot.version, listing)
        size = _size(files)
        return Plan(snapshot.version, planned.total, after_partitions, files.num_rows, size, None), listing

    def planned(
        self,
        snapshot: "Snapshot",
        partition_filters: JavaObject,
        data_filters: JavaObject,
        *,
        then: large_log.Choice | None = None,
        chosen: large_log.Chooser = large_log.chosen,
    ) -> large_log.PlannedFiles | None:
        """The files that may match these filters, by a Spark job over the large log of the version.

        Files may be among them that the partition filters exclude. `then` selects among these files. `chosen` runs the
        job: `large_log.chosen`, whose result None is passed on, or a variant of it.
        """
        assert self._log is not None
        mapping, zone = snapshot.mapping, settings.time_zone(self._spark)
        of_values = translate(self._gateway, partition_filters, self.schema)
        of_rows = predicates.with_columns(self._wanted(snapshot, data_filters), mapping.to_physical)
        names = mapping.physical_partition_columns
        tuples = None
        if not predicates.is_translated(of_values):
            # Spark evaluates untranslated filters on one file per tuple of partition values.
            representatives = large_log.chosen(self._spark, self._log, snapshot, large_log.OneOfEachTuple(names), None)
            if representatives is None:
                return None
            matching = self._new_listing(representatives.files, zone).matching(partition_filters)
            tuples = large_log.tuples_of(representatives.files.filter(matching), names)
        filters: large_log.Choice = large_log.Filters(of_values, of_rows, mapping.physical, names, zone, tuples)
        if then is not None:
            filters = large_log.Then(filters, then)
        columns = predicates.columns(of_rows)
        return chosen(self._spark, self._log, snapshot, filters, columns or None)

    def _wanted(self, snapshot: "Snapshot", data_filters: JavaObject) -> predicates.Predicate:
        """The part of the filters that statistics and generated partition columns can decide, by logical names."""
        parts = generation.partition_columns(self._spark, snapshot)
        skipping = self._skipping()
        if not (skipping or parts):
            return predicates.TRUE
        # There are no statistics for extra columns.
        known = self.schema.without([f.name for f in self._spec.extra.stored])
        translated = predicates.with_columns(translate(self._gateway, data_filters, known), snapshot.mapping.to_logical)
        return predicates.all_of([translated if skipping else predicates.TRUE, derived(translated, parts)])

    def _may_match(self, snapshot: "Snapshot", data_filters: JavaObject) -> pa.Array | None:
        """A mask of the files that may contain matching rows; None if all may."""
        wanted = self._wanted(snapshot, data_filters)
        if wanted == predicates.TRUE:
            return None
        zone = settings.time_zone(self._spark)
        if self._spec.files is None:
            return snapshot.prune_mask(wanted, time_zone=zone)
        # The subset of files may come with statistics.
        mapping = snapshot.mapping
        wanted = predicates.with_columns(wanted, mapping.to_physical)
        columns = mapping.physical_partition_columns
        return pruning.may_match(self._spec.files, wanted, mapping.physical, columns, time_zone=zone)

    def _skipping(self) -> bool:
        return settings.of(self._spark, STATS_SKIPPING)

    # --- FileIndex ------------------------------------------------------------------------------------------------

    @cached_property
    def partition_schema(self) -> JavaObject:
        """The JVM schema of the values that each file has."""
        return self._gateway.schema(schemas.to_json(self.values_schema))

    def in_jvm(self) -> JavaObject:
        """The JVM's `FileIndex` that asks this object for files: `DeltaFileIndex`, which keeps this object alive."""
        root = paths.absolute_uri(self.table, "")
        factory = compiled_instance(self._gateway, f"{FILE_INDEX_CLASS}$Factory")
        return factory.create(self, self._key, self._identity, self.partition_schema, root)

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
    def sizeInBytes(self) -> int:
        with Connections.of(self._gateway).entered():
            if self._spec.files is not None:
                return _size(self._spec.files)
            if large_log.wanted(self._spark, self._newest_seen):
                self._newest_seen.seed_totals_from_checksum()
                totals = self._newest_seen.totals()
                return _UNKNOWN_SIZE if totals is None else totals.size_in_bytes
            return int(self._newest_seen.size_in_bytes)

    @cached_property
    def _identity(self) -> str:
        """The text of the index in plans, by which Spark compares relations: equal ones read the same files."""
        analysed = self._source.analysed
        if self._spec.files is not None:
            description = f"{self._spec.files.num_rows} files, subset {id(self):x}"
        else:
            description = "newest" if self.reads_newest else "pinned"
        if self._spec.file_number is not None:
            description += f", numbered by {self._spec.file_number}"
        if self._spec.extra.fields:
            description += f", extra columns {', '.join(f.name for f in self._spec.extra.fields)}"
        if self._hidden is not None and self._hidden.joined:
            description += f", {len(self._hidden.joined)} deletion vectors joined ({hash(self._hidden.key):x})"
        return f"tablelog[{self.table}, version {analysed.version}, {description}, id {analysed.metadata.id}]"

    class Java:
        implements: ClassVar[list[str]] = [FILE_INDEX]


def _values_schema(
    schema: schemas.StructType,
    partition_columns: tuple[str, ...],
    hidden: "Hidden | None",
    spec: ScanSpec,
) -> schemas.StructType:
    """The partition columns, then the hidden columns, the per-file columns, and the file number."""
    fields = [f for f in (schema.get(name) for name in partition_columns) if f is not None]
    if hidden is not None:
        fields.extend(hidden.fields)
    fields.extend(spec.extra.per_file_fields)
    if spec.file_number is not None:
        fields.append(schemas.StructField(spec.file_number, schemas.INTEGER, nullable=False))
    return schemas.StructType(tuple(fields))


def index_of(location: JavaObject) -> FileIndex | None:
    """The index of the location of a relation; None if the relation is none of ours."""
    return _indexes.get(str(location.key())) if class_name(location) == FILE_INDEX_CLASS else None


_keys = itertools.count()
_indexes: "weakref.WeakValueDictionary[str, FileIndex]" = weakref.WeakValueDictionary()


def _size(files: pa.Table) -> int:
    """The bytes of files, at most what a `long` of the JVM holds."""
    return min(exact_sum(files.column("size")), _UNKNOWN_SIZE)


_listings_lock = threading.Lock()
_listings: "OrderedDict[weakref.ref[Snapshot], dict[Any, Listing]]" = OrderedDict()
_MOST_FILES = 400_000  # total number of files in cached listings


def _shared(snapshot: "Snapshot", key: Any, make: Callable[[], Listing]) -> Listing:
    """The shared listing of a snapshot for a key. It is cached while the snapshot exists, within the size limit."""
    key_snapshot = weakref.ref(snapshot)
    with _listings_lock:
        for reference in [reference for reference in _listings if reference() is None]:
            del _listings[reference]
        listings = _listings.setdefault(key_snapshot, {})
        _listings.move_to_end(key_snapshot)
        listing = listings.get(key)
    if listing is not None:
        return listing
    new_listing = make()
    with _listings_lock:
        listing = listings.setdefault(key, new_listing)
        while (
            len(_listings) > 1
            and sum(len(listing) for kept in _listings.values() for listing in kept.values()) > _MOST_FILES
        ):
            _listings.popitem(last=False)
        return listing
