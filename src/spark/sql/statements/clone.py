"""Runs CREATE TABLE and REPLACE TABLE ... SHALLOW CLONE."""

from pyspark.sql import DataFrame

from ....core.table.snapshot import Snapshot
from ....dml.maintain import clone as commands
from ....engine.jvm.catalog import SessionCatalog
from ....engine.jvm.statements import statements
from ....errors import InvalidArgumentError, TableAlreadyExistsError, TableNotFoundError, UnsupportedFeatureError
from ... import names
from ...conf import delta_log, session_conf
from ...delta_table.convert import named
from ...time_travel import timestamp_ms
from ...writer import commit_of
from .. import results, tables, targets
from ..grammar import nodes
from ..grammar.nodes import Literal
from ..tables import NamedTable
from ..targets import TableName
from ..values import Values

_METRICS = {
    "source_table_size": "sourceTableSize",
    "source_num_of_files": "sourceNumOfFiles",
    "num_removed_files": "numRemovedFiles",
    "num_copied_files": "numCopiedFiles",
    "removed_files_size": "removedFilesSize",
    "copied_files_size": "copiedFilesSize",
}
_SCHEMA = ", ".join(f"{name} BIGINT" for name in _METRICS)


def clone(values: Values, node: nodes.Clone) -> DataFrame:
    """Create or replace a table by a shallow clone. Answers the metrics; no row if the table existed before."""
    spark = values.spark
    target = TableName.of(values, node.table)
    if node.deep:
        raise UnsupportedFeatureError(
            f"{target.quoted}: only shallow clones are supported, as in Delta: use SHALLOW CLONE, or CREATE TABLE ... "
            "AS SELECT to copy the rows.",
            ("deep clone",),
            condition="DELTA_UNSUPPORTED_DEEP_CLONE",
        )
    source, version = _source(values, node)
    if statements.is_temporary_view(spark, target.seq):
        raise InvalidArgumentError(
            f"CLONE is only supported for Delta tables, and {target.quoted} is a view: use another name.",
            condition="DELTA_ONLY_OPERATION",
            parameters={"operation": "CLONE"},
        )
    location = None if node.location is None else values.text(node.location)
    place = names.place(spark, target.identifier, location)
    log = delta_log(place.path, session_conf(spark, place.path))
    exists = place.entry is not None or (place.name is None and log.exists())
    if exists and node.if_not_exists:
        return results.rows(spark, _SCHEMA, [])
    if exists and not node.replaces:
        raise TableAlreadyExistsError(
            f"The table {target.quoted} exists already: use CREATE OR REPLACE TABLE to replace it by the clone.",
            condition="DELTA_TABLE_ALREADY_EXISTS",
            parameters={"tableName": target.quoted},
            table=log.table,
        )
    if not exists and not node.creates:
        raise TableNotFoundError(
            f"There is no table {target.quoted} to replace: CREATE OR REPLACE TABLE would create it.",
            condition="DELTA_CANNOT_REPLACE_MISSING_TABLE",
            parameters={"tableName": target.quoted},
        )
    committed = commands.clone(
        spark,
        named(version, source.entry),
        log,
        replaces=node.replaces,
        overrides=_properties(values, node),
        options=commit_of(spark),
    )
    place.enter(spark)
    metrics = committed.commit_info.operation_metrics or {}
    return results.rows(spark, _SCHEMA, [[int(metrics[name]) for name in _METRICS.values()]])


def _source(values: Values, node: nodes.Clone) -> tuple[NamedTable, Snapshot]:
    """The source, and its version that is cloned."""
    spark = values.spark
    name = TableName.of(values, node.source)
    kind = None
    if statements.is_temporary_view(spark, name.seq):
        kind = "View"
    elif (table := tables.find(spark, name.seq)) is None:
        entry = SessionCatalog(spark).find_parts(name.seq)
        if entry is None and names.by_path(name.identifier) is None:
            raise targets.missing(name)
        kind = name.parts[0] if entry is None else (entry.provider if entry.location else "View")
    if kind is not None or table is None:
        raise UnsupportedFeatureError(
            f"{name.quoted} can't be cloned: it is no Delta table, but of the format {kind}.",
            (f"clones of {kind}",),
            condition="DELTA_CLONE_UNSUPPORTED_SOURCE",
            parameters={"name": name.quoted, "format": kind},
        )
    if node.at is None:
        return table, table.log.snapshot()
    if node.at.version is not None:
        return table, table.log.snapshot(values.whole(node.at.version))
    assert node.at.timestamp is not None
    return table, table.log.snapshot(timestamp=timestamp_ms(spark, values.text(node.at.timestamp)))


def _properties(values: Values, node: nodes.Clone) -> dict[str, str]:
    properties: dict[str, str] = {}
    for key, value in node.properties:
        name = values.text(key) if isinstance(key, Literal) else key
        if name in properties:
            raise InvalidArgumentError(
                f"TBLPROPERTIES has the key {name} twice: leave out one of them.",
                condition="DUPLICATE_KEY",
                parameters={"keyColumn": f"`{name}`"},
            )
        properties[name] = value if isinstance(value, str) else values.property_text(value)
    return properties
