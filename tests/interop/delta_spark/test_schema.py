"""The same changes of columns by delta-spark and by us leave the same log, and each goes on where the other stopped."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from benchmarks.worker import Worker
from pyspark.sql import SparkSession

from support.rows import assert_same_rows
from tablelog.core import DeltaLog
from tablelog.core.protocol.actions import CommitInfo, Metadata
from tablelog.core.protocol.codec import parse_commit
from tablelog.spark import DeltaTable

CREATE = """
for name in ("ours", "theirs"):
    table = f"delta.`{path}/{name}`"
    spark.sql(f'''create table {table} (id int, b tinyint, p string, s struct<x: int, y: int>, a array<smallint>,
        f float, d date, old string, t varchar(5)) using delta partitioned by (p) tblproperties
        ('delta.enableTypeWidening' = 'true', 'delta.columnMapping.mode' = 'name',
         'delta.feature.timestampNtz' = 'supported', 'delta.dataSkippingStatsColumns' = 'id,old,s.y')''')
    spark.sql(f'''insert into {table} values (1, 1Y, 'a', named_struct('x', 1, 'y', 2), array(1S), 0.1F,
        date'2024-02-29', 'gone', 'text')''')
"""
CHANGES: list[tuple[str, Callable[[DeltaTable], None]]] = [
    ("add columns (n int comment 'new' after id)", lambda t: t.addColumns("n int comment 'new'", "AFTER id")),
    ("add columns (s.z bigint first)", lambda t: t.addColumns("`s.z` bigint", "FIRST")),
    ("rename column p to part", lambda t: t.renameColumn("p", "part")),
    ("rename column s.y to yy", lambda t: t.renameColumn("s.y", "yy")),
    ("drop columns (old, s.x)", lambda t: t.dropColumn("old", "s.x")),
    ("alter column id type bigint", lambda t: t.alterColumn("id", dataType="bigint")),
    ("alter column a.element type int", lambda t: t.alterColumn("a.element", dataType="int")),
    ("alter column f type double", lambda t: t.alterColumn("f", dataType="double")),
    ("alter column d type timestamp_ntz", lambda t: t.alterColumn("d", dataType="timestamp_ntz")),
    ("alter column b comment 'bb'", lambda t: t.alterColumn("b", comment="bb")),
    ("alter column b after t", lambda t: t.alterColumn("b", position="AFTER t")),
    ("alter column t type varchar(9)", lambda t: t.alterColumn("t", dataType="varchar(9)")),
]
MERGED = (
    "select 5000000000 id, 300 b, 'b' part, named_struct('yy', 7000000000) s, array(1.5D) a, 'more' brand_new, "
    "timestamp_ntz'2024-02-29 01:02:03' d"
)


def told(path: Path, version: int) -> dict[str, Any]:
    """What a commit says of the schema and of itself, without what is each writer's own."""
    found: dict[str, Any] = {}
    for action in parse_commit((path / "_delta_log" / f"{version:020}.json").read_bytes()):
        if isinstance(action, Metadata):
            text = json.loads(action.schema_string, object_hook=_plain)
            found["metadata"] = (text, action.partition_columns, dict(action.configuration))
        elif isinstance(action, CommitInfo):
            found["operation"] = action.operation, action.operation_parameters
    return found


def _plain(value: dict[str, Any]) -> dict[str, Any]:
    return {key: item for key, item in value.items() if key != "delta.columnMapping.physicalName"}


def _operations(*commits: dict[str, Any]) -> list[Any]:
    """The operations without the physical names in the columns that their parameters tell of."""
    return [_without_names(*commit["operation"]) for commit in commits]


def _without_names(name: str, parameters: dict[str, str]) -> Any:
    parsed = {
        key: json.loads(text, object_hook=_plain) if text[:1] in "[{" else text for key, text in parameters.items()
    }
    return name, parsed


def test_the_same_changes_leave_the_same_log(spark: SparkSession, peer: Worker, tmp_path: Path) -> None:
    peer("run", path=str(tmp_path), code=CREATE)
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    differ: list[Any] = []
    for statement, change in CHANGES:
        change(DeltaTable.forPath(spark, str(ours)))
        peer("sql", text=f"alter table delta.`{theirs}` {statement}")
        version = DeltaLog.for_path(str(ours)).snapshot().version
        found, wanted = told(ours, version), told(theirs, version)
        assert found["metadata"] == wanted["metadata"], statement
        differ += [(statement, *pair)] if (pair := _operations(found, wanted))[0] != pair[1] else []
    assert not differ
    spark.sql(MERGED).write.format("delta").mode("append").option("mergeSchema", "true").save(str(ours))
    append = f"spark.sql({MERGED!r}).write.format('delta').mode('append').option('mergeSchema', 'true').save(path)"
    peer("run", path=str(theirs), code=append)
    version = len(CHANGES) + 2
    assert told(ours, version)["metadata"] == told(theirs, version)["metadata"]

    code = 'spark.sql(f"alter table delta.`{path}` rename column n to nn")\n'
    code += 'spark.sql(f"alter table delta.`{path}` alter column nn type decimal(12,2)")\n'
    peer("run", path=str(ours), code=code + append)
    newest = DeltaLog.for_path(str(ours)).snapshot().version
    for path, at in ((ours, 1), (ours, newest), (theirs, version)):
        peer("read", path=str(path), version=at, out=str(tmp_path / "rows"))
        read = spark.read.format("delta").option("versionAsOf", at).load(str(path))
        assert_same_rows(pq.read_table(tmp_path / "rows"), read.toArrow())
    assert spark.read.format("delta").load(str(ours)).where("f > 0.1D and d < timestamp_ntz'2024-03-01'").count() == 1


VARIANTS = (
    "select id, parse_json('{\"a\":' || id || '}') v, array(parse_json('[1]'), null) l from range(5) where id <> 2 "
    "union all select 9, null, null"
)


def test_variants_go_both_ways(spark: SparkSession, peer: Worker, tmp_path: Path) -> None:
    ours, theirs = str(tmp_path / "ours"), str(tmp_path / "theirs")
    spark.sql(VARIANTS).write.format("delta").save(ours)
    peer("run", path=theirs, code=f"spark.sql({VARIANTS!r}).write.format('delta').save(path)")
    peer("run", path=ours, code=f"spark.sql({VARIANTS!r}).write.format('delta').mode('append').save(path)")
    spark.sql(VARIANTS).write.format("delta").mode("append").save(theirs)
    shown = "select id, to_json(v) v, to_json(l[0]) l from delta.`{}` where v is not null order by id"
    for path in (ours, theirs):
        found = peer("sql", text=shown.format(path))
        frame = spark.read.format("delta").load(path).where("v is not null")
        rows = frame.selectExpr("id", "to_json(v) v", "to_json(l[0]) l").orderBy("id").collect()
        assert [row.asDict() for row in rows] == found
        assert len(found) == 8
