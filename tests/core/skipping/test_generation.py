"""Partition filters from generation expressions: what is derived, and that no file is left out which held a row."""

from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tablelog.core.protocol.schema import DATE, INTEGER, STRING, TIMESTAMP, StructField, StructType
from tablelog.core.skipping.generation import Generated, derived
from tablelog.core.skipping.predicates import (
    And,
    Compare,
    In,
    IsNotNull,
    IsNull,
    Not,
    Opaque,
    Or,
    Predicate,
    StartsWith,
)
from tablelog.core.skipping.pruning import may_match

TS, DAY, TEXT = ("ts",), ("d",), ("s",)
INT, DATE32, UTF8 = pa.int32(), pa.date32(), pa.string()
STAMP = pa.timestamp("us", "UTC")


def ts(text: str) -> pa.Scalar:
    return pa.scalar(datetime.fromisoformat(text).replace(tzinfo=UTC), STAMP)


def day(text: str) -> pa.Scalar:
    return pa.scalar(date.fromisoformat(text), DATE32)


def kept(
    predicate: Predicate, generated: list[Generated], partitions: list[tuple[Any, ...]], *, time_zone: str = "UTC"
) -> list[bool]:
    """For each partition (its values' texts, in the order of `generated`) whether it may hold a row."""
    types = {INT: INTEGER, DATE32: DATE, UTF8: STRING, STAMP: TIMESTAMP}
    names = [one.column[0] for one in generated]
    schema = StructType(tuple(StructField(n, types[one.type]) for n, one in zip(names, generated, strict=True)))
    files = pa.table(
        {
            "path": pa.array([str(i) for i in range(len(partitions))]),
            "partitionValues": pa.array(
                [list(zip(names, values, strict=True)) for values in partitions], pa.map_(pa.string(), pa.string())
            ),
        }
    )
    wanted = derived(predicate, generated)
    found: list[bool] = may_match(files, wanted, schema, names, use_stats=False, time_zone=time_zone).to_pylist()
    return found


DATE_OF_DAY = Generated(("p",), DAY, "date", DATE32)
DAYS: list[tuple[str | None]] = [("2024-04-29",), ("2024-04-30",), ("2024-05-01",), ("2024-05-02",), (None,)]


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        (Compare("=", DAY, day("2024-05-01")), "..x.x"),
        (Compare("<", DAY, day("2024-05-01")), "xxx.x"),
        (Compare(">", DAY, day("2024-05-01")), "..xxx"),
        (In(DAY, (day("2024-04-29"), day("2024-05-02"))), "x..xx"),
        (And((Compare(">=", DAY, day("2024-04-30")), Compare("<=", DAY, day("2024-05-01")))), ".xx.x"),
        (Or((Compare("=", DAY, day("2024-04-29")), IsNull(DAY))), "x...x"),
        (IsNull(DAY), "....x"),
        (Compare("=", DAY, pa.scalar(None, DATE32)), "....."),
        (Compare("<=>", DAY, pa.scalar(None, DATE32)), "....x"),
        (Or((Compare("=", DAY, day("2024-04-29")), Opaque("f(x)"))), "xxxxx"),
        (Not(Compare("=", DAY, day("2024-04-29"))), "xxxxx"),
        (Compare("!=", DAY, day("2024-04-29")), "xxxxx"),
        (IsNotNull(DAY), "xxxxx"),
        (Compare("=", ("other",), day("2024-04-29")), "xxxxx"),
    ],
)
def test_conditions_on_a_date(predicate: Predicate, expected: str) -> None:
    assert kept(predicate, [DATE_OF_DAY], DAYS) == [mark == "x" for mark in expected]


def test_a_timestamp_may_have_been_another_day_elsewhere() -> None:
    generated = [Generated(("p",), TS, "date", DATE32)]
    assert kept(Compare("=", TS, ts("2024-05-01T12:00:00")), generated, DAYS) == [False, True, True, True, True]
    assert kept(Compare(">", TS, ts("2024-05-02T20:00:00")), generated, DAYS) == [False, False, False, True, True]


