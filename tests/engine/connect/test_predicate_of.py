"""Which files a condition excludes, from its text: what isn't understood excludes none."""

import pyarrow as pa
import pytest

from tablelog.core.protocol.schema import CHAR_VARCHAR_KEY, DATE, DOUBLE, LONG, SHORT, STRING, StructField, StructType
from tablelog.core.skipping.predicates import And, Compare, In, IsNotNull, IsNull, Not, Opaque, Or, Predicate
from tablelog.engine.connect.predicate_of import of_text

SCHEMA = StructType(
    (
        StructField("id", LONG),
        StructField("small", SHORT),
        StructField("day", DATE),
        StructField("name", STRING),
        StructField("code", STRING, True, {CHAR_VARCHAR_KEY: "char(3)"}),
        StructField("rate", DOUBLE),
        StructField("a b", LONG),
    )
)
DAY = pa.scalar(19724, pa.int32()).cast(pa.date32())


def number(value: int) -> pa.Scalar:
    return pa.scalar(value, pa.int64())


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("id = 1", Compare("=", ("id",), number(1))),
        ("T.ID <> -1", Compare("!=", ("id",), number(-1))),
        ("5 < id", Compare(">", ("id",), number(5))),
        ("`a b` == 2", Compare("=", ("a b",), number(2))),
        ("small >= 3", Compare(">=", ("small",), pa.scalar(3, pa.int16()))),
        ("day = '2024-01-02'", Compare("=", ("day",), DAY)),
        ("day <=> date '2024-01-02'", Compare("<=>", ("day",), DAY)),
        ("name = 'x'", Compare("=", ("name",), pa.scalar("x"))),
        ("name is null", IsNull(("name",))),
        ("name is not null", IsNotNull(("name",))),
        ("id in (1, 2)", In(("id",), (number(1), number(2)))),
        ("id not in (1)", Not(In(("id",), (number(1),)))),
        ("not (id = 1)", Not(Compare("=", ("id",), number(1)))),
        (
            "id = 1 and (name = 'x' or day is null)",
            And((Compare("=", ("id",), number(1)), Or((Compare("=", ("name",), pa.scalar("x")), IsNull(("day",)))))),
        ),
    ],
)
def test_understood(sql: str, expected: Predicate) -> None:
    assert of_text(sql, SCHEMA, ["t"]) == expected


@pytest.mark.parametrize(
    "sql",
    [
        "id = 1.5", "id = '1'", "id = 99999999999999999999", "small = 40000", "name = 1", "name = '2024-01-02'",
        "name = date'2024-01-02'", "day = '2024-13-01'", "day = '2024-1-2'", "code = 'abc'", "rate > 1", "rate = 'x'",
        "id between 1 and 2", "case when id = 1 then true else false end", "id + 1 = 2", "id = 1 = true",
        "name = 'a''b'", "name = 'a\\'b'", 'name = "x"', "id = 1 or upper(name) = 'X'", "id = (1)", "u.id = 1",
        "name like 'a%'", "id = 1L", "id = small", "-id = 1", "day = 5", "date 5 = id",
    ],
)  # fmt: skip
def test_not_understood(sql: str) -> None:
    assert of_text(sql, SCHEMA, ["t"]) == Opaque(sql)


def test_a_conjunct_that_is_not_understood() -> None:
    found = of_text("upper(name) = 'X' and id = 1", SCHEMA, [])
    assert isinstance(found, And)
    assert isinstance(found.children[0], Opaque)
    assert found.children[1] == Compare("=", ("id",), number(1))
