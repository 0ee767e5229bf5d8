"""Partition values: the strings that Delta writes, those that it reads, and nothing in between lost."""

import datetime
import math
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tablelog.core.protocol.actions import AddFile, Metadata
from tablelog.core.protocol.codec import parse_commit
from tablelog.core.protocol.partition_values import (
    column_of,
    date_text,
    days_of,
    float_text,
    parse_date,
    parse_timestamp,
    serialise,
    serialise_value,
    typed,
    typed_columns,
    typed_value,
)
from tablelog.core.protocol.schema import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    PrimitiveType,
    StructField,
    StructType,
    arrow_type,
    decimal,
    parse_schema,
)
from tablelog.errors import ConstraintViolationError, CorruptLogError, InvalidArgumentError

UTC = datetime.UTC


def read(text: str | None, data_type: PrimitiveType, **how: str) -> Any:
    value = typed_value(text, data_type, **{"time_zone": "UTC", **how})
    assert value.type == arrow_type(data_type)
    return value.as_py()


@pytest.mark.parametrize(
    ("data_type", "text", "value"),
    [
        (STRING, "a/b=%c é", "a/b=%c é"), (STRING, "null", "null"), (STRING, " ", " "),
        (BYTE, "-128", -128), (SHORT, "32767", 32767), (INTEGER, "-5", -5), (LONG, "9223372036854775807", 2**63 - 1),
        (FLOAT, "1.5", 1.5), (DOUBLE, "1.0E10", 1e10), (DOUBLE, "-Infinity", -math.inf), (DOUBLE, "1", 1.0),
        (decimal(10, 2), "1.50", Decimal("1.50")), (decimal(10, 2), "0", Decimal("0.00")),
        (decimal(38, 0), "9" * 38, Decimal("9" * 38)), (decimal(5, 1), "1E+2", Decimal("100.0")),
        (BOOLEAN, "true", True), (BOOLEAN, "FALSE", False), (BINARY, "\x01\x02é", b"\x01\x02\xc3\xa9"),
        (DATE, "2021-09-08", datetime.date(2021, 9, 8)), (DATE, "0001-01-01", datetime.date(1, 1, 1)),
        (TIMESTAMP, "2021-09-08 11:11:11", datetime.datetime(2021, 9, 8, 11, 11, 11, tzinfo=UTC)),
        (TIMESTAMP, "2021-09-08 11:11:11.5", datetime.datetime(2021, 9, 8, 11, 11, 11, 500_000, tzinfo=UTC)),
        (TIMESTAMP, "2021-09-08T11:11:11.123456Z", datetime.datetime(2021, 9, 8, 11, 11, 11, 123_456, tzinfo=UTC)),
        (TIMESTAMP, "2021-09-08T11:11:11+02:00", datetime.datetime(2021, 9, 8, 9, 11, 11, tzinfo=UTC)),
        (TIMESTAMP, "2021-09-08", datetime.datetime(2021, 9, 8, tzinfo=UTC)),
        (TIMESTAMP_NTZ, "2021-09-08 11:11:11.000001", datetime.datetime(2021, 9, 8, 11, 11, 11, 1)),
        (TIMESTAMP_NTZ, "2021-09-08T11:11:11Z", datetime.datetime(2021, 9, 8, 11, 11, 11)),
    ],
)  # fmt: skip
def test_the_forms_of_the_protocol_are_read(data_type: PrimitiveType, text: str, value: Any) -> None:
    assert read(text, data_type) == value


ALL = [
    STRING, BYTE, SHORT, INTEGER, LONG, FLOAT, DOUBLE, decimal(10, 2), BOOLEAN, BINARY, DATE, TIMESTAMP, TIMESTAMP_NTZ,
]  # fmt: skip


@pytest.mark.parametrize("data_type", ALL, ids=lambda t: t.name)
def test_null_and_the_empty_string_are_null_for_every_type(data_type: PrimitiveType) -> None:
    assert typed(pa.array(["", None]), data_type, time_zone="UTC").to_pylist() == [None, None]
    assert serialise(pa.array([None], arrow_type(data_type)), data_type).to_pylist() == [None]
    assert serialise_value("", STRING) is None


