"""CREATE TABLE, REPLACE TABLE, AS SELECT and LIKE for Delta tables, by name and by path."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from ....core.deltalog import DeltaLog
from ....core.protocol import schema as schemas
from ....core.protocol.schema import quoted
from ....dml.alter.create import CreateMode, Definition, check_same, create
from ....dml.alter.like import definition_like
from ....engine.jvm.catalog import SessionCatalog
from ....engine.jvm.connection import settings
from ....engine.jvm.registry.classes import class_name
from ....engine.jvm.statements import definitions, statements
from ....engine.jvm.statements.definitions import Partitioning, TableSpecification
from ....errors import (
    InvalidArgumentError,
    SchemaMismatchError,
    TableAlreadyExistsError,
    TableNotFoundError,
    UnsupportedFeatureError,
)
from ....settings.spark_own import SOURCE_DEFAULT
from ... import names
from ...conf import delta_log, session_conf
from ...options import Options, write_request
from ...writer import commit_of, session_commit
from .. import tables
from ..results import nothing
from ..statement import Statement


@dataclass(frozen=True)
class NewTable:
    """A table to create: its name and location, its definition, and its rows (None: it is empty)."""

    name: tuple[str, ...]
    mode: CreateMode
    definition: Definition
    location: str | None = None
    frame: DataFrame | None = None
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def identifier(self) -> str:
        """The name, quoted as `names.place` takes it."""
        if self.is_path:
            return f"delta.{quoted(*self.name[1:])}"
        return quoted(*self.name)

    @property
    def is_path(self) -> bool:
        return names.is_path(self.name)


def run(spark: SparkSession, table: NewTable) -> None:
    """Create or replace the table by one commit, and register its name in the catalog.

    Raises TableAlreadyExistsError, TableNotFoundError, SchemaMismatchError for a location with another table, and
    InvalidArgumentError for a definition that isn't valid.
    """
    if not table.is_path and table.mode in ("create", "createIfNotExists"):
        entry = SessionCatalog(spark).find(table.identifier)
        if entry is not None:
            if table.mode == "createIfNotExists":
                return
            raise _exists(entry.name)
    place = names.place(spark, table.identifier, table.location)
    log = delta_log(place.path, session_conf(spark, place.path))
    definition = replace(table.definition, managed=place.managed)
    if table.mode in ("replace", "createOrReplace"):
        _check_columns(table)
    if place.name is not None and place.entry is None:
        if table.mode == "replace":
            raise TableNotFoundError(
                f"There is no table {place.name} to replace: CREATE OR REPLACE TABLE creates it.",
                condition="TABLE_OR_VIEW_NOT_FOUND",
                parameters={"relationName": place.name},
            )
        if _is_there(spark, table, place, log, definition):
            place.enter(spark, definition.comment)
            return
    elif place.name is None and table.mode.startswith("create") and not log.exists():
        _check_empty(spark, table, place.path)
    if table.frame is None:
        create(spark, log, definition, table.mode, options=commit_of(spark))
    else:
        request = write_request(Options(dict(table.options)), session_conf(spark, place.path), mode="Append")
        with session_commit(spark):
            create(
                spark,
                log,
                definition,
                table.mode,
                frame=table.frame,
                file_options=request.file_options,
                options=request.commit,
            )
    place.enter(spark, definition.comment)


def _is_there(
    spark: SparkSession, table: NewTable, place: names.TableLocation, log: DeltaLog, definition: Definition
) -> bool:
    """Whether the location of a new name has a table that fits the definition, so that only the name is missing.

    Raises SchemaMismatchError if that table differs, and TableAlreadyExistsError if the location may not be used.
    """
    if table.frame is not None and table.mode == "createOrReplace":
        return False
    if not log.exists():
        _check_empty(spark, table, place.path)
        return False
    if table.frame is not None or place.managed:
        raise _not_empty(table, place.path)
    check_same(definition, log.snapshot())
    return True


def _check_empty(spark: SparkSession, table: NewTable, path: str) -> None:
    """Raise TableAlreadyExistsError if files that are no Delta table are at the location of a new table."""
    if table.frame is not None and table.mode == "createOrReplace":
        return
    if not statements.has_files(spark, path):
        return
    if table.frame is None and not len(table.definition.columns):
        raise TableNotFoundError(
            f"There is no Delta table at {path}, but other files, so {'.'.join(table.name)} needs another location. "
            "DeltaTable.convertToDelta turns a directory of Parquet files into a Delta table.",
            condition="DELTA_CREATE_EXTERNAL_TABLE_WITHOUT_TXN_LOG",
            parameters={"tableName": ".".join(table.name), "path": path, "logPath": f"{path}/_delta_log"},
        )
    raise _not_empty(table, path)


def _check_columns(table: NewTable) -> None:
    if table.frame is None and not len(table.definition.columns):
        raise SchemaMismatchError(
            f"To replace {'.'.join(table.name)}, define the columns of the new table, or use AS SELECT.",
            condition="DELTA_SCHEMA_NOT_PROVIDED",
        )


def _not_empty(table: NewTable, path: str) -> TableAlreadyExistsError:
    return TableAlreadyExistsError(
        f"{'.'.join(table.name)} can't be created at {path}: the directory is not empty. Choose another location, "
        "remove what is there, or leave out AS SELECT and set the LOCATION to use the Delta table that is there.",
        condition="DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION",
        parameters={"identifier": ".".join(table.name), "tableLocation": path},
    )


def _exists(name: str) -> TableAlreadyExistsError:
    return TableAlreadyExistsError(
        f"There is a table or view {name}. CREATE TABLE IF NOT EXISTS keeps it, CREATE OR REPLACE TABLE replaces it.",
        condition="TABLE_OR_VIEW_ALREADY_EXISTS",
        parameters={"relationName": name},
    )


# --- the statements -----------------------------------------------------------------------------------------------


def _create(statement: Statement) -> DataFrame | None:
    mode: CreateMode = "createIfNotExists" if statement.plan.ignoreIfExists() else "create"
    return _run_defined(statement, mode)


def _replace(statement: Statement) -> DataFrame | None:
    return _run_defined(statement, "createOrReplace" if statement.plan.orCreate() else "replace")


def _run_defined(statement: Statement, mode: CreateMode) -> DataFrame | None:
    """Run a statement with column definitions or with AS SELECT; None: it isn't about a Delta table."""
    spark, plan = statement.spark, statement.plan
    name, spec = _name(statement), definitions.specification(plan.tableSpec())
    if name is None or spec.serde or not is_delta(spark, spec.provider):
        return None
    _check_specification(name, spec)
    layout = definitions.partitioning(plan.partitioning())
    with_rows = statement.kind in ("CreateTableAsSelect", "ReplaceTableAsSelect")
    definition = with_layout(name, Definition(comment=spec.comment), layout)
    if with_rows:
        own = {key: value for key, value in spec.options.items() if key.startswith("delta.")}
        table = NewTable(
            name,
            mode,
            replace(definition, properties={**own, **spec.properties}),
            spec.location,
            statement.frame(plan.query()),
            spec.options,
        )
    else:
        options = {f"option.{key}": value for key, value in spec.options.items()} | dict(spec.options)
        columns = definitions.columns(spark, plan.columns())
        definition = replace(definition, columns=columns, properties={**options, **spec.properties})
        table = NewTable(name, mode, definition, spec.location)
    run(spark, table)
    return nothing(spark)


