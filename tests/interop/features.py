"""A table for each feature, by lines that both delta-spark and we can run: to make it, and to go on with it."""

from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from tablelog.spark import DeltaTable, IdentityGenerator

# What the lines below call, where delta-spark runs them; `scope` has the same for us.
THEIR_WORDS = """
from delta.tables import IdentityGenerator
table = f"delta.`{path}`"
def rows(start, stop):
    return spark.range(start, stop, 1, 2).selectExpr("id", "cast(id % 3 as int) p", "concat('s', id) s")
def save(frame, **options):
    frame.write.format("delta").mode("append").options(**options).save(path)
def T():
    return DeltaTable.forPath(spark, path)
def properties(**given):
    pairs = ", ".join(f"'delta.{key.replace('_', '.')}' = '{value}'" for key, value in given.items())
    spark.sql(f"alter table {table} set tblproperties ({pairs})")
def constraint(name, expression):
    spark.sql(f"alter table {table} add constraint {name} check ({expression})")
def add(column, type_):
    spark.sql(f"alter table {table} add columns ({column} {type_})")
def rename(column, to):
    spark.sql(f"alter table {table} rename column {column} to {to}")
def drop(column):
    spark.sql(f"alter table {table} drop column {column}")
def widen(column, type_):
    spark.sql(f"alter table {table} alter column {column} type {type_}")
def default(column, expression):
    spark.sql(f"alter table {table} alter column {column} set default {expression}")
"""


def scope(spark: SparkSession, path: str) -> dict[str, Any]:
    """The words of `THEIR_WORDS`, as we say them."""

    def table() -> DeltaTable:
        return DeltaTable.forPath(spark, path)

    return {
        "spark": spark,
        "path": path,
        "DeltaTable": DeltaTable,
        "IdentityGenerator": IdentityGenerator,
        "rows": lambda start, stop: spark.range(start, stop, 1, 2).selectExpr(
            "id", "cast(id % 3 as int) p", "concat('s', id) s"
        ),
        "save": lambda frame, **options: frame.write.format("delta").mode("append").options(**options).save(path),
        "T": table,
        "properties": lambda **given: table().setProperties(
            {f"delta.{key.replace('_', '.')}": value for key, value in given.items()}
        ),
        "constraint": lambda name, expression: table().addConstraint(name, expression),
        "add": lambda column, type_: table().addColumns(f"{column} {type_}"),
        "rename": lambda column, to: table().renameColumn(column, to),
        "drop": lambda column: table().dropColumn(column),
        "widen": lambda column, type_: table().alterColumn(column, dataType=type_),
        "default": lambda column, expression: table().alterColumn(column, default=expression),
    }


@dataclass(frozen=True)
class Case:
    """`make` makes a table with the feature, `more` goes on with one that may be the other engine's.

    `shown` are the columns as they are compared; `feed`: the table has a change data feed, which is compared too.
    `versions`: the table has no list of features, but these versions of reader and writer.
    """

    feature: str
    make: str
    more: str = "save(rows(100, 106)); T().delete('id % 10 = 3'); T().update('id = 4', {'s': \"'changed'\"})"
    shown: tuple[str, ...] = ("*",)
    feed: bool = False
    versions: tuple[int, int] | None = None


_SIMPLE = "T().delete('id % 10 = 3'); T().update('id = 4', {'id': '40'})"

