"""No file that is pruned holds a row that matches, whoever wrote its statistics; and what can be pruned is."""

import datetime
import json
import math
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tablelog.core.protocol import partition_values
from tablelog.core.protocol.schema import (
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    ArrayType,
    PrimitiveType,
    StructField,
    StructType,
    arrow_schema,
    arrow_type,
    decimal,
    find,
    indexed_leaves,
)
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
from tablelog.core.skipping.pruning import exact_partition_match, may_match, may_match_values
from tablelog.errors import InvalidArgumentError

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


# --- the oracle: rows, one by one, as Spark evaluates them ---------------------------------------------------------


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


# --- generated tables ---------------------------------------------------------------------------------------------


def maybe(values: list[Any]) -> st.SearchStrategy[Any]:
    return st.none() | st.sampled_from(values)


rows = st.fixed_dictionaries(
    {name: maybe(POOLS[(name,)]) for name in ("a", "s", "d", "f", "t", "day", "m", "big", "b")}
    | {"n": st.none() | st.fixed_dictionaries({"x": maybe(POOLS["n", "x"]), "l": st.none() | st.just([1])})}
)
zones = st.sampled_from(["UTC", "America/New_York", "Asia/Kolkata", "Pacific/Apia"])
files = st.lists(
    st.tuples(
        st.fixed_dictionaries(
            {
                "p": maybe(POOLS[("p",)]),
                "q": maybe(POOLS[("q",)]),
                "z": maybe(POOLS[("z",)]),
                "zone named": st.booleans(),
            }
        ),
        st.lists(rows, max_size=3),
        st.sampled_from(["ours", "short strings", "spark", "no NaN seen", "wide", "rounded", "none", "broken"]),
    ),
    min_size=1,
    max_size=4,
)


