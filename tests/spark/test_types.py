"""Values of every type there and back, as data and as partitions."""

import datetime as dt
from decimal import Decimal

import pytest

from tablelog.errors import ConstraintViolationError, InvalidArgumentError, SchemaMismatchError

FRAME = """
    SELECT id,
        cast(id AS tinyint) AS b, cast(id AS smallint) AS s, cast(id AS int) AS i,
        cast(id / 3 AS float) AS f, if(id = 1, double('NaN'), id / 3) AS d,
        cast(id AS decimal(5, 2)) AS dec, cast(id AS decimal(38, 10)) * 1e20BD AS big,
        if(id = 2, '', concat('ä/', id)) AS str, cast(concat('x', id) AS binary) AS bin, id % 2 = 0 AS bool,
        date'1970-01-01' - cast(id * 200000 AS int) AS day,
        timestamp'2024-05-17 12:30:05.123456' + make_dt_interval(id) AS ts,
        timestamp_ntz'2024-05-17 12:30:05.123456' AS ntz,
        named_struct('a', id, 'in', named_struct('x', cast(id AS string))) AS st,
        array(id, null) AS arr, map('k', id, 'n', null) AS m,
        array(named_struct('q', id)) AS deep
    FROM range(3)
    UNION ALL
    SELECT 3, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null
"""


@pytest.mark.parametrize("large", [False, True], ids=["written by the driver", "written by Spark"])
def test_values_of_every_type(spark, table, large):
    frame = spark.sql(FRAME)
    table.write(frame.repartition(2) if large else frame)
    found = table.read()
    assert [f.dataType.simpleString() for f in found.schema] == [f.dataType.simpleString() for f in frame.schema]
    assert repr(found.orderBy("id").collect()) == repr(frame.orderBy("id").collect())
    assert found.where("day < date'1582-10-01' and i = 2").count() == 1


PARTITIONS = [
    ("tinyint", ["-128", "127"]),
    ("smallint", ["-32768"]),
    ("int", ["0", "2147483647"]),
    ("bigint", ["-9223372036854775808"]),
    ("float", ["1.5", "'NaN'", "'-Infinity'"]),
    ("double", ["0.1", "'NaN'", "1e300"]),
    ("decimal(10,2)", ["1.50", "-0.01"]),
    ("boolean", ["true", "false"]),
    ("date", ["'2024-02-29'", "'0001-01-01'", "'9999-12-31'"]),
    ("timestamp", ["'2024-05-17 12:30:05.123456'", "'1969-12-31 23:59:59'"]),
    ("timestamp_ntz", ["'2024-05-17 12:30:05.123456'"]),
    ("binary", ["X'C3A9'", "'abc'"]),
    ("string", ["'a/b'", "'100%'", "'a=b'", "'a b'", "'ünï 漢'", "'x:y\"z'", "'#?&'", "'__HIVE_DEFAULT_PARTITION__x'"]),
]


WAYS = [(*case, False) for case in PARTITIONS] + [
    (*case, True) for case in PARTITIONS if case[0] in ("double", "string")
]


@pytest.mark.parametrize(("kind", "values", "large"), WAYS, ids=[f"{kind} {large}" for kind, _, large in WAYS])
def test_partitions_of_every_type(spark, table, kind, values, large):
    """Written by the driver or, `large`, by Spark; found by value, deleted by metadata, replaced by partition."""
    rows = ", ".join(f"({i}, cast({value} AS {kind}))" for i, value in enumerate([*values, "null"]))
    frame = spark.sql(f"SELECT int(col1) AS id, col2 AS p FROM VALUES {rows}")
    table.write(frame.repartition(2) if large else frame, by=("p",))
    expected = frame.orderBy("id").collect()
    assert repr(table.read().orderBy("id").collect()) == repr(expected)
    for i, value in enumerate(values):
        condition = f"p = cast({value} AS {kind})"
        assert [row.id for row in table.read().where(condition).collect()] == [i], condition
    assert [row.id for row in table.read().where("p IS NULL").collect()] == [len(values)]
    table.delta.delete(f"p = cast({values[0]} AS {kind})")
    assert table.rows("id") == list(range(1, len(values) + 1))
    table.write(frame.where("id = 0 or p is null"), "overwrite", partitionOverwriteMode="dynamic")
    assert table.rows("id") == list(range(len(values) + 1))
    assert table.data_files() == table.logged_files()


def test_an_empty_string_is_null_as_a_partition(spark, table):
    table.write(spark.createDataFrame([(1, ""), (2, None), (3, "a")], "id int, p string"), by=("p",))
    assert [row.p for row in table.read().orderBy("id").collect()] == [None, None, "a"]


def test_bytes_that_are_no_text_are_refused_as_a_partition(spark, table):
    with pytest.raises(ConstraintViolationError, match="UTF-8"):
        table.write(spark.sql("SELECT 1 AS id, X'00FF' AS p"), by=("p",))
    assert not table.root.exists() or table.data_files() == set()


def test_casts_that_lose_data_are_refused(spark, table):
    table.write(spark.createDataFrame([(1, "a", Decimal("1.00"))], "id int, word string, money decimal(5,2)"))
    table.write(spark.createDataFrame([(2, "b", Decimal("2.00"))], "id bigint, word string, money decimal(8,2)"))
    assert table.rows("id") == [1, 2]
    with pytest.raises(SchemaMismatchError, match="id"):
        table.write(spark.createDataFrame([(3_000_000_000,)], "id bigint"))
    with pytest.raises(SchemaMismatchError, match="id"):
        table.write(spark.createDataFrame([("x",)], "id string"))
    with pytest.raises(SchemaMismatchError, match="word"):
        table.write(spark.createDataFrame([([1],)], "word array<int>"))
    assert table.version == 1
    assert table.data_files() == table.logged_files()


def test_names_that_parquet_forbids(spark, table):
    with pytest.raises((InvalidArgumentError, SchemaMismatchError), match="a b"):
        table.write(spark.range(1).withColumnRenamed("id", "a b"))
    with pytest.raises(SchemaMismatchError, match=r"(?i)id"):
        table.write(spark.range(1).selectExpr("id", "id as ID"))


def test_void_columns_wait_for_a_type(spark, table):
    table.write(spark.range(2).selectExpr("id", "null as later"))
    assert table.read().columns == ["id", "later"]
    assert [tuple(row) for row in table.read().where("later is null").orderBy("id").collect()] == [(0, None), (1, None)]
    table.write(spark.range(2, 3).selectExpr("id", "'now' as later"), mergeSchema=True)
    assert table.read().columns == ["id", "later"]
    assert [row.later for row in table.read().orderBy("id").collect()] == [None, None, "now"]


def test_timestamps_do_not_move_with_the_session_s_zone(spark, table, conf):
    frame = spark.sql("SELECT timestamp'2024-07-01 12:00:00' AS ts, date'2024-07-01' AS p")
    moment = frame.selectExpr("unix_micros(ts) as us").first().us
    table.write(frame, by=("ts",))
    conf("spark.sql.session.timeZone", "America/Los_Angeles")
    assert table.read().selectExpr("unix_micros(ts) as us").first().us == moment
    assert table.read().where("ts = timestamp'2024-07-01 05:00:00'").count() == 1
    values = next(a["add"]["partitionValues"] for a in table.actions(0) if "add" in a)
    assert values == {"ts": "2024-07-01T12:00:00.000000Z"}
    assert isinstance(table.read().first().p, dt.date)