CASES = (
    Case("appendOnly", "save(rows(0, 20), **{'delta.appendOnly': 'true'})", "save(rows(100, 106))"),
    Case(
        "invariants",
        "DeltaTable.create(spark).addColumn('id', 'bigint', nullable=False).addColumn('p', 'int')"
        ".addColumn('s', 'string').location(path).execute(); save(rows(0, 20))",
    ),
    Case("checkConstraints", "save(rows(0, 20)); constraint('small', 'id < 1000 and s is not null')"),
    Case(
        "generatedColumns",
        "DeltaTable.create(spark).addColumn('id', 'bigint').addColumn('twice', 'bigint', generatedAlwaysAs='id * 2')"
        ".location(path).execute(); save(spark.range(20))",
        "save(spark.range(100, 106)); " + _SIMPLE,
    ),
    Case(
        "identityColumns",
        "DeltaTable.create(spark).addColumn('n', 'bigint', generatedAlwaysAs=IdentityGenerator(5, 2))"
        ".addColumn('id', 'bigint').location(path).execute(); save(spark.range(0, 20, 1, 2))",
        "save(spark.range(100, 106, 1, 1)); " + _SIMPLE,
    ),
    Case(
        "allowColumnDefaults",
        "save(rows(0, 20)); properties(feature_allowColumnDefaults='supported'); default('s', \"'none'\")",
    ),
    Case(
        "columnMapping",
        "save(rows(0, 20), **{'delta.columnMapping.mode': 'name'}); rename('p', '`a b`'); add('late', 'double'); "
        "drop('late'); add('late', 'int')",
        "save(rows(100, 106).withColumnRenamed('p', 'a b')); T().delete('id % 10 = 3'); "
        "T().update('id = 4', {'late': '7'})",
    ),
    Case(
        "columnMapping by id",
        "save(rows(0, 20), **{'delta.columnMapping.mode': 'id'}); rename('p', 'q')",
        "save(rows(100, 106).withColumnRenamed('p', 'q')); T().delete('id % 10 = 3')",
    ),
    Case("deletionVectors", "save(rows(0, 20), **{'delta.enableDeletionVectors': 'true'}); T().delete('id % 5 = 1')"),
    Case(
        "changeDataFeed",
        "save(rows(0, 20), **{'delta.enableChangeDataFeed': 'true'}); T().delete('id % 5 = 1'); "
        "T().update('id = 2', {'s': \"'new'\"})",
        feed=True,
    ),
    Case(
        "timestampNtz",
        "save(rows(0, 20).selectExpr('*', \"timestamp_ntz'2024-01-01 00:00:00' + make_dt_interval(id) t\"))",
        "save(rows(100, 106).selectExpr('*', \"timestamp_ntz'1969-12-31 23:59:59.999999' t\")); "
        "T().delete('id % 10 = 3')",
    ),
    Case(
        "v2Checkpoint",
        "save(rows(0, 20), **{'delta.checkpointPolicy': 'v2', 'delta.checkpointInterval': '2'}); "
        "T().delete('id = 1'); T().delete('id = 2')",
    ),
    Case("rowTracking", "save(rows(0, 20), **{'delta.enableRowTracking': 'true'}); T().delete('id = 1')"),
    Case("inCommitTimestamp", "save(rows(0, 20)); properties(enableInCommitTimestamps='true'); save(rows(20, 22))"),
    Case(
        "typeWidening",
        "save(rows(0, 20), **{'delta.enableTypeWidening': 'true'}); widen('p', 'bigint'); "
        "save(spark.range(20, 22).selectExpr('id', '5000000000 p', \"'w' s\"))",
        "save(rows(100, 106).selectExpr('id', 'cast(p as bigint) p', 's')); T().delete('id % 10 = 3')",
    ),
    Case(
        "variantType",
        "save(spark.range(20).selectExpr('id', 'parse_json(concat(\"[\", id, \"]\")) v'))",
        "save(spark.range(100, 106).selectExpr('id', 'parse_json(\"{}\") v')); T().delete('id % 10 = 3')",
        shown=("id", "cast(v as string) v"),
    ),
    Case(
        "clustering",
        "DeltaTable.create(spark).addColumn('id', 'bigint').addColumn('p', 'int').addColumn('s', 'string')"
        ".clusterBy('id', 'p').location(path).execute(); save(rows(0, 20)); T().optimize().executeCompaction()",
    ),
    Case("vacuumProtocolCheck", "save(rows(0, 20), **{'delta.feature.vacuumProtocolCheck': 'supported'})"),
    *(
        Case(
            f"icebergCompatV{number}",
            "save(rows(0, 20), **{'delta.columnMapping.mode': 'name', "
            f"'delta.enableIcebergCompatV{number}': 'true'}})",
        )
        for number in (1, 2)
    ),
    Case("domainMetadata", "save(rows(0, 20), **{'delta.feature.domainMetadata': 'supported'})"),
    Case(
        "checkpointProtection",
        "save(rows(0, 20), **{'delta.enableDeletionVectors': 'true'}); T().delete('id % 5 = 1'); "
        "T().dropFeatureSupport('deletionVectors')",
    ),
    Case(
        "materializePartitionColumns",
        "DeltaTable.create(spark).addColumn('id', 'bigint').addColumn('p', 'int').addColumn('s', 'string')"
        ".partitionedBy('p').property('delta.enableMaterializePartitionColumnsFeature', 'true').location(path)"
        ".execute(); save(rows(0, 20))",
    ),
    *(
        Case(
            f"versions {versions}",
            f"save(rows(0, 20), **{{'delta.minReaderVersion': '{versions[0]}', "
            f"'delta.minWriterVersion': '{versions[1]}', {given}}})",
            versions=versions,
        )
        for versions, given in (
            ((1, 1), ""),
            ((1, 2), ""),
            ((1, 3), "'delta.constraints.small': 'id < 1000'"),
            ((1, 4), "'delta.enableChangeDataFeed': 'true'"),
            ((2, 5), "'delta.columnMapping.mode': 'name'"),
            ((2, 6), "'delta.columnMapping.mode': 'name'"),
        )
    ),
)
