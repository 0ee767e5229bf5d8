"""What an INSERT into a view needs from Spark: the analyzer on a changed plan, and a table to resolve against."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from ...core.protocol import schema as schemas
from .callbacks import carried
from .classes import V2_TABLE
from .gateway import Gateway, JavaObject
from .sessions import session_state
from .types import read_schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def tag(gateway: Gateway, name: str) -> JavaObject:
    """The key of a text that is attached to a node of a plan."""
    return gateway.jvm.org.apache.spark.sql.catalyst.trees.TreeNodeTag(name)


def unresolved_relation(gateway: Gateway, name_parts: JavaObject) -> JavaObject:
    """The plan of a table or a view by its name."""
    sql = gateway.jvm.org.apache.spark.sql
    return sql.catalyst.analysis.UnresolvedRelation(name_parts, sql.util.CaseInsensitiveStringMap.empty(), False)


def parsed_name(spark: "SparkSession", name: str) -> JavaObject:
    """The parts of the name of a table, as a Scala `Seq`. Raises Spark's ParseException."""
    return session_state(spark).sqlParser().parseMultipartIdentifier(name)


def resolved_plan(spark: "SparkSession", plan: JavaObject) -> JavaObject:
    """The plan after Spark's analyzer; commands in it are not executed."""
    skip = Gateway.of(spark).jvm.org.apache.spark.sql.execution.CommandExecutionMode.SKIP()
    return session_state(spark).executePlan(plan, skip).analyzed()


def relation_of(gateway: Gateway, table: "InsertTarget") -> JavaObject:
    """A plan that reads the table, for the analyzer."""
    relation = gateway.jvm.org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
    return relation.create(table, gateway.none, gateway.none)


class InsertTarget:
    """Implements `org.apache.spark.sql.connector.catalog.Table` of the JVM. It is only for analysis, not for writing.

    It also has to define Java's default methods, because Py4J forwards them all to Python.
    """

    def __init__(
        self, gateway: Gateway, name: str, fields: Sequence[schemas.StructField], partition_columns: Sequence[str]
    ) -> None:
        self._gateway = gateway
        self._name = name
        schema = schemas.StructType(tuple(fields))
        # The write checks nulls itself: its error names the column and the table.
        self._schema = gateway.schema(schemas.to_json(read_schema(schema))).asNullable()
        self._fields = schema.fields
        shown = set(schema.names)
        self._partitioning = [name for name in partition_columns if name in shown]

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

    def _column(self, kind: JavaObject, place: int) -> JavaObject:
        f, data_type = self._fields[place], self._schema.apply(place).dataType()
        default = f.metadata.get(schemas.DEFAULT_KEY)
        if default is None:
            return kind.create(f.name, data_type, True, None, None)
        connector = self._gateway.jvm.org.apache.spark.sql.connector
        # EXISTS_DEFAULT, the value for existing rows, is irrelevant here.
        before = connector.expressions.LiteralValue(None, data_type)
        return kind.create(f.name, data_type, True, None, connector.catalog.ColumnDefaultValue(default, before), None)

    @carried
    def partitioning(self) -> JavaObject:
        expressions = self._gateway.jvm.org.apache.spark.sql.connector.expressions
        quoted = ("`" + name.replace("`", "``") + "`" for name in self._partitioning)
        return self._gateway.array(expressions.Transform, [expressions.Expressions.identity(name) for name in quoted])

    @carried
    def capabilities(self) -> JavaObject:
        kinds = self._gateway.jvm.org.apache.spark.sql.connector.catalog.TableCapability
        capabilities = self._gateway.jvm.java.util.HashSet()
        for kind in (kinds.BATCH_WRITE, kinds.TRUNCATE, kinds.OVERWRITE_BY_FILTER, kinds.OVERWRITE_DYNAMIC):
            capabilities.add(kind)
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
        return f"tablelog[{self._name}, to be inserted into, {id(self):x}]"

    class Java:
        implements: ClassVar[list[str]] = [V2_TABLE]
