"""Writes on Spark Connect: modes, schemas, the rules of the table, and files that are left after failures."""

import datetime as dt
import logging
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyspark.errors
import pytest

from connect.reading import by_core
from support.rows import assert_same_rows
from support.spark_tables import Table
from tablelog.core import DeltaLog
from tablelog.core.protocol import features
from tablelog.core.protocol.schema import StructField, StructType, to_json
from tablelog.core.protocol.schema import parse_schema as parsed
from tablelog.core.txn.operation import Operation
from tablelog.errors import (
    ConcurrentWriteException,
    ConstraintViolationError,
    SchemaMismatchError,
    TableAlreadyExistsError,
    UnsupportedEnvironmentError,
    UnsupportedFeatureError,
    UntrustedTableError,
)


def same_as_core(table: Table) -> None:
    assert_same_rows(table.read().toArrow(), by_core(table.path))


def only_logged_files(table: Table) -> None:
    """No file is in the directory that no commit has added."""
    changes = {name for name in table.data_files() if name.startswith("_change_data/")}
    assert table.data_files() - changes == table.logged_files()


def test_modes(spark: Any, table: Table) -> None:
    table.write(spark.range(2), "errorifexists")
    with pytest.raises(TableAlreadyExistsError):
        table.write(spark.range(2), "errorifexists")
    with pytest.raises(pyspark.errors.AnalysisException):
        spark.range(2).write.format("delta").save(table.path)
    table.write(spark.range(5), "ignore")
    assert table.rows() == [0, 1]
    table.write(spark.range(2, 3))
    assert table.rows() == [0, 1, 2]
    table.write(spark.range(7, 9), "overwrite")
    assert table.rows() == [7, 8]
    assert table.info()["operation"] == "WRITE"
    assert table.info()["operationMetrics"]["numOutputRows"] == "2"
    only_logged_files(table)


def test_every_type(spark: Any, table: Table) -> None:
    frame = spark.sql(
        """select 1Y a, 2S b, 3 c, 4L d, cast(1.5 as float) e, 2.5D f, cast(3.25 as decimal(20, 5)) g, 'x' h,
        X'0102' i, true j, date'2024-02-29' k, timestamp'2024-02-29 12:34:56.789012' l,
        timestamp_ntz'2024-02-29 12:34:56.789012' m, array(1, null) n, map('k', named_struct('v', 1.5D)) o,
        named_struct('p_q', array(named_struct('r', 1))) s
        union all select null, null, null, null, float('nan'), double('-infinity'), null, '', X'', false,
        date'0001-01-01', timestamp'1500-01-01 00:00:00', timestamp_ntz'9999-12-31 23:59:59.999999', null, null, null"""
    )
    table.write(frame, **{"delta.feature.timestampNtz": "supported"})
    assert sorted(map(str, table.read().collect())) == sorted(map(str, frame.collect()))
    same_as_core(table)
    stats = [a["add"]["stats"] for a in table.actions() if "add" in a]
    assert all('"numRecords":1' in text for text in stats)
    assert any('"minValues":{"a":1,' in text for text in stats)


def test_schemas(spark: Any, table: Table) -> None:
    table.write(spark.sql("select 1 id, 'a' name"))
    table.write(spark.sql("select 'b' name, 2 ID"))  # by name, in any order
    table.write(spark.sql("select 3 id"))  # missing columns are null
    table.write(spark.sql("select 4L id, 5 name"))  # store assignment
    assert sorted(table.rows(), key=lambda row: row[0]) == [(1, "a"), (2, "b"), (3, None), (4, "5")]
    with pytest.raises(SchemaMismatchError, match="mergeSchema"):
        table.write(spark.sql("select 1 id, 2 other"))
    with pytest.raises(SchemaMismatchError, match="can't be stored"):
        table.write(spark.sql("select 'x' id"))
    with pytest.raises(SchemaMismatchError, match="out of the range"):
        table.write(spark.range(1).selectExpr("id + 3000000000 as id"))
    table.write(spark.sql("select 6 id, 2.5D other"), mergeSchema="true")
    assert table.read().where("id = 6").collect()[0].other == 2.5
    table.write(spark.sql("select 'new' only"), "overwrite", overwriteSchema="true")
    assert table.rows() == ["new"]
    same_as_core(table)
    only_logged_files(table)


