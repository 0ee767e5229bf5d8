"""The requests of the other commands: the formulas of docs/stores.md for `f` files, on tables of two sizes."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tablelog.logstore.data_files import DataFiles
from tablelog.spark import DeltaTable, conf

from .counted import SIZES, Counted, counted

__all__ = ["counted"]

Step: TypeAlias = Callable[[Counted, DeltaTable, int], Any]

COMMIT = {"log LIST": 1, "log PUT": 2}
VECTORS = {"delta.enableDeletionVectors": "true"}
FEED = {"delta.enableChangeDataFeed": "true"}


@dataclass(frozen=True)
class Cost:
    """A command, what it needs before, and its requests: always, and for each file."""

    run: Step
    always: dict[str, int]
    each: dict[str, int]
    before: Step = lambda counted, table, f: None
    properties: dict[str, str] | None = None


def _merge(counted: Counted, table: DeltaTable, f: int) -> None:
    source = counted.spark.createDataFrame([(number,) for number in range(f)], "id long")
    merge = table.alias("t").merge(source.alias("s"), "t.id = s.id")
    merge.whenMatchedUpdate(set={"x": "t.x + 1"}).execute()


def _update(counted: Counted, table: DeltaTable, f: int) -> None:
    table.update("x > 0", {"x": "x + 1"})


def _delete(counted: Counted, table: DeltaTable, f: int) -> None:
    table.delete("x > 0")


def _by_tasks(counted: Counted, table: DeltaTable, f: int) -> None:
    rows = counted.spark.range(0, f, 1, f).repartition(f).selectExpr("id", "id p", "id * 1.5 x")
    rows.write.format("delta").mode("append").save(counted.url)


def _replace(counted: Counted, table: DeltaTable, f: int) -> None:
    DeltaTable.replace(counted.spark).location(counted.url).addColumn("n", "int").execute()


def _create(counted: Counted, table: DeltaTable, f: int) -> None:
    DeltaTable.create(counted.spark).location(f"{counted.url} created").addColumn("n", "int").execute()


def _cluster(counted: Counted, table: DeltaTable, f: int) -> None:
    """A clustered table of `f` files in the place of the other one."""
    counted.url = counted.server.url()
    made = DeltaTable.create(counted.spark).location(counted.url).addColumn("id", "long").clusterBy("id").execute()
    for number in range(f):
        counted.spark.createDataFrame([(number,)], "id long").write.format("delta").mode("append").save(counted.url)
    assert made.detail().first()["numFiles"] == f


def _optimize(counted: Counted, table: DeltaTable, f: int) -> None:
    DeltaTable.forPath(counted.spark, counted.url).optimize().executeCompaction()


def _plain_files(counted: Counted, table: DeltaTable, f: int) -> None:
    """Parquet files in `f` directories of a partition column, which aren't a table."""
    counted.url = counted.server.url()
    plain = DataFiles.of(counted.url, counted.server.conf, {})
    for day in range(f):
        stream = pa.BufferOutputStream()
        pq.write_table(pa.table({"id": [day]}), stream)
        plain.write(f"day={day}/rows.parquet", stream.getvalue().to_pybytes())


def _convert(counted: Counted, table: DeltaTable, f: int) -> None:
    DeltaTable.convertToDelta(counted.spark, f"parquet.`{counted.url}`", "day int")


def _read(counted: Counted, table: DeltaTable, f: int, **options: str) -> None:
    counted.spark.read.format("delta").options(**options).load(counted.url).collect()


def _read_changes(counted: Counted, table: DeltaTable, f: int) -> None:
    _read(counted, table, f, readChangeFeed="true", startingVersion="1")


def _checkpoint(counted: Counted, table: DeltaTable, f: int) -> None:
    counted.log.checkpoint()
    conf.forget()


def _v2_checkpoint(counted: Counted, table: DeltaTable, f: int) -> None:
    table.setProperties({"delta.checkpointPolicy": "v2"})
    _checkpoint(counted, table, f)


