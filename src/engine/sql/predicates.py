"""Translates Catalyst's resolved conditions to predicates of `core.skipping`.

A whole expression is transferred in one call, as JSON. Only expressions with identical semantics are translated:
comparisons of a column with a literal of exactly the same type, IN, null tests, prefixes, AND, OR and NOT. All others
become `Opaque`, which skips no files.
"""

import json
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa

from ...core.protocol import schema as schemas
from ...core.skipping import predicates
from ..jvm.connection.gateway import Gateway, JavaObject
from ..jvm.connection.java_errors import raised_by_calls
from ..jvm.registry.classes import EXPRESSIONS

logger = logging.getLogger(__name__)

_COMPARISONS: dict[str, predicates.Operator] = {
    "EqualTo": "=",
    "EqualNullSafe": "<=>",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
}
_MIRRORED: dict[predicates.Operator, predicates.Operator] = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
# Types whose literals aren't exact in the JSON: read from the JVM as days, microseconds and bytes.
_BY_VALUE = {"date": pa.int32(), "timestamp": pa.int64(), "timestamp_ntz": pa.int64()}


@dataclass
class Node:
    """One node of a Catalyst tree: the class name without package, its JSON, and its index in pre-order."""

    kind: str
    json: dict[str, Any]
    number: int
    children: list["Node"]

    def walk(self) -> Iterator["Node"]:
        yield self
        for child in self.children:
            yield from child.walk()


class _Untranslatable(Exception):
    """This part of a condition has no equivalent in `core.skipping.predicates`."""


def tree(nodes: list[dict[str, Any]]) -> Node:
    """The tree for the node list in a Catalyst tree's JSON."""
    position = 0

    def take() -> Node:
        nonlocal position
        value, number = nodes[position], position
        position += 1
        kind = str(value["class"]).removeprefix(EXPRESSIONS)
        return Node(kind, value, number, [take() for _ in range(int(value["num-children"]))])

    return take()


def translate(gateway: Gateway, filters: JavaObject, schema: schemas.StructType) -> predicates.Predicate:
    """Translate the conjunction of a Scala `Seq` of Catalyst expressions over a table with this schema."""
    return predicates.all_of(translate_one(gateway, expression, schema) for expression in gateway.elements(filters))


def translate_one(gateway: Gateway, expression: JavaObject, schema: schemas.StructType) -> predicates.Predicate:
    """Translate one Catalyst expression over a table with this schema."""
    try:
        root = tree(json.loads(expression.toJSON()))
        return _Translator(gateway, expression, schema).predicate(root)
    except _unreadable() as error:
        logger.debug("a filter isn't used for data skipping, because it can't be read (%s)", type(error).__name__)
        return predicates.Opaque(type(error).__name__)


def _unreadable() -> tuple[type[Exception], ...]:
    return (*raised_by_calls(), ValueError, KeyError, IndexError, RecursionError)