def _create_like(statement: Statement) -> DataFrame | None:
    spark = statement.spark
    clauses = definitions.like(spark, statement.plan)
    if clauses is None or clauses.serde or (clauses.provider is not None and clauses.provider.lower() != "delta"):
        return None
    name = own_name(spark, clauses.name)
    if name is None:
        return None
    source = tables.find(spark, clauses.source)
    if source is not None:
        definition = definition_like(source.log.snapshot(source.version), clauses.properties)
    else:
        if clauses.provider is None:
            return None
        other = _like_other_format(spark, clauses.source, clauses.properties)
        if other is None:
            return None  # Spark raises the error for a table that is missing
        definition = other
    mode: CreateMode = "createIfNotExists" if clauses.if_not_exists else "create"
    run(spark, NewTable(name, mode, definition, clauses.location))
    return nothing(spark)


def _like_other_format(spark: SparkSession, source_name: Any, changed: Mapping[str, str]) -> Definition | None:
    entry = None
    if not statements.is_temporary_view(spark, source_name):
        entry = SessionCatalog(spark).find_parts(source_name)
    if entry is None:
        return None
    return Definition(
        definitions.entry_columns(entry.table),
        definitions.strings(entry.table.partitionColumnNames()),
        properties={**definitions.texts(entry.table.properties()), **changed},
        comment=definitions.option(entry.table.comment()),
    )


