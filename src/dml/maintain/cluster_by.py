"""By which columns a table is clustered: decided for a new table, and changed for one that is there."""

from collections.abc import Sequence

from pyspark.sql import SparkSession

from ...core.deltalog import DeltaLog
from ...core.protocol import features, properties, schema
from ...core.protocol.actions import DomainMetadata, Metadata
from ...core.protocol.column_mapping import ColumnMapping
from ...core.table import clustering
from ...core.table.snapshot import Snapshot
from ...core.txn.operation import Operation
from ...core.txn.transaction import Committed, Transaction
from ...errors import InvalidArgumentError
from ..command.command import PLAIN, Command, CommitOptions, command_scope

MOST_COLUMNS = 4


def cluster_by(
    spark: SparkSession, log: DeltaLog, columns: Sequence[str], *, options: CommitOptions = PLAIN
) -> Committed | None:
    """Have OPTIMIZE cluster the table by `columns` from now on (none: not at all); no file is rewritten here.

    None: it is so already. Raises InvalidArgumentError for a partitioned table and for columns that nothing can be
    clustered by. PROTOCOL.md, "Clustered Table".
    """
    with command_scope(spark, "CLUSTER BY", log.table):
        command = Command.on(spark, log, options)
        if command.applied_already:
            return None
        now = current(command.snapshot)
        wanted = checked(command.snapshot.metadata, columns, log.table)
        if wanted == (now or []):
            return None
        parameters = {
            "oldClusteringColumns": ",".join(map(schema.dotted, now or ())),
            "newClusteringColumns": ",".join(map(schema.dotted, wanted)),
        }
        return command.commit([staged(command.txn, columns)], Operation("CLUSTER BY", parameters))


def current(snapshot: Snapshot) -> list[schema.Column] | None:
    """The columns that a table is clustered by, as it calls them; `None` where it isn't a clustered one."""
    if "clustering" not in features.supported(snapshot.protocol):
        return None
    columns = clustering.columns_of(snapshot.domain_metadata)
    return None if columns is None else [snapshot.mapping.to_logical(column) for column in columns]


def staged(txn: Transaction, columns: Sequence[str]) -> DomainMetadata:
    """Have the table be a clustered one from the commit on; the action says by what. Errors as of `checked`."""
    wanted = checked(txn.metadata, columns, txn.table)
    protocol = txn.protocol
    txn.set_protocol(features.protocol_of(features.supported(protocol) | {"clustering", "domainMetadata"}))
    mapping = ColumnMapping.of(protocol, txn.metadata)
    return clustering.domain([mapping.to_physical(column) for column in wanted])


def checked(metadata: Metadata, columns: Sequence[str], table: str) -> list[schema.Column]:
    """The clustering columns as the schema spells them; InvalidArgumentError says what is wrong with one."""
    if not columns:
        return []
    if metadata.partition_columns:
        raise InvalidArgumentError(
            f"{table} is partitioned by {', '.join(metadata.partition_columns)}: a table is partitioned or clustered",
            condition="DELTA_ALTER_TABLE_CLUSTER_BY_ON_PARTITIONED_TABLE_NOT_ALLOWED",
        )
    if len(columns) > MOST_COLUMNS:
        raise InvalidArgumentError(
            f"{table} can be clustered by {MOST_COLUMNS} columns at most, not {len(columns)}",
            condition="DELTA_CLUSTER_BY_INVALID_NUM_COLUMNS",
            parameters={"numColumnsLimit": MOST_COLUMNS, "actualNumColumns": len(columns)},
        )
    found: list[schema.Column] = []
    fields = schema.parse_schema(metadata.schema_string)
    known = properties.TableProperties.of(metadata)
    kept = {
        column
        for column, _ in schema.indexed_leaves(
            fields, (), known.data_skipping_num_indexed_cols, known.data_skipping_stats_columns
        )
    }
    for text in columns:
        try:
            (wanted,) = properties.column_list(text)
        except ValueError:
            raise InvalidArgumentError(f"a table is clustered by names of columns, not by {text!r}") from None
        hit = schema.find(fields, wanted)
        if hit is None:
            raise InvalidArgumentError(
                f"{table} has no column {text} to be clustered by",
                condition="DELTA_COLUMN_NOT_FOUND_IN_SCHEMA",
                parameters={"columnName": text},
            )
        column, field = hit
        if column in found:
            raise InvalidArgumentError(
                f"{table} can't be clustered by {text} twice",
                condition="DELTA_DUPLICATE_COLUMNS_FOUND",
                parameters={"duplicateCols": text},
            )
        if not schema.has_min_max(field.data_type) or column not in kept:
            raise InvalidArgumentError(
                f"{table} keeps no statistics of {text}, so that no filter would gain from clustering by it: see the "
                "table properties delta.dataSkippingNumIndexedCols and delta.dataSkippingStatsColumns",
                condition="DELTA_CLUSTERING_COLUMN_MISSING_STATS",
                parameters={"columns": text},
            )
        found.append(column)
    return found
