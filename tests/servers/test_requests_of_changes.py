"""The requests of commands that create a table or change its rows are those of docs/stores.md; see counted.py."""

from collections.abc import Mapping

import pytest

from tablelog.spark import DeltaTable

from .counted import CHANGES, COMMIT, SECOND, SIZES, VECTORS, Counted

CREATED = {"log LIST": 2, "log GET": 1, "log PUT": 2}
"""The first commit of a table: a look for one, the commit, a look at what was written, the checksum."""


@SIZES
def test_creating_a_table(counted: Counted, f: int) -> None:
    counted.table(1)  # the first commit of a process to a bucket costs more
    counted.rows(f).createOrReplaceTempView("new_rows")
    rows = "USING delta PARTITIONED BY (p) AS SELECT * FROM new_rows"
    counted.url = counted.server.url()
    empty = DeltaTable.create(counted.spark).location(counted.url).addColumn("id", "long")
    assert counted.cost(empty.execute) == CREATED
    assert counted.cost(lambda: counted.sql(f"REPLACE TABLE {{t}} {rows}")) == {**COMMIT, "data PUT": f}
    counted.url = counted.server.url()
    by_sql = {**CREATED, "log LIST": 3}
    assert counted.cost(lambda: counted.sql(f"CREATE TABLE {{t}} {rows}")) == {**by_sql, "data PUT": f}
    counted.url = counted.server.url()
    writer = counted.rows(f).write.format("delta").partitionBy("p")
    assert counted.cost(lambda: writer.save(counted.url)) == {**CREATED, "data PUT": f}


@SIZES
@pytest.mark.parametrize(
    "options",
    [{}, {"partitionOverwriteMode": "dynamic"}, {"replaceWhere": "p >= 0"}],
    ids=["overwrite", "dynamic", "replaceWhere partitions"],
)
def test_an_overwrite_of_whole_files_costs_what_an_append_does(
    counted: Counted, f: int, options: Mapping[str, str]
) -> None:
    counted.table(f)
    writer = counted.rows(f).write.format("delta").mode("overwrite").options(**options)
    assert counted.cost(lambda: writer.save(counted.url)) == {**COMMIT, "data PUT": f}


@SIZES
@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_a_write_by_tasks_is_a_listing_more(counted: Counted, f: int, mode: str) -> None:
    counted.table(f)
    rows = counted.spark.range(0, 50_000, 1, 1).selectExpr("id", f"id % {f} p", "1.5D x")
    writer = rows.write.format("delta").mode(mode)
    assert counted.cost(lambda: writer.save(counted.url)) == {**COMMIT, "data PUT": f, "data LIST": 1}


@SIZES
def test_replace_where_reads_the_files_that_may_match(counted: Counted, f: int) -> None:
    counted.of_two_halves(f)
    writer = counted.rows(f).write.format("delta").mode("overwrite").option("replaceWhere", "id >= 0")
    assert counted.cost(lambda: writer.save(counted.url)) == {**COMMIT, "data GET": 2 * f, "data PUT": f}
    counted.table(f, **CHANGES)
    expected = {**COMMIT, "data GET": 2 * f, "data PUT": 2 * f, "data LIST": 1}
    assert counted.cost(lambda: writer.save(counted.url)) == expected
    counted.of_two_halves(f)
    some = writer.option("replaceWhere", "id >= 100 AND id < 1100")  # each file of the second commit keeps a row
    expected = {**COMMIT, "data GET": 2 * f, "data PUT": 2 * f, "data LIST": 1}
    assert counted.cost(lambda: some.save(counted.url)) == expected


BY_KIND = pytest.mark.parametrize(
    ("properties", "of_changes", "by_vectors"),
    [({}, 0, 0), (CHANGES, 1, 0), (VECTORS, 0, 1), ({**VECTORS, **CHANGES}, 1, 1)],
    ids=["files", "files and changes", "vectors", "vectors and changes"],
)


@SIZES
@BY_KIND
def test_a_delete_of_rows(
    counted: Counted, f: int, properties: Mapping[str, str], of_changes: int, by_vectors: int
) -> None:
    """With a vector, the feed needs no change files: it compares the vectors."""
    table = counted.of_two_halves(f, **properties)
    expected = {"data GET": (2 + of_changes) * f, "data PUT": (1 + of_changes) * f, "data LIST": 1 + of_changes}
    if by_vectors:
        expected = {"data GET": f, "data PUT": 1}
    assert counted.cost(lambda: table.delete(SECOND)) == {**COMMIT, **expected}