@pytest.mark.parametrize(
    ("data_type", "text"),
    [
        (BYTE, "128"), (INTEGER, "1.0"), (INTEGER, "1_0"), (LONG, "x"), (INTEGER, "0x1"), (DOUBLE, "1_0.0"),
        (DOUBLE, "one"), (decimal(3, 1), "1.25"), (decimal(3, 1), "100.0"), (decimal(3, 1), "NaN"), (BOOLEAN, "maybe"),
        (DATE, "2021-02-29"), (DATE, "yesterday"), (TIMESTAMP, "2021-01-01 24:00:00"), (TIMESTAMP, "noon"),
        (TIMESTAMP_NTZ, "2021-13-01 00:00:00"),
    ],
)  # fmt: skip
def test_what_is_no_value_is_an_error_that_names_it(data_type: PrimitiveType, text: str) -> None:
    with pytest.raises(CorruptLogError, match="partition value") as error:
        typed(pa.array(["", text]), data_type, time_zone="UTC")
    assert text in str(error.value)


def test_a_timestamp_that_names_no_zone_is_in_the_one_that_is_asked_for() -> None:
    texts = pa.array(["2021-07-01 12:00:00", "2021-07-01T12:00:00Z", "2021-03-14 02:30:00", "2021-11-07 01:30:00"])
    found = typed(texts, TIMESTAMP, time_zone="America/Los_Angeles").to_pylist()
    # In the gap of spring and the overlap of autumn as java.time, and so Spark, decides.
    assert [value.astimezone(UTC).strftime("%m-%d %H:%M") for value in found] == [
        "07-01 19:00", "07-01 12:00", "03-14 10:30", "11-07 08:30",
    ]  # fmt: skip
    assert typed(texts, TIMESTAMP_NTZ, time_zone="Asia/Tokyo")[0].as_py() == datetime.datetime(2021, 7, 1, 12)
    with pytest.raises(InvalidArgumentError, match="Mars"):
        typed(texts, TIMESTAMP, time_zone="Mars/Olympus")


ZONES = ["UTC", "America/New_York", "Asia/Kolkata", "Pacific/Apia", "+05:30", "-3:30", "GMT+8", "UTC-11", "PST"]


@given(
    st.sampled_from(
        [
            ("Asia/Kolkata", "Asia/Kolkata"),
            ("+05:30", "Asia/Kolkata"),
            ("+5:30", "Asia/Kolkata"),
            ("GMT+0530", "Asia/Kolkata"),
            ("UTC+05:30:00", "Asia/Kolkata"),
            ("IST", "Asia/Kolkata"),
            ("-05:00", "Etc/GMT+5"),
            ("EST", "Etc/GMT+5"),
            ("UT-5", "Etc/GMT+5"),
            ("-18:00", None),
            ("America/New_York", "America/New_York"),
            ("PST", "America/Los_Angeles"),
            ("MIT", "Pacific/Apia"),
            ("Z", "UTC"),
            ("GMT", "UTC"),
            ("UTC", "UTC"),
            ("Etc/UTC", "UTC"),
            ("+0", "UTC"),
        ]
    ),
    st.datetimes(datetime.datetime(1990, 1, 1), datetime.datetime(2050, 1, 1)).map(
        lambda at: at.replace(microsecond=0)
    ),
)
def test_every_name_of_a_zone_that_spark_takes(names: tuple[str, str | None], local: datetime.datetime) -> None:
    name, known = names
    zone = datetime.timezone(datetime.timedelta(hours=-18)) if known is None else ZoneInfo(known)
    assert read(str(local), TIMESTAMP, time_zone=name) == local.replace(tzinfo=zone).astimezone(UTC)


@pytest.mark.parametrize("name", ["Mars/Olympus", "+19:00", "+05:61", "05:30", "GMT+", ""])
def test_what_is_no_zone_is_an_error(name: str) -> None:
    with pytest.raises(InvalidArgumentError, match="no time zone"):
        read("2021-07-01 12:00:00", TIMESTAMP, time_zone=name)


