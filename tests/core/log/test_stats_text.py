"""Stats that a checkpoint has only as structs, told as the text that `add` has."""

import datetime
import json
from decimal import Decimal

import pyarrow as pa

from tablelog.core.log.stats_text import stats_text, stats_texts

UTC = datetime.UTC


def test_every_type_as_delta_writes_it() -> None:
    bounds = {
        "long": 2**62,
        "float": 0.1,
        "nan": float("nan"),
        "infinity": float("-inf"),
        "text": 'a "b" é',
        "truth": True,
        "date": datetime.date(2024, 2, 29),
        "time": datetime.datetime(2024, 1, 2, 3, 4, 5, 678999, tzinfo=UTC),
        "local": datetime.datetime(2024, 1, 2, 3, 4, 5),
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
            "date": "2024-02-29",
            "time": "2024-01-02T03:04:05.678Z",
            "local": "2024-01-02T03:04:05.000",
            "decimal": 12345678901234567890.123456789012345678,
            "nested": {"x": 1},
        },
    }


def test_a_text_that_is_there_stays() -> None:
    texts = pa.chunked_array([["{}", None, None, None]])
    type_ = pa.struct([("numRecords", pa.int64())])
    parsed = pa.chunked_array([pa.array([{"numRecords": 1}, {"numRecords": 2}, None, {"numRecords": None}], type_)])
    assert stats_texts(texts, parsed).to_pylist() == ["{}", '{"numRecords":2}', None, None]
    assert stats_texts(texts, pa.chunked_array([pa.nulls(4)])) is texts
