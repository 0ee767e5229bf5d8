"""The gateway to one JVM: values that cross to it, functions that it composes, expressions and relations.

A call over Py4J costs 50-100 us, so columns are transferred in bulk (one string, one byte array), and the JVM creates
objects itself, with functions composed of its own method handles.
"""

import threading
from collections.abc import Container, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from ...errors import UnsupportedEnvironmentError
from ...settings.spark_own import EXECUTION_ID
from . import frames, sessions, settings
from .classes import EXPRESSIONS, INTERNAL_ROW
from .environment import check_environment
from .java_errors import thrown_by_java
from .names import Names

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

JavaObject: TypeAlias = sessions.JavaObject

_SEPARATOR = "\0"  # the one character that no path holds


def changed(value: JavaObject, **fields: Any) -> JavaObject:
    """A copy of an object of a Scala case class with other values for some of its fields."""
    names = [value.productElementName(i) for i in range(value.productArity())]
    assert fields.keys() <= set(names)
    return value.copy(*(fields.get(name, value.productElement(i)) for i, name in enumerate(names)))


class Gateway:
    """What the engine asks of one JVM. Shared by all sessions and threads; holds no lock across a call."""

    _lock = threading.Lock()
    _by_gateway: ClassVar[dict[int, tuple[Any, "Gateway"]]] = {}

    def __init__(self, py4j: Any) -> None:
        self.py4j = py4j
        self.jvm = Names(py4j.jvm)

    @classmethod
    def of(cls, spark: "SparkSession") -> "Gateway":
        """The gateway of a session; `UnsupportedEnvironmentError` on Spark Connect or an unsupported Spark."""
        if not sessions.is_classic(spark):
            raise UnsupportedEnvironmentError("a Spark Connect session has no JVM gateway")
        py4j = sessions.py4j_of(spark)
        with cls._lock:
            known = cls._by_gateway.get(id(py4j))
        if known is not None and known[0] is py4j:
            return known[1]
        check_environment(spark)
        sessions.start_callbacks(py4j)
        made = cls(py4j)
        with cls._lock:
            return cls._by_gateway.setdefault(id(py4j), (py4j, made))[1]

    # --- classes --------------------------------------------------------------------------------------------------

    def type(self, name: str) -> JavaObject:
        """The `java.lang.Class` called `name`, loaded once."""
        found = self._types.get(name)
        if found is None:
            found = self._types[name] = self.jvm.java.lang.Class.forName(name)
        return found

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
        """The `InternalRow` of a table with no partition columns."""
        return self.jvm.org.apache.spark.sql.catalyst.InternalRow.empty()

    # --- values ---------------------------------------------------------------------------------------------------

    def seq(self, items: Iterable[JavaObject]) -> JavaObject:
        """A Scala `Seq` of the items."""
        return self.jvm.org.apache.spark.api.python.PythonUtils.toSeq(list(items))

    def scala_map(self, entries: Any) -> JavaObject:
        """An immutable Scala `Map`, which is a partial function too, of a dict or of a Java map."""
        return self.jvm.org.apache.spark.api.python.PythonUtils.toScalaMap(entries)

    def array(self, kind: JavaObject, items: Sequence[Any]) -> JavaObject:
        """A JVM array with a call for each item: for the few arguments of a function, not for data."""
        out = self.py4j.new_array(kind, len(items))
        for i, item in enumerate(items):
            out[i] = item
        return out

    def strings(self, values: Sequence[str]) -> JavaObject:
        """A `String[]` in three calls; no value may hold NUL."""
        if not values:
            return self.py4j.new_array(self.jvm.java.lang.String, 0)
        pattern = self.jvm.java.util.regex.Pattern.compile(_SEPARATOR)
        return pattern.split(_SEPARATOR.join(values), -1)

    def longs(self, values: "pa.Array") -> JavaObject:
        """A `long[]` from Arrow's int64 with no nulls."""
        return self._numbers(values, "long", 8)

    def ints(self, values: "pa.Array") -> JavaObject:
        """An `int[]` from Arrow's int32 with no nulls."""
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
        """Arrow's int32 from an `int[]`, in a handful of calls."""
        import pyarrow as pa

        nio = self.jvm.java.nio
        count = len(values)
        buffer = nio.ByteBuffer.allocate(4 * count).order(nio.ByteOrder.nativeOrder())
        buffer.asIntBuffer().put(values)
        return pa.Array.from_buffers(pa.int32(), count, [None, pa.py_buffer(bytes(buffer.array()))])

    def schema(self, json: str) -> JavaObject:
        """A `StructType` from its JSON."""
        return self.jvm.org.apache.spark.sql.types.DataType.fromJson(json)

    def path(self, uri: str) -> JavaObject:
        """A Hadoop `Path` from a percent-encoded URI."""
        return self.jvm.org.apache.hadoop.fs.Path(self.jvm.java.net.URI.create(uri))

    def rows(self, spark: "SparkSession", values: "pa.Table", schema: "StructType") -> JavaObject:
        """An `InternalRow[]` of the rows, typed by Spark itself; no Spark job for what fits a local relation."""
        from pyspark.sql.types import StructField, StructType

        # Nulls come through in a column that the table calls NOT NULL: what the log says is read as it is.
        nullable = StructType([StructField(f.name, f.dataType) for f in schema.fields])
        frame = spark.createDataFrame(values, nullable)
        return frames.internal_rows(frame)

    # --- functions of an index, run by the JVM with no call back --------------------------------------------------

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
        """`i -> values[i]` for an array of the class `kind`, which is named as `Class.forName` takes it."""
        return self.handles.arrayElementGetter(self.type(kind)).bindTo(values)

    def table_of(self, function: JavaObject, count: int) -> JavaObject:
        """`Object[]` of function(0), ..., function(count - 1)."""
        return self.jvm.java.util.stream.IntStream.range(0, count).mapToObj(self._int_function(function)).toArray()

    def picked(self, values: JavaObject, indices: "pa.Array") -> JavaObject:
        """`Object[]` of the elements of an `Object[]` at the indices."""
        function = self._int_function(self.element_of(values, "[Ljava.lang.Object;"))
        return self.jvm.java.util.Arrays.stream(self.ints(indices)).mapToObj(function).toArray()

    def joined(self, first: JavaObject, second: JavaObject) -> JavaObject:
        """`Object[]` of the elements of two `Object[]`."""
        stream = self.jvm.java.util.stream.Stream
        return stream.concat(
            self.jvm.java.util.Arrays.stream(first), self.jvm.java.util.Arrays.stream(second)
        ).toArray()

    def _int_function(self, function: JavaObject) -> JavaObject:
        return self.jvm.java.lang.invoke.MethodHandleProxies.asInterfaceInstance(
            self.type("java.util.function.IntFunction"), function.asType(self.signature("java.lang.Object", "int"))
        )

    def wrapped(self, values: JavaObject) -> JavaObject:
        """An immutable `Seq` around an `Object[]`, with no copy."""
        return self.jvm.scala.runtime.ScalaRunTime.wrapRefArray(values)

    # --- conditions -----------------------------------------------------------------------------------------------

    def rows_matching(self, filters: JavaObject, schema: JavaObject, rows: JavaObject, count: int) -> "pa.Array":
        """Indices of those of the `count` rows for which every Catalyst filter is TRUE, as Spark itself evaluates.

        The filters' columns are found in `schema`, that of the rows, by name.
        """
        attributes = list(
            self.elements(self.jvm.org.apache.spark.sql.catalyst.types.DataTypeUtils.toAttributes(schema))
        )
        condition = None
        for one in self.elements(filters):
            condition = one if condition is None else self.expressions.And(condition, one)
        assert condition is not None
        at = {attribute.name().lower(): i for i, attribute in enumerate(attributes)}
        for reference in self.references(condition):
            attributes[at[reference.name().lower()]] = reference
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
        """The elements of a (short) Scala `Seq`."""
        return [sequence.apply(i) for i in range(sequence.size())]

    @classmethod
    def references(cls, tree: JavaObject) -> list[JavaObject]:
        """The columns that an expression or a plan refers to, resolved or not, in no particular order."""
        # `AttributeSet.toSeq` sorts by expression ids, which unresolved columns don't have; `toList` doesn't sort.
        return cls.elements(tree.references().toList())

    def expression(self, spark: "SparkSession", column: "Column") -> JavaObject:
        """The Catalyst expression of a Column."""
        return sessions.jvm_session(spark).expression(frames.java_column(column))

    def column(self, expression: JavaObject) -> "Column":
        """A Column of a Catalyst expression."""
        return frames.of_java_column(self.jvm.org.apache.spark.sql.classic.ExpressionUtils.column(expression))

    def rebound(self, expression: JavaObject, frame: "DataFrame", kept: Container[int] = ()) -> JavaObject:
        """The expression with its resolved columns, but those with the ids `kept`, replaced by those of the same name
        that `frame` puts out; the expression itself where there is none.
        """
        plan = frames.analyzed(frame)
        output, names = plan.output(), plan.schema()  # a wide table has thousands of columns: only these are asked for
        mapping = {}
        for one in self.references(expression):
            if one.resolved() and one.exprId().id() not in kept:
                place = names.getFieldIndex(one.name())
                if not place.isDefined() and not settings.case_sensitive(frame.sparkSession):
                    place = names.getFieldIndexCaseInsensitive(
                        one.name()
                    )  # a resolved column keeps the user's spelling
                if place.isDefined():
                    mapping[one] = output.apply(place.get())
        if not mapping:
            return expression
        return expression.transform(self.scala_map(mapping))

    def has_subquery(self, expression: JavaObject) -> bool:
        return bool(self.expressions.SubqueryExpression.hasSubquery(expression))

    def filter_condition(self, filtered: "DataFrame") -> JavaObject:
        """The resolved condition of a frame that `DataFrame.where` made."""
        return frames.analyzed(filtered).condition()

    def optimized(self, expression: JavaObject, frame: "DataFrame") -> JavaObject:
        """A resolved expression over `frame` as Spark's optimizer leaves it, with the names that the frame has."""
        # Spark moves no expression through a repartition, which never runs, and no field of a column that is there too.
        held = frame.repartition(1)
        plan = frames.optimized_plan(held.select("*", self.column(expression).alias("value")))
        known = frames.analyzed(held).outputSet()
        if plan.nodeName() != "Project" or not plan.references().subsetOf(known):
            return expression
        return plan.projectList().last().child()

    @cached_property
    def _current_like(self) -> JavaObject:
        return self.jvm.org.apache.spark.sql.catalyst.trees.TreePattern.CURRENT_LIKE()

    def has_current_time(self, tree: JavaObject) -> bool:
        """Whether an expression or a plan calls `current_timestamp()` or its like."""
        return bool(tree.containsPattern(self._current_like))

    def at_one_time(self, plan: JavaObject) -> JavaObject:
        """An analysed plan whose `current_timestamp()` and its like are the present, in whatever queries it is used."""
        if not self.has_current_time(plan):
            return plan
        return self.jvm.org.apache.spark.sql.catalyst.optimizer.ComputeCurrentTime.apply(plan)

    def printed_conjuncts(self, spark: "SparkSession", text: str) -> list[str]:
        """The parts of a condition that AND joins, parsed and not resolved, as SQL."""
        waiting, found = [sessions.session_state(spark).sqlParser().parseExpression(text)], []
        while waiting:
            node = waiting.pop()
            if node.getClass().getSimpleName() == "And":
                waiting += [node.right(), node.left()]
            else:
                found.append(str(node.sql()))
        return found

    # --- relations ------------------------------------------------------------------------------------------------

    def relation(
        self,
        spark: "SparkSession",
        index: object,
        partition_schema: JavaObject,
        schema: JavaObject,
        options: dict[str, str],
    ) -> JavaObject:
        """A `HadoopFsRelation` of Parquet files around a `FileIndex`.

        `schema` holds the partition columns as well, so that Spark keeps them at their place.
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
        """An empty frame with this schema; runs no job."""
        schema = self.schema(schema_json)
        return frames.of_dataset(
            sessions.jvm_session(spark).createDataFrame(self.jvm.java.util.ArrayList(), schema), spark
        )

    @cached_property
    def metadata_fields(self) -> frozenset[str]:
        """The names of the fields of `_metadata`."""
        parquet = self.jvm.org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat()
        return frozenset(one.name() for one in self.elements(parquet.metadataSchemaFields()))

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
        """The id of the query that runs on the JVM thread which called back; `None` outside one (as in `explain`)."""
        found: str | None = self.jvm.org.apache.spark.SparkContext.getOrCreate().getLocalProperty(EXECUTION_ID.key)
        return found
