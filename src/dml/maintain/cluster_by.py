"""CLUSTER BY: validates, sets and changes the clustering columns of a table (PROTOCOL.md, "Clustered Table")."""

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
    """Set the clustering columns for future OPTIMIZE runs (empty: no clustering); no file is rewritten.

    Returns None if the columns are already set. Raises InvalidArgumentError for a partitioned table, and for columns
    that can't be clustering columns. PROTOCOL.md, "Clustered Table".
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
    """The clustering columns of a table, by logical names; `None` if it isn't a clustered table."""
    if "clustering" not in features.supported(snapshot.protocol):
        return None
    columns = clustering.columns_of(snapshot.domain_metadata)
    return None if columns is None else [snapshot.mapping.to_logical(column) for column in columns]


def staged(txn: Transaction, columns: Sequence[str]) -> DomainMetadata:
    """Stage the feature for clustering; returns the action with the clustering columns. Raises as `checked` does."""
    wanted = checked(txn.metadata, columns, txn.table)
    protocol = txn.protocol
    txn.set_protocol(features.protocol_of(features.supported(protocol) | {"clustering", "domainMetadata"}))
    mapping = ColumnMapping.of(protocol, txn.metadata)
    return clustering.domain([mapping.to_physical(column) for column in wanted])


def checked(metadata: Metadata, columns: Sequence[str], table: str) -> list[schema.Column]:
    """The clustering columns, spelled as in the schema. Raises InvalidArgumentError for an invalid column."""
    if not columns:
        return []
    if metadata.partition_columns:
        raise InvalidArgumentError(
            f"{table} is partitioned by {', '.join(metadata.partition_columns)}: a table can't be both partitioned and "
            "clustered",
            condition="DELTA_ALTER_TABLE_CLUSTER_BY_ON_PARTITIONED_TABLE_NOT_ALLOWED",
        )
    if len(columns) > MOST_COLUMNS:
        raise InvalidArgumentError(
            f"{table} can be clustered by {MOST_COLUMNS} columns at most, not {len(columns)}",
            condition="DELTA_CLUSTER_BY_INVALID_NUM_COLUMNS",
            parameters={"numColumnsLimit": MOST_COLUMNS, "actualNumColumns": len(columns)},
        )
    clustered: list[schema.Column] = []
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
            raise InvalidArgumentError(f"a clustering column needs to be a column name, not {text!r}") from None
        match = schema.find(fields, wanted)
        if match is None:
            raise InvalidArgumentError(
                f"{table} has no column {text} to cluster by",
                condition="DELTA_COLUMN_NOT_FOUND_IN_SCHEMA",
                parameters={"columnName": text},
            )
        column, field = match
        if column in clustered:
            raise InvalidArgumentError(
                f"the clustering columns of {table} contain {text} twice",
                condition="DELTA_DUPLICATE_COLUMNS_FOUND",
                parameters={"duplicateCols": text},
            )
        if not schema.has_min_max(field.data_type) or column not in kept:
            raise InvalidArgumentError(
                f"{table} has no statistics for {text}, so clustering by it wouldn't help any filter: see the table "
                "properties delta.dataSkippingNumIndexedCols and delta.dataSkippingStatsColumns",
                condition="DELTA_CLUSTERING_COLUMN_MISSING_STATS",
                parameters={"columns": text},
            )
        clustered.append(column)
    return clustered
