"""The part of a condition that statistics and partition values can decide, from its text or from its Column.

Only comparisons of a column with a literal of its own kind are understood: whole numbers, strings and dates. Anything
else is `Opaque`, so it excludes no file, and conflicts with every concurrent change.
"""

import datetime
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from ...core.protocol.schema import (
    CHAR_VARCHAR_KEY,
    COLLATIONS_KEY,
    DATE,
    STRING,
    PrimitiveType,
    StructField,
    StructType,
    arrow_type,
)
from ...core.skipping.predicates import (
    And,
    Compare,
    In,
    IsNotNull,
    IsNull,
    Not,
    Opaque,
    Operator,
    Or,
    Predicate,
    all_of,
)
from .client import expression_of
from .sql_text import ExpressionToken, Refused, tokens_of

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, SparkSession

_OPERATORS = {"=": "=", "==": "=", "<>": "!=", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">=", "<=>": "<=>"}
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


class _Unknown(Exception):
    """The condition has something else."""


def of_text(sql: str, schema: StructType, qualifiers: Sequence[str]) -> Predicate:
    """The predicate of an SQL condition that `sql_text.check` accepts."""
    opaque = Opaque(sql)
    try:
        tokens = tokens_of(sql)
    except Refused:
        return opaque
    if any(token.word in ("between", "case") for token in tokens):
        return opaque  # their AND is no conjunction
    return all_of(_of_part(part, schema, qualifiers, opaque) for part in _conjuncts(tokens))


def _of_part(
    tokens: Sequence[ExpressionToken], schema: StructType, qualifiers: Sequence[str], opaque: Opaque
) -> Predicate:
    parser = _Parser(tokens, schema, qualifiers)
    try:
        predicate = parser.disjunction()
        parser.end()
    except _Unknown:
        return opaque
    return predicate


def _conjuncts(tokens: Sequence[ExpressionToken]) -> list[list[ExpressionToken]]:
    """The parts between ANDs outside of parentheses; one part if there is an OR outside of parentheses."""
    parts: list[list[ExpressionToken]] = [[]]
    depth = 0
    for token in tokens:
        depth += (token.text in "([") - (token.text in ")]")
        if depth == 0 and token.word == "or":
            return [list(tokens)]
        if depth == 0 and token.word == "and":
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


class _Parser:
    """A parser of comparisons, IS NULL, IN, AND, OR, NOT and parentheses; it raises _Unknown at anything else."""

    def __init__(self, tokens: Sequence[ExpressionToken], schema: StructType, qualifiers: Sequence[str]) -> None:
        self._tokens = tokens
        self._at = 0
        self._schema = schema
        self._qualifiers = {name.lower() for name in qualifiers}

    def end(self) -> None:
        if self._at != len(self._tokens):
            raise _Unknown

    def disjunction(self) -> Predicate:
        parts = [self._conjunction()]
        while self._word("or"):
            parts.append(self._conjunction())
        return parts[0] if len(parts) == 1 else Or(tuple(parts))

    def _conjunction(self) -> Predicate:
        parts = [self._negation()]
        while self._word("and"):
            parts.append(self._negation())
        return parts[0] if len(parts) == 1 else And(tuple(parts))

    def _negation(self) -> Predicate:
        if self._word("not"):
            return Not(self._negation())
        if self._symbol("("):
            inner = self.disjunction()
            if not self._symbol(")"):
                raise _Unknown
            return inner
        return self._comparison()

    def _comparison(self) -> Predicate:
        token = self._peek()
        if token.kind in ("number", "text") or token.text == "-":
            literal = self._literal()
            operator = self._operator()
            column = self._column()
            mirrored = cast(Operator, _MIRRORED.get(operator, operator))
            return Compare(mirrored, (column.name,), _typed(literal, column))
        column = self._column()
        if self._word("is"):
            negated = self._word("not")
            if not self._word("null"):
                raise _Unknown
            return IsNotNull((column.name,)) if negated else IsNull((column.name,))
        negated = self._word("not")
        if self._word("in"):
            values = self._values(column)
            predicate = In((column.name,), values)
            return Not(predicate) if negated else predicate
        if negated:
            raise _Unknown
        operator = self._operator()
        return Compare(operator, (column.name,), _typed(self._literal(), column))

    def _values(self, column: StructField) -> "tuple[pa.Scalar, ...]":
        if not self._symbol("("):
            raise _Unknown
        values = [_typed(self._literal(), column)]
        while self._symbol(","):
            values.append(_typed(self._literal(), column))
        if not self._symbol(")"):
            raise _Unknown
        return tuple(values)

    def _operator(self) -> Operator:
        operator = _OPERATORS.get(self._next().text)
        if operator is None:
            raise _Unknown
        return cast(Operator, operator)

    def _column(self) -> StructField:
        parts = [self._name()]
        while self._symbol("."):
            parts.append(self._name())
        if len(parts) == 2 and parts[0].lower() in self._qualifiers:
            parts = parts[1:]
        return _field(parts, self._schema)

    def _name(self) -> str:
        token = self._next()
        if not token.is_name:
            raise _Unknown
        return token.name

    def _literal(self) -> int | str:
        """A whole number, or a string without escapes, which may be that of a date."""
        of_date = self._word("date")
        sign = -1 if self._symbol("-") else 1
        token = self._next()
        if not of_date and token.kind == "number" and token.text.isdecimal():
            return sign * int(token.text)
        plain = token.kind == "text" and token.text[0] == "'" and sign == 1
        text = token.text[1:-1]
        if not plain or "\\" in text or "''" in text or (of_date and not _DATE.fullmatch(text)):
            raise _Unknown
        return text

    def _peek(self) -> ExpressionToken:
        if self._at >= len(self._tokens):
            raise _Unknown
        return self._tokens[self._at]

    def _next(self) -> ExpressionToken:
        token = self._peek()
        self._at += 1
        return token

    def _word(self, word: str) -> bool:
        found = self._at < len(self._tokens) and self._tokens[self._at].word == word
        self._at += found
        return found

    def _symbol(self, text: str) -> bool:
        here = self._tokens[self._at] if self._at < len(self._tokens) else None
        found = here is not None and here.kind == "symbol" and here.text == text
        self._at += found
        return found


