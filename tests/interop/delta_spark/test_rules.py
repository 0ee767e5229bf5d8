"""Constraints, generated, identity and default columns: delta-spark's tables to us, ours to it, and then us again."""

import json
from typing import Any

import pytest

from support.spark_tables import Table
from tablelog.errors import ConstraintViolationError, InvalidArgumentError
from tablelog.spark import DeltaTable, IdentityGenerator

PEER_CREATES = """
from delta.tables import IdentityGenerator
(DeltaTable.create(spark).location(path)
    .addColumn("id", "bigint", generatedAlwaysAs=IdentityGenerator(100, 10))
    .addColumn("n", "int", nullable=False)
    .addColumn("ts", "timestamp", comment="when")
    .addColumn("day", "date", generatedAlwaysAs="CAST(ts AS DATE)")
    .addColumn("v", "varchar(3)")
    .addColumn("free", "bigint", generatedByDefaultAs=IdentityGenerator())
    .partitionedBy("day").property("delta.feature.allowColumnDefaults", "supported").comment("a table").execute())
"""
PEER_WRITES = """
(spark.sql("select 1 n, timestamp'2024-01-01 10:00:00' ts, 'a' v union all select 2, timestamp'2024-01-02', 'b'")
    .coalesce(1).write.format("delta").mode("append").save(path))
"""
PEER_RULES = """
spark.sql(f"ALTER TABLE delta.`{path}` ADD CONSTRAINT Small CHECK (n < 100)")
spark.sql(f"ALTER TABLE delta.`{path}` ALTER COLUMN v SET DEFAULT 'd' || 'f'")
"""


def definition(table: Table) -> dict[str, Any]:
    """Protocol, columns, partitioning and properties, of the newest action that says them."""
    found: dict[str, Any] = {}
    for version in range(table.version + 1):
        for action in table.actions(version):
            found |= {key: action[key] for key in ("protocol", "metaData") if key in action}
    protocol, metadata = found["protocol"], found["metaData"]
    return {
        "protocol": {key: sorted(value) if isinstance(value, list) else value for key, value in protocol.items()},
        "columns": json.loads(metadata["schemaString"])["fields"],
        "rest": [metadata.get(key) for key in ("partitionColumns", "configuration", "description")],
    }


def ours(table: Table) -> None:
    (
        DeltaTable.create(table.spark)
        .location(table.path)
        .addColumn("id", "bigint", generatedAlwaysAs=IdentityGenerator(100, 10))
        .addColumn("n", "int", nullable=False)
        .addColumn("ts", "timestamp", comment="when")
        .addColumn("day", "date", generatedAlwaysAs="CAST(ts AS DATE)")
        .addColumn("v", "varchar(3)")
        .addColumn("free", "bigint", generatedByDefaultAs=IdentityGenerator())
        .partitionedBy("day")
        .property("delta.feature.allowColumnDefaults", "supported")
        .comment("a table")
        .execute()
    )


@pytest.mark.parametrize("creator", ["peer", "ours"])
def test_both_keep_the_same_rules(spark: Any, peer: Any, tmp_path: Any, creator: str) -> None:
    table, other = Table(spark, tmp_path / "table"), Table(spark, tmp_path / "other")
    peer("run", code=PEER_CREATES, path=(table if creator == "peer" else other).path)
    ours(other if creator == "peer" else table)
    assert definition(table) == definition(other)
    theirs, mine = (table, other) if creator == "peer" else (other, table)
    told = [one.info(0) for one in (theirs, mine)]
    assert told[0]["operation"] == told[1]["operation"]
    assert told[0]["operationParameters"] == told[1]["operationParameters"]
    assert told[0]["isBlindAppend"] == told[1]["isBlindAppend"]

    peer("run", code=PEER_WRITES + PEER_RULES, path=table.path)
    two = spark.sql("select 3 n, timestamp'2024-01-03 10:00:00' ts union all select 4, null").coalesce(1)
    table.write(two)
    found = table.rows("id", "n", "v", "free")
    assert found == [(100, 1, "a", 1), (110, 2, "b", 2), (120, 3, "df", 3), (130, 4, "df", 4)]
    assert table.read().where("not (day <=> cast(ts as date))").count() == 0
    peer("run", code=PEER_WRITES, path=table.path)
    assert table.rows("id")[-2:] == [140, 150]
    table.write(spark.sql("select 5 n, 77L free"))
    assert table.rows("id", "free")[-1] == (160, 77)
    with pytest.raises(ConstraintViolationError, match="the CHECK constraint small"):
        table.write(spark.sql("select 500 n"))
    with pytest.raises(ConstraintViolationError, match="generation expression of the column day"):
        table.write(spark.sql("select 5 n, timestamp'2024-01-03 10:00:00' ts, date'2024-01-04' day"))
    with pytest.raises(InvalidArgumentError, match="GENERATED ALWAYS"):
        table.write(spark.sql("select 5 n, 1L id"))
    refused = """
result = []
for sql in ("select 500 n", "select 5 n, timestamp'2024-01-03 10:00:00' ts, date'2024-01-04' day", "select 5 n, 1L id"):
    try:
        spark.sql(sql).write.format("delta").mode("append").save(path)
    except Exception as error:
        result.append(type(error).__name__)
"""
    assert len(peer("run", code=refused, path=table.path)) == 3
    table.delta.addConstraint("Late", "ts is null or ts > '2020-01-01'")
    table.delta.dropConstraint("SMALL")
    peer("run", code=f"spark.sql(f'ALTER TABLE delta.`{{path}}` DROP CONSTRAINT late')\n{PEER_WRITES}", path=table.path)
    drops = [table.info(version) for version in (table.version - 2, table.version - 1)]
    assert [info["operation"] for info in drops] == ["DROP CONSTRAINT"] * 2
    assert [info["operationParameters"]["existed"] for info in drops] == ["true"] * 2
    table.write(spark.sql("select 500 n"))
    ids = table.rows("id")
    assert len(set(ids)) == len(ids) == 10


def test_a_table_replaced(spark: Any, peer: Any, tmp_path: Any) -> None:
    mine, theirs = Table(spark, tmp_path / "mine"), Table(spark, tmp_path / "theirs")
    for table in (mine, theirs):
        peer("run", code=PEER_CREATES + PEER_WRITES, path=table.path)
    made = DeltaTable.replace(spark).location(mine.path).addColumn("a", "int").addColumn("b", "string")
    made.partitionedBy("b").property("delta.enableChangeDataFeed", "true").execute()
    code = """
(DeltaTable.replace(spark).location(path).addColumn("a", "int").addColumn("b", "string").partitionedBy("b")
    .property("delta.enableChangeDataFeed", "true").execute())
"""
    peer("run", code=code, path=theirs.path)
    assert definition(mine) == definition(theirs)
    said = []
    for info in (mine.info(), theirs.info()):  # Delta writes the description that there isn't
        parameters = {key: value for key, value in info["operationParameters"].items() if value is not None}
        said.append((info["operation"], parameters, info["isBlindAppend"]))
    assert said[0] == said[1]
    kinds = [sorted(key for action in table.actions() for key in action) for table in (mine, theirs)]
    assert kinds[0] == kinds[1]