class _Translator:
    def __init__(self, gateway: Gateway, expression: JavaObject, schema: schemas.StructType) -> None:
        self._gateway = gateway
        self._expression = expression
        self._schema = schema

    def predicate(self, node: Node) -> predicates.Predicate:
        try:
            return self._predicate(node)
        except _Untranslatable:
            names = frozenset((str(n.json["name"]),) for n in node.walk() if n.kind == "AttributeReference")
            return predicates.Opaque(node.kind, names)

    def _predicate(self, node: Node) -> predicates.Predicate:
        kind, children = node.kind, node.children
        if kind == "And":
            return predicates.all_of(self.predicate(child) for child in children)
        if kind == "Or":
            return predicates.Or(tuple(self.predicate(child) for child in children))
        if kind == "Not":
            return predicates.Not(self.predicate(children[0]))
        if kind == "Literal" and node.json["dataType"] == "boolean":
            value = node.json["value"]
            return predicates.Constant(None if value is None else value == "true")
        if kind == "IsNull":
            return predicates.IsNull(self._column(children[0])[0])
        if kind == "IsNotNull":
            return predicates.IsNotNull(self._column(children[0])[0])
        if kind in _COMPARISONS:
            return self._comparison(_COMPARISONS[kind], *children)
        if kind == "In":
            column, data_type, spelt = self._comparable(children[0])
            return predicates.In(column, tuple(self._literal(child, data_type, spelt) for child in children[1:]))
        if kind == "InSet":
            column, data_type, _ = self._comparable(children[0])
            return predicates.In(column, self._set(node, data_type))
        if kind == "StartsWith":
            column, data_type, spelt = self._comparable(children[0])
            prefix = self._literal(children[1], data_type, spelt).as_py()
            if data_type != schemas.STRING:
                raise _Untranslatable
            return predicates.Constant(None) if prefix is None else predicates.StartsWith(column, prefix)
        if kind in ("AttributeReference", "GetStructField"):
            column, data_type, _ = self._comparable(node)
            if data_type == schemas.BOOLEAN:
                return predicates.Compare("=", column, pa.scalar(True))
        raise _Untranslatable

    def _comparison(self, operator: predicates.Operator, left: Node, right: Node) -> predicates.Predicate:
        if left.kind == "Literal":
            left, right, operator = right, left, _MIRRORED.get(operator, operator)
        column, data_type, spelt = self._comparable(left)
        return predicates.Compare(operator, column, self._literal(right, data_type, spelt))

    def _column(self, node: Node) -> tuple[predicates.Column, schemas.StructField, Any]:
        """(name, field, type in Catalyst's JSON) of a column or a field of a struct column."""
        if node.kind == "AttributeReference":
            name = str(node.json["name"])
            # A field of `_metadata` may have the same name as a column; the JSON doesn't distinguish them.
            if name in self._gateway.metadata_fields and self._gateway.is_metadata_field(
                self._expression.apply(node.number)
            ):
                raise _Untranslatable
            field = self._schema.get(name, case_sensitive=True)
            if field is None:
                raise _Untranslatable
            if schemas.has_collation(field):
                raise _Untranslatable
            return (name,), field, node.json["dataType"]
        if node.kind == "GetStructField":
            column, parent, spelt = self._column(node.children[0])
            ordinal = int(node.json["ordinal"])
            # Catalyst may have pruned the struct: the ordinal refers to the pruned type.
            inner = spelt["fields"][ordinal] if isinstance(spelt, dict) and spelt.get("type") == "struct" else None
            if inner is None or not isinstance(parent.data_type, schemas.StructType):
                raise _Untranslatable
            field = parent.data_type.get(str(inner["name"]), case_sensitive=True)
            if field is None or schemas.has_collation(field):
                raise _Untranslatable
            return (*column, field.name), field, inner["type"]
        raise _Untranslatable

    def _comparable(self, node: Node) -> tuple[predicates.Column, schemas.DataType, Any]:
        column, field, spelt = self._column(node)
        if not isinstance(field.data_type, schemas.PrimitiveType) or spelt != field.data_type.name:
            raise _Untranslatable
        return column, field.data_type, spelt

    def _literal(self, node: Node, data_type: schemas.DataType, spelt: Any) -> pa.Scalar:
        if node.kind != "Literal" or node.json["dataType"] != spelt:
            raise _Untranslatable
        text = node.json["value"]
        arrow = schemas.arrow_type(data_type)
        if text is None:
            return pa.scalar(None, arrow)
        if spelt in _BY_VALUE:
            return pa.scalar(self._expression.apply(node.number).value(), _BY_VALUE[spelt]).cast(arrow)
        if spelt == "binary":
            return pa.scalar(bytes(self._expression.apply(node.number).value()), arrow)
        return _scalar(str(text), data_type, arrow)

    def _set(self, node: Node, data_type: schemas.DataType) -> tuple[pa.Scalar, ...]:
        assert isinstance(data_type, schemas.PrimitiveType)
        if data_type == schemas.BINARY:
            raise _Untranslatable
        arrow = schemas.arrow_type(data_type)
        values = self._expression.apply(node.number).hset()
        nulls: tuple[pa.Scalar, ...] = ()
        if values.contains(None):
            values = values.excl(None)
            nulls = (pa.scalar(None, arrow),)
        count = values.size()
        texts = values.mkString("\0").split("\0") if count else []
        if len(texts) != count:
            raise _Untranslatable
        stored = _BY_VALUE.get(data_type.name)
        if stored is not None:
            return nulls + tuple(pa.scalar(int(text), stored).cast(arrow) for text in texts)
        return nulls + tuple(_scalar(text, data_type, arrow) for text in texts)


def _scalar(text: str, data_type: schemas.DataType, arrow: pa.DataType) -> pa.Scalar:
    """A literal, parsed from its Java text."""
    assert isinstance(data_type, schemas.PrimitiveType)
    if data_type == schemas.STRING:
        if "\ufffd" in text:  # Java's replacement for invalid UTF-8
            raise _Untranslatable
        return pa.scalar(text, arrow)
    if data_type == schemas.BOOLEAN:
        return pa.scalar(text == "true", arrow)
    if data_type.is_integral:
        return pa.scalar(int(text), arrow)
    if data_type.is_floating:
        return pa.scalar(float(text), arrow)
    if data_type.decimal is not None:
        value = Decimal(text)
        return pa.scalar(value, pa.decimal128(*data_type.decimal))
    raise _Untranslatable
