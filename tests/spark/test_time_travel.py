"""Old versions by number and by time, as options and at the end of the path."""

import datetime as dt
import os

import pytest

from tablelog.errors import InvalidArgumentError, TableNotFoundError, TimestampOutOfRangeError, VersionNotFoundError
from tablelog.spark.conf import forget
from tablelog.spark.time_travel import AtPath, split_at, timestamp_ms

NOON = dt.datetime(2024, 5, 17, 12, 0, 0, tzinfo=dt.UTC)


@pytest.fixture
def old(spark, table):
    """Versions 0, 1 and 2 with one, two and three rows, committed at noon, one and two hours later (UTC)."""
    for version in range(3):
        table.write(spark.range(version, version + 1))
        seconds = (NOON + dt.timedelta(hours=version)).timestamp()
        os.utime(table.root / "_delta_log" / f"{version:020}.json", (seconds, seconds))
    forget()
    return table


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/a/t@v12", AtPath("/a/t", 12, None)),
        ("/a/t@V0", AtPath("/a/t", 0, None)),
        ("/a/t@20240517123005123", AtPath("/a/t", None, "2024-05-17 12:30:05.123")),
        ("/a@v1/t@v2", AtPath("/a@v1/t", 2, None)),
        ("s3://user@bucket/t", None),
        ("/a/t@v", None),
        ("/a/t@2024", None),
        ("/a/t@v1/p=1", None),
    ],
)
def test_the_end_of_a_path(path, expected):
    assert split_at(path) == expected


def test_by_version(old, spark):
    assert [old.rows(versionAsOf=version) for version in range(3)] == [[0], [0, 1], [0, 1, 2]]
    assert old.rows(versionasof="1") == [0, 1]
    assert spark.read.format("delta").load(old.path + "@v1").count() == 2
    with pytest.raises(VersionNotFoundError, match="0 to 2"):
        old.read(versionAsOf=3)
    with pytest.raises(VersionNotFoundError):
        spark.read.format("delta").load(old.path + "@v9")


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("2024-05-17 12:00:00", 1),
        ("2024-05-17 12:59:59.999", 1),
        ("2024-05-17T13:00:00Z", 2),
        ("2024-05-17 15:30:00+02:00", 2),
        ("2024-05-17 14:00:00", 3),
    ],
)
def test_by_time(old, text, count):
    assert old.read(timestampAsOf=text).count() == count


def test_the_session_s_time_zone_counts(old, spark, conf):
    conf("spark.sql.session.timeZone", "Europe/Berlin")
    assert old.read(timestampAsOf="2024-05-17 15:30:00").count() == 2
    assert spark.read.format("delta").load(old.path + "@20240517153000000").count() == 2
    assert timestamp_ms(spark, "2024-05-17 14:00:00") == NOON.timestamp() * 1000
    conf("spark.sql.session.timeZone", "UTC")
    assert spark.read.format("delta").load(old.path + "@20240517130000000").count() == 2


def test_times_out_of_range_name_the_range(old):
    with pytest.raises(TimestampOutOfRangeError, match="2024-05-17"):
        old.read(timestampAsOf="2024-05-17 11:59:59")
    with pytest.raises(TimestampOutOfRangeError, match="2024-05-17"):
        old.read(timestampAsOf="2024-05-17 14:00:01")


def test_requests_that_make_no_sense(old, spark):
    with pytest.raises(InvalidArgumentError, match="'soon'"):
        old.read(timestampAsOf="soon")
    with pytest.raises(InvalidArgumentError, match="either"):
        old.read(timestampAsOf="2024-05-17", versionAsOf=1)
    with pytest.raises(InvalidArgumentError, match="twice"):
        spark.read.format("delta").option("versionAsOf", 1).load(old.path + "@v1")
    with pytest.raises(InvalidArgumentError, match="converted"):
        spark.read.format("delta").load(old.path + "@20241317153000000")


def test_a_path_that_is_a_table_itself_is_read_as_such(spark, tmp_path):
    path = str(tmp_path / "t")
    spark.range(1).write.format("delta").save(path)
    spark.range(5).write.format("delta").save(path + "@v0")
    assert spark.read.format("delta").load(path + "@v0").count() == 5


def test_the_end_of_the_path_may_be_turned_off(old, spark, conf):
    conf("spark.databricks.delta.timeTravel.resolveOnIdentifier.enabled", "false")
    with pytest.raises(TableNotFoundError):
        spark.read.format("delta").load(old.path + "@v1")


def test_an_old_version_stays_what_it_was(old, spark):
    frame = old.read(versionAsOf=1)
    newest = old.read()
    old.delta.delete()
    assert frame.count() == 2
    assert newest.count() == 0


def test_reading_a_partition_by_its_path(spark, table):
    table.write(spark.sql("SELECT id, if(id = 3, null, concat('a/', id % 2)) AS p FROM range(4)"), by=("p",))
    read = spark.read.format("delta").load
    assert read(table.path + "/p=a%2F1").count() == 1
    assert read(table.path + "/p=__HIVE_DEFAULT_PARTITION__").count() == 1
    with pytest.raises(InvalidArgumentError, match="id is not a partition column"):
        read(table.path + "/id=1")


def test_no_table_there(spark, tmp_path):
    read = spark.read.format("delta").load
    with pytest.raises(TableNotFoundError, match="absent"):
        read(str(tmp_path / "absent"))
    spark.range(1).write.parquet(str(tmp_path / "parquet"))
    with pytest.raises(TableNotFoundError, match="not a Delta table"):
        read(str(tmp_path / "parquet"))


def test_a_table_deleted_and_made_again_is_the_new_one(spark, table):
    import shutil

    for rows in (3, 5):
        for _ in range(2):
            table.write(spark.range(rows))
        assert table.read().count() == 2 * rows
        shutil.rmtree(table.root)
    with pytest.raises(TableNotFoundError):
        table.read()
