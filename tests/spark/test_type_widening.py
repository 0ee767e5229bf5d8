"""Columns that were widened: each older file is read in the wider types, on every route, and filtered right."""

import datetime as dt
from decimal import Decimal

import pytest

from tablelog.core import DeltaLog
from tablelog.errors import InvalidArgumentError, SchemaChangedError, SchemaMismatchError, UnsupportedFeatureError
from tablelog.settings.declarations import READ_ROUTE, READ_SCRATCH

WIDENS = {"delta.enableTypeWidening": "true"}
OLD = (
    "select 1 id, 1Y b, 2S sh, 3 i, 4 i2, 5 i3, 6L l, 0.1F f, date'2024-02-29' d, 1.5BD dec, "
    "named_struct('x', 7) s, array(8) a, map('k', 9Y) m, 10 p"
)
CHANGES = {
    "b": "bigint", "sh": "decimal(12,2)", "i": "bigint", "i2": "double", "i3": "decimal(20,5)", "l": "decimal(22,2)",
    "f": "double", "d": "timestamp_ntz", "dec": "decimal(10,4)", "s.x": "bigint", "a.element": "double",
    "m.value": "int", "p": "bigint",
}  # fmt: skip
BIG = 2**40
ROWS = [
    (1, 1, Decimal("2.00"), 3, 4.0, Decimal("5.00000"), Decimal("6.00"), 0.10000000149011612,
     dt.datetime(2024, 2, 29), Decimal("1.5000"), (7,), [8.0], {"k": 9}, 10),
    (2, BIG, Decimal("2.25"), BIG, 0.5, Decimal("5.00005"), Decimal("6.25"), 0.1,
     dt.datetime(2024, 2, 29, 1, 2, 3), Decimal("99.0001"), (BIG,), [0.5], {"k": 2**20}, BIG),
]  # fmt: skip
NEW = (
    f"select 2 id, {BIG} b, 2.25BD sh, {BIG} i, 0.5D i2, 5.00005BD i3, 6.25BD l, 0.1D f, "
    f"timestamp_ntz'2024-02-29 01:02:03' d, 99.0001BD dec, named_struct('x', {BIG}) s, array(0.5D) a, "
    f"map('k', {2**20}) m, {BIG} p"
)

CONDITIONS = (
    ("f > 0.1D", [1]), ("b = 1", [1]), ("sh = 2", [1]), ("i < 4", [1]), (f"p = {BIG}", [2]), ("i2 = 4", [1]),
    ("i3 > 5", [2]), ("l = 6", [1]), ("d = timestamp_ntz'2024-02-29'", [1]), ("f = cast(0.1F as double)", [1]),
    ("f = 0.1D", [2]), (f"b = {BIG}", [2]), ("dec = 1.5", [1]), ("s.x = 7", [1]), ("p < 11 and i = 3", [1]),
)  # fmt: skip


@pytest.fixture
def widened(spark, table):
    table.write(spark.sql(OLD), by=("p",), **WIDENS, **{"delta.feature.timestampNtz": "supported"})
    for column, wanted in CHANGES.items():
        table.delta.alterColumn(column, dataType=wanted)
    table.write(spark.sql(NEW))
    return table


@pytest.mark.slow
def test_old_files_are_read_in_the_new_types(spark, widened, conf, tmp_path):
    assert "typeWidening" in widened.actions(0)[1]["protocol"]["readerFeatures"]
    assert widened.info(3)["operationParameters"]["column"].startswith('{"name":"i","type":"long"')
    conf(READ_SCRATCH.key, str(tmp_path / "scratch"))
    conf("spark.sql.ansi.enabled", "true")
    for route in ("native", "manifest", "arrow"):
        conf(READ_ROUTE.key, route)
        assert sorted(map(_plain, widened.read().collect())) == ROWS, route
        for condition, ids in CONDITIONS if route == "native" else CONDITIONS[::4]:
            assert widened.read().where(condition).select("id").collect() == [(i,) for i in ids], (route, condition)
    conf(READ_ROUTE.key, "native")
    conf("spark.sql.parquet.enableVectorizedReader", "false")
    assert sorted(map(_plain, widened.read().collect())) == ROWS
    assert widened.read(versionAsOf=0).schema["i"].dataType.simpleString() == "int"
    log = DeltaLog.for_path(widened.path)
    log.checkpoint()
    assert widened.read().where("f = cast(0.1F as double) and d < timestamp_ntz'2024-03-01'").count() == 1


def _plain(row):
    return tuple(tuple(value) if hasattr(value, "asDict") else value for value in row)


def test_new_data_widens_the_table_where_it_may(spark, table, conf):
    table.write(spark.sql("select 1 i, 1.5F f, 1Y b, array(1) a"), **WIDENS)
    before = table.read()
    wide = spark.sql(f"select {BIG} i, 2.5D f, 1000 b, array({BIG}) a")
    with pytest.raises(SchemaMismatchError):
        table.write(wide)
    table.write(wide, mergeSchema="true")
    assert table.read().schema.simpleString() == "struct<i:bigint,f:double,b:int,a:array<bigint>>"
    assert table.rows() == [(1, 1.5, 1, [1]), (BIG, 2.5, 1000, [BIG])]
    with pytest.raises(SchemaChangedError, match="is bigint now, not int"):
        before.collect()
    conf("spark.databricks.delta.schema.autoMerge.enabled", "true")
    conf("spark.databricks.delta.typeWidening.allowAutomaticWidening", "same_family_type")
    table.write(spark.sql("select 5L i, 3.5D f, 7L b, array(1L) a, 'new' n"))
    assert table.read().schema["b"].dataType.simpleString() == "bigint"
    assert table.rows("i", "b", "n") == [(1, 1, None), (5, 7, "new"), (BIG, 1000, None)]
    table.write(spark.sql("select 'x' i"), "overwrite", overwriteSchema="true")
    assert "typeChanges" not in table.actions()[1]["metaData"]["schemaString"]
    assert table.rows() == ["x"]


def test_rules_hold_a_column_s_type(spark, table):
    table.write(spark.sql("select 1 i, 1 free"), **WIDENS)
    table.delta.addConstraint("positive", "i > 0")
    for change in (
        lambda: table.delta.alterColumn("i", dataType="bigint"),
        lambda: table.write(spark.sql("select 2L i, 3L free"), mergeSchema="true"),
    ):
        with pytest.raises(InvalidArgumentError, match="the CHECK constraint positive"):
            change()
    table.write(spark.sql("select 2 i, 3L free"), mergeSchema="true")
    assert table.rows() == [(1, 1), (2, 3)]


def test_a_change_that_the_feature_does_not_have_is_not_read(spark, table):
    table.write(spark.sql("select 1 i"), **WIDENS)
    path = table.root / "_delta_log" / f"{0:020}.json"
    wrong = path.read_text().replace('\\"metadata\\":{}', '\\"metadata\\":{\\"delta.typeChanges\\":[{\\"fromType\\":'
                                     '\\"long\\",\\"toType\\":\\"integer\\"}]}')  # fmt: skip
    path.write_text(wrong)
    with pytest.raises(UnsupportedFeatureError, match="i was changed from bigint to int"):
        DeltaLog.for_path(table.path).snapshot()
