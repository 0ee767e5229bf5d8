"""The files that statistics and partition values exclude."""

import datetime
import json
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from core.skipping.row_oracle import PARTITIONS, SCHEMA, literal, one_file
from tablelog.core.protocol.schema import DOUBLE, LONG, TIMESTAMP, PrimitiveType, StructField, StructType, arrow_type
from tablelog.core.skipping import stats
from tablelog.core.skipping.predicates import (
    And,
    Compare,
    Constant,
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


def keeps(text: str | None, predicate: Predicate) -> bool:
    return bool(may_match(one_file(text), predicate, SCHEMA, PARTITIONS, time_zone="UTC")[0].as_py())


A, S, D, T = ("a",), ("s",), ("d",), ("t",)
LONGS = '{"numRecords":3,"minValues":{"a":10},"maxValues":{"a":20},"nullCount":{"a":0}}'


@pytest.mark.parametrize(
    ("op", "value", "kept"),
    [
        ("=", 9, False), ("=", 10, True), ("=", 20, True), ("=", 21, False), ("<", 10, False), ("<", 11, True),
        ("<=", 9, False), ("<=", 10, True), (">", 20, False), (">", 19, True), (">=", 21, False), (">=", 20, True),
        ("!=", 15, True), ("<=>", 21, False), ("<=>", None, False), ("=", None, False), ("!=", None, False),
    ],
)  # fmt: skip
def test_bounds_of_integers(op: Any, value: Any, kept: bool) -> None:
    assert keeps(LONGS, Compare(op, A, literal(A, value))) is kept


def test_not_equal_prunes_a_file_of_one_value_only() -> None:
    text = '{"numRecords":3,"minValues":{"a":7},"maxValues":{"a":7},"nullCount":{"a":1}}'
    assert not keeps(text, Compare("!=", A, literal(A, 7)))
    assert not keeps(text, Not(Compare("=", A, literal(A, 7))))
    assert keeps(text, Not(Compare("<=>", A, literal(A, 7))))  # true of the null
    assert keeps(text, Compare("!=", A, literal(A, 8)))


def test_null_counts() -> None:
    no_null = '{"numRecords":3,"nullCount":{"a":0}}'
    all_null = '{"numRecords":3,"nullCount":{"a":3}}'
    assert not keeps(no_null, IsNull(A))
    assert keeps(no_null, IsNotNull(A))
    assert keeps(all_null, IsNull(A))
    assert not keeps(all_null, IsNotNull(A))
    assert not keeps(all_null, Not(IsNull(A)))
    assert not keeps(all_null, Compare(">", A, literal(A, 0)))
    assert not keeps(all_null, Not(Compare(">", A, literal(A, 0))))
    assert keeps('{"nullCount":{"a":3}}', IsNotNull(A))  # how many rows there are isn't known


def test_wide_bounds_hold_and_their_null_counts_say_only_all_or_none() -> None:
    text = LONGS.replace("}}", '},"tightBounds":false}').replace('"a":0', '"a":1')
    assert not keeps(text, Compare(">", A, literal(A, 20)))
    assert keeps(text, IsNull(A))


def test_negation_never_turns_the_unknown_into_the_known() -> None:
    for unknown in (Opaque("f(a)"), Compare("<", A, literal(A, 15)), Constant(True)):
        assert keeps(None, Or((Not(unknown), Opaque("g(a)"))))
    assert keeps(None, Not(Opaque("f(a)")))
    assert keeps(LONGS, Not(Compare("<", A, literal(A, 15))))
    assert not keeps(LONGS, Not(Compare("<", A, literal(A, 21))))
    assert not keeps(LONGS, Not(And((Compare(">=", A, literal(A, 10)), Compare("<=", A, literal(A, 20))))))


def test_a_timestamp_may_be_later_than_its_bound_within_the_millisecond() -> None:
    text = stats.collect(
        pa.table({"t": pa.array([1_000_500, 1_999_999], pa.timestamp("us", "UTC"))}), [(T, StructField("t", TIMESTAMP))]
    )
    assert json.loads(text)["maxValues"]["t"] == "1970-01-01T00:00:01.999Z"

    def at(micros: int) -> pa.Scalar:
        return pa.scalar(micros, pa.timestamp("us", "UTC"))

    assert keeps(text, Compare("=", T, at(1_999_999)))
    assert keeps(text, Compare(">", T, at(1_999_000)))
    assert not keeps(text, Compare(">", T, at(1_999_999)))
    assert not keeps(text, Compare("<", T, at(1_000_000)))


def test_a_cut_string_bounds_what_it_was_cut_from() -> None:
    for high in ("ab", "ab\x7f"):  # with a tie-breaker and, as others write it, without
        text = json.dumps({"numRecords": 2, "minValues": {"s": "aa"}, "maxValues": {"s": high}, "nullCount": {"s": 0}})
        assert keeps(text, Compare("=", S, literal(S, "abz")))
        assert keeps(text, StartsWith(S, "ab"))
        assert not keeps(text, Compare("=", S, literal(S, "ac")))
        assert not keeps(text, StartsWith(S, "ac"))
        assert not keeps(text, Compare("<", S, literal(S, "aa")))
    long = "x" * 32
    text = json.dumps({"numRecords": 2, "minValues": {"s": long}, "maxValues": {"s": long}, "nullCount": {"s": 0}})
    assert keeps(text, Compare("!=", S, literal(S, long)))
    assert keeps(text, Compare("=", S, literal(S, long + "tail")))


def test_strings_are_ordered_by_their_utf8_and_not_by_utf16() -> None:
    text = json.dumps({"numRecords": 1, "minValues": {"s": "a"}, "maxValues": {"s": "\uffff"}, "nullCount": {"s": 0}})
    assert not keeps(text, Compare("=", S, literal(S, "\U0001f600")))  # a surrogate pair, yet greater


def test_starts_with_negated_needs_every_text_to_have_the_prefix() -> None:
    text = '{"numRecords":2,"minValues":{"s":"abc"},"maxValues":{"s":"abx"},"nullCount":{"s":0}}'
    assert not keeps(text, Not(StartsWith(S, "ab")))
    assert keeps(text, Not(StartsWith(S, "abc")))


def test_nan_is_greater_than_any_number_and_no_maximum_tells_of_it() -> None:
    text = '{"numRecords":9,"minValues":{"d":1.0},"maxValues":{"d":2.0},"nullCount":{"d":0}}'
    assert keeps(text, Compare(">", D, literal(D, 5.0)))
    assert keeps(text, Compare("=", D, literal(D, math.nan)))
    assert keeps(text, Not(Compare("<=", D, literal(D, 5.0))))
    assert not keeps(text, Compare("=", D, literal(D, 5.0)))
    assert not keeps(text, Compare("<", D, literal(D, 1.0)))
    # A NaN is above 5 and a number below 10, but no row is both.
    assert not keeps(text, And((Compare(">=", D, literal(D, 5.0)), Compare("<", D, literal(D, 10.0)))))


def test_long_lists_are_searched() -> None:
    def listed(values: range) -> Predicate:
        return In(A, tuple(literal(A, value) for value in values))

    assert not keeps(LONGS, listed(range(21, 121)))
    assert not keeps(LONGS, Or((listed(range(-100, 10)), listed(range(21, 121)))))
    assert keeps(LONGS, listed(range(20, 121)))
    assert keeps(LONGS, listed(range(-100, 11)))
    assert keeps(LONGS, Not(listed(range(21, 121))))


def test_a_literal_that_does_not_fit_the_column_says_nothing() -> None:
    assert keeps(LONGS, Compare("=", A, pa.scalar(99.5)))
    assert keeps(LONGS, Compare("=", A, pa.scalar("99")))
    assert not keeps(LONGS, Compare("=", A, pa.scalar(99, pa.int8())))


def test_nested_leaves_and_columns_without_bounds() -> None:
    text = '{"numRecords":2,"minValues":{"n":{"x":1}},"maxValues":{"n":{"x":2}},"nullCount":{"n":{"x":0,"l":7},"b":2}}'
    assert not keeps(text, Compare(">", ("n", "x"), literal(("n", "x"), 2)))
    assert keeps(text, Compare("=", ("n", "x"), literal(("n", "x"), 2)))
    assert not keeps(text, Compare("=", ("b",), pa.scalar(True)))  # all null
    assert keeps(text, IsNull(("n",)))
    assert keeps(text, IsNull(("n", "l")))


def test_without_statistics_only_partitions_prune() -> None:
    kept = may_match(
        one_file(LONGS), Compare("=", A, literal(A, 99)), SCHEMA, PARTITIONS, use_stats=False, time_zone="UTC"
    )
    assert kept.to_pylist() == [True]
    gone = And((Compare("=", A, literal(A, 99)), Compare("=", ("p",), pa.scalar("z"))))
    assert may_match(one_file(LONGS), gone, SCHEMA, PARTITIONS, use_stats=False, time_zone="UTC").to_pylist() == [False]


def test_partition_timestamps_take_the_time_zone_that_is_asked_for() -> None:
    schema = StructType((StructField("at", TIMESTAMP), StructField("a", LONG)))
    noon = Compare(
        "=", ("at",), pa.scalar(datetime.datetime(2024, 7, 1, 12, tzinfo=datetime.UTC), arrow_type(TIMESTAMP))
    )
    values = [[("at", text)] for text in ("2024-07-01 12:00:00", "2024-07-01T12:00:00.000000Z", "2024-07-01 05:00:00")]
    files = pa.table({"partitionValues": pa.array(values, pa.map_(pa.string(), pa.string()))})
    for zone, expected in (("UTC", [True, True, False]), ("America/Los_Angeles", [False, True, True])):
        kept = may_match(files, noon, schema, ["at"], use_stats=False, time_zone=zone)
        assert kept.to_pylist() == expected


def test_long_chains_cost_no_recursion() -> None:
    chain: Predicate = Compare("=", A, literal(A, 99))
    for value in range(3000):
        chain = Or((chain, Compare("=", A, literal(A, 100 + value))))
    assert not keeps(LONGS, chain)
    negated: Predicate = Compare(">", A, literal(A, 99))
    for _ in range(3001):
        negated = Not(negated)
    assert keeps(LONGS, negated)
    assert not keeps(LONGS, Not(negated))


def test_what_is_nested_too_deeply_is_unknown() -> None:
    deep: Predicate = Compare("=", ("p",), pa.scalar("z"))
    for _ in range(20_000):
        deep = And((Or((deep, Constant(False))), Constant(True)))
    assert keeps(LONGS, deep)


def test_an_empty_table_of_files() -> None:
    empty = one_file(None).slice(0, 0)
    assert may_match(empty, Compare("=", A, literal(A, 1)), SCHEMA, PARTITIONS, time_zone="UTC").to_pylist() == []


def test_every_type_that_has_bounds_is_judged() -> None:
    for name, low, high, out in (
        ("byte", 1, 2, 3), ("short", 1, 2, 3), ("integer", 1, 2, 3), ("long", 1, 2, 3), ("float", 1, 2, 0.5),
        ("double", 1, 2, 0.5), ("decimal(5,2)", 1, 2, Decimal("3.00")), ("decimal(38,10)", 1, 2, Decimal("3.0")),
        ("string", "a", "b", "c"), ("date", "2024-01-01", "2024-01-02", datetime.date(2024, 1, 3)),
        ("timestamp_ntz", "2024-01-01T00:00:00.000", "2024-01-02T00:00:00.000", datetime.datetime(2024, 1, 3)),
    ):  # fmt: skip
        kind = PrimitiveType(name)
        schema = StructType((StructField("c", kind),))
        text = json.dumps({"numRecords": 2, "minValues": {"c": low}, "maxValues": {"c": high}, "nullCount": {"c": 0}})
        predicate = Compare("=", ("c",), pa.scalar(out, arrow_type(kind)))
        assert may_match(one_file(text), predicate, schema, [], time_zone="UTC").to_pylist() == [False], name


def test_the_bounds_of_doubles_that_were_floats_are_taken_wider() -> None:
    """A float 0.1 is the double 0.10000000149, and its statistics say 0.1."""
    stats = '{"numRecords":1,"minValues":{"x":0.1},"maxValues":{"x":0.1},"nullCount":{"x":0}}'
    files = pa.table({"partitionValues": pa.array([[]], pa.map_(pa.string(), pa.string())), "stats": [stats]})
    changes = {"delta.typeChanges": [{"fromType": "float", "toType": "double"}]}
    for metadata, kept in ((changes, True), ({}, False)):
        schema = StructType((StructField("x", DOUBLE, True, metadata),))
        for op, value in (("=", 0.10000000149011612), ("<", 0.1)):
            predicate = Compare(op, ("x",), pa.scalar(value))  # type: ignore[arg-type]
            assert may_match(files, predicate, schema, (), time_zone="UTC").to_pylist() == [kept]
        assert not may_match(files, Compare("<", ("x",), pa.scalar(0.09)), schema, (), time_zone="UTC")[0].as_py()
