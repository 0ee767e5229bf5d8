"""Rows and predicates on them, evaluated one by one as Spark does: what pruning is compared with."""

import datetime
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa

from tablelog.core.protocol.schema import (
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    LONG,
    STRING,
    TIMESTAMP,
    ArrayType,
    StructField,
    StructType,
    arrow_type,
    decimal,
    find,
    indexed_leaves,
)
from tablelog.core.skipping.predicates import (
    And,
    Compare,
    Constant,
    In,
    IsNotNull,
    IsNull,
    Not,
    Or,
    Predicate,
    StartsWith,
)

SCHEMA = StructType(
    (
        StructField("p", STRING),
        StructField("q", DOUBLE),
        StructField("z", TIMESTAMP),
        StructField("a", LONG),
        StructField("s", STRING),
        StructField("d", DOUBLE),
        StructField("f", FLOAT),
        StructField("t", TIMESTAMP),
        StructField("day", DATE),
        StructField("m", decimal(10, 2)),
        StructField("big", decimal(30, 5)),
        StructField("b", BOOLEAN),
        StructField("n", StructType((StructField("x", LONG), StructField("l", ArrayType(LONG))))),
    )
)
PARTITIONS = ("p", "q", "z")
DATA = SCHEMA.without(PARTITIONS)
LEAVES = indexed_leaves(SCHEMA, PARTITIONS)
EPOCH = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)
US = datetime.timedelta(microseconds=1)

POOLS: dict[tuple[str, ...], list[Any]] = {
    ("p",): ["a", "a/b", "b%", "é"],
    ("q",): [0.0, -0.0, 1.5, math.nan, math.inf],
    ("z",): [EPOCH + datetime.timedelta(hours=hours) for hours in (-11, 0, 1, 5)],
    ("a",): [-1, 0, 1, 2, 2**53 + 1, 2**63 - 1],
    ("s",): ["", "a", "ab", "abc", "abcd", "abce", "abd", "b", "abc\x7f", "abc\U0010ffffz", "é"],
    ("d",): [-1.5, -0.0, 0.0, 1.0, 2.5, math.nan, math.inf, -math.inf],
    ("f",): [-1.5, 0.0, float(pa.scalar(0.1, pa.float32()).as_py()), 2.0, math.nan],
    ("t",): [EPOCH + i * US for i in (0, 1, 999, 1000, 1001, 1999, 2000)],
    ("day",): [datetime.date(2024, 1, day) for day in (1, 2, 3)],
    ("m",): [Decimal("-1.50"), Decimal("0.00"), Decimal("1.49"), Decimal("1.50")],
    ("big",): [Decimal("12345678901234567890.12345"), Decimal("12345678901234567890.12346"), Decimal("1.00000")],
    ("b",): [True, False],
    ("n", "x"): [1, 2, 3],
}


def typed(column: tuple[str, ...]) -> pa.DataType:
    found = find(SCHEMA, column)
    assert found is not None
    return arrow_type(found[1].data_type)


def literal(column: tuple[str, ...], value: Any) -> pa.Scalar:
    return pa.scalar(value, typed(column))


def order(value: Any) -> Any:
    """NaN is equal to itself and greater than any number; text is compared by its UTF-8."""
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value)
    return value.encode() if isinstance(value, str) else value


def value_of(row: dict[str, Any], column: tuple[str, ...]) -> Any:
    value: Any = row
    for part in column:
        value = None if value is None else value.get(part)
    return value


def evaluate(predicate: Predicate, row: dict[str, Any]) -> bool | None:
    match predicate:
        case And(children):
            found = [evaluate(child, row) for child in children]
            return False if False in found else None if None in found else True
        case Or(children):
            found = [evaluate(child, row) for child in children]
            return True if True in found else None if None in found else False
        case Not(child):
            inner = evaluate(child, row)
            return None if inner is None else not inner
        case Constant(value):
            return value
        case IsNull(column):
            return value_of(row, column) is None
        case IsNotNull(column):
            return value_of(row, column) is not None
        case StartsWith(column, prefix):
            value = value_of(row, column)
            return None if value is None else value.startswith(prefix)
        case In(column, values):
            found = [evaluate(Compare("=", column, value), row) for value in values]
            return True if True in found else None if None in found else False
        case Compare("<=>", column, value):
            left, right = value_of(row, column), value.as_py()
            return left is right if left is None or right is None else order(left) == order(right)
        case Compare(op, column, value):
            left, right = value_of(row, column), value.as_py()
            if left is None or right is None:
                return None
            one, two = order(left), order(right)
            return {
                "=": one == two, "!=": one != two, "<": one < two,
                "<=": one <= two, ">": one > two, ">=": one >= two,
            }[op]  # fmt: skip
        case _:
            raise AssertionError(predicate)


def one_file(text: str | None, schema: StructType = SCHEMA) -> pa.Table:
    return pa.table(
        {
            "partitionValues": pa.array([[("p", "a"), ("q", "1.5")]], pa.map_(pa.string(), pa.string())),
            "stats": pa.array([text], pa.string()),
        }
    )
