"""Statistics of a file that gets a deletion vector."""

import json

import pytest

from tablelog.core.skipping.wide_bounds import bare, widened

STATS = (
    '{"numRecords":10,"minValues":{"x":0.10000000000000000000000000001,"ü":"a"},"maxValues":{"x":1E5,"s":{"y":3}},'
    '"nullCount":{"x":0,"ü":7,"s":{"y":10}}}'
)


def test_bounds_stay_as_they_are_spelt() -> None:
    found = widened(STATS, 0)
    assert found == STATS[:-1] + ',"tightBounds":false}'
    assert widened(found, 4) == found


def test_a_column_of_nulls_alone_stays_one() -> None:
    found = widened(STATS.replace('"y":10', '"y":7'), 3)
    assert found is not None
    assert json.loads(found)["nullCount"] == {"x": 0, "ü": 10, "s": {"y": 10}}
    wide = found.replace('"ü":10', '"ü":7')
    assert widened(wide, 3) == wide


def test_tight_bounds_are_so_no_more() -> None:
    assert widened(' { "tightBounds" : true , "numRecords" : 3 } ', 0) == '{"tightBounds":false,"numRecords":3}'


@pytest.mark.parametrize("stats", [None, "", "{}", "[1]", '{"numRecords":null}', '{"numRecords":3', '{"minValues":{}}'])
def test_nothing_without_the_number_of_rows(stats: str | None) -> None:
    assert widened(stats, 1) is None


def test_the_least() -> None:
    assert widened(bare(7), 7) == bare(7)
