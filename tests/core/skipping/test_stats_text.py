"""Stats that a checkpoint has only as structs, told as the text that `add` has."""

import json
from decimal import Decimal

import pyarrow as pa

from tablelog.core.skipping.stats_text import stats_text, stats_texts


def test_every_type_as_delta_writes_it() -> None:
    bounds = {
        "long": 2**62,
        "float": 0.1,
        "nan": float("nan"),
        "infinity": float("-inf"),
        "text": 'a "b" é',
        "truth": True,
        "decimal": Decimal("12345678901234567890.123456789012345678"),
        "none": None,
        "nested": {"x": 1, "y": None},
    }
    text = stats_text({"numRecords": 3, "minValues": bounds, "tightBounds": None})
    assert '"decimal":12345678901234567890.123456789012345678' in text
    assert json.loads(text) == {
        "numRecords": 3,
        "minValues": {
            "long": 2**62,
            "float": 0.1,
            "text": 'a "b" é',
            "truth": True,
            "decimal": 12345678901234567890.123456789012345678,
            "nested": {"x": 1},
        },
    }


def test_dates_and_times_of_every_year() -> None:
    days = [19_782, -719_162, -719_163, 2**31 - 1, -(2**31), None]
    micros = [1_704_164_645_678_999, -62_135_596_800_000_000, 2**62, -(2**63), 2**63 - 1, None]
    bounds = pa.StructArray.from_arrays(
        [
            pa.array(days, pa.int32()).cast(pa.date32()),
            pa.array(micros, pa.int64()).cast(pa.timestamp("us", "UTC")),
            pa.array(micros, pa.int64()).cast(pa.timestamp("us")),
        ],
        ["date", "time", "local"],
    )
    parsed = pa.StructArray.from_arrays([pa.array([1] * 6, pa.int64()), bounds], ["numRecords", "minValues"])
    texts = stats_texts(pa.chunked_array([pa.nulls(6, pa.string())]), pa.chunked_array([parsed]))
    assert [json.loads(text).get("minValues", {}) for text in texts.to_pylist()] == [
        {"date": "2024-02-29", "time": "2024-01-02T03:04:05.678Z", "local": "2024-01-02T03:04:05.678"},
        {"date": "0001-01-01", "time": "0001-01-01T00:00:00.000Z", "local": "0001-01-01T00:00:00.000"},
        {"date": "0000-12-31", "time": "+148108-07-06T14:00:27.387Z", "local": "+148108-07-06T14:00:27.387"},
        {"date": "+5881580-07-11"},
        {"date": "-5877641-06-23"},
        {},
    ]


def test_a_text_that_is_there_stays() -> None:
    texts = pa.chunked_array([["{}", None, None, None]])
    type_ = pa.struct([("numRecords", pa.int64())])
    parsed = pa.chunked_array([pa.array([{"numRecords": 1}, {"numRecords": 2}, None, {"numRecords": None}], type_)])
    assert stats_texts(texts, parsed).to_pylist() == ["{}", '{"numRecords":2}', None, None]
    assert stats_texts(texts, pa.chunked_array([pa.nulls(4)])) is texts
