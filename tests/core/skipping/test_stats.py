"""Statistics: written as Delta writes them, read from text and from structs, and never an error."""

import datetime
import json
import math
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tablelog.core.protocol.actions import AddFile, Metadata
from tablelog.core.protocol.codec import parse_commit
from tablelog.core.protocol.schema import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    ArrayType,
    StructField,
    StructType,
    arrow_schema,
    decimal,
    indexed_leaves,
    parse_schema,
)
from tablelog.core.skipping import stats
from tablelog.core.skipping.stats import ColumnStats, collect, stats_json
from tablelog.core.skipping.stats_writer import truncate_max, truncate_min

UTC = datetime.UTC
TOP = "\U0010ffff"


def units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


# --- truncation ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("", "", ""),
        ("abc", "abc", "abc"),
        ("abcd", "abc", "abc\x7f"),
        ("abc\x7fd", "abc", f"abc{TOP}"),
        ("abcé", "abc", f"abc{TOP}"),
        (f"abc{TOP}d", "abc", f"abc{TOP}\x7f"),
        (f"abc{TOP}", "abc", f"abc{TOP}"),
        (f"abc{TOP}{TOP}{TOP}", "abc", None),
        ("ab\U0001f600d", "ab\U0001f600", "ab\U0001f600\x7f"),
        ("\U0001f600\U0001f601\U0001f602", "\U0001f600\U0001f601", f"\U0001f600\U0001f601{TOP}"),
    ],
)
def test_strings_are_cut_with_a_tie_breaker(text: str, low: str, high: str | None) -> None:
    assert truncate_min(text, 3) == low
    assert truncate_max(text, 3) == high


@settings(max_examples=400)
@given(st.text(st.sampled_from(["a", "\x7f", "é", "\uffff", "\U0001f600", TOP]), max_size=12), st.integers(0, 6))
def test_a_cut_bound_still_bounds(text: str, length: int) -> None:
    low, high = truncate_min(text, length), truncate_max(text, length)
    assert low is None or (
        text.startswith(low) and units(low) <= max(length + 1, units(text) if units(text) <= length else 0)
    )
    assert high is None or text.encode() <= high.encode()
    if units(text) <= length:
        assert low == high == text
    elif length == 0:
        assert low is None
        assert high is None


# --- writing ------------------------------------------------------------------------------------------------------


def test_the_text_is_deltas() -> None:
    text = stats_json(
        3,
        [
            ColumnStats(("i",), INTEGER, -1, 5, 0),
            ColumnStats(("s",), STRING, "a\"b", "x" * 40, 1),
            ColumnStats(("n", "d"), DATE, datetime.date(2024, 1, 2), datetime.date(12, 3, 4), 0),
            ColumnStats(("n", "t"), TIMESTAMP, datetime.datetime(2024, 1, 1, 1, 2, 3, 999_999, tzinfo=UTC), -1, 0),
            ColumnStats(("z",), TIMESTAMP_NTZ, datetime.datetime(2024, 1, 1), 1_999, 0),
            ColumnStats(("m",), decimal(20, 2), Decimal("-0.10"), Decimal("123456789012345678.90"), 0),
            ColumnStats(("f",), FLOAT, float(pa.scalar(0.1, pa.float32()).as_py()), 1e10, 0),
            ColumnStats(("d",), DOUBLE, -0.0, math.inf, 0),
            ColumnStats(("e",), DOUBLE, math.nan, None, 3),
            ColumnStats(("b",), BOOLEAN, False, True, 0),
            ColumnStats(("y",), BINARY, b"a", b"b", 2),
            ColumnStats(("l",), ArrayType(LONG), null_count=1),
            ColumnStats(("u",), LONG),
        ],
    )  # fmt: skip
    assert text == (
        '{"numRecords":3,'
        '"minValues":{"i":-1,"s":"a\\"b","n":{"d":"2024-01-02","t":"2024-01-01T01:02:03.999Z"},'
        '"z":"2024-01-01T00:00:00.000","m":-0.10,"f":0.1,"d":-0.0},'
        '"maxValues":{"i":5,"s":"' + "x" * 32 + '\x7f","n":{"d":"0012-03-04","t":"1969-12-31T23:59:59.999Z"},'
        '"z":"1970-01-01T00:00:00.001","m":123456789012345678.90,"f":1.0E10},'
        '"nullCount":{"i":0,"s":1,"n":{"d":0,"t":0},"z":0,"m":0,"f":0,"d":0,"e":3,"b":0,"y":2,"l":1}}'
    )
    assert stats_json(0, []) == '{"numRecords":0}'
    assert stats_json(2, [], tight_bounds=True) == '{"numRecords":2,"tightBounds":true}'


