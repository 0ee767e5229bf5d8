"""What a frame shows: columns, rows, versions, metadata columns; and that Spark treats it as any other relation."""

import datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from tablelog.core.protocol import schema as schemas
from tablelog.engine.read import scan
from tablelog.errors import InvalidArgumentError, SchemaChangedError

from .conftest import Make
from .tables import HandMade


def ids(*values: int) -> pa.Table:
    return pa.table({"id": pa.array(values, pa.int64())})


def test_columns_stand_in_the_order_of_the_schema(spark: SparkSession, clustered: HandMade) -> None:
    frame = scan.frame(spark, clustered.log)
    assert frame.columns == ["id", "p", "s"]
    assert frame.count() == 200
    assert frame.where("id = 57").collect() == [Row(id=57, p=1, s="v7")]
    assert frame.select("p").distinct().count() == 4
    assert frame.selectExpr("sum(id)", "sum(p)").first() == (19900, 300)


def test_a_partition_column_is_taken_from_the_log_even_where_the_file_holds_it_too(
    spark: SparkSession, make: Make
) -> None:
    table = make({"p": "string", "id": "long"}, ["p"])
    table.append(pa.table({"p": ["wrong"], "id": pa.array([1], pa.int64())}), {"p": "right"})
    frame = scan.frame(spark, table.log)
    assert frame.collect() == [Row(p="right", id=1)]
    assert frame.where("p = 'wrong'").count() == 0


def test_files_may_lack_columns_and_hold_others(spark: SparkSession, make: Make) -> None:
    table = make({"id": "long", "added": "string"})
    table.append(ids(1))
    table.append(pa.table({"dropped": ["x"], "added": ["y"], "id": pa.array([2], pa.int64())}))
    assert scan.frame(spark, table.log).orderBy("id").collect() == [Row(id=1, added=None), Row(id=2, added="y")]


def test_nullability_is_that_of_the_schema(spark: SparkSession, make: Make) -> None:
    schema = schemas.StructType(
        (schemas.StructField("id", schemas.LONG, nullable=False), schemas.StructField("v", schemas.STRING))
    )
    table = make({"id": "long"})
    table.commit([table.metadata(schema)])
    assert [f.nullable for f in scan.frame(spark, table.log).schema] == [False, True]


def test_void_columns_are_null(spark: SparkSession, make: Make) -> None:
    table = make({"nothing": "void", "id": "long"})
    table.append(ids(1))
    frame = scan.frame(spark, table.log)
    assert frame.schema.simpleString() == "struct<nothing:void,id:bigint>"
    assert frame.collect() == [Row(nothing=None, id=1)]
    numbered = scan.frame(spark, table.log, snapshot=table.log.snapshot(), file_number="file", row_index="row")
    assert numbered.where("nothing is null and id = 1").collect() == [Row(nothing=None, id=1, file=0, row=0)]


def test_a_table_with_no_columns_is_refused(spark: SparkSession, make: Make) -> None:
    with pytest.raises(InvalidArgumentError, match="no columns"):
        scan.frame(spark, make({}).log)


def test_an_empty_table_reads_as_no_rows(spark: SparkSession, make: Make) -> None:
    table = make({"id": "long", "p": "string"}, ["p"])
    frame = scan.frame(spark, table.log)
    assert frame.collect() == []
    assert frame.where("p = 'x' and id > 3").collect() == []
    assert frame.groupBy("p").count().collect() == []


def test_a_frame_sees_the_newest_version_and_a_pinned_one_its_own(spark: SparkSession, make: Make) -> None:
    table = make({"id": "long"})
    table.append(ids(1))
    log = table.log
    newest, pinned = scan.frame(spark, log), scan.frame(spark, log, snapshot=log.snapshot())
    assert (newest.count(), pinned.count()) == (1, 1)
    add = table.append(ids(2, 3))
    assert (newest.count(), pinned.count()) == (3, 1)
    table.remove(add)
    assert (newest.count(), pinned.count()) == (1, 1)


def test_scans_of_one_query_see_one_version(spark: SparkSession, make: Make) -> None:
    table = make({"id": "long"})
    table.append(ids(1, 2))
    log = table.log
    frame = scan.frame(spark, log)
    original, calls = log.snapshot, []

    def growing(*args: int, **kwargs: int) -> object:  # each look at the log finds one version more
        calls.append(table.append(ids(100 + len(calls))))
        return original(*args, **kwargs)

    log.snapshot = growing  # type: ignore[method-assign, assignment]
    difference = frame.alias("a").join(frame.alias("b"), "id", "full_outer").where("a.id is null or b.id is null")
    assert difference.count() == 0
    assert len(calls) == 1