@pytest.mark.parametrize(
    ("data_type", "value", "text"),
    [
        (DOUBLE, 1.0, "1.0"), (DOUBLE, 1e10, "1.0E10"), (DOUBLE, 0.001, "0.001"), (DOUBLE, 1e-4, "1.0E-4"),
        (DOUBLE, 9999999.0, "9999999.0"), (DOUBLE, 12345678.5, "1.23456785E7"), (DOUBLE, -0.0, "-0.0"),
        (DOUBLE, math.nan, "NaN"), (DOUBLE, -math.inf, "-Infinity"), (FLOAT, 0.1, "0.1"), (FLOAT, 3.4e38, "3.4E38"),
        (decimal(10, 3), Decimal("1E-3"), "0.001"), (decimal(9, 2), Decimal("1234567.80"), "1234567.80"),
        (BOOLEAN, True, "true"), (BINARY, b"\x01\x02", "\x01\x02"), (LONG, -(2**63), "-9223372036854775808"),
        (DATE, datetime.date(33, 4, 3), "0033-04-03"),
        (TIMESTAMP, datetime.datetime(2021, 1, 2, 3, 4, 5, tzinfo=UTC), "2021-01-02T03:04:05.000000Z"),
        (TIMESTAMP, datetime.datetime(1900, 1, 1, 0, 0, 0, 1, tzinfo=UTC), "1900-01-01T00:00:00.000001Z"),
        (TIMESTAMP_NTZ, datetime.datetime(2021, 1, 2, 3, 4, 5), "2021-01-02 03:04:05"),
        (TIMESTAMP_NTZ, datetime.datetime(2021, 1, 2, 3, 4, 5, 120_000), "2021-01-02 03:04:05.12"),
    ],
)  # fmt: skip
def test_values_are_written_as_delta_writes_them(data_type: PrimitiveType, value: Any, text: str) -> None:
    assert serialise_value(value, data_type) == text
    assert serialise_value(pa.scalar(value, arrow_type(data_type)), data_type) == text


@pytest.mark.parametrize("text", ["11900-01-01T00:00:00.000000Z", "0000-01-01T00:00:00.000000Z"])
def test_a_year_that_python_does_not_have_is_written_too(text: str) -> None:
    stored = serialise_value(typed_value(text, TIMESTAMP, time_zone="UTC"), TIMESTAMP)
    assert typed_value(stored, TIMESTAMP, time_zone="UTC") == typed_value(text, TIMESTAMP, time_zone="UTC")


def test_bytes_that_are_no_text_are_refused() -> None:
    for data_type in (BINARY, STRING):
        values = pa.array([b"a", b"\xff"], pa.binary()).view(arrow_type(data_type))
        with pytest.raises(ConstraintViolationError, match="UTF-8"):
            serialise(values, data_type)


VALUES: dict[PrimitiveType, st.SearchStrategy[Any]] = {
    STRING: st.text(st.characters(exclude_categories=["Cs"]), min_size=1),
    BYTE: st.integers(-128, 127), SHORT: st.integers(-(2**15), 2**15 - 1),
    INTEGER: st.integers(-(2**31), 2**31 - 1), LONG: st.integers(-(2**63), 2**63 - 1),
    FLOAT: st.floats(width=32), DOUBLE: st.floats(),
    decimal(38, 10): st.integers(-(10**38) + 1, 10**38 - 1).map(lambda unscaled: Decimal(f"{unscaled}E-10")),
    BOOLEAN: st.booleans(), BINARY: st.text(st.characters(exclude_categories=["Cs"]), min_size=1).map(str.encode),
}  # fmt: skip
PHYSICAL: dict[PrimitiveType, tuple[pa.DataType, st.SearchStrategy[int]]] = {
    # Years beyond 9999 and before 1, which Python's dates lack and Spark's have.
    DATE: (pa.int32(), st.integers(-(10**8), 10**8)),
    TIMESTAMP: (pa.int64(), st.integers(-(2**62), 2**62)),
    TIMESTAMP_NTZ: (pa.int64(), st.integers(-(2**62), 2**62)),
}