SCHEMA = StructType(
    (
        StructField("a", LONG),
        StructField("s", STRING),
        StructField("d", DOUBLE),
        StructField("t", TIMESTAMP),
        StructField("m", decimal(20, 5)),
        StructField("n", StructType((StructField("x", INTEGER), StructField("when", DATE), StructField("b", BOOLEAN)))),
        StructField("l", ArrayType(LONG)),
    )
)
LEAVES = indexed_leaves(SCHEMA, [])
TREE = stats.tree([(name, f.data_type) for name, f in LEAVES])


def test_statistics_are_computed_from_rows() -> None:
    data = pa.Table.from_pylist(
        [
            {"a": 1, "s": "b", "d": math.nan, "n": {"x": 1, "when": datetime.date(2024, 1, 1), "b": True}, "l": [1]},
            {"a": None, "s": "a", "d": 2.0, "n": None, "l": None},
            {"a": 3, "s": None, "d": 1.0, "n": {"x": None, "when": None, "b": None}, "l": [None]},
        ],
        schema=arrow_schema(SCHEMA),
    )
    found = json.loads(collect(data.drop_columns(["m"]), LEAVES))
    assert found == {
        "numRecords": 3,
        "minValues": {"a": 1, "s": "a", "d": 1.0, "n": {"x": 1, "when": "2024-01-01"}},
        "maxValues": {"a": 3, "s": "b", "n": {"x": 1, "when": "2024-01-01"}},
        "nullCount": {"a": 1, "s": 1, "d": 0, "t": 3, "m": 3, "n": {"x": 2, "when": 2, "b": 2}, "l": 1},
    }


# --- reading ------------------------------------------------------------------------------------------------------

rows = st.lists(
    st.fixed_dictionaries(
        {
            "a": st.none() | st.integers(-(2**63), 2**63 - 1),
            "s": st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=4),
            "d": st.none() | st.floats(allow_nan=False, allow_infinity=False),
            "t": st.none() | st.datetimes(timezones=st.just(UTC)),
            "m": st.none() | st.decimals(-(10**14), 10**14, places=5),
            "n": st.none()
            | st.fixed_dictionaries(
                {"x": st.none() | st.integers(-5, 5), "when": st.none() | st.dates(), "b": st.none() | st.booleans()}
            ),
            "l": st.none() | st.just([1]),
        }
    ),
    max_size=4,
)


def bound(values: list[Any], pick: Callable[..., Any]) -> Any:
    """Text by its UTF-8, timestamps cut to milliseconds."""
    held = [value for value in values if value is not None]
    if not held:
        return None
    found = pick(held, key=lambda value: value.encode() if isinstance(value, str) else value)
    if isinstance(found, datetime.datetime):
        return found.replace(microsecond=found.microsecond // 1000 * 1000)
    return found


@settings(max_examples=100)
@given(st.lists(rows, min_size=1, max_size=3), st.booleans())
def test_what_is_written_is_read_back_exactly(files: list[list[dict[str, Any]]], from_struct: bool) -> None:
    texts = pa.array([collect(pa.Table.from_pylist(held, schema=arrow_schema(SCHEMA)), LEAVES) for held in files])
    table = pa.table({"stats_parsed": stats.parse_json(texts, TREE)} if from_struct else {"stats": texts})
    names = [name for name, _ in LEAVES]
    found = stats.read(table, names, SCHEMA)
    assert found.num_records.to_pylist() == [len(held) for held in files]
    for name in names:
        leaf = found.leaves[name]
        values = [
            [row[name[0]] if len(name) == 1 else (row[name[0]] or {}).get(name[1]) for row in held] for held in files
        ]
        assert leaf.null_count is not None
        assert leaf.null_count.to_pylist() == [sum(value is None for value in held) for held in values]
        if leaf.min is None:
            assert name in {("l",), ("n", "b")}
            continue

        assert leaf.min.to_pylist() == [bound(held, min) for held in values]
        assert leaf.max is not None
        assert leaf.max.to_pylist() == [bound(held, max) for held in values]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just("2024-01-01"),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["a", "s", "d", "t", "m", "n", "x", "when", "b", "l"]), inner, max_size=5)
    ),
    max_leaves=8,
)
any_stats = st.fixed_dictionaries(
    {},
    optional=dict.fromkeys(("numRecords", "minValues", "maxValues", "nullCount", "tightBounds"), json_values),
).map(json.dumps)  # fmt: skip
GOOD = '{"numRecords":7,"minValues":{"a":1},"maxValues":{"a":2},"nullCount":{"a":0}}'