def statistics(kind: str, held: list[dict[str, Any]]) -> str | None:
    """Statistics of one file as different writers leave them."""
    data = pa.Table.from_pylist(held, schema=arrow_schema(DATA))
    ours = stats.collect(data, LEAVES, prefix=3 if kind == "short strings" else 32)
    if kind == "none":
        return None
    if kind == "broken":
        return ours[: len(ours) // 2]
    value = json.loads(ours, parse_float=Decimal)
    if kind == "wide":
        value["tightBounds"] = False
        value["nullCount"] = {
            name: count if isinstance(count, dict) or count == 0 or count + 1 >= value["numRecords"] else count + 1
            for name, count in value["nullCount"].items()
        }
        value["nullCount"]["n"] = {}
    for name in ("d", "f"):
        numbers = [row[name] for row in held if row[name] is not None and not math.isnan(row[name])]
        if kind == "no NaN seen" and numbers and all(map(math.isfinite, numbers)):
            value.setdefault("maxValues", {})[name] = max(numbers)
        if kind == "spark" and any(row[name] is not None and math.isnan(row[name]) for row in held):
            value.setdefault("maxValues", {})[name] = "NaN"
    text = json.dumps(value, default=lambda number: f"#{number:f}#")
    if kind == "rounded":
        text = json.dumps(value, default=lambda number: f"#{float(number)!r}#")
    return text.replace('"#', "").replace('#"', "")


def text_of(values: dict[str, Any], name: str, zone: str) -> str | None:
    """A partition value as the log spells it; a timestamp names no zone unless `zone named` says so."""
    if name == "z" and values["z"] is not None and not values["zone named"]:
        local: datetime.datetime = values["z"].astimezone(ZoneInfo(zone))
        return local.strftime("%Y-%m-%d %H:%M:%S")
    types = {"p": STRING, "q": DOUBLE, "z": TIMESTAMP}
    return partition_values.serialise_value(values[name], types[name])


def table(generated: list[tuple[dict[str, Any], list[dict[str, Any]], str]], form: str, zone: str) -> pa.Table:
    texts = pa.array([statistics(kind, held) for _, held, kind in generated], pa.string())
    partitions = [[(name, text_of(values, name, zone)) for name in PARTITIONS] for values, _, _ in generated]
    columns = {"partitionValues": pa.array(partitions, pa.map_(pa.string(), pa.string()))}
    if form in ("text", "both"):
        columns["stats"] = texts
    if form in ("struct", "both"):
        tree = stats.tree([(name, f.data_type) for name, f in LEAVES])
        columns["stats_parsed"] = stats.parse_json(texts, tree).combine_chunks()
    return pa.table(columns)


def compares() -> st.SearchStrategy[Predicate]:
    return st.sampled_from(sorted(POOLS)).flatmap(
        lambda column: st.one_of(
            st.builds(
                Compare,
                st.sampled_from(["=", "!=", "<", "<=", ">", ">=", "<=>"]),
                st.just(column),
                maybe(POOLS[column]).map(lambda value: literal(column, value)),
            ),
            st.builds(
                In,
                st.just(column),
                st.lists(maybe(POOLS[column]), max_size=3).map(
                    lambda values: tuple(literal(column, value) for value in values)
                ),
            ),
            st.builds(IsNull, st.just(column)),
            st.builds(IsNotNull, st.just(column)),
        )
    )


starts = st.builds(StartsWith, st.sampled_from([("s",), ("p",)]), st.sampled_from(["", "a", "abc", "abcd", "é", "z"]))
leaf = compares() | starts | st.builds(Constant, st.sampled_from([True, False, None]))
predicates = st.recursive(
    leaf,
    lambda inner: (
        st.builds(And, st.lists(inner, max_size=3).map(tuple))
        | st.builds(Or, st.lists(inner, max_size=3).map(tuple))
        | st.builds(Not, inner)
    ),
    max_leaves=5,
)


@settings(max_examples=250)
@given(files, predicates, st.sampled_from(["text", "struct", "both", "neither"]), zones)
def test_a_pruned_file_holds_no_row_that_matches(generated: Any, predicate: Predicate, form: str, zone: str) -> None:
    kept = may_match(table(generated, form, zone), predicate, SCHEMA, PARTITIONS, time_zone=zone).to_pylist()
    for keep, (values, held, kind) in zip(kept, generated, strict=True):
        # The log can't tell the empty string from null.
        values = {"p": values["p"] or None, "q": values["q"], "z": values["z"]}
        matching = [row for row in held if evaluate(predicate, values | row) is True]
        assert keep or not matching, (kind, statistics(kind, held), matching)


@settings(max_examples=120)
@given(files, predicates, zones)
def test_partition_predicates_are_decided_exactly(generated: Any, predicate: Predicate, zone: str) -> None:
    def only_partitions(node: Predicate) -> Predicate:
        match node:
            case And(children):
                return And(tuple(only_partitions(child) for child in children))
            case Or(children):
                return Or(tuple(only_partitions(child) for child in children))
            case Not(child):
                return Not(only_partitions(child))
            case Constant():
                return node
            case _:
                return node if node.column[0] in PARTITIONS else Constant(None)

    chosen = only_partitions(predicate)
    files = table(generated, "neither", zone)
    found = exact_partition_match(files, chosen, SCHEMA, PARTITIONS, time_zone=zone).to_pylist()
    rows = [{"p": values["p"] or None, "q": values["q"], "z": values["z"]} for values, _, _ in generated]
    expected = [evaluate(chosen, row) is True for row in rows]
    assert found == expected


# --- what can be pruned is ----------------------------------------------------------------------------------------


def one_file(text: str | None, schema: StructType = SCHEMA) -> pa.Table:
    return pa.table(
        {
            "partitionValues": pa.array([[("p", "a"), ("q", "1.5")]], pa.map_(pa.string(), pa.string())),
            "stats": pa.array([text], pa.string()),
        }
    )


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
    values = [{"at": "2024-07-01 12:00:00"}, {"at": "2024-07-01T12:00:00.000000Z"}, {"at": "2024-07-01 05:00:00"}]
    assert may_match_values(values, noon, schema, ["at"], time_zone="UTC") == [True, True, False]
    assert may_match_values(values, noon, schema, ["at"], time_zone="America/Los_Angeles") == [False, True, True]


def test_an_exact_match_is_refused_where_rows_decide() -> None:
    for predicate in (IsNull(A), Opaque("rand() < 0.5"), And((IsNull(("p",)), IsNull(A)))):
        with pytest.raises(InvalidArgumentError):
            exact_partition_match(one_file(None), predicate, SCHEMA, PARTITIONS, time_zone="UTC")


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


def test_what_is_nested_too_deeply_is_unknown_and_never_exact() -> None:
    deep: Predicate = Compare("=", ("p",), pa.scalar("z"))
    for _ in range(20_000):
        deep = And((Or((deep, Constant(False))), Constant(True)))
    assert keeps(LONGS, deep)
    with pytest.raises(InvalidArgumentError, match="deep"):
        exact_partition_match(one_file(LONGS), deep, SCHEMA, PARTITIONS, time_zone="UTC")


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


# --- values at the ends of their types ----------------------------------------------------------------------------

ENDS: dict[PrimitiveType, tuple[pa.DataType, list[int]]] = {
    DATE: (pa.int32(), [-(2**31), -719_163, 0, 2_932_897, 2**31 - 1]),
    TIMESTAMP: (pa.int64(), [-(2**63), -(2**63) + 1, -62_135_596_800_000_001, 0, 2**62, 2**63 - 1000, 2**63 - 1]),
    TIMESTAMP_NTZ: (pa.int64(), [-(2**63), -(2**63) + 999, 0, 253_402_300_800_000_000, 2**63 - 1]),
}


@settings(max_examples=150)
@given(
    st.sampled_from(list(ENDS)).flatmap(
        lambda kind: st.tuples(
            st.just(kind),
            st.lists(st.none() | st.sampled_from(ENDS[kind][1]), max_size=3),
            st.lists(st.sampled_from(ENDS[kind][1]), min_size=1, max_size=40),
        )
    ),
    st.sampled_from(["=", "!=", "<", "<=", ">", ">=", "in"]),
    st.sampled_from(["text", "struct"]),
)
def test_no_year_is_too_far(case: Any, op: Any, form: str) -> None:
    kind, held, literals = case
    raw = ENDS[kind][0]
    schema = StructType((StructField("v", kind),))
    data = pa.table({"v": pa.array(held, raw).cast(arrow_type(kind))})
    texts = pa.array([stats.collect(data, indexed_leaves(schema, ()))], pa.string())
    columns: dict[str, Any] = {"partitionValues": pa.array([[]], pa.map_(pa.string(), pa.string()))}
    if form == "text":
        columns["stats"] = texts
    else:
        columns["stats_parsed"] = stats.parse_json(texts, stats.tree([(("v",), kind)])).combine_chunks()
    scalars = tuple(pa.array(literals, raw).cast(arrow_type(kind)))
    predicate: Predicate = In(("v",), scalars) if op == "in" else Compare(op, ("v",), scalars[0])
    first = literals[0]
    holds = {
        "=": lambda v: v == first, "!=": lambda v: v != first, "<": lambda v: v < first, "<=": lambda v: v <= first,
        ">": lambda v: v > first, ">=": lambda v: v >= first, "in": lambda v: v in literals,
    }[op]  # fmt: skip
    kept = may_match(pa.table(columns), predicate, schema, (), time_zone="UTC")[0].as_py()
    assert kept or not any(holds(value) for value in held if value is not None)


@settings(max_examples=150)
@given(
    st.lists(st.sampled_from([b"a", b"b", b"\xff", b"\xc0", b"b\xff", "à".encode(), "\ufffd".encode()]), min_size=1),
    st.sampled_from(["a", "b", "à", "c", "\ufffd"]),
    st.sampled_from(["=", "<", ">", "<=", ">=", "!="]),
    st.booleans(),
)
def test_strings_that_are_no_text(held: list[bytes], literal_text: str, op: Any, foreign: bool) -> None:
    """Spark lets any bytes be a string; other writers put U+FFFD into the statistics for what is no UTF-8."""
    schema = StructType((StructField("s", STRING),))
    if foreign:
        low, high = (bound.decode(errors="replace") for bound in (min(held), max(held)))
        text = json.dumps(
            {"numRecords": len(held), "minValues": {"s": low}, "maxValues": {"s": high}, "nullCount": {"s": 0}}
        )
    else:
        data = pa.table({"s": pa.array(held, pa.binary()).view(pa.string())})
        text = stats.collect(data, indexed_leaves(schema, ()))
    other = literal_text.encode()
    holds = {
        "=": lambda v: v == other, "!=": lambda v: v != other, "<": lambda v: v < other, "<=": lambda v: v <= other,
        ">": lambda v: v > other, ">=": lambda v: v >= other,
    }[op]  # fmt: skip
    predicate = Compare(op, ("s",), pa.scalar(literal_text))
    kept = may_match(one_file(text, schema), predicate, schema, (), time_zone="UTC")[0].as_py()
    assert kept or not any(map(holds, held))
