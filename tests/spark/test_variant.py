"""Columns of the type variant: written unshredded, read in both forms, and refused where no value can be compared."""

import json

import pyarrow.parquet as pq
import pytest

from tablelog.core import DeltaLog
from tablelog.core.protocol.actions import AddFile
from tablelog.core.txn.operation import Operation
from tablelog.errors import InvalidArgumentError, UnsupportedFeatureError
from tablelog.settings.declarations import READ_ROUTE

ROWS = (
    'select id, if(id = 2, null, parse_json(\'{"a":\' || id || \',"b":"x"}\')) v, '
    "named_struct('w', parse_json('[1]')) s, array(parse_json('null')) l, id % 2 p, id + 10 last from range(4)"
)


@pytest.mark.one_case
@pytest.mark.parametrize("mapping", ["none", "name"])
def test_variants_are_written_and_read(spark, table, mapping):
    table.write(spark.sql(ROWS).drop("v"), by=("p",), **{"delta.columnMapping.mode": mapping})
    table.delta.addColumns("v variant", "AFTER id")
    assert "variantType" in table.actions(0)[1]["protocol"]["readerFeatures"]
    table.write(spark.sql(ROWS).where("id < 3"))
    told = [json.loads(action["add"]["stats"]) for action in table.actions() if "add" in action]
    names = {f["name"]: f["metadata"].get("delta.columnMapping.physicalName", f["name"]) for f in _fields(table)}
    assert sum(one["nullCount"][names["v"]] for one in told) == 1
    assert all(names["v"] not in one["minValues"] for one in told)
    assert max(one["maxValues"][names["last"]] for one in told) == 12
    for path in (table.root / name for name in table.data_files()):
        columns = [one.path for one in pq.read_metadata(path).schema]
        assert not any("typed_value" in one for one in columns)
    frame = table.read()
    numbers = frame.where("v is not null").selectExpr("id", "variant_get(v, '$.a', 'int')").collect()
    assert sorted(map(tuple, numbers)) == [(0, 0), (1, 1)]
    found = frame.selectExpr("id", "to_json(v) v", "to_json(s.w) w", "to_json(l[0]) l", "p").collect()
    assert len(found) == 7
    assert {tuple(row) for row in found if row.v} == {(i, f'{{"a":{i},"b":"x"}}', "[1]", "null", i % 2) for i in (0, 1)}
    assert frame.where("variant_get(v, '$.a', 'int') = 1 and last = 11").count() == 1
    table.delta.delete("variant_get(v, '$.a', 'int') = 0")
    assert table.read().count() == 6


def _fields(table):
    versions = range(table.version, -1, -1)
    found = (a["metaData"] for v in versions for a in table.actions(v) if "metaData" in a)
    return json.loads(next(found)["schemaString"])["fields"]


def test_shredded_variants_are_read(spark, table, tmp_path):
    rows = spark.sql(ROWS).drop("p")
    table.write(rows.limit(0), **{"delta.enableVariantShredding": "true"})
    assert "variantShredding" in table.actions(0)[1]["protocol"]["readerFeatures"]
    rows.coalesce(1).write.parquet(str(tmp_path / "plain"))
    (plain,) = (tmp_path / "plain").glob("*.parquet")
    file = plain.rename(table.root / plain.name)
    assert any("typed_value" in one.path for one in pq.read_metadata(file).schema) == (spark.version >= "4.1")
    txn = DeltaLog.for_path(table.path).transaction()
    txn.commit([AddFile(file.name, {}, file.stat().st_size, 0, data_change=True)], Operation("WRITE"))
    assert table.read().selectExpr("variant_get(v, '$.a', 'int')").collect() == [(0,), (1,), (None,), (3,)]
    table.write(rows.where("id = 1"))
    assert table.read().where("variant_get(v, '$.a', 'int') = 1").count() == 2


def test_what_a_variant_can_not_be(spark, table, conf):
    with pytest.raises(InvalidArgumentError, match="can't be partitioned by 'v'"):
        table.write(spark.sql(ROWS), by=("v",))
    table.write(spark.sql(ROWS))
    conf(READ_ROUTE.key, "arrow")
    with pytest.raises(UnsupportedFeatureError, match="variant"):
        table.read().collect()