def test_nested_schemas(spark: Any, table: Table) -> None:
    table.write(spark.sql("select 1 id, named_struct('a', 1L, 'b', 'x') s, array(named_struct('c', 1L)) l"))
    table.write(spark.sql("select 2 id, named_struct('b', 'y', 'a', 7) s, array(named_struct('c', 9)) l"))
    rows = {row.id: row for row in table.read().collect()}
    assert tuple(rows[2].s) == (7, "y")
    assert rows[2].l[0].c == 9
    same_as_core(table)


def test_conversions_need_ansi_casts(spark: Any, table: Table, conf: Any) -> None:
    table.write(spark.sql("select 1 id, array(1) l"))
    conf("spark.sql.ansi.enabled", "false")
    with pytest.raises(UnsupportedEnvironmentError, match="ansi"):
        table.write(spark.sql("select 1 id, array(3000000000L) l"))
    with pytest.raises(SchemaMismatchError, match="out of the range"):
        table.write(spark.sql("select 3000000000L id, array(1) l"))
    table.write(spark.sql("select 2L id, array(1) l"))
    assert table.rows("id") == [1, 2]
    conf("spark.sql.storeAssignmentPolicy", "LEGACY")
    with pytest.raises(UnsupportedEnvironmentError, match="LEGACY"):
        table.write(spark.sql("select 2L id, array(1) l"))


def test_overwrites_of_parts(spark: Any, table: Table) -> None:
    table.write(spark.range(6).selectExpr("id", "id % 3 p"), by=("p",))
    table.write(spark.sql("select 100L id, 1L p"), "overwrite", partitionOverwriteMode="dynamic")
    assert table.rows() == [(0, 0), (2, 2), (3, 0), (5, 2), (100, 1)]
    table.write(spark.sql("select 200L id, 2L p"), "overwrite", replaceWhere="p = 2")
    assert table.rows() == [(0, 0), (3, 0), (100, 1), (200, 2)]
    with pytest.raises(ConstraintViolationError, match="replaceWhere"):
        table.write(spark.sql("select 1L id, 7L p"), "overwrite", replaceWhere="p = 2")
    table.write(spark.sql("select 3L id, 9L p"), "overwrite", replaceWhere="id = 3")
    assert table.rows() == [(0, 0), (3, 9), (100, 1), (200, 2)]
    with pytest.raises(UnsupportedFeatureError, match="rand"):
        table.write(spark.sql("select 3L id, 9L p"), "overwrite", replaceWhere="id > rand()")
    only_logged_files(table)


def test_options_of_commits(spark: Any, table: Table) -> None:
    for _ in range(2):  # the second is skipped
        table.write(spark.range(1), txnAppId="app", txnVersion=7, userMetadata="note")
    assert table.version == 0
    assert table.info()["userMetadata"] == "note"
    table.write(spark.range(1), txnAppId="app", txnVersion=8)
    assert table.rows() == [0, 0]
    assert DeltaLog.for_path(table.path).snapshot().transactions["app"].version == 8
    table.write(spark.range(10).coalesce(1), maxRecordsPerFile=4)
    assert len([a for a in table.actions() if "add" in a]) == 3


def with_schema(table: Table, fields: list[StructField], configuration: dict[str, str], *names: str) -> None:
    """Another writer's table, with rules that Spark's DataFrame API can't declare."""
    from tablelog.core import Metadata

    log = DeltaLog.for_path(table.path)
    txn = log.transaction()
    metadata = Metadata(id="x", schema_string=to_json(StructType(tuple(fields))), configuration=configuration)
    txn.set_protocol(features.protocol_of(names))
    txn.set_metadata(metadata)
    txn.commit([], Operation("CREATE TABLE"))


def field(text: str, **metadata: Any) -> StructField:
    name, _, kind = text.partition(" ")
    nullable = not kind.endswith(" not null")
    kind = kind.removesuffix(" not null")
    of_json = f'{{"type":"struct","fields":[{{"name":"{name}","type":"{kind}","nullable":true,"metadata":{{}}}}]}}'
    return StructField(name, parsed(of_json).fields[0].data_type, nullable, metadata)