# --- Columns ------------------------------------------------------------------------------------------------------


def of_column(spark: "SparkSession", column: "Column", schema: StructType, qualifiers: Sequence[str]) -> Predicate:
    """The predicate of a Column that `column_check` accepts."""
    return _of_expression(expression_of(spark, column), schema, qualifiers)


def _of_expression(node: Any, schema: StructType, qualifiers: Sequence[str]) -> Predicate:
    opaque = Opaque("a Column")
    kind = node.WhichOneof("expr_type")
    if kind == "expression_string":
        return of_text(node.expression_string.expression, schema, qualifiers)
    if kind != "unresolved_function":
        return opaque
    name, arguments = node.unresolved_function.function_name, list(node.unresolved_function.arguments)
    if name in ("and", "or") and len(arguments) == 2:
        left, right = (_of_expression(argument, schema, qualifiers) for argument in arguments)
        return all_of([left, right]) if name == "and" else Or((left, right))
    try:
        column = _column_of(arguments[0], schema, qualifiers)
        if name in _OPERATORS and len(arguments) == 2:
            value = _typed(_literal_of(arguments[1]), column)
            return Compare(cast(Operator, _OPERATORS[name]), (column.name,), value)
        if name == "in":
            return In((column.name,), tuple(_typed(_literal_of(one), column) for one in arguments[1:]))
    except (_Unknown, IndexError):
        return opaque
    return opaque


def _column_of(node: Any, schema: StructType, qualifiers: Sequence[str]) -> StructField:
    if node.WhichOneof("expr_type") != "unresolved_attribute":
        raise _Unknown
    parts = node.unresolved_attribute.unparsed_identifier.split(".")
    if len(parts) == 2 and parts[0].lower() in {name.lower() for name in qualifiers}:
        parts = parts[1:]
    return _field(parts, schema)


def _literal_of(node: Any) -> int | str:
    if node.WhichOneof("expr_type") != "literal":
        raise _Unknown
    kind = node.literal.WhichOneof("literal_type")
    if kind in ("byte", "short", "integer", "long"):
        return int(getattr(node.literal, kind))
    if kind == "string":
        return str(node.literal.string)
    if kind == "date":
        return (datetime.date(1970, 1, 1) + datetime.timedelta(days=node.literal.date)).isoformat()
    raise _Unknown


# --- values -------------------------------------------------------------------------------------------------------


def _field(parts: Sequence[str], schema: StructType) -> StructField:
    matches = [f for f in schema if len(parts) == 1 and f.name.lower() == parts[0].lower()]
    if len(matches) != 1:
        raise _Unknown
    return matches[0]


def _typed(value: int | str, column: StructField) -> "pa.Scalar":
    """The value in the column's type, where Spark compares the two in that type."""
    import pyarrow as pa

    kind = column.data_type
    if not isinstance(kind, PrimitiveType) or {CHAR_VARCHAR_KEY, COLLATIONS_KEY} & column.metadata.keys():
        raise _Unknown
    try:
        if kind.is_integral and isinstance(value, int):
            return pa.scalar(value, arrow_type(kind))
        if kind == STRING and isinstance(value, str) and not _DATE.fullmatch(value):
            return pa.scalar(value, arrow_type(kind))
        if kind == DATE and isinstance(value, str) and _DATE.fullmatch(value):
            return pa.scalar(datetime.date.fromisoformat(value), arrow_type(kind))
    except (pa.ArrowInvalid, OverflowError, ValueError):
        pass  # out of the range of the type
    raise _Unknown
