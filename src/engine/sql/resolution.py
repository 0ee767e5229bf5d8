"""Resolves expressions over two frames, and creates frames to which the resolved expressions apply.

MERGE resolves the user's expressions once, over the original table and source. They contain Spark's attribute IDs.
Each frame to which they are applied later (some files of the table, the stored source) is projected to the same
attributes, so no expression has to be rewritten.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ...core.protocol import schema as schemas
from ...errors import InvalidArgumentError, UnsupportedFeatureError
from ..jvm import catalyst, plans
from ..jvm.columns import named, numbered, parsed
from ..jvm.connection import sessions
from ..jvm.connection.frames import analyzed, internal_rows
from ..jvm.connection.gateway import Gateway, JavaObject
from ..jvm.registry.classes import class_name
from ..jvm.types import column_type, table_schema
from . import assigned_values, subqueries
from .violations import translated

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

_EQUALITIES = {"EqualTo": False, "EqualNullSafe": True}


@dataclass(frozen=True)
class Expression:
    """A resolved expression. `of_target` and `of_source` are positions of the referenced columns of the two frames."""

    column: "Column"
    of_target: frozenset[int]
    of_source: frozenset[int]
    java: JavaObject

    @property
    def deterministic(self) -> bool:
        return bool(self.java.deterministic())


@dataclass(frozen=True)
class Equality:
    """A conjunct `target side = source side`. `place` is the position of the table's column, if that side is a column.

    `null_safe`: the operator is `<=>`, for which nulls are equal.
    """

    source: "Column"
    place: int | None
    null_safe: bool


class Output:
    """The attributes of a frame in the order of its columns. What is asked of the JVM for each is asked once."""

    def __init__(self, frame: "DataFrame") -> None:
        self.attributes = Gateway.elements(analyzed(frame).output())

    @cached_property
    def names_and_ids(self) -> list[tuple[str, JavaObject]]:
        """The name and the `ExprId` of each attribute."""
        return [(attribute.name(), attribute.exprId()) for attribute in self.attributes]


class Scope:
    """The table and the source of a command, over which its expressions are resolved. Neither is executed."""

    def __init__(self, target: "DataFrame", source: "DataFrame") -> None:
        self.target = target
        self.source = source
        self.both = source.crossJoin(target)
        self._gateway = Gateway.of(target.sparkSession)
        self.target_output, self._source_output = Output(target), Output(source)
        self._places = {
            side: {number.id(): place for place, (_, number) in enumerate(output.names_and_ids)}
            for side, output in (("target", self.target_output), ("source", self._source_output))
        }

    def condition(self, condition: "str | Column", over: "DataFrame", subject: str) -> Expression:
        """Resolve a condition over one of the frames; `subject` names it in messages.

        Raises Spark's AnalysisException, InvalidArgumentError for an aggregate or a nondeterministic condition, and
        UnsupportedFeatureError for one with a subquery.
        """
        from pyspark.errors import AnalysisException

        try:
            java_condition = self._gateway.filter_condition(over.where(self._bound(condition)))
        except AnalysisException as error:
            if error.getCondition() != "INVALID_WHERE_CONDITION":
                raise
            raise InvalidArgumentError(
                f"{subject} must depend on one row of each side, without aggregates, windows and generators",
                condition="DELTA_AGGREGATION_NOT_SUPPORTED",
                parameters={"operation": "MERGE", "predicate": subject},
            ) from error
        if self._gateway.has_subquery(java_condition):
            raise UnsupportedFeatureError(
                f"{subject} has a subquery, which MERGE doesn't support: collect the subquery's result first and put "
                "it into the condition, or join it to the source",
                condition="DELTA_UNSUPPORTED_SUBQUERY",
                parameters={"operation": "MERGE", "cond": subject},
            )
        if not java_condition.deterministic():
            raise InvalidArgumentError(
                f"{subject} is not deterministic: it is evaluated again when the rows are written, with other results",
                condition="DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED",
                parameters={"operation": "MERGE", "expression": subject},
            )
        return self._expression(java_condition)

    def values(self, expressions: "Sequence[str | Column]", over: "DataFrame", subject: str) -> "list[Column]":
        """Resolve values for columns, one per row; `subject` names them in messages.

        Scalar subqueries are executed here, once. Raises Spark's AnalysisException, InvalidArgumentError, and
        UnsupportedFeatureError for other subqueries.
        """
        if not expressions:
            return []
        bound = [self._bound(expression) for expression in expressions]
        columns = [parsed(self._gateway, each) if isinstance(each, str) else each for each in bound]
        plan = analyzed(numbered(over, columns))
        if class_name(plan) != "Project" or plan.projectList().size() != len(expressions):
            raise InvalidArgumentError(
                f"{subject} must be one value for each row, without aggregates and generators",
                condition="DELTA_AGGREGATION_NOT_SUPPORTED",
                parameters={"operation": "MERGE", "predicate": subject},
            )
        plan = subqueries.computed(over.sparkSession, plan, subject)
        return [self._gateway.column(projected.child()) for projected in self._gateway.elements(plan.projectList())]

    @cached_property
    def source_columns(self) -> "list[Column]":
        """The columns of the source by position."""
        return [self._gateway.column(attribute) for attribute in self._source_output.attributes]

    @cached_property
    def target_columns(self) -> "list[Column]":
        """The columns of the table."""
        return [self._gateway.column(attribute) for attribute in self.target_output.attributes]

    def together(
        self, conditions: Sequence[Expression], values: "Sequence[Column]"
    ) -> "tuple[list[Expression], list[Column], list[int]]":
        """The expressions with one current timestamp for all, and the positions of the source columns they use."""
        columns = [*(condition.column for condition in conditions), *values]
        plan = analyzed(numbered(self.both, columns))
        projections = self._gateway.elements(plan.projectList())
        if any(self._gateway.has_current_time(projected) for projected in projections):
            projections = self._gateway.elements(self._gateway.at_one_time(plan).projectList())
            conditions = [self._expression(projected.child()) for projected in projections[: len(conditions)]]
        resolved_values = [self._gateway.column(projected.child()) for projected in projections[len(conditions) :]]
        known = self._places["source"]
        places = {known.get(reference.exprId().id()) for reference in self._gateway.references(plan)}
        return list(conditions), resolved_values, sorted(place for place in places if place is not None)

    def stored(self, columns: "Sequence[tuple[schemas.StructField, Column]]", table: str) -> "list[Column]":
        """Convert the values to the types of these columns, which have distinct names; attributes stay the same.

        By `assigned_values.cast`, then by Spark's store assignment (`plans.assigned`). Raises SchemaMismatchError for a
        type that can't be stored.
        """
        if not columns:
            return []
        plain = [schemas.StructField(f.name, f.data_type, True, _of_strings(f)) for f, _ in columns]
        values = [value for _, value in columns]
        frame = self._named(plain, values)
        if _fit(frame, plain):
            return values
        resolved = [projected.child() for projected in self._gateway.elements(analyzed(frame).projectList())]
        with translated(table):
            values = [
                assigned_values.cast(frame.sparkSession, value, f) for value, f in zip(resolved, plain, strict=True)
            ]
            frame = self._named(plain, values)
            if _fit(frame, plain):
                return values
            outer = analyzed(plans.assigned(frame, schemas.to_json(schemas.StructType(tuple(plain))), table))
        inner = analyzed(frame)
        mapping = {
            projected.toAttribute(): projected.child() for projected in self._gateway.elements(inner.projectList())
        }
        function = self._gateway.scala_map(mapping)
        stored_values = []
        for projected in self._gateway.elements(outer.projectList()):
            value = projected.child() if class_name(projected) == "Alias" else projected
            stored_values.append(self._gateway.column(value.transform(function)))
        return stored_values

    def _named(self, fields: Sequence[schemas.StructField], values: "Sequence[Column]") -> "DataFrame":
        return self.both.select(*(named(value, f.name) for f, value in zip(fields, values, strict=True)))

    def types(self, columns: "Sequence[Column]") -> list[schemas.DataType]:
        """The types of values."""
        return [f.data_type for f in table_schema(numbered(self.both, columns).schema)]

    def conjuncts(self, condition: Expression) -> list[Expression]:
        """The parts of the condition that are joined by AND."""
        return [self._expression(conjunct) for conjunct in _conjuncts(condition.java)]

    def equality(self, part: Expression) -> Equality | None:
        """The equality in a conjunct, if it compares an expression of the table with one of the source."""
        name = class_name(part.java)
        if name not in _EQUALITIES:
            return None
        left, right = self._expression(part.java.left()), self._expression(part.java.right())
        if left.of_source and not left.of_target:
            left, right = right, left
        if left.of_source or right.of_target or not left.of_target or not right.of_source:
            return None
        alone = class_name(left.java) == "AttributeReference"
        return Equality(right.column, min(left.of_target) if alone else None, _EQUALITIES[name])

    def _expression(self, java: JavaObject) -> Expression:
        places: dict[str, set[int]] = {"target": set(), "source": set()}
        for reference in self._gateway.references(java):
            for side, known in self._places.items():
                place = known.get(reference.exprId().id())
                if place is not None:
                    places[side].add(place)
        column = self._gateway.column(java)
        return Expression(column, frozenset(places["target"]), frozenset(places["source"]), java)

    def _bound(self, expression_or_sql: "str | Column") -> "str | Column":
        """Rebind a Column of another frame of the table to this frame, by name."""
        if isinstance(expression_or_sql, str):
            return expression_or_sql
        spark = self.target.sparkSession
        expression = self._gateway.expression(spark, expression_or_sql)
        known = {number for places in self._places.values() for number in places}
        bound = self._gateway.rebound(expression, self.target, known)
        return expression_or_sql if bound is expression else self._gateway.column(bound)


def _of_strings(field: schemas.StructField) -> Mapping[str, Any]:
    """The metadata of a column that is about lengths and collations."""
    kept = (schemas.CHAR_VARCHAR_KEY, schemas.COLLATIONS_KEY)
    return {key: value for key, value in field.metadata.items() if key in kept}


def _fit(frame: "DataFrame", columns: Sequence[schemas.StructField]) -> bool:
    """Whether the frame's columns can be stored in these columns without conversion."""
    frame_fields = table_schema(frame.schema)
    return all(
        f.data_type == g.data_type
        and schemas.CHAR_VARCHAR_KEY not in f.metadata
        and schemas.collations(f) == schemas.collations(g)
        for f, g in zip(columns, frame_fields, strict=True)
    )


