"""Writes a DataFrame to a table: create, append, or overwrite the whole table, partitions, or rows of a condition."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pyspark.sql import Column, DataFrame, SparkSession

from ...core.deltalog import DeltaLog
from ...core.protocol import features, properties, schema
from ...core.protocol.actions import Action, AddFile
from ...core.txn.operation import Operation
from ...core.txn.transaction import Committed, Transaction
from ...engine.jvm.types import table_schema
from ...engine.read import pinning
from ...engine.sql import conform
from ...engine.write import writer
from ...errors import (
    ConcurrentWriteException,
    InvalidArgumentError,
    MetadataChangedException,
    ProtocolChangedException,
    TableAlreadyExistsError,
)
from ..command import change_data, rows, target_metadata
from ..command.command import PLAIN, Command, CommitOptions, command_scope
from ..command.removal import Removal
from ..command.whole_files import remove_all
from ..maintain import cluster_by
from . import overwrite
from .touched_files import remove_matching

logger = logging.getLogger(__name__)

_ATTEMPTS_TO_CREATE = 5


@dataclass(frozen=True)
class StreamBatch:
    """The batch of a streaming query that is written. Also a batch without rows is committed, as in Delta."""

    query_id: str
    batch: int
    output_mode: str

    @property
    def parameters(self) -> dict[str, object]:
        """The parameters of the operation."""
        return {"outputMode": self.output_mode, "queryId": self.query_id, "epochId": str(self.batch)}


@dataclass(frozen=True)
class WriteRequest:
    """A validated write request. `mode` is Append, Overwrite, ErrorIfExists or Ignore.

    `replace_condition` is what `replace_where` prints; without it, that text is the condition.
    `data_change=False` declares that the write only rearranges existing rows. `file_options` configure the data files
    (`engine.write.write_spec.WriteOptions`).
    """

    mode: str = "Append"
    partition_by: tuple[str, ...] = ()
    cluster_by: tuple[str, ...] = ()
    table_properties: Mapping[str, str] = field(default_factory=dict)
    comment: str | None = None
    merge_schema: bool = False
    overwrite_schema: bool = False
    replace_where: str | None = None
    replace_condition: Column | None = None
    dynamic_partitions: bool = False
    data_change: bool = True
    commit: CommitOptions = PLAIN
    stream: StreamBatch | None = None
    file_options: Mapping[str, str] = field(default_factory=dict)

    @property
    def overwrites(self) -> bool:
        return self.mode == "Overwrite"

    @property
    def replaces_schema(self) -> bool:
        return self.overwrites and self.overwrite_schema and self.replace_where is None


def write(spark: SparkSession, log: DeltaLog, frame: DataFrame, request: WriteRequest) -> Committed | None:
    """Write `frame` and commit. Returns None if there is nothing to commit.

    If another writer creates the table first, the write restarts on that table: an append appends to it.
    Raises TableAlreadyExistsError as the mode requires, SchemaMismatchError, ConstraintViolationError, the conflict
    errors and CommitStateUnknownError. After any error but the last, no file of the write is left.
    """
    with command_scope(spark, "WRITE", log.table):
        for attempt in range(1, _ATTEMPTS_TO_CREATE + 1):
            txn = log.transaction()
            try:
                return _write(spark, log, txn, frame, request)
            except (MetadataChangedException, ProtocolChangedException, ConcurrentWriteException):
                if txn.read_version >= 0 or attempt == _ATTEMPTS_TO_CREATE:
                    raise
                logger.info("%s: another writer created the table concurrently; restarting the write", log.table)
    raise AssertionError("unreachable")


def _write(
    spark: SparkSession, log: DeltaLog, txn: Transaction, frame: DataFrame, request: WriteRequest
) -> Committed | None:
    command = Command(spark, log, txn, request.commit)
    if command.applied_already:
        return None
    if txn.snapshot is not None:
        if request.mode == "ErrorIfExists":
            raise TableAlreadyExistsError(
                f"There is a Delta table at {log.table}. Set the mode to append or overwrite to write to it.",
                condition="DELTA_PATH_EXISTS",
                parameters={"path": log.table},
            )
        if request.mode == "Ignore":
            return None
        if request.overwrites:
            command.check_removable()
        frame, reads_itself = pinning.pinned(frame, log, txn.snapshot)
        if reads_itself:
            txn.read_whole_table()
    _stage_metadata(command, frame, request)
    layout = _stage_clustering(txn, request)
    metadata = txn.metadata
    before = () if txn.snapshot is None else txn.snapshot.partition_columns
    replaces = request.overwrites and txn.snapshot is not None
    dynamic = request.dynamic_partitions and bool(metadata.partition_columns)
    if request.replaces_schema and request.dynamic_partitions and (before or metadata.partition_columns):
        raise InvalidArgumentError(
            "overwriteSchema can't be combined with dynamic partition overwrite: set the option "
            "partitionOverwriteMode to static to replace the whole table.",
            condition="DELTA_OVERWRITE_SCHEMA_WITH_DYNAMIC_PARTITION_OVERWRITE",
        )
    options = _write_options(request)

    if request.data_change:
        rows.check_inserted(command, frame.columns)
    with command.discarded_on_failure():
        data = rows.fitted(command, frame)
        removal = Removal()
        if request.replace_where is not None and request.overwrites:
            data = overwrite.checked(command, data, request.replace_where, request.replace_condition)
            if replaces:
                condition = overwrite.condition(command, request.replace_where, request.replace_condition)
                if not request.data_change and condition.data is not None:
                    raise InvalidArgumentError(
                        "dataChange=false allows a replaceWhere on partition columns only: any other condition would "
                        "rewrite rows that stay.",
                        condition="DELTA_REPLACE_WHERE_WITH_FILTER_DATA_CHANGE_UNSET",
                        parameters={"dataFilters": request.replace_where},
                    )
                removal = remove_matching(command, condition, options, data_change=request.data_change)
        if removal.changes:
            written, inserted = change_data.write_inserted(command, data, options)
            removal.changes += inserted
        else:
            written = rows.write_new(command, data, options, data_change=request.data_change)
        if replaces and request.replace_where is None:
            if dynamic:
                removal = overwrite.partitions(command, written.adds, data_change=request.data_change)
            else:
                removal = remove_all(command, data_change=request.data_change)
        now = log.clock.now_ms()
        actions = _actions(request, [*removal.added, *written.adds], removal.removed, now)
        actions += removal.changes
        unchanged = txn.snapshot is not None and metadata == txn.snapshot.metadata
        if not actions and not removal.counts.removed and unchanged and request.stream is None:
            logger.info("%s: no row to write, nothing committed", log.table)
            return None
        return command.commit(
            [*layout, *actions],
            _operation(request, written, removal),
            empty=request.stream is not None,
            bulk=removal.bulk(now),
        )


def _stage_metadata(command: Command, frame: DataFrame, request: WriteRequest) -> None:
    """Stage the metadata of a new table, or the changes to that of an existing one."""
    txn, log = command.txn, command.log
    if txn.snapshot is None:
        if not request.data_change:
            raise InvalidArgumentError(f"dataChange=false can't create a table: there is no table at {log.table}.")
        metadata = target_metadata.new_table(
            conform.new_table_schema(frame),
            request.partition_by,
            request.table_properties,
            comment=request.comment,
            created_time=log.clock.now_ms(),
            table=log.table,
        )
        stored = properties.without_protocol_properties(metadata.configuration)
        if len(stored) < len(metadata.configuration):
            txn.set_protocol(features.protocol_for_new_table(metadata, log.conf))
        txn.set_metadata(replace(metadata, configuration=stored))
        return
    current = txn.snapshot.metadata
    if request.table_properties:
        names = ", ".join(sorted(request.table_properties))
        logger.warning("%s already exists: the table properties given as options (%s) are ignored", log.table, names)
    if request.replaces_schema:
        changed = target_metadata.replaced(current, conform.new_table_schema(frame), request.partition_by)
    else:
        target_metadata.check_partitioning(current, request.partition_by, log.table, overwriting=request.overwrites)
        changed = target_metadata.evolved(command, table_schema(frame.schema)) if request.merge_schema else current
    if changed != current:
        if not request.data_change:
            raise InvalidArgumentError(
                f"dataChange=false can't change the schema or the partitioning of the table {log.table}.",
                condition="DELTA_DATA_CHANGE_FALSE",
                parameters={"op": "WRITE"},
            )
        txn.set_metadata(changed, replaces_table=request.replaces_schema)


def _stage_clustering(txn: Transaction, request: WriteRequest) -> list[Action]:
    """Stage the clustering columns of a created or replaced table; for an existing table, check that they agree."""
    if txn.snapshot is None or (request.replaces_schema and request.cluster_by):
        return [cluster_by.staged(txn, request.cluster_by)] if request.cluster_by else []
    now = cluster_by.current(txn.snapshot)
    if request.replaces_schema and now:
        cluster_by.checked(txn.metadata, [schema.dotted(column) for column in now], txn.table)
    if request.cluster_by and cluster_by.checked(txn.metadata, request.cluster_by, txn.table) != now:
        by = ", ".join(map(schema.dotted, now)) if now else "nothing"
        raise InvalidArgumentError(
            f"{txn.table} is clustered by {by}, not by {', '.join(request.cluster_by)}: leave out clusterBy, or change "
            "it with DeltaTable.clusterBy first",
            condition="DELTA_CLUSTERING_COLUMNS_MISMATCH",
            parameters={"providedClusteringColumns": ", ".join(request.cluster_by), "existingClusteringColumns": by},
        )
    return []


def _write_options(request: WriteRequest) -> writer.WriteOptions:
    return writer.WriteOptions.of(request.file_options)


def _actions(request: WriteRequest, added: list[AddFile], removed: list[AddFile], now: int) -> list[Action]:
    return [
        *(added if request.data_change else [replace(add, data_change=False) for add in added]),
        *(add.remove(now, data_change=request.data_change) for add in removed),
    ]


def _operation(request: WriteRequest, written: writer.Written, removal: Removal) -> Operation:
    """The operation of `commitInfo`, with Delta's parameters and metrics."""
    if request.stream is not None:
        added = len(written.adds)
        of_stream: dict[str, int | str] = {
            "numAddedFiles": added,
            "numRemovedFiles": removal.counts.removed,
            "numOutputRows": written.rows,
            "numOutputBytes": written.bytes,
        }
        return Operation("STREAMING UPDATE", request.stream.parameters, of_stream)
    parameters: dict[str, object] = {"mode": request.mode, "partitionBy": list(request.partition_by)}
    if request.replace_where is not None:
        parameters["predicate"] = request.replace_where
    if request.dynamic_partitions:
        parameters["isDynamicPartitionOverwrite"] = True
    if request.overwrite_schema:
        parameters["canOverwriteSchema"] = True
    if request.merge_schema:
        parameters["canMergeSchema"] = True
    # As in Delta, a file that is re-added with a new deletion vector counts as written, with its remaining rows.
    counts, new = removal.counts, removal.written
    kept = counts.marked_rows if removal.by_vectors else removal.copied_rows
    metrics: dict[str, int | str] = {
        "numFiles": len(written.adds) + len(new) + counts.marked,
        "numOutputRows": written.rows + kept,
        "numOutputBytes": written.bytes + sum(add.size for add in new) + counts.marked_bytes,
    }
    if request.overwrites or request.replace_where is not None:
        metrics |= {
            "numRemovedFiles": counts.files,
            "numRemovedBytes": counts.bytes,
        }
    if request.replace_where is not None:
        metrics |= {"numCopiedRows": kept, "numAddedChangeFiles": len(removal.changes)}
        if removal.deleted_rows is not None:
            metrics["numDeletedRows"] = removal.deleted_rows
    return Operation("WRITE", parameters, metrics, replaces_table=request.replaces_schema)
