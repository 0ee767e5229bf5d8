"""The gateway to one JVM: conversion of values, functions composed in the JVM, expressions and relations.

A call over Py4J costs 50-100 us. So columns are transferred in bulk (one string, one byte array), and the JVM creates
objects itself, with functions composed from method handles.
"""

from collections.abc import Container, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from ....errors import InvalidArgumentError, UnsupportedEnvironmentError
from ....settings.spark_own import EXECUTION_ID
from ..registry.classes import EXPRESSIONS, INTERNAL_ROW, class_name
from . import frames, sessions, settings
from .environment import check_environment
from .java_errors import thrown_by_java
from .jvm_values import JvmValues
from .names import Names

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

JavaObject: TypeAlias = sessions.JavaObject

_SEPARATOR = "\0"  # the only character that no path contains


def changed(value: JavaObject, **fields: Any) -> JavaObject:
    """A copy of an object of a Scala case class with new values for some fields."""
    names = [value.productElementName(i) for i in range(value.productArity())]
    assert fields.keys() <= set(names)
    return value.copy(*(fields.get(name, value.productElement(i)) for i, name in enumerate(names)))


def changed_node(gateway: "Gateway", node: JavaObject, **fields: Any) -> JavaObject:
    """`changed` for a node of a plan, which keeps its place in the text of the statement, for error messages."""
    names = [node.productElementName(i) for i in range(node.productArity())]
    assert fields.keys() <= set(names)
    parts = [fields.get(name, node.productElement(i)) for i, name in enumerate(names)]
    return node.makeCopy(gateway.array(gateway.jvm.java.lang.Object, parts))


