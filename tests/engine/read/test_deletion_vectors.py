"""Rows that deletion vectors take are gone, on every route, however the vectors are stored and however large."""

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from tablelog.core.protocol import deletion_vectors as vectors
from tablelog.core.protocol.actions import DeletionVectorDescriptor, Protocol
from tablelog.core.protocol.deletion_vectors import DeletedRows
from tablelog.core.table.snapshot import Snapshot
from tablelog.engine.read import bulk_listing, change_feed, deletion_vectors, scan
from tablelog.engine.read.vector_cache import VectorCache
from tablelog.errors import CorruptLogError, MissingDataFileError

from .conftest import Make
from .tables import HandMade

WITH_VECTORS = Protocol(3, 7, frozenset({"deletionVectors"}), frozenset({"deletionVectors"}))
DELETED = {0: range(0, 100, 3), 2: range(40, 100), 3: [99], 4: range(100)}


def live_ids() -> set[int]:
    return {i for i in range(500) if i % 100 not in set(DELETED.get(i // 100, ()))}


def in_file(
    table: HandMade, number: int, parts: Iterable[DeletedRows], prefix: str = ""
) -> list[DeletionVectorDescriptor]:
    """Write one file of vectors; their descriptors."""
    parts = list(parts)
    data, places = vectors.file_of(parts)
    text = vectors.relative(UUID(int=number), prefix)
    path = table.root / vectors.path_of(DeletionVectorDescriptor("u", text, 0, 0))
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    return [
        DeletionVectorDescriptor("u", text, size, len(rows), offset)
        for rows, (offset, size) in zip(parts, places, strict=True)
    ]


@pytest.fixture
def marked(make: Make) -> HandMade:
    """5 files of 100 ids in their order, partitioned by p: one whole, four with vectors of each kind of storage."""
    table = make({"id": "long", "p": "integer", "s": "string"}, ["p"])
    adds = [
        table.file(
            pa.table(
                {"id": pa.array(range(i * 100, i * 100 + 100), pa.int64()), "s": [f"v{j % 10}" for j in range(100)]}
            ),
            {"p": str(i % 2)},
        )
        for i in range(5)
    ]
    gone = {i: DeletedRows.of(rows) for i, rows in DELETED.items()}
    first, second = in_file(table, 1, [gone[0], gone[2]])
    (third,) = in_file(table, 2, [gone[3]], "ab")
    absolute = replace(third, storage_type="p", path_or_inline_dv=(table.root / vectors.path_of(third)).as_uri())
    told = {0: first, 2: second, 3: absolute, 4: vectors.inline(gone[4])}
    table.commit([WITH_VECTORS, *(replace(add, deletion_vector=told.get(i)) for i, add in enumerate(adds))])
    return table


def ids(frame: DataFrame) -> set[int]:
    found = [row.id for row in frame.select("id").collect()]
    assert len(found) == len(set(found))
    return set(found)


def test_the_place_of_a_row_in_its_file(spark: SparkSession, marked: HandMade, route: str) -> None:
    snapshot = marked.log.snapshot()
    chosen = snapshot.files.take([2, 0, 1])
    frame = scan.frame(spark, marked.log, snapshot=snapshot, files=chosen, file_number="__file", row_index="__row")
    assert frame.columns == ["id", "p", "s", "__file", "__row"]
    assert {tuple(row) for row in frame.where("s = 'v7'").select("id", "__file", "__row").collect()} == {
        (i, {2: 0, 0: 1, 1: 2}[i // 100], i % 100) for i in live_ids() if i < 300 and i % 10 == 7
    }
    alone = scan.frame(spark, marked.log, snapshot=snapshot, row_index="__row").select("__row")
    assert alone.selectExpr("count(*)", "max(__row)").first() == (len(live_ids()), 99)


def test_every_kind_of_storage(spark: SparkSession, marked: HandMade, route: str) -> None:
    frame = scan.frame(spark, marked.log)
    live = live_ids()
    assert frame.columns == ["id", "p", "s"]
    assert ids(frame) == live
    assert frame.count() == len(live)
    assert frame.select("p").distinct().count() == 2
    assert ids(frame.where("p = 1")) == {i for i in live if i // 100 % 2 == 1}
    assert ids(frame.where("id between 90 and 110 and s = 'v0'")) == {i for i in live if i in (90, 100, 110)}
    assert frame.where("id = 0 or id = 450").count() == 0


def test_the_number_of_the_file_and_the_metadata(spark: SparkSession, marked: HandMade, route: str) -> None:
    snapshot = marked.log.snapshot()
    frame = scan.frame(spark, marked.log, snapshot=snapshot, files=snapshot.files.take([3, 0]), file_number="__file")
    assert frame.columns == ["id", "p", "s", "__file"]
    counts = {row["__file"]: row["count"] for row in frame.groupBy("__file").count().collect()}
    assert counts == {0: 99, 1: 66}
    if route == "native":
        places = frame.select("id", "_metadata.row_index", "_metadata.file_size").collect()
        assert all(row.row_index == row.id % 100 and row.file_size > 0 for row in places)


def test_row_groups_that_are_skipped_do_not_move_the_rows(spark: SparkSession, make: Make, route: str) -> None:
    table = make({"id": "long"})
    data = pa.table({"id": pa.array(range(50_000), pa.int64())})
    add = table.file(data)
    pq.write_table(data, table.root / add.path, row_group_size=5_000, write_page_index=True, data_page_size=4096)
    gone = DeletedRows.of(range(0, 50_000, 7))
    size = (table.root / add.path).stat().st_size
    table.commit([WITH_VECTORS, replace(add, size=size, deletion_vector=vectors.inline(gone))])
    frame = scan.frame(spark, table.log)
    assert ids(frame.where("id between 31234 and 36789")) == {i for i in range(31234, 36790) if i % 7}
    assert frame.where("id in (7, 8, 49000, 49001)").count() == 2
    assert frame.selectExpr("sum(id)").first()[0] == sum(i for i in range(50_000) if i % 7)


def test_a_newer_version_has_newer_vectors(spark: SparkSession, marked: HandMade) -> None:
    frame = scan.frame(spark, marked.log)
    pinned = scan.frame(spark, marked.log, snapshot=marked.log.snapshot())
    before = ids(frame)
    (add,) = [one for one in marked.log.snapshot().add_files() if one.path == "part-00002.parquet"]
    marked.commit([add.remove(1), replace(add, deletion_vector=vectors.inline(DeletedRows.of(range(90))))])
    assert ids(frame) == before - set(range(100, 190))
    assert ids(pinned) == before


@pytest.fixture
def joined(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every vector is too large to ride."""
    monkeypatch.setattr(deletion_vectors, "MOST_ROWS", 50)
    monkeypatch.setattr(deletion_vectors, "_LARGE_FILE", 0)


def test_vectors_that_are_too_large_to_ride_are_joined(spark: SparkSession, marked: HandMade, joined: None) -> None:
    frame = scan.frame(spark, marked.log)
    assert "LeftAnti" in frame._jdf.queryExecution().executedPlan().toString()
    live = live_ids()
    assert ids(frame) == live
    assert ids(frame.where("p = 0 and s = 'v1'")) == {i for i in live if i // 100 % 2 == 0 and i % 10 == 1}
    snapshot = marked.log.snapshot()
    part = scan.frame(spark, marked.log, snapshot=snapshot, files=snapshot.files.take([2, 1]), file_number="__file")
    assert {row[0]: row[1] for row in part.groupBy("__file").count().collect()} == {0: 40, 1: 100}
    # A vector that came later rides, whatever its size: the frame's plan stands.
    (add,) = [one for one in snapshot.add_files() if one.path == "part-00001.parquet"]
    more = DeletedRows.of(range(50)) | DeletedRows.of(DELETED[0])
    marked.commit([add.remove(1), replace(add, deletion_vector=vectors.inline(more))])
    assert ids(frame) == live - set(range(50))


@pytest.mark.parametrize("large", [False, True])
def test_some_files_are_read_without_loading_all_files(
    spark: SparkSession, marked: HandMade, monkeypatch: pytest.MonkeyPatch, large: bool
) -> None:
    """A batch of a stream is a scan of this kind: it must not cost as much as the whole table."""
    if large:
        monkeypatch.setattr(deletion_vectors, "MOST_ROWS", 50)
        monkeypatch.setattr(deletion_vectors, "_LARGE_FILE", 0)
    adds = [
        one for one in marked.log.snapshot().add_files() if one.path in ("part-00002.parquet", "part-00003.parquet")
    ]
    files = pa.Table.from_pylist([change_feed.file_row(one) for one in adds], schema=change_feed.FILES)
    monkeypatch.setattr(Snapshot, "files", property(lambda _: pytest.fail("all files of the version were loaded")))
    frame = scan.frame(spark, marked.log, snapshot=marked.log.snapshot(), files=files)
    assert ("LeftAnti" in frame._jdf.queryExecution().executedPlan().toString()) == large
    assert ids(frame) == {*range(100, 200), *range(200, 240)}
    whole = pa.Table.from_pylist([change_feed.file_row(adds[0])], schema=change_feed.FILES)
    plan = scan.frame(spark, marked.log, snapshot=marked.log.snapshot(), files=whole)
    assert re.search(r"\bFilter\b", plan._jdf.queryExecution().executedPlan().toString()) is None


@pytest.mark.parametrize("most", [0, 20])
def test_a_listing_keeps_bitmaps_of_so_many_bytes(
    spark: SparkSession, marked: HandMade, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    kept: list[int] = []
    trimmed = bulk_listing.Vectors.trimmed

    def watched(self: bulk_listing.Vectors, *args: Any) -> bulk_listing.Vectors:
        found = trimmed(self, *args)
        kept.append(sum(found.sizes.to_pylist()))
        return found

    monkeypatch.setattr(bulk_listing.Vectors, "trimmed", watched)
    monkeypatch.setattr(bulk_listing, "_KEPT_BYTES", most)
    frame = scan.frame(spark, marked.log)
    live = live_ids()
    for _ in range(2):
        assert ids(frame) == live
        assert ids(frame.where("id >= 200")) == {i for i in live if i >= 200}
    assert len(kept) >= 2
    assert max(kept) <= most


def test_only_the_vectors_of_the_files_read_are_loaded(
    spark: SparkSession, marked: HandMade, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in [*marked.root.glob("*.bin"), *marked.root.glob("ab/*.bin")]:
        path.unlink()
    frame = scan.frame(spark, marked.log)
    assert ids(frame.where("id between 100 and 120")) == set(range(100, 121))
    assert ids(frame.where("p = 1 and id < 200")) == set(range(100, 200))
    with pytest.raises(MissingDataFileError, match=r"deletion_vector_.*doesn't exist"):
        frame.where("id < 10").count()


def test_a_damaged_vector_is_an_error(spark: SparkSession, marked: HandMade, route: str) -> None:
    (path,) = marked.root.glob("ab/*.bin")
    data = bytearray(path.read_bytes())
    data[-6] ^= 1
    path.write_bytes(bytes(data))
    with pytest.raises(CorruptLogError, match="checksum"):
        scan.frame(spark, marked.log).count()


def test_bitmaps_hold_what_they_should() -> None:
    rows = DeletedRows.of([0, 6, 7, 20])
    assert deletion_vectors.bitmap(rows) == bytes([0b1000001, 0b0000001, 0b1000000])
    assert deletion_vectors.plain_bitmap(rows) == bytes([0b11000001, 0, 0b00010000])
    assert max(deletion_vectors.bitmap(DeletedRows.of(range(1000)))) == 127
    assert deletion_vectors.bitmap(DeletedRows.of([])) == b""
    with pytest.raises(CorruptLogError, match="too large for any data file"):
        deletion_vectors.bitmap(DeletedRows.of([1 << 40]))


@pytest.mark.parametrize("by_hadoop", [True, False])
def test_vectors_of_other_storage_are_read_by_ranges(
    spark: SparkSession, marked: HandMade, monkeypatch: pytest.MonkeyPatch, by_hadoop: bool
) -> None:
    """As where files aren't local: by Spark's own file systems, and by fsspec where these don't reach."""
    monkeypatch.setattr(deletion_vectors, "scheme_of", lambda uri: "elsewhere")
    monkeypatch.setattr(vectors, "_WHOLE_FILE", 0)
    if not by_hadoop:
        monkeypatch.setattr(deletion_vectors, "is_classic", lambda session: False)

    def found() -> deletion_vectors.Vectors:
        return deletion_vectors.Vectors(spark, marked.log, VectorCache(1 << 20))

    files = marked.log.snapshot().files
    rows = [None if one is None else set(one.indexes().to_pylist()) for one in found().rows(files)]
    assert rows == [set(DELETED[i]) if i in DELETED else None for i in range(5)]
    (marked.root / "ab").rename(marked.root / "gone")
    with pytest.raises(MissingDataFileError):
        found().rows(files)