def columns_of(frame: "DataFrame") -> "list[Column]":
    """The columns of a frame by position, as attributes, which keep their meaning in frames made from it."""
    gateway = Gateway.of(frame.sparkSession)
    return [gateway.column(attribute) for attribute in Output(frame).attributes]


def has_column(frame: "DataFrame", name: Sequence[str]) -> bool:
    """Whether a frame has a column with the name, whose parts may begin with the frame's alias.

    Raises Spark's AnalysisException if it has several.
    """
    gateway, state = Gateway.of(frame.sparkSession), sessions.session_state(frame.sparkSession)
    return bool(analyzed(frame).resolve(gateway.seq(name), state.conf().resolver()).isDefined())


def _conjuncts(java: JavaObject) -> Iterator[JavaObject]:
    if class_name(java) == "And":
        yield from _conjuncts(java.left())
        yield from _conjuncts(java.right())
    else:
        yield java


def printed(expression: Expression, fields: int) -> str:
    """The expression as Delta prints it in `commitInfo`; `fields` is `spark.sql.debug.maxToStringFields`."""
    return str(expression.java.simpleString(fields))


# --- frames with the same attributes ------------------------------------------------------------------------------


def aligned(frame: "DataFrame", like: Output) -> "DataFrame":
    """Project the first columns of `frame` to the attributes of `like`, by position; more columns are kept."""
    columns, wanted = Output(frame).attributes, like.names_and_ids
    aliases = catalyst.aliases(Gateway.of(frame.sparkSession), columns, wanted)
    return _projected(frame, [*aliases, *columns[len(wanted) :]])