@settings(max_examples=200)
@given(st.lists(st.none() | any_stats | st.text(max_size=10) | st.just("\n{}"), max_size=5))
def test_a_bad_text_is_unknown_and_leaves_its_neighbours_alone(texts: list[str | None]) -> None:
    column = [GOOD, *[text for other in texts for text in (other, GOOD)]]
    try:
        array = pa.array(column, pa.string())
    except UnicodeEncodeError:
        return
    found = stats.read(pa.table({"stats": array}), [("a",), ("d",), ("t",), ("m",), ("n", "x")], SCHEMA)
    a = found.leaves[("a",)]
    assert a.min is not None
    for i, text in enumerate(column):
        if text == GOOD:
            assert (found.num_records[i].as_py(), a.min[i].as_py()) == (7, 1)
        if text is None:
            assert found.num_records[i].as_py() is None


@pytest.mark.parametrize(
    ("text", "records", "low"),
    [
        (None, None, None), ("", None, None), ("[]", None, None), ("{", None, None), ("3", None, None),
        (GOOD + GOOD, None, None), ('{"numRecords":"7"}', 7, None), ('{"numRecords":7.0}', 7, None),
        ('{"numRecords":7.5}', None, None), ('{"numRecords":7,"minValues":[1]}', 7, None),
        ('{"numRecords":7,"minValues":{"a":"1"}}', 7, 1), ('{"numRecords":7,"minValues":{"a":1e3}}', 7, 1000),
        ('{"numRecords":7,"minValues":{"a":9223372036854775808}}', 7, None),
        # A double rounds integers from 2^53 on, so such a minimum may be too large.
        ('{"numRecords":7,"minValues":{"a":9007199254740991.0}}', 7, 2**53 - 1),
        ('{"numRecords":7,"minValues":{"a":9007199254740992.0}}', 7, None),
        ('{"numRecords":7,"minValues":{"a":9.3e17}}', 7, None),
        ('{"numRecords":7,"minValues":{"a":9007199254740995}}', 7, 2**53 + 3),
        ('{"numRecords":true,"minValues":{"a":true}}', None, None), (f"  {GOOD}\n", 7, 1),
        (GOOD.replace(",", ",\n  "), 7, 1), ('{"numRecords":7,"minValues":{"a":1,"d":"NaN"}}', 7, 1),
        ('{"numRecords":7,"minValues":{"a":1,"d":NaN}}', 7, 1),
        ('{"numRecords":7,"minValues":{"a":1,"other":{}}}', 7, 1),
        # Numbers that would be integers of a billion digits, and beyond what a decimal can be.
        ('{"numRecords":7,"minValues":{"a":1e999999999}}', 7, None), ('{"numRecords":"1e999999999"}', None, None),
        ('{"numRecords":7,"minValues":{"a":1e99999999999999999999}}', 7, None),
        ('{"numRecords":7,"minValues":{"d":1e99999999999999999999,"a":1}}', 7, 1),
        ('{"numRecords":7,"minValues":{"a":1},"more":' + "[" * 5000 + "]" * 5000 + "}", 7, 1),
    ],
)  # fmt: skip
def test_texts_of_all_kinds(text: str | None, records: int | None, low: int | None) -> None:
    found = stats.read(pa.table({"stats": pa.array([GOOD, text, GOOD])}), [("a",), ("d",)], SCHEMA)
    assert found.num_records.to_pylist() == [7, records, 7]
    a = found.leaves[("a",)]
    assert a.min is not None
    assert a.min.to_pylist() == [1, low, 1]