@SIZES
@BY_KIND
def test_an_update_of_rows(
    counted: Counted, f: int, properties: Mapping[str, str], of_changes: int, by_vectors: int
) -> None:
    table = counted.of_two_halves(f, **properties)
    writes = (1 + of_changes) * f + by_vectors
    expected = {**COMMIT, "data GET": (2 + of_changes) * f, "data PUT": writes, "data LIST": 1 + of_changes}
    assert counted.cost(lambda: table.update(SECOND, {"x": "x + 1"})) == expected


@SIZES
@BY_KIND
def test_a_merge_of_few_rows(
    counted: Counted, f: int, properties: Mapping[str, str], of_changes: int, by_vectors: int
) -> None:
    """The changed rows are on the driver after the join: they aren't read again."""
    table = counted.of_two_halves(f, **properties)
    source = counted.spark.createDataFrame([(1100 + number,) for number in range(f)], "id long")
    merge = table.alias("t").merge(source.alias("s"), "t.id = s.id").whenMatchedUpdate(set={"x": "t.x + 1"})
    expected = {**COMMIT, "data GET": 2 * f, "data PUT": (1 + of_changes) * f, "data LIST": 1}
    if by_vectors:
        expected = {**COMMIT, "data GET": f, "data PUT": (1 + of_changes) * f + 1}
    assert counted.cost(merge.execute) == expected


@SIZES
def test_the_vectors_in_one_file_are_one_read(counted: Counted, f: int) -> None:
    table = counted.of_two_halves(f, **VECTORS)
    table.delete(SECOND)
    counted.forget_vectors()
    assert counted.cost(lambda: table.toDF().collect()) == {"log LIST": 1, "data GET": 2 * f + 1}
    assert counted.cost(lambda: table.toDF().collect()) == {"log LIST": 1, "data GET": 2 * f}
    counted.forget_vectors()
    assert counted.cost(lambda: table.delete("id >= 100")) == {**COMMIT, "data GET": f + 1}


@SIZES
def test_a_file_of_more_than_64_kib_is_two_reads(counted: Counted, f: int) -> None:
    counted.url = counted.server.url()
    rows = counted.spark.range(0, 5_000 * f, 1, f).selectExpr("id", "cast(id / 5000 as int) p", "uuid() x")
    rows.write.format("delta").partitionBy("p").save(counted.url)
    table = DeltaTable.forPath(counted.spark, counted.url)
    assert all(add.size > 64 << 10 for add in counted.log.snapshot().add_files())
    assert counted.cost(lambda: table.toDF().collect()) == {"log LIST": 1, "data GET": 2 * f}


@SIZES
@pytest.mark.parametrize(
    ("properties", "reads", "of_changes"),
    [({}, 3, 0), (CHANGES, 5, 1), (VECTORS, 3, 0), ({**VECTORS, **CHANGES}, 4, 1)],
    ids=["files", "files and changes", "vectors", "vectors and changes"],
)
def test_a_merge_of_many_rows(
    counted: Counted, f: int, properties: Mapping[str, str], reads: int, of_changes: int
) -> None:
    """Too many rows for the driver: it finds that out by one read of files, and Spark's tasks then read all of them.

    The first read ends with the first row too many, so it may leave out files. Each row changes, so that no file needs
    a vector; the feed has two images of it.
    """
    counted.url = counted.server.url()
    rows = counted.spark.range(0, 30_000 * f, 1, f).selectExpr("cast(id / 30000 as long) id", "1.5D x")
    writer = rows.selectExpr("id", "id p", "x").write.format("delta").partitionBy("p")
    writer.options(**properties).save(counted.url)
    source = counted.spark.createDataFrame([(number,) for number in range(f)], "id long")
    merge = DeltaTable.forPath(counted.spark, counted.url).alias("t").merge(source.alias("s"), "t.id = s.id")
    merge = merge.whenMatchedUpdate(set={"x": "t.x + 1"})
    writes = (1 + 2 * of_changes) * f
    found = counted.cost(merge.execute)
    assert (reads - 1) * f < found.pop("data GET") <= reads * f
    assert found == {**COMMIT, "data PUT": writes, "data LIST": 1 + of_changes}