def test_a_query_inside_foreach_batch_sees_what_the_batch_wrote(
    spark: SparkSession, make: Make, tmp_path: Path
) -> None:
    table = make({"id": "long"})
    table.append(ids(1))
    frame = scan.frame(spark, table.log)
    spark.range(3).write.parquet(str(tmp_path / "source"))
    seen: list[int] = []

    def batch(rows: DataFrame, _: int) -> None:
        seen.append(frame.count())
        table.append(ids(2, 3))
        seen.append(frame.join(rows, "id").count())

    stream = spark.readStream.schema("id long").parquet(str(tmp_path / "source")).writeStream.foreachBatch(batch)
    query = stream.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
    assert query.awaitTermination(120)
    assert seen == [1, 2]


def test_a_column_more_is_no_change_but_another_type_is(spark: SparkSession, make: Make) -> None:
    table = make({"id": "long"})
    table.append(ids(1))
    frame = scan.frame(spark, table.log)
    table.commit([table.metadata({"id": "long", "more": "string"})])
    assert frame.select("id").collect() == [Row(id=1)]
    table.commit([table.metadata({"id": "string", "more": "string"})])
    with pytest.raises(SchemaChangedError, match=r"between version 1.*and version 3.*column id is string now"):
        frame.select("id").collect()
    with pytest.raises(SchemaChangedError):
        frame.groupBy().count().collect()


def test_a_column_gone_is_a_change(spark: SparkSession, make: Make) -> None:
    table = make({"id": "long", "v": "string"})
    table.append(pa.table({"id": pa.array([1], pa.int64()), "v": ["x"]}))
    frame = scan.frame(spark, table.log)
    table.commit([table.metadata({"id": "long"})])
    with pytest.raises(SchemaChangedError, match="column v no longer exists"):
        frame.count()


def test_metadata_columns(spark: SparkSession, clustered: HandMade) -> None:
    frame = scan.frame(spark, clustered.log)
    row = (
        frame.select("id", "_metadata.file_name", "_metadata.row_index", "_metadata.file_path").where("id = 57").first()
    )
    assert row is not None
    assert (row.file_name, row.row_index) == ("part-00006.parquet", 7)
    assert row.file_path.endswith("/a%20table%20%25%201/part-00006.parquet")
    assert frame.where("_metadata.file_name = 'part-00006.parquet'").count() == 10
    assert frame.alias("t").select("t._metadata.file_size").distinct().count() >= 1
    assert frame.select(F.input_file_name()).distinct().count() == 20


def test_a_metadata_field_with_the_name_of_a_column_prunes_nothing(spark: SparkSession, make: Make) -> None:
    table = make({"file_size": "long"})
    table.append(pa.table({"file_size": pa.array([1], pa.int64())}))
    frame = scan.frame(spark, table.log)
    assert frame.where("_metadata.file_size > 100").count() == 1
    assert frame.where("file_size > 100").count() == 0


def test_the_number_of_the_file_rides_along(spark: SparkSession, clustered: HandMade) -> None:
    log = clustered.log
    snapshot = log.snapshot()
    chosen = snapshot.files.take([3, 17, 4])
    frame = scan.frame(spark, log, snapshot=snapshot, files=chosen, file_number="__file")
    assert frame.columns == ["id", "p", "s", "__file"]
    assert {tuple(row) for row in frame.selectExpr("id div 10", "__file").distinct().collect()} == {
        (3, 0),
        (17, 1),
        (4, 2),
    }
    assert frame.where("__file in (1, 2) and id % 10 = 0").select("id").orderBy("id").collect() == [
        Row(id=40),
        Row(id=170),
    ]
    with pytest.raises(InvalidArgumentError, match="already has a column ID"):
        scan.frame(spark, log, snapshot=snapshot, file_number="ID")
    with pytest.raises(InvalidArgumentError, match="need the snapshot"):
        scan.frame(spark, log, files=chosen)


def test_joins_self_joins_views_and_set_operations(spark: SparkSession, clustered: HandMade) -> None:
    frame = scan.frame(spark, clustered.log)
    assert frame.alias("a").join(frame.alias("b"), F.expr("a.id = b.id + 1")).count() == 199
    assert frame.join(frame.groupBy("p").agg(F.max("id").alias("m")), "p").where("id = m").count() == 4
    frame.createOrReplaceTempView("clustered_view")
    assert spark.sql("select count(*) from clustered_view where p = 2").first() == (50,)
    assert spark.sql(
        "select count(*) from clustered_view where id in (select max(id) from clustered_view)"
    ).first() == (1,)
    assert frame.where("p = 1").union(frame.where("id < 10")).count() == 60
    assert frame.where("p = (select max(p) from clustered_view)").count() == 50


def test_caching_hits_for_the_same_version_and_misses_for_another(spark: SparkSession, clustered: HandMade) -> None:
    log = clustered.log

    def uses_cache(frame: object) -> bool:
        return "InMemoryTableScan" in frame._jdf.queryExecution().executedPlan().toString()  # type: ignore[attr-defined]

    cached = scan.frame(spark, log).cache()
    try:
        assert cached.count() == 200
        assert uses_cache(scan.frame(spark, log).where("id < 5"))
        assert not uses_cache(scan.frame(spark, log, snapshot=log.snapshot()))
        clustered.append(pa.table({"id": pa.array([1000], pa.int64()), "s": ["new"]}), {"p": "0"})
        assert not uses_cache(scan.frame(spark, log))
        assert scan.frame(spark, log).count() == 201
        assert cached.count() == 200
    finally:
        cached.unpersist()


