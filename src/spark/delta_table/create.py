"""`DeltaTableBuilder`, with the methods of `delta.tables.DeltaTableBuilder`."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Generic, Self, TypeVar

from pyspark.sql import SparkSession
from pyspark.sql.types import DataType, StructField, StructType

from ...core.deltalog import DeltaLog
from ...core.protocol import rules, schema
from ...dml.alter.create import CreateMode, Definition, check_same, create
from ...engine.jvm.types import declared
from ...errors import InvalidArgumentError, TableNotFoundError
from .. import names
from ..arguments import checked, names_of
from ..boundary import with_pyspark_errors
from ..conf import delta_log, session_conf
from ..writer import commit_of

TableT = TypeVar("TableT")


@checked
@dataclass
class IdentityGenerator:
    """The values of an identity column: `start`, `start + step`, `start + 2 * step`, ..."""

    start: int = 1
    step: int = 1


@with_pyspark_errors
@checked
class DeltaTableBuilder(Generic[TableT]):
    """Defines a table and creates it; see `DeltaTable.create` and similar methods."""

    def __init__(self, spark: SparkSession, mode: CreateMode, table_of: Callable[[DeltaLog], TableT]) -> None:
        self._spark = spark
        self._mode = mode
        self._result_of = table_of
        self._path: str | None = None
        self._named: str | None = None
        self._columns: list[schema.StructField] = []
        self._definition = Definition()

    def tableName(self, identifier: str) -> Self:
        """The table's name in Spark's catalog, or its path as `` delta.`/path` ``."""
        self._named = identifier
        return self

    def location(self, location: str) -> Self:
        """The table's path."""
        self._path = location
        return self

    def comment(self, comment: str) -> Self:
        """The table's description."""
        self._definition = replace(self._definition, comment=comment)
        return self

    def addColumn(
        self,
        colName: str,
        dataType: str | DataType,
        nullable: bool = True,
        generatedAlwaysAs: str | IdentityGenerator | None = None,
        generatedByDefaultAs: IdentityGenerator | None = None,
        comment: str | None = None,
    ) -> Self:
        """Add a column.

        Args:
            colName: the name.
            dataType: a type or its DDL.
            nullable: False: the column is NOT NULL.
            generatedAlwaysAs: an SQL expression over other columns, or an IdentityGenerator; values can't be inserted
                into such an identity column.
            generatedByDefaultAs: an IdentityGenerator, for rows that are written without a value for the column.
            comment: the comment of the column.
        """
        if generatedAlwaysAs is not None and generatedByDefaultAs is not None:
            raise ValueError("generatedByDefaultAs and generatedAlwaysAs cannot both be set.")
        metadata: dict[str, Any] = {}
        if isinstance(generatedAlwaysAs, str):
            metadata[schema.GENERATION_KEY] = generatedAlwaysAs
        elif generatedAlwaysAs is not None:
            metadata |= _identity(generatedAlwaysAs, explicit=False)
        elif generatedByDefaultAs is not None:
            metadata |= _identity(generatedByDefaultAs, explicit=True)
        if comment is not None:
            metadata["comment"] = comment
        parsed = DataType.fromDDL(dataType) if isinstance(dataType, str) else dataType
        self._columns += declared(StructType([StructField(colName, parsed, nullable, metadata)]))
        return self

    def addColumns(self, cols: StructType | list[StructField]) -> Self:
        """Add the columns of a schema, with their metadata: comments, generation expressions, defaults."""
        self._columns += declared(StructType(list(cols)))
        return self

    def partitionedBy(self, *cols: str | list[str] | tuple[str, ...]) -> Self:
        """Set the partition columns."""
        self._definition = replace(self._definition, partition_by=names_of(cols))
        return self._checked()

    def clusterBy(self, *cols: str | list[str] | tuple[str, ...]) -> Self:
        """Set the clustering columns."""
        self._definition = replace(self._definition, cluster_by=names_of(cols))
        return self._checked()

    def property(self, key: str, value: str) -> Self:
        """Set a table property."""
        self._definition = replace(self._definition, properties={**self._definition.properties, key: value})
        return self

    def execute(self) -> TableT:
        """Create or replace the table, and register its name in Spark's catalog.

        If the location of a new catalog table already has a Delta table with this definition, only the name is
        registered. Raises TableAlreadyExistsError or TableNotFoundError by the kind of builder.
        """
        spark, mode = self._spark, self._mode
        place = names.place(spark, self._named, self._path)
        log = delta_log(place.path, session_conf(spark, place.path))
        definition = replace(self._definition, columns=schema.StructType(tuple(self._columns)), managed=place.managed)
        if place.name is not None and place.entry is None:
            if mode == "replace":
                raise TableNotFoundError(
                    f"There is no table {place.name} to replace: createOrReplace would create it.",
                    condition="TABLE_OR_VIEW_NOT_FOUND",
                    parameters={"relationName": place.name},
                )
            if mode != "createOrReplace" and log.exists():
                check_same(definition, log.snapshot())
                place.enter(spark, definition.comment)
                return self._result_of(log)
        create(spark, log, definition, mode, options=commit_of(spark))
        place.enter(spark, definition.comment)
        return self._result_of(log)

    def _checked(self) -> Self:
        if self._definition.partition_by and self._definition.cluster_by:
            raise InvalidArgumentError(
                "A table can't be both partitioned (partitionedBy) and clustered (clusterBy).",
                condition="DELTA_CLUSTER_BY_WITH_PARTITIONED_BY",
            )
        return self


def _identity(generator: IdentityGenerator, *, explicit: bool) -> dict[str, Any]:
    if generator.step == 0:
        raise ValueError("Column identity generation requires step to be non-zero.")
    return {rules.START: generator.start, rules.STEP: generator.step, rules.EXPLICIT: explicit}