@pytest.mark.parametrize("data_type", [*VALUES, *PHYSICAL], ids=lambda t: t.name)
def test_what_is_written_is_read_back(data_type: PrimitiveType) -> None:
    if data_type in PHYSICAL:
        physical, strategy = PHYSICAL[data_type]
    else:
        physical, strategy = arrow_type(data_type), VALUES[data_type]

    @settings(max_examples=100)
    @given(st.lists(st.none() | strategy, max_size=6), st.sampled_from(ZONES))
    def check(values: list[Any], zone: str) -> None:
        array = pa.array(values, physical).cast(arrow_type(data_type))
        back = typed(serialise(array, data_type), data_type, time_zone=zone)
        if data_type.is_floating:
            assert list(map(repr, back.to_pylist())) == list(map(repr, array.to_pylist()))
        else:
            assert back.equals(array)

    check()


@given(st.integers(-(10**6), 10**6), st.integers(1, 12), st.integers(1, 28))
def test_days_and_dates_are_inverse_in_every_year(year: int, month: int, day: int) -> None:
    days = days_of(year, month, day)
    assert parse_date(date_text(days)) == days
    if 1 <= year <= 9999:
        assert days == datetime.date(year, month, day).toordinal() - 719_163
        assert date_text(days) == datetime.date(year, month, day).isoformat()


def test_a_timestamp_out_of_reach_of_python_takes_a_zone_too() -> None:
    zone = ZoneInfo("America/New_York")
    assert (
        parse_timestamp("+12021-07-01 12:00:00", zone) - parse_timestamp("+12021-07-01 12:00:00", None)
        == 4 * 3_600_000_000
    )


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_is_the_number_that_java_reads(value: float) -> None:
    text = float_text(repr(value))
    assert float(text) == value
    assert "." in text
    mantissa, _, exponent = text.partition("E")
    assert not exponent or 1 <= abs(float(mantissa)) < 10


def test_columns_of_a_files_table() -> None:
    files = pa.table(
        {
            "partitionValues": pa.array(
                [[("a", "1"), ("b", "x")], [("b", ""), ("a", None)], [], None], pa.map_(pa.string(), pa.string())
            )
        }
    )
    schema = StructType((StructField("b", STRING), StructField("a", INTEGER), StructField("c", LONG)))
    assert column_of(files["partitionValues"], "b").to_pylist() == ["x", "", None, None]
    found = typed_columns(files, schema, ["a", "b"], time_zone="UTC")
    assert found.to_pydict() == {"a": [1, None, None, None], "b": ["x", None, None, None]}
    bad = pa.table({"partitionValues": pa.array([[("a", "x")]], pa.map_(pa.string(), pa.string()))})
    with pytest.raises(CorruptLogError, match="'a'"):
        typed_columns(bad, schema, ["a"], time_zone="UTC")
    with pytest.raises(CorruptLogError, match="'gone'"):
        typed_columns(files, schema, ["gone"], time_zone="UTC")


def test_partition_values_of_the_corpora_are_values(golden: Callable[[str], Path], dat: Callable[[str], Path]) -> None:
    seen = 0
    for root in (golden(""), dat("")):
        for log in sorted(root.rglob("_delta_log")):
            metadata: Metadata | None = None
            adds: list[AddFile] = []
            for commit in sorted(log.glob("*.json")):
                for action in parse_commit(commit.read_bytes()):
                    if isinstance(action, Metadata):
                        metadata, adds = action, []
                    elif isinstance(action, AddFile):
                        adds.append(action)
            if metadata is None or not metadata.partition_columns or "columnMapping" in str(metadata.configuration):
                continue
            values = [list(add.partition_values.items()) for add in adds]
            files = pa.table({"partitionValues": pa.array(values, pa.map_(pa.string(), pa.string()))})
            found = typed_columns(
                files, parse_schema(metadata.schema_string), metadata.partition_columns, time_zone="UTC"
            )
            for name in metadata.partition_columns:
                missing = sum(not dict(item).get(name) for item in values)
                assert found[name].null_count == missing, (log, name)
            seen += 1
    assert seen >= 5
