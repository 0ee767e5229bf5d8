"""Plans for an INSERT into a view: runs Spark's analyzer on a changed plan, with a table as the target."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from ....core.protocol import schema as schemas
from .. import catalyst
from ..connection.callbacks import carried
from ..connection.gateway import Gateway, JavaObject
from ..connection.java_errors import thrown_by_java
from ..connection.sessions import parsed_by, session_state
from ..registry.classes import V2_TABLE
from ..types import read_schema

if TYPE_CHECKING:
    from pyspark.errors import AnalysisException
    from pyspark.sql import Column, SparkSession

    from ....core.table.snapshot import Snapshot

Parameters: TypeAlias = "Mapping[str, Column] | Sequence[Column] | None"
"""Values of a statement's parameter markers, by name or by position."""


def tag(gateway: Gateway, name: str) -> JavaObject:
    """The key of a string that is attached to a node of a plan."""
    return gateway.jvm.org.apache.spark.sql.catalyst.trees.TreeNodeTag(name)


def unresolved_relation(gateway: Gateway, name_parts: JavaObject) -> JavaObject:
    """The unresolved plan of a table or view."""
    sql = gateway.jvm.org.apache.spark.sql
    return sql.catalyst.analysis.UnresolvedRelation(name_parts, sql.util.CaseInsensitiveStringMap.empty(), False)


def parsed_name(spark: "SparkSession", name: str) -> JavaObject:
    """The parts of a table name, as a Scala `Seq`. Raises Spark's ParseException."""
    return parsed_by(spark, "parseMultipartIdentifier", name)


def with_parameters(spark: "SparkSession", plan: JavaObject, parameters: Parameters) -> JavaObject:
    """The plan with values bound to its parameter markers."""
    if not parameters:
        return plan
    gateway = Gateway.of(spark)
    analysis = gateway.jvm.org.apache.spark.sql.catalyst.analysis
    if isinstance(parameters, Mapping):
        values = gateway.seq(gateway.expression(spark, column) for column in parameters.values())
        return analysis.NameParameterizedQuery(plan, gateway.seq(parameters), values)
    return analysis.PosParameterizedQuery(plan, gateway.seq(gateway.expression(spark, column) for column in parameters))


def resolved_plan(spark: "SparkSession", plan: JavaObject) -> JavaObject:
    """The plan after Spark's analyzer, which doesn't execute commands in it."""
    skip = Gateway.of(spark).jvm.org.apache.spark.sql.execution.CommandExecutionMode.SKIP()
    return session_state(spark).executePlan(plan, skip).analyzed()


def refusal(spark: "SparkSession", plan: JavaObject) -> "AnalysisException | None":
    """The error of Spark's analyzer for a plan; None if it has none. Executes nothing."""
    from pyspark.errors import AnalysisException

    try:
        resolved_plan(spark, plan)
    except AnalysisException as error:
        return error
    except thrown_by_java():
        return None
    return None


def relation_of(gateway: Gateway, table: "InsertTarget") -> JavaObject:
    """A plan that reads the table, for the analyzer."""
    relation = gateway.jvm.org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
    return relation.create(table, gateway.none, gateway.none)


def columns_only(gateway: Gateway, name: str, snapshot: "Snapshot", alias: str | Sequence[str]) -> JavaObject:
    """A relation that has only the columns of a table, with its name in expressions, for the analyzer."""
    table = InsertTarget(gateway, name, list(snapshot.schema), snapshot.partition_columns)
    return catalyst.aliased(gateway, [alias] if isinstance(alias, str) else alias, relation_of(gateway, table))


class InsertTarget:
    """Implements the JVM's `org.apache.spark.sql.connector.catalog.Table`, for analysis only, not for writing.

    It also defines Java's default methods, because Py4J forwards all calls to Python.
    """

    _purpose = "target of an INSERT"

    def __init__(
        self,
        gateway: Gateway,
        name: str,
        fields: Sequence[schemas.StructField],
        partition_columns: Sequence[str],
        *,
        accepts_any: bool = False,
    ) -> None:
        """`accepts_any`: Spark neither compares the rows with the columns nor casts them."""
        self._gateway = gateway
        self._accepts_any = accepts_any
        self._name = name
        schema = schemas.StructType(tuple(fields))
        # Nullable, because the write itself checks nulls: its error names the column and the table.
        self._schema = gateway.schema(schemas.to_json(read_schema(schema))).asNullable()
        self._fields = schema.fields
        names = set(schema.names)
        self._partitioning = [name for name in partition_columns if name in names]

    @carried
    def name(self) -> str:
        return self._name

    @carried
    def schema(self) -> JavaObject:
        return self._schema

    @carried
    def columns(self) -> JavaObject:
        kind = self._gateway.jvm.org.apache.spark.sql.connector.catalog.Column
        return self._gateway.array(kind, [self._column(kind, i) for i in range(len(self._fields))])

    def _column(self, kind: JavaObject, index: int) -> JavaObject:
        field, data_type = self._fields[index], self._schema.apply(index).dataType()
        default = field.metadata.get(schemas.DEFAULT_KEY)
        if default is None:
            return kind.create(field.name, data_type, True, None, None)
        return kind.create(field.name, data_type, True, None, self._default(default, data_type), None)

    def _default(self, sql: str, data_type: JavaObject) -> JavaObject:
        connector = self._gateway.jvm.org.apache.spark.sql.connector
        # EXISTS_DEFAULT, the value for existing rows, is irrelevant here.
        return connector.catalog.ColumnDefaultValue(sql, connector.expressions.LiteralValue(None, data_type))

    @carried
    def partitioning(self) -> JavaObject:
        expressions = self._gateway.jvm.org.apache.spark.sql.connector.expressions
        identity = expressions.Expressions.identity
        return self._gateway.array(
            expressions.Transform, [identity(schemas.quoted(name)) for name in self._partitioning]
        )

    @carried
    def capabilities(self) -> JavaObject:
        kinds = self._gateway.jvm.org.apache.spark.sql.connector.catalog.TableCapability
        capabilities = self._gateway.jvm.java.util.HashSet()
        for kind in (kinds.BATCH_WRITE, kinds.TRUNCATE, kinds.OVERWRITE_BY_FILTER, kinds.OVERWRITE_DYNAMIC):
            capabilities.add(kind)
        if self._accepts_any:
            capabilities.add(kinds.ACCEPT_ANY_SCHEMA)
        return capabilities

    @carried
    def properties(self) -> JavaObject:
        return self._gateway.jvm.java.util.HashMap()

    @carried
    def constraints(self) -> JavaObject:
        kind = self._gateway.jvm.org.apache.spark.sql.connector.catalog.constraints.Constraint
        return self._gateway.py4j.new_array(kind, 0)

    @carried
    def id(self) -> None:
        return None

    @carried
    def version(self) -> None:
        return None

    @carried
    def currentVersion(self) -> None:
        return None

    @carried
    def hashCode(self) -> int:
        return id(self) & 0x7FFFFFFF

    @carried
    def equals(self, other: JavaObject) -> bool:
        return other is not None and other.toString() == self.toString()

    @carried
    def toString(self) -> str:
        return f"tablelog[{self._name}, {self._purpose}, {id(self):x}]"

    class Java:
        implements: ClassVar[list[str]] = [V2_TABLE]