def test_constraints(spark: Any, table: Table) -> None:
    configuration = {"delta.constraints.positive": "id > 0 AND length(name) < 5"}
    with_schema(table, [field("id integer not null"), field("name string")], configuration, "checkConstraints")
    table.write(spark.sql("select 1 id, 'a' name"))
    with pytest.raises(ConstraintViolationError, match=r"positive.*id = -1"):
        table.write(spark.sql("select -1 id, 'a' name"))
    with pytest.raises(ConstraintViolationError, match="NOT NULL"):
        table.write(spark.sql("select cast(null as int) id, 'a' name"))
    with pytest.raises(ConstraintViolationError, match="NOT NULL"):
        table.write(spark.sql("select 'a' name"))
    with pytest.raises(ConstraintViolationError, match="positive"):
        table.delta.update(set={"name": "'too long'"})
    assert table.rows() == [(1, "a")]
    only_logged_files(table)


@pytest.mark.parametrize(
    "check", ["rand() > 0", "id > (select 0)", "java_method('java.lang.System', 'exit', 0) = 1", "f(id)", "a.b > 1"]
)
def test_untrusted_constraints_are_not_evaluated(spark: Any, table: Table, check: str) -> None:
    with_schema(table, [field("id integer")], {"delta.constraints.c": check}, "checkConstraints")
    with pytest.raises(UntrustedTableError, match="not evaluated"):
        table.write(spark.sql("select 1 id"))
    assert table.rows() == []


def test_generated_and_default_columns(spark: Any, table: Table) -> None:
    fields = [
        field("id integer"),
        field("twice integer", **{"delta.generationExpression": "id * 2"}),
        field("kind string", CURRENT_DEFAULT="'plain'"),
    ]
    with_schema(table, fields, {}, "generatedColumns", "allowColumnDefaults")
    table.write(spark.sql("select 1 id"))
    table.write(spark.sql("select 2 id, 4 twice, 'x' kind"))
    with pytest.raises(ConstraintViolationError, match="twice"):
        table.write(spark.sql("select 3 id, 7 twice"))
    assert table.rows() == [(1, 2, "plain"), (2, 4, "x")]
    table.delta.update("id = 1", {"id": "10"})
    assert table.rows() == [(2, 4, "x"), (10, 20, "plain")]


def test_identity_columns_are_refused(spark: Any, table: Table) -> None:
    metadata = {"delta.identity.start": 1, "delta.identity.step": 1, "delta.identity.allowExplicitInsert": True}
    with_schema(table, [field("id long", **metadata), field("v integer")], {}, "identityColumns")
    with pytest.raises(UnsupportedFeatureError, match="identity column id"):
        table.write(spark.sql("select 1 v"))
    assert table.rows() == []


def test_char_and_varchar(spark: Any, table: Table) -> None:
    kind = "__CHAR_VARCHAR_TYPE_STRING"
    with_schema(table, [field("c string", **{kind: "char(3)"}), field("v string", **{kind: "varchar(3)"})], {})
    table.write(spark.sql("select 'a' c, 'abc  ' v"))
    assert table.rows() == [("a  ", "abc")]
    with pytest.raises(ConstraintViolationError, match="3 characters"):
        table.write(spark.sql("select 'a' c, 'abcd' v"))
    with pytest.raises(ConstraintViolationError, match="3 characters"):
        table.write(spark.sql("select 'abcd' c, 'abc' v"))


def test_a_table_that_reads_itself(spark: Any, table: Table) -> None:
    table.write(spark.range(4))
    table.write(table.read().where("id > 1"), "overwrite")
    assert table.rows() == [2, 3]
    old = table.read()
    table.write(spark.range(1))
    with pytest.raises(ConcurrentWriteException, match="version 1"):
        table.write(old, "overwrite")
    assert table.rows() == [0, 2, 3]
    table.write(table.read(versionAsOf=0), "overwrite")
    assert table.rows() == [0, 1, 2, 3]


def test_a_view_of_the_table(spark: Any, table: Table, tmp_path: Path) -> None:
    table.write(spark.range(4))
    table.read().createOrReplaceTempView("own")
    with pytest.raises(UnsupportedFeatureError, match="view"):
        table.write(spark.sql("select * from own where id > 1"), "overwrite")
    spark.range(3).write.parquet(str(tmp_path / "other"))
    spark.read.parquet(str(tmp_path / "other")).createOrReplaceTempView("other")
    joined = table.read().join(spark.table("other"), "id", "left_semi")
    table.write(joined, "overwrite")
    assert table.rows() == [0, 1, 2]


SUBQUERIES = [
    "SELECT explode((SELECT collect_list(id) FROM own)) AS id",
    "SELECT (SELECT max(id) FROM own) + 1 AS id",
    "SELECT 9L AS id WHERE EXISTS (SELECT 1 FROM own WHERE id > 1)",
    "WITH o AS (SELECT max(id) AS m FROM own) SELECT id + (SELECT m FROM o) AS id FROM other",
]