def _name(statement: Statement) -> tuple[str, ...] | None:
    """The parts of the new table's name; None for a name of another catalog, or one that isn't resolved."""
    identifier = statement.plan.name()
    if class_name(identifier) != "UnresolvedIdentifier":
        return None
    return own_name(statement.spark, identifier.nameParts())


def own_name(spark: SparkSession, name_parts: Any) -> tuple[str, ...] | None:
    """The parts of a name of a path or of the session catalog; None for a name of another catalog."""
    name = definitions.strings(name_parts)
    return name if names.is_path(name) or SessionCatalog(spark).is_own_name(name_parts) else None


def is_delta(spark: SparkSession, provider: str | None) -> bool:
    """Whether a new table with the provider, or with none, is a Delta table."""
    return (provider or settings.in_force(spark, SOURCE_DEFAULT)).lower() == "delta"


def _check_specification(name: tuple[str, ...], spec: TableSpecification) -> None:
    if spec.constraints:
        raise UnsupportedFeatureError(
            f"CREATE TABLE {'.'.join(name)}: Delta tables don't support constraints in CREATE TABLE. Add a CHECK "
            "constraint by ALTER TABLE ... ADD CONSTRAINT name CHECK (condition); PRIMARY KEY, UNIQUE and FOREIGN KEY "
            "are not supported.",
            condition="UNSUPPORTED_FEATURE.TABLE_OPERATION",
            parameters={"tableName": ".".join(name), "operation": "table constraint"},
        )
    if spec.collation is not None and spec.collation.upper() != "UTF8_BINARY":
        raise UnsupportedFeatureError(
            f"CREATE TABLE {'.'.join(name)}: DEFAULT COLLATION {spec.collation} is not supported for Delta tables. "
            "Leave it out, and use COLLATE in queries.",
            ("collations",),
        )


def with_layout(name: tuple[str, ...], definition: Definition, layout: Partitioning) -> Definition:
    """The definition with partitioning and clustering. Raises InvalidArgumentError for what Delta doesn't support."""
    if layout.unsupported:
        bucketing = "bucket" in layout.unsupported or "sorted_bucket" in layout.unsupported
        operation = "Bucketing" if bucketing else "Partitioning by expressions"
        instead = (
            "To store rows with similar values in the same files, use CLUSTER BY."
            if bucketing
            else "Add a generated column, GENERATED ALWAYS AS (expression), and partition by it."
        )
        raise InvalidArgumentError(
            f"{operation} is not supported for Delta tables ({'.'.join(name)}). {instead}",
            condition="DELTA_OPERATION_NOT_ALLOWED",
            parameters={"operation": operation},
        )
    if layout.cluster_by is not None and layout.columns:
        raise InvalidArgumentError(
            f"{'.'.join(name)} can't be both partitioned and clustered: use PARTITIONED BY or CLUSTER BY.",
            condition="DELTA_CLUSTER_BY_WITH_PARTITIONED_BY",
        )
    clustered = tuple(map(schemas.dotted, layout.cluster_by or ()))
    return replace(definition, partition_by=layout.columns, cluster_by=clustered)


HANDLERS = {
    "CreateTable": _create,
    "CreateTableAsSelect": _create,
    "ReplaceTable": _replace,
    "ReplaceTableAsSelect": _replace,
    "CreateTableLike": _create_like,
    "CreateTableLikeCommand": _create_like,  # before Spark 4.2
}