def test_a_cached_frame_is_renewed_by_path(spark: SparkSession, clustered: HandMade) -> None:
    frame = scan.frame(spark, clustered.log).cache()
    try:
        assert frame.count() == 200
        clustered.append(pa.table({"id": pa.array([1000], pa.int64()), "s": ["new"]}), {"p": "0"})
        assert frame.count() == 200
        spark.catalog.refreshByPath(str(clustered.root))
        assert frame.count() == 201
    finally:
        frame.unpersist()


def test_a_broadcast_is_chosen_by_the_size_in_the_log(spark: SparkSession, clustered: HandMade) -> None:
    frame = scan.frame(spark, clustered.log)
    size = sum(clustered.log.snapshot().files.column("size").to_pylist())
    plan = frame._jdf.queryExecution().optimizedPlan()
    assert int(str(plan.stats().sizeInBytes())) == size


def test_input_files_are_those_of_the_log(spark: SparkSession, clustered: HandMade) -> None:
    found = scan.frame(spark, clustered.log).inputFiles()
    plain = spark.read.parquet(str(clustered.root)).inputFiles()
    assert sorted(found) == sorted(plain)


def test_dynamic_partition_pruning(spark: SparkSession, clustered: HandMade) -> None:
    frame = scan.frame(spark, clustered.log)
    spark.range(10).selectExpr("cast(id as int) as key", "id * 10 as tens").createOrReplaceTempView("dimension")
    frame.createOrReplaceTempView("facts")
    joined = spark.sql("select f.* from facts f join dimension d on f.p = d.key where d.tens = 20")
    assert joined.count() == 50
    joined.collect()
    assert "dynamicpruning" in joined._jdf.queryExecution().executedPlan().toString()
    metrics = _scan_metrics(joined)
    assert metrics["numFiles"] == 5
    assert metrics["staticFilesNum"] == 20


def _scan_metrics(frame: object) -> dict[str, int]:
    plan = frame._jdf.queryExecution().executedPlan()  # type: ignore[attr-defined]
    pending, found = [plan], []
    while pending:
        node = pending.pop()
        name = node.getClass().getSimpleName()
        if name == "FileSourceScanExec" and node.partitionFilters().size() > 0:
            found.append(node)
        inner = {"AdaptiveSparkPlanExec": "executedPlan"}.get(name, "plan" if name.endswith("QueryStageExec") else None)
        children = (
            [getattr(node, inner)()] if inner else [node.children().apply(i) for i in range(node.children().size())]
        )
        pending.extend(children)
    assert len(found) == 1
    metrics = found[0].metrics()
    return {name: metrics.apply(name).value() for name in ("numFiles", "staticFilesNum") if metrics.contains(name)}


def test_nested_and_every_primitive_type(spark: SparkSession, make: Make) -> None:
    schema = schemas.parse_schema(
        spark.sql(
            "select 1Y b, 1S h, 1 i, 1L l, 1.5F f, 1.5D d, 1.50BD x, true t, 'é' s, X'00ff' y, date'1500-02-28' dt, "
            "timestamp'1500-02-28 01:02:03.000004Z' ts, timestamp_ntz'1500-02-28 01:02:03' tn, "
            "named_struct('a', array(1, 2), 'm', map('k', 1L)) n"
        ).schema.json()
    )
    moment = datetime.datetime(1500, 2, 28, 1, 2, 3, 4)
    table = make({"l": "long"})
    table.commit([table.metadata(schema)])
    values = {
        "b": 1, "h": 2, "i": 3, "l": 4, "f": 1.5, "d": 2.5, "x": Decimal("1.50"), "t": True, "s": "é", "y": b"\0\xff",
        "dt": datetime.date(1500, 2, 28), "ts": moment.replace(tzinfo=datetime.UTC), "tn": moment,
        "n": {"a": [1, 2], "m": [("k", 1)]},
    }  # fmt: skip
    table.append(pa.Table.from_pylist([values], schema=schemas.arrow_schema(schema)), stats=False)
    frame = scan.frame(spark, table.log)
    row = frame.selectExpr("*", "cast(ts as string) as ts_text", "cast(dt as string) as dt_text").first()
    assert row is not None
    assert (row.b, row.h, row.i, row.l, row.f, row.d, row.x, row.t, row.s, row.y) == (
        1, 2, 3, 4, 1.5, 2.5, Decimal("1.50"), True, "é", bytearray(b"\0\xff"),
    )  # fmt: skip
    assert (row.dt_text, row.ts_text, row.tn) == ("1500-02-28", "1500-02-28 01:02:03.000004", moment)
    assert row.n == Row(a=[1, 2], m={"k": 1})