@pytest.mark.parametrize(
    "low", ["x:NaN,y", "x: Infinity}", ":-INF,", 'x":NaN,', "\\:NaN,", "NaN", "x:NaN", "NaN,", "-Infinity}"]
)
def test_a_text_that_looks_like_a_number_that_is_none_is_not_changed(low: str) -> None:
    """A changed bound could be after the text that it bounds, and the file would be left out."""
    text = json.dumps({"numRecords": 7, "minValues": {"s": low, "d": "NaN"}}, separators=(",", ":"))
    for texts in ([text], [GOOD, text], [text, GOOD.replace("}", ',"d":NaN}', 1)]):
        leaf = stats.read(pa.table({"stats": texts}), [("s",), ("d",)], SCHEMA).leaves[("s",)]
        assert leaf.min is not None
        assert leaf.min[texts.index(text)].as_py() in (low, None)


@pytest.mark.parametrize("low", ['"-Infinity,"x":"y"', '"NaN', 'NaN"'])
def test_a_quotation_mark_that_is_missing_makes_a_text_invalid(low: str) -> None:
    text = f'{{"numRecords":3,"minValues":{{"a":1,"d":{low},"e":2}}}}'
    with pytest.raises(json.JSONDecodeError):
        json.loads(text)
    found = stats.read(pa.table({"stats": [GOOD, text]}), [("a",), ("d",)], SCHEMA)
    assert found.num_records.to_pylist() == [7, None]


def one(column: str, low: Any, schema: StructType = SCHEMA) -> Any:
    text = json.dumps({"numRecords": 1, "minValues": {column: low}})
    leaf = stats.read(pa.table({"stats": [text]}), [(column,)], schema).leaves[(column,)]
    assert leaf.min is not None
    return leaf.min[0].as_py()


def test_timestamps_in_every_form_that_writers_use() -> None:
    nine = datetime.datetime(2024, 1, 1, 9, tzinfo=UTC)
    for text in ("2024-01-01T09:00:00.000Z", "2024-01-01T01:00:00.000-08:00", "2024-01-01T14:30:00+05:30",
                 "2024-01-01T09:00:00Z", "2024-01-01 09:00:00+00:00", "2024-01-01T10:00:00+0100"):  # fmt: skip
        assert one("t", text) == nine, text
    assert one("t", "2024-01-01T09:00:00.000") is None  # in a zone that nobody tells
    assert one("t", "1880-01-01T00:00:00.000-07:52") is None  # the seconds of its offset were cut off
    assert one("t", "soon") is None
    local = StructType((StructField("t", TIMESTAMP_NTZ),))
    assert one("t", "2024-01-01T09:00:00.000", local) == datetime.datetime(2024, 1, 1, 9)
    assert one("t", "2024-01-01T09:00:00.000Z", local) == datetime.datetime(2024, 1, 1, 9)


def test_decimals_are_exact() -> None:
    big = StructType((StructField("m", decimal(38, 10)),))
    text = '{"numRecords":1,"minValues":{"m":1234567890123456789012345678.0123456789}}'
    leaf = stats.read(pa.table({"stats": [text]}), [("m",)], big).leaves[("m",)]
    assert leaf.min is not None
    assert leaf.min[0].as_py() == Decimal("1234567890123456789012345678.0123456789")


def test_the_struct_is_taken_where_there_is_one_and_the_text_where_there_is_none() -> None:
    parsed = stats.parse_json(pa.array([GOOD, None, None]), TREE)
    other = GOOD.replace("7", "9")
    found = stats.read(pa.table({"stats": [other, other, None], "stats_parsed": parsed}), [("a",)], SCHEMA)
    assert found.num_records.to_pylist() == [7, 9, None]
    # A checkpoint's struct may lack a column that the text has, or hold it in another width.
    narrow = pa.array([{"numRecords": 7, "minValues": {"a": 1}}], pa.struct(
        [("numRecords", pa.int64()), ("minValues", pa.struct([("a", pa.int32())]))]
    ))  # fmt: skip
    text = '{"numRecords":7,"minValues":{"a":1,"s":"x"},"nullCount":{"a":0,"s":1}}'
    found = stats.read(pa.table({"stats": [text], "stats_parsed": narrow}), [("a",), ("s",)], SCHEMA)
    a, s = found.leaves[("a",)], found.leaves[("s",)]
    assert a.min is not None
    assert s.min is not None
    assert s.null_count is not None
    assert (a.min[0].as_py(), a.min.type, s.min[0].as_py(), s.null_count[0].as_py()) == (1, pa.int64(), "x", 1)


