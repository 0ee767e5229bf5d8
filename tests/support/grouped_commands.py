"""Commands on the table of `large_logs.twelve_files` whose conditions exclude few files."""

from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from support.commands import values
from support.large_logs import merged
from support.spark_tables import Table
from support.table_work import settings
from tablelog.settings.declarations import DELETE_BY_VECTORS, MERGE_BY_VECTORS, UPDATE_BY_VECTORS

BY_VECTORS = DELETE_BY_VECTORS, UPDATE_BY_VECTORS, MERGE_BY_VECTORS
"""Settings of a session: whether a command writes deletion vectors."""


def _from_executors(table: Table) -> None:
    source = table.spark.range(0, 900, 7, 2).where("id % 2 = 1").withColumn("n", F.col("id") % 3).alias("s")
    merge = table.delta.alias("t").merge(source, "t.id + 0 = s.id").whenMatchedUpdate("s.n > 0", set={"id": "-s.id"})
    merge.whenMatchedDelete().execute()


def mirrored(of: Callable[[DataFrame], DataFrame]) -> Callable[[Table], Any]:
    """Makes the table like a source that has other rows in few files; `of` changes the source."""

    def run(table: Table) -> None:
        rows = table.read().where("id not in (17, 40)").selectExpr("id", "if(id = 33, 2, p) AS p")
        source = of(rows.union(values(table.spark, (500, 1), (501, 2)))).alias("s")
        merge = table.delta.alias("t").merge(source, "t.id = s.id").whenMatchedUpdateAll("t.p <> s.p")
        merge.whenNotMatchedInsertAll("s.id <> 501").whenNotMatchedBySourceDelete().execute()

    return run


def _inserted(table: Table) -> None:
    source = table.read().union(values(table.spark, (500, 1), (501, 2))).alias("s")
    table.delta.alias("t").merge(source, "t.id = s.id").whenNotMatchedInsertAll().execute()


def _upserted(table: Table) -> None:
    rows = table.read().selectExpr("id", "if(id = 33, 2, p) AS p").union(values(table.spark, (500, 1)))
    merge = table.delta.alias("t").merge(rows.alias("s"), "t.id = s.id").whenMatchedUpdateAll("t.p <> s.p")
    merge.whenNotMatchedInsertAll().execute()


def _deleted(table: Table) -> None:
    rows = table.read().union(table.read()).alias("s")
    merge = table.delta.alias("t").merge(rows, "t.id = s.id").whenMatchedDelete("t.id = 40")
    merge.whenNotMatchedBySourceDelete().execute()


def _mirrored_by_sql(table: Table) -> None:
    """The source and the table are views, in another time zone."""
    table.read().createOrReplaceTempView("mirrored")
    with settings(table.spark, {"spark.sql.session.timeZone": "Asia/Kolkata"}):
        table.spark.sql(
            "MERGE INTO mirrored AS t USING (SELECT * FROM mirrored WHERE id <> 40 UNION ALL SELECT 500L, 1) AS s "
            "ON t.id = s.id WHEN NOT MATCHED THEN INSERT * WHEN NOT MATCHED BY SOURCE THEN DELETE"
        )


def _with_change_feed(run: Callable[[Table], Any]) -> Callable[[Table], Any]:
    def changed(table: Table) -> None:
        table.delta.setProperties({"delta.enableChangeDataFeed": "true"})
        run(table)

    return changed


def _by_view(table: Table) -> None:
    table.read().createOrReplaceTempView("grouped")
    table.spark.sql("DELETE FROM grouped AS g WHERE g.id % 2 = 0 AND g.p >= 0")


