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
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from ..core.protocol import paths
from ..core.protocol import schema as schemas
from ..core.table import predicates, pruning
from ..core.table.generation import derived
from ..errors import SchemaChangedError
from . import generation, read_errors
from .beside import NOTHING, Beside
from .bulk_listing import Listing, uris
from .callbacks import Connections, carried
from .column_names import columns_read, with_extra
from .gateway import Gateway, JavaObject
from .predicates import translate
from .types import read_schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ..core.deltalog import DeltaLog
    from ..core.table.snapshot import Snapshot
    from .deletion_vectors import Hidden

logger = logging.getLogger(__name__)

SKIPPING_KEY = "spark.databricks.delta.stats.skipping"


class Source(Protocol):
    """Which snapshot a frame reads."""

    analysed: "Snapshot"

    def at(self, execution: str | None) -> "Snapshot":
        """The snapshot for one scan; `execution` is the query that it belongs to, where there is one."""
        ...


class Pinned:
    """One snapshot for ever."""

    def __init__(self, snapshot: "Snapshot") -> None:
        self.analysed = snapshot

    def at(self, execution: str | None) -> "Snapshot":
        return self.analysed


class Newest:
    """The newest version at each execution, the same for all scans of the table within it.

    `SchemaChangedError` where the table can no longer be read by the schema that the frame was analysed with.
    """

    _REMEMBERED: ClassVar[int] = 64  # executions at a time
    _lock: ClassVar[threading.Lock] = threading.Lock()
    _seen: ClassVar[OrderedDict[tuple[str, str], "Snapshot"]] = OrderedDict()

    def __init__(self, log: "DeltaLog", analysed: "Snapshot", application: str) -> None:
        self._log = log
        self._application = application
        self.analysed = analysed

    def at(self, execution: str | None) -> "Snapshot":
        if execution is None:
            newest = self._log.snapshot()
        else:
            key = (f"{self._application}/{execution}", self._log.table)
            with self._lock:
                seen = self._seen.get(key)
            newest = seen or self._log.snapshot()
            with self._lock:
                newest = self._seen.setdefault(key, newest)
                self._seen.move_to_end(key)
                while len(self._seen) > self._REMEMBERED:
                    self._seen.popitem(last=False)
        check_readable_as(self.analysed, newest)
        return newest


def check_readable_as(analysed: "Snapshot", newest: "Snapshot") -> None:
    """`SchemaChangedError` unless rows of `newest` can be read by the schema of `analysed`; more columns may be."""
    old, new = analysed.metadata, newest.metadata
    if old is new or (old.schema_string == new.schema_string and old.partition_columns == new.partition_columns):
        return
    changed = _difference(read_schema(analysed.schema), read_schema(newest.schema), ())
    if changed is None and _difference(columns_read(analysed.mapping), columns_read(newest.mapping), ()) is not None:
        changed = "a column of the same name is another one now"
    if changed is None and tuple(old.partition_columns) != tuple(new.partition_columns):
        changed = f"it is partitioned by ({', '.join(new.partition_columns)})"
    if changed is not None:
        raise SchemaChangedError(
            f"the schema of {newest.table} changed between version {analysed.version}, with which this DataFrame was "
            f"made, and version {newest.version}: {changed}. Make the DataFrame again from the table."
        )


def _difference(old: schemas.DataType, new: schemas.DataType, at: schemas.Column) -> str | None:
    """What keeps values of the type `new` from being read as `old`, in words; `None`: nothing."""
    if isinstance(old, schemas.StructType) and isinstance(new, schemas.StructType):
        for f in old.fields:
            name = (*at, f.name)
            now = new.get(f.name)
            if now is None:
                return f"the column {schemas.dotted(name)} is gone"
            if now.nullable and not f.nullable:
                return f"the column {schemas.dotted(name)} may be null now"
            inner = _difference(f.data_type, now.data_type, name)
            if inner is not None:
                return inner
        return None
    if isinstance(old, schemas.ArrayType) and isinstance(new, schemas.ArrayType):
        return _difference(old.element_type, new.element_type, (*at, "element"))
    if isinstance(old, schemas.MapType) and isinstance(new, schemas.MapType):
        return _difference(old.key_type, new.key_type, (*at, "key")) or _difference(
            old.value_type, new.value_type, (*at, "value")
        )
    if old == new:
        return None
    return f"the column {schemas.dotted(at)} is {schemas.type_text(new)} now, not {schemas.type_text(old)}"


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
        source: Source,
        *,
        files: pa.Table | None = None,
        file_number: str | None = None,
        beside: Beside = NOTHING,
        hidden: "Hidden | None" = None,
    ) -> None:
        """`schema` and the values have the names that data files have; see `scan.frame` for the arguments."""
        self._gateway = gateway
        self._spark = spark
        self._source = source
        self._files = files
        self._file_number = file_number
        self._beside = beside
        self._hidden = hidden
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
        )

    # --- which files ----------------------------------------------------------------------------------------------

    def listing(self, snapshot: "Snapshot") -> Listing:
        """The listing of this frame's files in a snapshot, shared between frames where they read all of it."""
        zone = str(self._spark.conf.get("spark.sql.session.timeZone", "UTC"))
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

    def _may_match(self, snapshot: "Snapshot", data_filters: JavaObject) -> pa.Array | None:
        """Which files may hold a row of the filters, by statistics and generated partition columns; None: all."""
        parts = generation.partition_columns(self._spark, snapshot)
        skipping = self._skipping()
        if not (skipping or parts):
            return None
        mapping = snapshot.mapping
        # Of what isn't the table's there are no statistics.
        known = self.schema.without([f.name for f in self._beside.stored])
        told = predicates.with_columns(translate(self._gateway, data_filters, known), mapping.to_logical)
        wanted = predicates.all_of([told if skipping else predicates.TRUE, derived(told, parts)])
        if self._files is None:
            return snapshot.prune_mask(wanted)
        # Statistics help where the subset came with them.
        wanted = predicates.with_columns(wanted, mapping.to_physical)
        return pruning.may_match(self._files, wanted, mapping.physical, mapping.physical_partition_columns)

    def _skipping(self) -> bool:
        return str(self._spark.conf.get(SKIPPING_KEY, "true")).lower() != "false"

    # --- FileIndex ------------------------------------------------------------------------------------------------

    @carried
    def listFiles(self, partition_filters: JavaObject, data_filters: JavaObject) -> JavaObject:
        with Connections.of(self._gateway).entered():
            plan, listing = self.plan(partition_filters, data_filters)
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
        return self._gateway.seq([self._gateway.path(paths.absolute_uri(self.table, ""))])

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
        implements: ClassVar[list[str]] = ["org.apache.spark.sql.execution.datasources.FileIndex"]


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