def test_a_timestamp_of_a_struct_is_taken_unless_it_may_have_wrapped() -> None:
    for unit, zone, known in (("us", "UTC", True), ("us", None, True), ("ms", "UTC", True), ("ns", None, False)):
        bounds = pa.array([{"t": datetime.datetime(2024, 1, 1)}], pa.struct([("t", pa.timestamp(unit))]))
        bounds = bounds.cast(pa.struct([("t", pa.timestamp(unit, zone))]))
        parsed = pa.StructArray.from_arrays([bounds], names=["maxValues"])
        leaf = stats.read(pa.table({"stats_parsed": parsed}), [("t",)], SCHEMA).leaves[("t",)]
        assert leaf.max is not None
        assert leaf.max.to_pylist() == [datetime.datetime(2024, 1, 1, tzinfo=UTC) if known else None]


def test_without_statistics_all_is_unknown() -> None:
    found = stats.read(pa.table({"path": ["a", "b"]}), [("a",), ("gone",), ("n",)], SCHEMA)
    assert found.num_records.to_pylist() == [None, None]
    assert found.wide.to_pylist() == [False, False]
    assert set(found.leaves) == {("a",)}


def test_bounds_of_a_file_with_a_deletion_vector_are_wide() -> None:
    texts = ['{"tightBounds":false}', '{"tightBounds":true}', "{}"]
    assert stats.read(pa.table({"stats": texts}), [], SCHEMA).wide.to_pylist() == [True, False, False]


def test_many_files_with_some_bad_texts() -> None:
    texts = [GOOD] * 20_000
    for i in (0, 777, 19_999):
        texts[i] = '{"numRecords":oops}'
    found = stats.read(pa.table({"stats": pa.chunked_array([texts[:9_000], texts[9_000:]])}), [("a",)], SCHEMA)
    known = found.num_records.to_pylist()
    assert [i for i, value in enumerate(known) if value is None] == [0, 777, 19_999]
    assert set(known) == {7, None}


def test_the_statistics_of_the_corpora_are_read(golden: Callable[[str], Path], dat: Callable[[str], Path]) -> None:
    """Vectorised reading agrees with a plain reading of each text."""
    seen = 0
    for root in (golden(""), dat("")):
        for log in sorted(root.rglob("_delta_log")):
            metadata: Metadata | None = None
            adds: list[AddFile] = []
            for commit in sorted(log.glob("*.json")):
                for action in parse_commit(commit.read_bytes()):
                    if isinstance(action, Metadata):
                        metadata, adds = action, []
                    elif isinstance(action, AddFile) and action.stats:
                        adds.append(action)
            if metadata is None or not adds or "columnMapping" in str(metadata.configuration):
                continue
            leaves = indexed_leaves(parse_schema(metadata.schema_string), metadata.partition_columns)
            tree = stats.tree([(name, f.data_type) for name, f in leaves])
            found = stats.parse_json(pa.array([add.stats for add in adds]), tree).to_pylist()
            for add, parsed in zip(adds, found, strict=True):
                plain = json.loads(add.stats or "")
                assert parsed["numRecords"] == plain["numRecords"]
                for name, _ in leaves:
                    count, expected = parsed["nullCount"], plain.get("nullCount", {})
                    for part in name:
                        count = (count or {}).get(part)
                        expected = (expected or {}).get(part)
                    assert count == expected, (log, name)
                for kind in ("minValues", "maxValues"):
                    for name, value in (parsed.get(kind) or {}).items():
                        assert (value is None) == (plain.get(kind, {}).get(name) is None), (log, name)
                seen += 1
    assert seen > 50