def test_year_month_and_day_are_in_order_together() -> None:
    generated = [Generated((part,), DAY, part, INT) for part in ("day", "month", "year")]  # type: ignore[arg-type]
    partitions = [("31", "12", "2023"), ("30", "4", "2024"), ("1", "5", "2024"), ("15", "1", "2025")]
    assert kept(Compare(">", DAY, day("2024-05-01")), generated, partitions) == [False, False, True, True]
    assert kept(Compare("<=", DAY, day("2024-04-30")), generated, partitions) == [True, True, False, False]
    assert kept(Compare("=", DAY, day("2024-05-01")), generated, partitions) == [False, False, True, False]
    alone = [Generated(("month",), DAY, "month", INT)]
    assert kept(Compare("=", DAY, day("2024-05-01")), alone, [("1",), ("5",)]) == [True, True]


def test_parts_of_texts() -> None:
    prefix = [Generated(("p",), TEXT, "prefix", UTF8, length=2)]
    texts: list[tuple[str | None]] = [("aa",), ("ab",), ("b",), (None,)]
    assert kept(Compare(">=", TEXT, pa.scalar("abc")), prefix, texts) == [False, True, True, True]
    assert kept(Compare("=", TEXT, pa.scalar("abc")), prefix, texts) == [False, True, False, True]
    assert kept(StartsWith(TEXT, "b"), prefix, texts) == [False, False, True, True]
    inside = [Generated(("p",), TEXT, "substring", UTF8, first=-2, length=1)]
    assert kept(Compare("=", TEXT, pa.scalar("xaz")), inside, [("a",), ("z",), (None,)]) == [True, False, True]
    assert kept(Compare("<", TEXT, pa.scalar("xaz")), inside, [("a",), ("z",), (None,)]) == [True, True, True]


PARTS = [
    Generated(("p",), TS, "date", DATE32),
    Generated(("p",), TS, "year", INT),
    Generated(("p",), TS, "format", UTF8, "yyyy-MM"),
    Generated(("p",), TS, "format", UTF8, "yyyy-MM-dd-HH"),
    Generated(("p",), TS, "trunc", DATE32, "week"),
    Generated(("p",), TS, "trunc", DATE32, "quarter"),
    Generated(("p",), TS, "trunc", STAMP, "day"),
    Generated(("p",), TS, "trunc", STAMP, "month"),
    Generated(("p",), TS, "same", STAMP),
]


def text_of(at: datetime, one: Generated, *, local: bool) -> str:
    """The partition's value of a time as Spark computes it in the time's zone; `local`: the text names no zone."""
    if one.part == "date":
        return at.date().isoformat()
    if one.part == "year":
        return str(at.year)
    if one.part == "format":
        return at.strftime("%Y-%m-%d-%H")[: {"yyyy-MM": 7, "yyyy-MM-dd-HH": 13}[one.unit]]
    first = at.replace(hour=0, minute=0, second=0, microsecond=0)
    if one.unit == "week":
        first -= timedelta(days=first.weekday())
    elif one.unit == "quarter":
        first = first.replace(month=(first.month - 1) // 3 * 3 + 1, day=1)
    elif one.unit == "month":
        first = first.replace(day=1)
    if pa.types.is_date(one.type):
        return first.date().isoformat()
    if one.part == "same":
        first = at
    return first.strftime("%Y-%m-%d %H:%M:%S.%f") if local else first.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


TIMES = st.datetimes(datetime(1990, 1, 1), datetime(2050, 1, 1)).map(lambda at: at.replace(tzinfo=UTC))


@settings(max_examples=300)
@given(
    TIMES,
    st.one_of(TIMES, st.just(None)),
    st.integers(-18 * 60, 18 * 60),
    st.sampled_from("< <= = >= > <=>".split()),
    st.sampled_from(PARTS),
    st.booleans(),
    st.sampled_from(["UTC", "America/New_York", "Asia/Kolkata", "Pacific/Apia", "-18:00", "+18:00"]),
)
def test_a_partition_that_is_left_out_held_no_row(
    row: datetime, other: datetime | None, offset: int, op: Any, one: Generated, local: bool, reader: str
) -> None:
    literal = other or row
    holds = {
        "<": row < literal, "<=": row <= literal, "=": row == literal, ">=": row >= literal, ">": row > literal,
        "<=>": row == literal,
    }[op]  # fmt: skip
    written = text_of(row.astimezone(timezone(timedelta(minutes=offset))), one, local=local)
    found = kept(Compare(op, TS, pa.scalar(literal, STAMP)), [one], [(written,)], time_zone=reader)
    assert found == [True] or not holds