REWRITE = {"data GET": 2, "data PUT": 1}
COSTS: dict[str, Cost] = {
    "an append by Spark's tasks": Cost(_by_tasks, {**COMMIT, "data LIST": 1}, {"data PUT": 1}),
    "DELETE of rows": Cost(_delete, {**COMMIT, "data LIST": 1}, REWRITE),
    "DELETE of all rows of files": Cost(lambda c, t, f: t.delete("x >= 0"), COMMIT, {"data GET": 1}),
    "DELETE without a condition": Cost(lambda c, t, f: t.delete(), COMMIT, {}),
    "DELETE by vectors": Cost(_delete, {**COMMIT, "data PUT": 1}, {"data GET": 1}, properties=VECTORS),
    "DELETE by vectors, with the change feed": Cost(
        _delete, {**COMMIT, "data PUT": 1}, {"data GET": 1}, properties={**VECTORS, **FEED}
    ),
    "UPDATE by vectors": Cost(_update, {**COMMIT, "data PUT": 1, "data LIST": 1}, REWRITE, properties=VECTORS),
    "MERGE by vectors": Cost(_merge, {**COMMIT, "data PUT": 1}, {"data GET": 1, "data PUT": 1}, properties=VECTORS),
    "DELETE with the change feed": Cost(
        _delete, {**COMMIT, "data LIST": 2}, {"data GET": 3, "data PUT": 2}, properties=FEED
    ),
    "UPDATE with the change feed": Cost(
        _update, {**COMMIT, "data LIST": 2}, {"data GET": 3, "data PUT": 2}, properties=FEED
    ),
    "MERGE with the change feed": Cost(
        _merge, {**COMMIT, "data LIST": 1}, {"data GET": 2, "data PUT": 2}, properties=FEED
    ),
    "an overwrite": Cost(lambda c, t, f: c.write(f, "overwrite"), COMMIT, {"data PUT": 1}),
    "an overwrite of partitions": Cost(
        lambda c, t, f: c.write(f, "overwrite", partitionOverwriteMode="dynamic"), COMMIT, {"data PUT": 1}
    ),
    "replaceWhere of partitions": Cost(
        lambda c, t, f: c.write(f, "overwrite", replaceWhere="p >= 0"), COMMIT, {"data PUT": 1}
    ),
    "replaceWhere of rows": Cost(
        lambda c, t, f: c.write(f, "overwrite", replaceWhere="x > 0"),
        {**COMMIT, "data LIST": 1},
        {"data GET": 2, "data PUT": 2},
    ),
    "REPLACE": Cost(_replace, COMMIT, {}),
    "CREATE": Cost(_create, {"log LIST": 2, "log GET": 1, "log PUT": 2}, {}),
    "Z-order": Cost(
        lambda c, t, f: t.optimize().executeZOrderBy("x"), {**COMMIT, "data LIST": 1}, {"data GET": 2, "data PUT": 1}
    ),
    "OPTIMIZE of a clustered table": Cost(
        _optimize,
        {**COMMIT, "log LIST": 2, "data LIST": 1, "data PUT": 1},  # one list is that of `forPath`
        {"data GET": 2},
        before=_cluster,
    ),
    "REORG": Cost(
        lambda c, t, f: t.reorg(),
        {**COMMIT, "data LIST": 1},
        {"data GET": 1, "data PUT": 1},
        before=_delete,
        properties=VECTORS,
    ),
    "a shallow clone": Cost(
        lambda c, t, f: t.clone(f"{c.url} cloned", isShallow=True), {"log LIST": 3, "log GET": 1, "log PUT": 2}, {}
    ),
    "CONVERT": Cost(
        _convert,
        {"log LIST": 2, "log GET": 1, "log PUT": 2, "data LIST": 1},
        {"data GET": 1, "data LIST": 1},
        before=_plain_files,
    ),
    "manifests": Cost(
        lambda c, t, f: t.generate("symlink_format_manifest"), {"log LIST": 1, "data LIST": 1}, {"data PUT": 1}
    ),
    "a new column": Cost(lambda c, t, f: t.addColumns("n int"), COMMIT, {}),
    "properties": Cost(lambda c, t, f: t.setProperties({"mine": "1"}), COMMIT, {}),
    "a constraint": Cost(lambda c, t, f: t.addConstraint("positive", "x >= 0"), COMMIT, {"data GET": 1}),
    "a new feature": Cost(lambda c, t, f: t.addFeatureSupport("generatedColumns"), COMMIT, {}),
    "a dropped feature": Cost(
        lambda c, t, f: t.dropFeatureSupport("checkConstraints"),
        {"log LIST": 3, "log PUT": 2},
        {},
        before=lambda c, t, f: t.addFeatureSupport("checkConstraints"),
    ),
    "DESCRIBE DETAIL": Cost(lambda c, t, f: t.detail().collect(), {"log LIST": 2}, {}),
    "the change feed": Cost(
        _read_changes, {"log LIST": 2, "log GET": 1}, {"data GET": 1}, before=_update, properties=FEED
    ),
    "opening and reading with a checkpoint": Cost(
        _read, {"log LIST": 1, "log GET": 3}, {"data GET": 1}, before=_checkpoint
    ),
    "opening and reading with a V2 checkpoint": Cost(
        _read, {"log LIST": 1, "log GET": 4}, {"data GET": 1}, before=_v2_checkpoint
    ),
    "a V2 checkpoint": Cost(
        _checkpoint,
        {"log LIST": 1, "log GET": 4, "log PUT": 3},
        {},
        before=lambda c, t, f: t.setProperties({"delta.checkpointPolicy": "v2"}),
    ),
}


@SIZES
@pytest.mark.parametrize("name", COSTS)
def test_the_requests_of(counted: Counted, name: str, f: int) -> None:
    command = COSTS[name]
    table = counted.table_of_two(f, **(command.properties or {}))
    command.before(counted, table, f)
    expected = {
        kind: command.always.get(kind, 0) + f * command.each.get(kind, 0) for kind in {*command.always, *command.each}
    }
    assert counted.cost(lambda: command.run(counted, table, f)) == expected