def picked(frame: "DataFrame", places: Sequence[int]) -> "DataFrame":
    """The columns of a frame at these positions."""
    columns = Output(frame).attributes
    return _projected(frame, [columns[place] for place in places])


def _projected(frame: "DataFrame", columns: Sequence[JavaObject]) -> "DataFrame":
    gateway = Gateway.of(frame.sparkSession)
    return plans.frame_of(frame.sparkSession, catalyst.projection(gateway, columns, analyzed(frame)))


class Local:
    """The rows of a frame, collected in the driver's JVM: reading them runs no job and always gives the same rows."""

    def __init__(self, frame: "DataFrame", rows: JavaObject) -> None:
        self._spark = frame.sparkSession
        self._gateway = Gateway.of(self._spark)
        self._output = analyzed(frame).output()
        self._rows = rows
        self.count = len(rows)

    def frame(self, indices: "pa.Array | None" = None) -> "DataFrame":
        """A frame with the attributes of the original frame: all rows, or those at the indices (int32)."""
        import pyarrow as pa

        every = pa.array(range(self.count), pa.int32())
        rows = self._gateway.picked(self._rows, every if indices is None else indices)
        relation = catalyst.local_relation(self._gateway, self._output, self._gateway.wrapped(rows))
        return plans.frame_of(self._spark, relation)


