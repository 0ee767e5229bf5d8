"""The values in a statement of Delta's own: literals and parameters, and the parts that Spark's parser parses."""

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession, functions
from pyspark.sql.types import StructType

from ...engine.jvm import plans
from ...engine.jvm.connection.gateway import Gateway
from ...engine.jvm.statements import identifiers, inserts, parsing, statements
from ...errors import InvalidArgumentError
from .grammar.errors import syntax_error
from .grammar.nodes import Marker, Name, NameExpression, Parsed, Span, Value

_WHOLE = ("tinyint", "smallint", "int", "bigint")
_FRACTIONS = ("decimal", "double", "float")


class Values:
    """What the parts of a parsed statement mean in a session. `args`: the parameters, by name or by position."""

    def __init__(self, spark: SparkSession, parsed: Parsed, args: Any) -> None:
        self.spark = spark
        self._parsed = parsed
        self._named: Mapping[str, Any] = args if isinstance(args, Mapping) else {}
        by_position = isinstance(args, Sequence) and not isinstance(args, str)
        self._by_position: Sequence[Any] = args if by_position else ()

    # --- literals and parameters ----------------------------------------------------------------------------------

    def text(self, value: Value) -> str:
        """A string."""
        kind, text = self._constant(value)
        if kind != "string":
            raise self._error(value, f"expected a string, not {_described(kind)}")
        return text

    def whole(self, value: Value) -> int:
        """A whole number; it may be written as a string."""
        kind, text = self._constant(value)
        if kind in _WHOLE or (kind == "string" and text.isdecimal()):
            return int(text)
        raise self._error(value, f"expected a whole number, not {_described(kind)}")

    def number(self, value: Value) -> float:
        """A number."""
        kind, text = self._constant(value)
        if kind in _WHOLE or kind.startswith(_FRACTIONS):
            return float(text)
        raise self._error(value, f"expected a number, not {_described(kind)}")

    def property_text(self, value: Value) -> str:
        """The value of a table property: a string, a number or a boolean, as text."""
        kind, text = self._constant(value)
        if kind == "void":
            raise self._error(value, "expected the value of the property, not NULL")
        return text.lower() if kind == "boolean" else text

    def _constant(self, value: Value) -> tuple[str, str]:
        """The type and the text of a literal or a parameter."""
        if isinstance(value, Marker):
            literal = parsing.literal_of_column(self.spark, functions.lit(self._argument(value)))
        else:
            literal = parsing.literal(self.spark, self._parsed.in_place(value))
        if literal is None:
            raise self._error(value, "expected a constant")
        return literal

    def _argument(self, marker: Marker) -> Any:
        if marker.name is not None and marker.name in self._named:
            return self._named[marker.name]
        if marker.name is None and marker.ordinal < len(self._by_position):
            return self._by_position[marker.ordinal]
        name = marker.name or f"_{marker.start}"
        problem = f"the parameter {_shown(marker)} has no value: give it by spark.sql(text, args=...)"
        error = syntax_error(self._parsed.text, marker.start, _shown(marker), problem, "UNBOUND_SQL_PARAMETER")
        error.message_parameters = {"name": name}
        raise error

    def _error(self, value: Span | Marker, problem: str) -> InvalidArgumentError:
        near = _shown(value) if isinstance(value, Marker) else value.text
        return syntax_error(self._parsed.text, value.start, near, problem)

    # --- parts that Spark's parser parses -------------------------------------------------------------------------

    def name_parts(self, name: Name) -> Any:
        """The parts of a name, as a Scala `Seq`."""
        text = self._value(name) if isinstance(name, NameExpression) else self._parsed.in_place(name)
        return inserts.parsed_name(self.spark, text)

    def _value(self, name: NameExpression) -> str:
        """The name that the expression gives, which may have parameters and variables of the session."""
        expression = Gateway.of(self.spark).expression(self.spark, self._column(name))
        values = identifiers.constants(self.spark, [expression])
        kind, text = (parsing.literal_of_expression(values[0]) if values else None) or ("", "")
        if kind != "string":
            raise self._error(name, "expected a constant expression that gives the name of a table as a string")
        return text

    def condition(self, part: Span) -> str | Column:
        """A condition: its text, or a Column if the statement has parameters. Raises Spark's ParseException."""
        column = self._column(part)
        return column if self._named or self._by_position else part.text

    def _column(self, part: Span) -> Column:
        named = {name: functions.lit(value) for name, value in self._named.items()}
        return parsing.column_with(self.spark, self._parsed.in_place(part), named, self._questions_in(part))

    def query(self, part: Span) -> DataFrame:
        """The DataFrame of a query. Raises Spark's ParseException and AnalysisException."""
        plan = statements.parsed(self.spark, self._parsed.in_place(part))
        if not statements.is_query(plan):
            raise syntax_error(self._parsed.text, part.start, part.text.split()[0], "expected a query")
        named = {name: functions.lit(value) for name, value in self._named.items()}
        values = named or list(self._questions_in(part).values())
        return plans.frame_of(self.spark, inserts.with_parameters(self.spark, plan, values))

    def columns(self, part: Span) -> StructType:
        """A list of columns with types. Raises Spark's ParseException."""
        return parsing.columns_of(self.spark, self._parsed.in_place(part))

    def _questions_in(self, part: Span) -> dict[int, Column]:
        """The values of the `?` in a part, by their places in the statement."""
        places = zip(self._parsed.questions, self._by_position, strict=False)
        end = part.start + len(part.text)
        return {place: functions.lit(value) for place, value in places if part.start <= place < end}


def _shown(marker: Marker) -> str:
    return "?" if marker.name is None else f":{marker.name}"


def _described(kind: str) -> str:
    return "NULL" if kind == "void" else f"a value of the type {kind}"