class Gateway:
    """The engine's interface to one JVM. All sessions and threads share it; it holds no lock during a call."""

    _of_jvms: ClassVar = JvmValues["Gateway"]()

    def __init__(self, py4j: Any) -> None:
        self.py4j = py4j
        self.jvm = Names(py4j.jvm)

    @classmethod
    def of(cls, spark: "SparkSession") -> "Gateway":
        """The gateway of a session; `UnsupportedEnvironmentError` on Spark Connect or an unsupported Spark."""
        if not sessions.is_classic(spark):
            raise UnsupportedEnvironmentError(
                "this needs the JVM of a classic session: a Spark Connect session has none; nothing was changed"
            )
        py4j = sessions.py4j_of(spark)

        def connected() -> "Gateway":
            check_environment(spark)
            sessions.start_callbacks(py4j)
            return cls(py4j)

        return cls._of_jvms.get(py4j, connected)

    # --- classes --------------------------------------------------------------------------------------------------

    def type(self, name: str) -> JavaObject:
        """The `java.lang.Class` with this name, loaded once."""
        java_class = self._types.get(name)
        if java_class is None:
            java_class = self._types[name] = self.jvm.java.lang.Class.forName(name)
        return java_class

    @cached_property
    def _types(self) -> dict[str, JavaObject]:
        lang = self.jvm.java.lang
        return {
            "long": lang.Long.TYPE,
            "int": lang.Integer.TYPE,
            "boolean": lang.Boolean.TYPE,
            "void": lang.Void.TYPE,
        }

    @cached_property
    def expressions(self) -> JavaObject:
        """The package of Catalyst's expressions."""
        return self.jvm.org.apache.spark.sql.catalyst.expressions

    @cached_property
    def none(self) -> JavaObject:
        """Scala's `None`."""
        return self.jvm.scala.Option.empty()

    @cached_property
    def no_values(self) -> JavaObject:
        """The empty `InternalRow`: the partition values of a table without partition columns."""
        return self.jvm.org.apache.spark.sql.catalyst.InternalRow.empty()

    # --- values ---------------------------------------------------------------------------------------------------

    def seq(self, items: Iterable[JavaObject]) -> JavaObject:
        """A Scala `Seq` of the items."""
        return self.jvm.org.apache.spark.api.python.PythonUtils.toSeq(list(items))

    def scala_map(self, entries: Any) -> JavaObject:
        """An immutable Scala `Map` of a dict or a Java map. It is also a Scala partial function."""
        return self.jvm.org.apache.spark.api.python.PythonUtils.toScalaMap(entries)

    def array(self, kind: JavaObject, items: Sequence[Any]) -> JavaObject:
        """A JVM array; makes a call for each item, so it is for a few arguments, not for data."""
        out = self.py4j.new_array(kind, len(items))
        for i, item in enumerate(items):
            out[i] = item
        return out

    def strings(self, values: Sequence[str]) -> JavaObject:
        """A `String[]` in three calls; no value may contain NUL."""
        if not values:
            return self.py4j.new_array(self.jvm.java.lang.String, 0)
        pattern = self.jvm.java.util.regex.Pattern.compile(_SEPARATOR)
        return pattern.split(_SEPARATOR.join(values), -1)

    def longs(self, values: "pa.Array") -> JavaObject:
        """A `long[]` of an Arrow int64 array without nulls."""
        return self._numbers(values, "long", 8)

    def ints(self, values: "pa.Array") -> JavaObject:
        """An `int[]` of an Arrow int32 array without nulls."""
        return self._numbers(values, "int", 4)

    def _numbers(self, values: "pa.Array", kind: str, width: int) -> JavaObject:
        nio = self.jvm.java.nio
        start = values.offset * width
        data = values.buffers()[1][start : start + len(values) * width] if len(values) else b""
        buffer = nio.ByteBuffer.wrap(bytearray(data)).order(nio.ByteOrder.nativeOrder())
        out = self.jvm.java.lang.reflect.Array.newInstance(self.type(kind), len(values))
        (buffer.asLongBuffer() if kind == "long" else buffer.asIntBuffer()).get(out)
        return out

    def read_ints(self, values: JavaObject) -> "pa.Array":
        """An Arrow int32 array of an `int[]`, in a few calls."""
        import pyarrow as pa

        nio = self.jvm.java.nio
        count = len(values)
        buffer = nio.ByteBuffer.allocate(4 * count).order(nio.ByteOrder.nativeOrder())
        buffer.asIntBuffer().put(values)
        return pa.Array.from_buffers(pa.int32(), count, [None, pa.py_buffer(bytes(buffer.array()))])

    def schema(self, json: str) -> JavaObject:
        """The JVM `StructType` of a schema in JSON."""
        return self.jvm.org.apache.spark.sql.types.DataType.fromJson(json)

    def path(self, uri: str) -> JavaObject:
        """The Hadoop `Path` of a percent-encoded URI."""
        return self.jvm.org.apache.hadoop.fs.Path(self.jvm.java.net.URI.create(uri))

    def rows(self, spark: "SparkSession", values: "pa.Table", schema: "StructType") -> JavaObject:
        """An `InternalRow[]` of the rows, converted by Spark. No Spark job if they fit into a local relation."""
        from pyspark.sql.types import StructField, StructType

        # Nulls in a NOT NULL column are kept: reading doesn't change what the log contains.
        nullable = StructType([StructField(f.name, f.dataType) for f in schema.fields])
        frame = spark.createDataFrame(values, nullable)
        return frames.internal_rows(frame)

    # --- functions of an index, which the JVM runs without callbacks ----------------------------------------------

    @cached_property
    def handles(self) -> JavaObject:
        return self.jvm.java.lang.invoke.MethodHandles

    @cached_property
    def lookup(self) -> JavaObject:
        return self.handles.publicLookup()

    def signature(self, result: str, *arguments: str) -> JavaObject:
        types = self.array(self.jvm.java.lang.Class, [self.type(name) for name in arguments])
        return self.jvm.java.lang.invoke.MethodType.methodType(self.type(result), types)

    def element_of(self, values: JavaObject, kind: str) -> JavaObject:
        """The function `i -> values[i]` for an array of the class `kind`, a name as `Class.forName` takes it."""
        return self.handles.arrayElementGetter(self.type(kind)).bindTo(values)

    def table_of(self, function: JavaObject, count: int) -> JavaObject:
        """An `Object[]` of function(0), ..., function(count - 1)."""
        return self.jvm.java.util.stream.IntStream.range(0, count).mapToObj(self._int_function(function)).toArray()

    def picked(self, values: JavaObject, indices: "pa.Array") -> JavaObject:
        """An `Object[]` of the elements of an `Object[]` at the indices."""
        function = self._int_function(self.element_of(values, "[Ljava.lang.Object;"))
        return self.jvm.java.util.Arrays.stream(self.ints(indices)).mapToObj(function).toArray()

    def joined(self, first: JavaObject, second: JavaObject) -> JavaObject:
        """An `Object[]` of the elements of two `Object[]`."""
        stream = self.jvm.java.util.stream.Stream
        return stream.concat(
            self.jvm.java.util.Arrays.stream(first), self.jvm.java.util.Arrays.stream(second)
        ).toArray()

    def _int_function(self, function: JavaObject) -> JavaObject:
        return self.jvm.java.lang.invoke.MethodHandleProxies.asInterfaceInstance(
            self.type("java.util.function.IntFunction"), function.asType(self.signature("java.lang.Object", "int"))
        )

    def wrapped(self, values: JavaObject) -> JavaObject:
        """An immutable Scala `Seq` around an `Object[]`, without a copy."""
        return self.jvm.scala.runtime.ScalaRunTime.wrapRefArray(values)

    # --- conditions -----------------------------------------------------------------------------------------------

    def rows_matching(self, filters: JavaObject, schema: JavaObject, rows: JavaObject, count: int) -> "pa.Array":
        """The indices of the rows for which all Catalyst filters are TRUE, as Spark evaluates them.

        Args:
            filters: a Scala `Seq` of filters; their columns are looked up in `schema` by name.
            schema: the schema of the rows.
            rows: an `InternalRow[]`.
            count: the number of rows.

        Returns:
            An Arrow int32 array.
        """
        attributes = list(
            self.elements(self.jvm.org.apache.spark.sql.catalyst.types.DataTypeUtils.toAttributes(schema))
        )
        condition = None
        for each in self.elements(filters):
            condition = each if condition is None else self.expressions.And(condition, each)
        assert condition is not None
        index_of = {attribute.name().lower(): i for i, attribute in enumerate(attributes)}
        for reference in self.references(condition):
            attributes[index_of[reference.name().lower()]] = reference
        bound = self.expressions.BindReferences.bindReference(
            condition, self.expressions.package.AttributeSeq(self.seq(attributes)), False
        )
        predicate = self.expressions.InterpretedPredicate(bound)
        evaluate = self.lookup.findVirtual(
            self.type(f"{EXPRESSIONS}InterpretedPredicate"),
            "eval",
            self.signature("boolean", INTERNAL_ROW),
        ).bindTo(predicate)
        test = self.handles.filterReturnValue(self.element_of(rows, f"[L{INTERNAL_ROW};"), evaluate)
        matches = self.jvm.java.lang.invoke.MethodHandleProxies.asInterfaceInstance(
            self.type("java.util.function.IntPredicate"), test
        )
        return self.read_ints(self.jvm.java.util.stream.IntStream.range(0, count).filter(matches).toArray())

    @staticmethod
    def elements(sequence: JavaObject) -> list[JavaObject]:
        """The elements of a Scala `Seq`; makes a call for each."""
        return [sequence.apply(i) for i in range(sequence.size())]

    @classmethod
    def references(cls, tree: JavaObject) -> list[JavaObject]:
        """The columns that an expression or a plan refers to, resolved or unresolved, in any order."""
        # `toSeq` would sort by expression ids, which unresolved columns don't have; `toList` doesn't sort.
        return cls.elements(tree.references().toList())

    def expression(self, spark: "SparkSession", column: "Column") -> JavaObject:
        """The Catalyst expression of a Column."""
        return sessions.jvm_session(spark).expression(frames.java_column(column))

    def column(self, expression: JavaObject) -> "Column":
        """A Column of a Catalyst expression."""
        return frames.of_java_column(self.jvm.org.apache.spark.sql.classic.ExpressionUtils.column(expression))

    def rebound(self, expression: JavaObject, frame: "DataFrame", kept: Container[int] = ()) -> JavaObject:
        """Replace the resolved columns of an expression by the output columns of `frame` with the same names.

        Columns whose expression id is in `kept` are not replaced, nor are columns that `frame` doesn't have.
        """
        plan = frames.analyzed(frame)
        output, names = plan.output(), plan.schema()  # fetches only the columns it needs: a table may have thousands
        mapping = {}
        expression, columns = self.in_one_spelling(frame.sparkSession, expression)
        for column in columns:
            if column.resolved() and column.exprId().id() not in kept:
                index = names.getFieldIndex(column.name())
                if not index.isDefined() and not settings.case_sensitive(frame.sparkSession):
                    index = names.getFieldIndexCaseInsensitive(
                        column.name()
                    )  # a resolved column keeps the user's spelling
                if index.isDefined():
                    mapping[column] = output.apply(index.get())
        if not mapping:
            return expression
        return expression.transform(self.scala_map(mapping))

    def in_one_spelling(self, spark: "SparkSession", expression: JavaObject) -> "tuple[JavaObject, list[JavaObject]]":
        """The expression with each resolved column in one of the spellings that the user has for it, and its columns.

        A resolved column keeps the user's spelling, and columns in different spellings aren't equal as keys of a map.
        """
        columns = self.references(expression)  # each column once, whatever its spellings
        resolved = [column for column in columns if column.resolved()]
        if not resolved or settings.case_sensitive(spark):
            return expression, columns
        strategies = self.jvm.org.apache.spark.sql.execution.datasources
        strategy = getattr(getattr(strategies, "DataSourceStrategy$"), "MODULE$")
        return strategy.normalizeExprs(self.seq([expression]), self.seq(resolved)).apply(0), columns

    def has_subquery(self, expression: JavaObject) -> bool:
        return bool(self.expressions.SubqueryExpression.hasSubquery(expression))

    def filter_condition(self, filtered: "DataFrame") -> JavaObject:
        """The resolved condition of a frame that `DataFrame.where` returned.

        Raises InvalidArgumentError if it names a hidden column: Spark then adds a projection above it.
        """
        plan = frames.analyzed(filtered)
        if class_name(plan) != "Filter":
            raise InvalidArgumentError(
                "the condition names a hidden column of Spark, such as _metadata: commands support only the columns of "
                "the table",
                condition="UNSUPPORTED_EXPR_FOR_OPERATOR",
                parameters={"invalidExprSqls": "_metadata"},
            )
        return plan.condition()

    def optimized(self, expression: JavaObject, frame: "DataFrame") -> JavaObject:
        """A resolved expression over `frame` after Spark's optimizer, with the frame's column names."""
        # The optimizer moves no expression below a repartition (which never runs), and no field of a selected column.
        repartitioned = frame.repartition(1)
        plan = frames.optimized_plan(repartitioned.select("*", self.column(expression).alias("value")))
        columns = frames.analyzed(repartitioned).outputSet()
        if plan.nodeName() != "Project" or not plan.references().subsetOf(columns):
            return expression
        return plan.projectList().last().child()

    @cached_property
    def _current_like(self) -> JavaObject:
        return self.jvm.org.apache.spark.sql.catalyst.trees.TreePattern.CURRENT_LIKE()

    def has_current_time(self, tree: JavaObject) -> bool:
        """Whether an expression or a plan calls `current_timestamp()` or a similar function."""
        return bool(tree.containsPattern(self._current_like))

    def at_one_time(self, plan: JavaObject) -> JavaObject:
        """An analyzed plan in which `current_timestamp()` and similar functions are replaced by the present time.

        All queries that use the plan then see the same time.
        """
        if not self.has_current_time(plan):
            return plan
        return self.jvm.org.apache.spark.sql.catalyst.optimizer.ComputeCurrentTime.apply(plan)

    def printed_conjuncts(self, spark: "SparkSession", condition: "str | Column") -> list[str]:
        """The parts of a condition that are joined by AND, as SQL; parsed, not resolved."""
        if isinstance(condition, str):
            expression = sessions.parsed_by(spark, "parseExpression", condition)
        else:
            expression = self.expression(spark, condition)
        remaining, conjuncts = [expression], []
        while remaining:
            node = remaining.pop()
            if class_name(node) == "And":
                remaining += [node.right(), node.left()]
            else:
                conjuncts.append(str(node.sql()))
        return conjuncts

    # --- relations ------------------------------------------------------------------------------------------------

    def relation(
        self,
        spark: "SparkSession",
        index: JavaObject,
        partition_schema: JavaObject,
        schema: JavaObject,
        options: dict[str, str],
    ) -> JavaObject:
        """A `HadoopFsRelation` of Parquet files around a `FileIndex`.

        `schema` includes the partition columns, so that Spark keeps the order of the columns.
        """
        datasources = self.jvm.org.apache.spark.sql.execution.datasources
        parquet = datasources.parquet.ParquetFileFormat()
        return datasources.HadoopFsRelation(
            index, partition_schema, schema, self.none, parquet, self.scala_map(options), sessions.jvm_session(spark)
        )

    def frame(self, spark: "SparkSession", relation: JavaObject) -> "DataFrame":
        """The DataFrame of a relation."""
        return frames.of_dataset(sessions.jvm_session(spark).baseRelationToDataFrame(relation), spark)

    def empty_frame(self, spark: "SparkSession", schema_json: str) -> "DataFrame":
        """An empty frame with this schema. It needs no Spark job."""
        schema = self.schema(schema_json)
        return frames.of_dataset(
            sessions.jvm_session(spark).createDataFrame(self.jvm.java.util.ArrayList(), schema), spark
        )

    @cached_property
    def metadata_fields(self) -> frozenset[str]:
        """The names of the fields of `_metadata`."""
        parquet = self.jvm.org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat()
        return frozenset(field.name() for field in self.elements(parquet.metadataSchemaFields()))

    def is_metadata_field(self, attribute: JavaObject) -> bool:
        """Whether a resolved column is a field of `_metadata`."""
        return bool(attribute.metadata().contains("__metadata_col"))

    def has_class(self, name: str) -> bool:
        """Whether Spark's class path has the class."""
        try:
            self.jvm.org.apache.spark.util.Utils.classForName(name, False, False)
        except thrown_by_java():
            return False
        return True

    def execution_id(self) -> str | None:
        """The id of the query of the JVM thread that called back; `None` outside of a query (as in `explain`)."""
        query: str | None = self.jvm.org.apache.spark.SparkContext.getOrCreate().getLocalProperty(EXECUTION_ID.key)
        return query