def local(frame: "DataFrame", most: int) -> Local | None:
    """Collect the rows of a frame on the driver; `None` if there are more than `most`; then few rows are read."""
    limited = catalyst.limited(Gateway.of(frame.sparkSession), analyzed(frame), most + 1)
    rows = internal_rows(plans.frame_of(frame.sparkSession, limited))
    return None if len(rows) > most else Local(frame, rows)


# --- values in other types ----------------------------------------------------------------------------------------


def reshaped(
    value: "Column", value_type: schemas.DataType, wanted: schemas.DataType, rest: "Column | None" = None
) -> "Column":
    """Convert a value from the type `value_type` to `wanted`, whose structs may have more fields, in another order.

    Missing fields are taken from `rest`, a value of the type `wanted`, or null without it. A null stays null.
    """
    from pyspark.sql import functions as F

    if value_type == wanted:
        return value
    if isinstance(value_type, schemas.StructType) and isinstance(wanted, schemas.StructType):
        fields = []
        for struct_field in wanted:
            field = value_type.get(struct_field.name)
            kept = None if rest is None else rest.getField(struct_field.name)
            if field is None:
                of_type = column_type(struct_field)
                inner = F.lit(None).cast(of_type) if kept is None else kept
            else:
                inner = reshaped(value.getField(field.name), field.data_type, struct_field.data_type, kept)
            fields.append(inner.alias(struct_field.name))
        return F.when(value.isNotNull(), F.struct(*fields))
    if isinstance(value_type, schemas.ArrayType) and isinstance(wanted, schemas.ArrayType):
        element = (value_type.element_type, wanted.element_type)
        return value if element[0] == element[1] else F.transform(value, lambda item: reshaped(item, *element))
    if isinstance(value_type, schemas.MapType) and isinstance(wanted, schemas.MapType):
        of_key, of_value = (value_type.key_type, wanted.key_type), (value_type.value_type, wanted.value_type)
        if of_key[0] != of_key[1]:
            value = F.transform_keys(value, lambda key, _: reshaped(key, *of_key))
        return (
            value
            if of_value[0] == of_value[1]
            else F.transform_values(value, lambda _, item: reshaped(item, *of_value))
        )
    return value


def literal_null(field: schemas.StructField) -> "Column":
    """A null of the column's type."""
    from pyspark.sql import functions as F

    return F.lit(None).cast(column_type(field))


def column_named(name: str) -> "Column":
    """The column with exactly this name."""
    from pyspark.sql import functions as F

    return F.col(schemas.quoted(name))