@pytest.mark.parametrize("text", SUBQUERIES)
def test_a_view_of_the_table_in_a_subquery(spark: Any, tmp_path: Path, text: str) -> None:
    """The plan that is executed has these scans outside of its leaves."""
    table = Table(spark, tmp_path / "é a%20b [1], x y")
    table.write(spark.range(4).coalesce(1))
    table.read().createOrReplaceTempView("own")
    other = Table(spark, tmp_path / "other table [1], x%")
    other.write(spark.range(3))
    other.read().createOrReplaceTempView("other")
    for mode in ("append", "overwrite"):
        with pytest.raises(UnsupportedFeatureError, match="view"):
            table.write(spark.sql(text), mode)
    with pytest.raises(UnsupportedFeatureError, match="view"):
        table.delta.alias("t").merge(spark.sql(text).alias("s"), "t.id = s.id").whenNotMatchedInsertAll().execute()
    assert table.rows() == [0, 1, 2, 3]
    table.write(spark.sql(text.replace("FROM own", "FROM other")), "overwrite")
    assert table.rows() != [0, 1, 2, 3]


@pytest.mark.parametrize("text", ["select * from own", "select 9L id where not exists (select 1 from own)"])
def test_a_version_without_files_that_is_no_longer_the_newest(spark: Any, tmp_path: Path, text: str) -> None:
    """It is read without a scan, and yet what was written since isn't lost."""
    table = Table(spark, tmp_path / "own ` ' table")
    table.write(spark.range(0))
    read = table.read()
    read.createOrReplaceTempView("own")
    table.write(read, "overwrite")
    assert table.version == 0  # there was nothing to commit
    old = table.read()
    table.write(spark.range(3))
    with pytest.raises(ConcurrentWriteException, match="newest version is 1"):
        table.write(old.where("id > 1"), "overwrite")
    with pytest.raises(UnsupportedFeatureError, match="view"):
        table.write(spark.sql(text), "overwrite")
    with pytest.raises(UnsupportedFeatureError, match="view"):
        table.write(spark.range(7, 8).union(spark.sql(text)), "overwrite")
    assert table.rows() == [0, 1, 2]
    other = Table(spark, tmp_path / "other")
    other.write(spark.sql(text))
    table.write(table.read(versionAsOf=0), "overwrite")
    assert (table.rows(), table.version) == ([], 2)


def test_a_failed_write_leaves_no_file(spark: Any, table: Table) -> None:
    table.write(spark.range(1))
    before = table.data_files()
    with pytest.raises(pyspark.errors.PySparkException):
        table.write(spark.range(100).selectExpr("if(id = 99, raise_error('boom'), id) as id"))
    assert table.data_files() == before
    assert not list(table.root.glob("_tablelog*"))


def test_a_server_with_a_disk_of_its_own(spark: Any, table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    from tablelog.engine.write.routes import local

    monkeypatch.setattr(local, "find", lambda directory, columns: [])
    with pytest.raises(UnsupportedEnvironmentError, match="different storage"):
        table.write(spark.range(3))
    assert not (table.root / "_delta_log").exists() or table.rows() == []


def test_decimals_and_dates_in_partitions(spark: Any, table: Table) -> None:
    rows = [(i, dt.date(2024, 1, i), Decimal(i) / 4) for i in range(1, 6)]
    table.write(spark.createDataFrame(rows, "id int, day date, d decimal(8,3)"), by=("day", "d"))
    table.write(spark.createDataFrame(rows, "id int, day date, d decimal(8,3)").where("id = 1"))
    same_as_core(table)
    assert table.read().where("day = date'2024-01-01'").count() == 2


def test_what_connect_leaves_out_is_warned_of(table: Table, spark: Any, caplog: pytest.LogCaptureFixture) -> None:
    properties = {"delta.autoOptimize.autoCompact": "true", "delta.autoOptimize.optimizeWrite": "true"}
    with caplog.at_level(logging.WARNING, logger="tablelog.log_once"):
        table.write(spark.range(2), **properties)
        table.write(spark.range(2))
    (compaction,) = (m for m in caplog.messages if "auto compaction, which has no effect on Spark Connect" in m)
    assert table.path in compaction
    assert len([m for m in caplog.messages if m.startswith("optimizeWrite has no effect on Spark Connect")]) == 1