GROUPED: dict[str, Callable[[Table], Any]] = {
    "delete": lambda t: t.delta.delete("id % 2 = 0"),
    "delete by opaque partitions": lambda t: t.delta.delete("concat('x', p) <> 'x1' and id % 5 = 0"),
    "delete nothing": lambda t: t.delta.delete("id % 1000 = 999"),
    "delete by a Column": lambda t: t.delta.delete((F.col("id") % 2 == 0) & (F.col("p") + 1 > 0)),
    "delete by SQL": lambda t: t.spark.sql(f"DELETE FROM delta.`{t.path}` AS x WHERE x.id % 2 = 0"),
    "delete by a view": _by_view,
    "update": lambda t: t.delta.update("id % 7 = 3", {"id": "id + 500"}),
    "replaceWhere": lambda t: t.write(values(t.spark, (990, 0)), "overwrite", replaceWhere="id % 10 = 0"),
    "merge": merged("t.id = s.id + 20 * t.p"),
    "merge of a large source": _from_executors,
    "merge, not matched by source": merged("t.id = s.id", by_source="t.id % 9 = 5"),
    "mirror": mirrored(lambda source: source),
    "mirror of few rows": mirrored(lambda source: source.where("id > 40")),
    "mirror of rows on the driver": mirrored(lambda source: values(source.sparkSession, *map(tuple, source.collect()))),
    "mirror with a change feed": _with_change_feed(mirrored(lambda source: source)),
    "mirror by SQL and views": _mirrored_by_sql,
    "upsert of rows that differ": _upserted,
    "delete by doubled rows": _deleted,
    "insert-only merge": _inserted,
}


def _recorded(table: Table, run: Callable[[], Any]) -> None:
    table.delta.setProperties({"delta.enableChangeDataFeed": "true"})
    run()


def _deleted_twice(table: Table) -> None:
    source = values(table.spark, *((i, 0) for i in range(0, 40, 2)), *((i, 1) for i in range(0, 40, 2)), (700, 1))
    merge = table.delta.alias("t").merge(source.alias("s"), "t.id = s.id").whenMatchedDelete()
    merge.whenNotMatchedInsertAll().execute()


def _doubled_new_keys(of: Callable[[DataFrame], DataFrame]) -> Callable[[Table], Any]:
    """Nearly all rows match, few change, and the rows to insert have one key twice; `of` changes the source."""

    def run(table: Table) -> None:
        new = values(table.spark, (999, 1), (999, 2))
        source = of(table.read().selectExpr("id", "if(id % 20 = 4, 2, p) AS p").union(new)).alias("s")
        merge = table.delta.alias("t").merge(source, "t.id = s.id").whenMatchedUpdateAll("t.p <> s.p")
        merge.whenNotMatchedInsertAll().execute()

    return run


def _moved_by_sql(table: Table) -> None:
    """The table is a view, in another time zone."""
    table.read().createOrReplaceTempView("moved")
    with settings(table.spark, {"spark.sql.session.timeZone": "Asia/Kolkata"}):
        table.spark.sql(
            "MERGE INTO moved AS t USING (SELECT id, (p + 1) % 3 AS p FROM moved UNION ALL SELECT 500L, 1) AS s "
            "ON t.id = s.id WHEN MATCHED AND s.id % 5 < 3 THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        )


_CHANGE_MANY = {
    "delete",
    "delete by opaque partitions",
    "delete by a Column",
    "delete by SQL",
    "delete by a view",
    "update",
    "merge, not matched by source",
}
SLICED = {
    **{name: run for name, run in GROUPED.items() if name in _CHANGE_MANY},
    "replaceWhere of many": lambda t: t.write(values(t.spark, (990, 0)), "overwrite", replaceWhere="id % 10 in (0, 4)"),
    "upsert with doubled new keys": _doubled_new_keys(lambda source: source),
    "upsert with doubled new keys on the driver": _doubled_new_keys(
        lambda source: values(source.sparkSession, *map(tuple, source.collect()))
    ),
    "mirror of other rows by SQL": _moved_by_sql,
    "mirror of other rows": mirrored(lambda source: source.where("id % 3 > 0").selectExpr("id", "p + 1 AS p")),
    "delete by doubled rows of the driver": _deleted_twice,
    "delete with a change feed": lambda t: _recorded(t, lambda: t.delta.delete("id % 2 = 0")),
    "update with a change feed": lambda t: _recorded(t, lambda: t.delta.update("id % 2 = 0", {"id": "-id"})),
}
"""Commands that need more than five files of the table; most change so many."""
