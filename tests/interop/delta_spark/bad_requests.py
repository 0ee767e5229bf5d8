"""Requests that Delta refuses, as lines of PySpark that either engine runs on a table of its own at `path`.

`T` is a DeltaTable of a copy of the table that `SEED` makes: `id` and `s`, partitioned by `p`. Where Delta has SQL
alone for a thing and we have a method, the two engines run different lines.
"""

from typing import NamedTuple

ROWS = """
rows = spark.range(4).selectExpr("id", "cast(id as string) s", "id % 2 p").coalesce(1)
"""
SEED = f"""{ROWS}
rows.write.format("delta").partitionBy("p").save(path)
result = None
"""
SETUP = f"""{ROWS}
import os, shutil
shutil.copytree(os.path.dirname(path) + "/seed", path)
T = DeltaTable.forPath(spark, path)
one = spark.range(1).selectExpr("id", "'x' s", "id p")
"""


class Request(NamedTuple):
    """What our engine runs and, where it is something else, what delta-spark runs."""

    ours: str
    theirs: str = ""


def _altered(ours: str, sql: str) -> Request:
    return Request(ours, f'spark.sql(f"ALTER TABLE delta.`{{path}}` {sql}")')


def _properties(**pairs: str) -> Request:
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in pairs.items())
    return _altered(f"T.setProperties({pairs!r})", f"SET TBLPROPERTIES ({listed})")


_CHECK = _altered("T.addConstraint('c', 'id >= 0')", "ADD CONSTRAINT c CHECK (id >= 0)")
_APPEND = "one.write.format('delta').mode('append').save(path)"


def _after(first: Request, then: str, sql: str = "") -> Request:
    theirs = f'spark.sql(f"ALTER TABLE delta.`{{path}}` {sql}")' if sql else then
    return Request(f"{first.ours}\n{then}", f"{first.theirs or first.ours}\n{theirs}")


def _write(frame: str = "one", mode: str = "append", **options: str) -> Request:
    return Request(f"{frame}.write.format('delta').mode({mode!r}).options(**{options!r}).save(path)")


def _read(**options: str) -> Request:
    return Request(f"spark.read.format('delta').options(**{options!r}).load(path).count()")


def _merge(condition: str, clauses: str, source: str = "one") -> Request:
    return Request(f"T.alias('t').merge({source}.alias('s'), {condition!r}){clauses}.execute()")


_KEYS = "t.id = s.id"
_ALL = ".whenMatchedUpdateAll()"
_MAPPED = _properties(**{"delta.columnMapping.mode": "name"})

REQUESTS = {
    # --- tables that aren't there
    "for path of no table": Request("DeltaTable.forPath(spark, path + '_none')"),
    "load of no table": Request("spark.read.format('delta').load(path + '_none').count()"),
    "for name of no table": Request("DeltaTable.forName(spark, 'no_such_table')"),
    "hadoopConf of no file system": Request("DeltaTable.forPath(spark, path, {'x.y': '1'})"),
    "replace of no table": Request("DeltaTable.replace(spark).location(path + '_n').addColumn('a', 'int').execute()"),
    "create over a table": Request("DeltaTable.create(spark).location(path).addColumn('a', 'int').execute()"),
    "create with no columns in common": Request(
        "DeltaTable.createIfNotExists(spark).location(path).addColumn('a', 'int').partitionedBy('b').execute()"
    ),
    # --- conditions
    "delete by no column": Request("T.delete('nope = 1')"),
    "delete by no boolean": Request("T.delete('id + 1')"),
    "delete by chance": Request("T.delete('rand() > 0.5')"),
    "delete by an aggregate": Request("T.delete('count(id) > 1')"),
    "delete by no SQL": Request("T.delete('id = ')"),
    "delete by no function": Request("T.delete('nope(id)')"),
    "update by no column": Request("T.update('nope = 1', {'s': \"'a'\"})"),
    "update by chance": Request("T.update('rand() > 0.5', {'s': \"'a'\"})"),
    "update of no column": Request("T.update(set={'nope': '1'})"),
    "update to no column": Request("T.update(set={'s': 'nope'})"),
    "update to an aggregate": Request("T.update(set={'s': 'max(s)'})"),
    "update of a column twice": Request("T.update(set={'s': \"'a'\", 'S': \"'b'\"})"),
    "update to another type": Request("T.update(set={'id': 'array(1)'})"),
    # --- merge
    "merge with no clause": _merge(_KEYS, ""),
    "merge by no column": _merge("t.nope = s.id", _ALL),
    "merge by an ambiguous column": _merge("id = id", _ALL),
    "merge by chance": _merge("t.id = s.id and rand() > 0.5", _ALL),
    "merge by an aggregate": _merge("max(t.id) = s.id", _ALL),
    "merge by no SQL": _merge("t.id =", _ALL),
    "merge of several rows into one": _merge(_KEYS, _ALL, "spark.range(4).selectExpr('0L id', 'string(id) s', '0L p')"),
    "merge clause by no column": _merge(_KEYS, ".whenMatchedDelete('s.nope = 1')"),
    "merge clause by an aggregate": _merge(_KEYS, ".whenMatchedDelete('max(s.id) = 1')"),
    "merge sets no column": _merge(_KEYS, ".whenMatchedUpdate(set={'nope': 's.id'})"),
    "merge sets to no column": _merge(_KEYS, ".whenMatchedUpdate(set={'s': 's.nope'})"),
    "merge sets a column twice": _merge(_KEYS, ".whenMatchedUpdate(set={'s': 's.s', 'S': 's.s'})"),
    "merge inserts no column": _merge(_KEYS, ".whenNotMatchedInsert(values={'nope': 's.id'})"),
    "merge inserts from no column": _merge(_KEYS, ".whenNotMatchedInsert(values={'id': 's.nope'})"),
    "merge inserts the table's column": _merge(_KEYS, ".whenNotMatchedInsert(values={'id': 't.id'})"),
    "merge updates all from too few columns": _merge(_KEYS, _ALL, "spark.range(1)"),
    "merge inserts all from too few columns": _merge(_KEYS, ".whenNotMatchedInsertAll()", "spark.range(1)"),
    "merge of an unreachable clause": _merge(_KEYS, ".whenMatchedDelete().whenMatchedUpdateAll()"),
    "merge of an unreachable insert": _merge(_KEYS, ".whenNotMatchedInsertAll().whenNotMatchedInsertAll('s.id = 1')"),
    "merge of an unreachable clause of the table's": _merge(
        _KEYS, ".whenNotMatchedBySourceDelete().whenNotMatchedBySourceDelete('t.id = 1')"
    ),
    # --- writes
    "append of one more column": _write("one.selectExpr('*', '1 more')"),
    "append of another type": _write("one.selectExpr('id', 'array(s) s', 'p')"),
    "append of another type with mergeSchema": _write("one.selectExpr('id', 'array(s) s', 'p')", mergeSchema="true"),
    "append of a wider type": _write("one.selectExpr('cast(id as double) id', 's', 'p')", mergeSchema="true"),
    "append of a column twice": _write("one.selectExpr('id', 's', 'p', 's as S')", mergeSchema="true"),
    "append by other partitions": Request("one.write.format('delta').mode('append').partitionBy('s').save(path)"),
    "overwrite by other partitions": Request("one.write.format('delta').mode('overwrite').partitionBy('s').save(path)"),
    "write over a table": Request("one.write.format('delta').save(path)"),
    "write of a column twice": Request("one.selectExpr('id', 'id as ID').write.format('delta').save(path + '_n')"),
    "write of a name with a space": Request("one.selectExpr('id as `a b`').write.format('delta').save(path + '_n')"),
    "write of a partition name with a space": Request(
        "one.selectExpr('id', 'p as `a b`').write.format('delta').partitionBy('a b').save(path + '_n')"
    ),
    "write of no columns": Request("one.select().write.format('delta').save(path + '_n')"),
    "write partitioned by no column": Request("one.write.format('delta').partitionBy('nope').save(path + '_n')"),
    "write partitioned by all columns": Request(
        "one.write.format('delta').partitionBy('id', 's', 'p').save(path + '_n')"
    ),
    "write partitioned by an array": Request(
        "one.selectExpr('id', 'array(s) s').write.format('delta').partitionBy('s').save(path + '_n')"
    ),
    "write into buckets": Request("one.write.format('delta').bucketBy(2, 'id').save(path + '_n')"),
    "write of a txnVersion alone": _write(txnVersion="1"),
    "write of a txnVersion that is no number": _write(txnAppId="a", txnVersion="x"),
    "write of mergeSchema that is no boolean": _write(mergeSchema="maybe"),
    "write of another partitionOverwriteMode": _write(mode="overwrite", partitionOverwriteMode="some"),
    "overwriteSchema of partitions": _write(mode="overwrite", overwriteSchema="true", partitionOverwriteMode="dynamic"),
    "replaceWhere that rows don't meet": _write(mode="overwrite", replaceWhere="p = 1"),
    "replaceWhere on data that rows don't meet": _write(mode="overwrite", replaceWhere="id > 1"),
    "replaceWhere of no column": _write(mode="overwrite", replaceWhere="nope = 1"),
    "replaceWhere of no SQL": _write(mode="overwrite", replaceWhere="p = "),
    "replaceWhere of partitions that are dynamic": _write(
        mode="overwrite", replaceWhere="p = 0", partitionOverwriteMode="dynamic"
    ),
    "overwriteSchema with replaceWhere": _write(mode="overwrite", replaceWhere="p = 0", overwriteSchema="true"),
    "dataChange=false with replaceWhere on data": _write(mode="overwrite", replaceWhere="id = 0", dataChange="false"),
    # --- reads
    "schema given": Request("spark.read.format('delta').schema('id long').load(path).count()"),
    "version that isn't there yet": _read(versionAsOf="99"),
    "version that is no number": _read(versionAsOf="x"),
    "version below 0": _read(versionAsOf="-1"),
    "time after the last version": _read(timestampAsOf="2999-01-01"),
    "time before the first version": _read(timestampAsOf="1999-01-01"),
    "time that is none": _read(timestampAsOf="soon"),
    "version and time": _read(versionAsOf="0", timestampAsOf="2024-01-01"),
    "version by the path that isn't there": Request("spark.read.format('delta').load(path + '@v99').count()"),
    "changes not recorded": _read(readChangeFeed="true", startingVersion="0"),
    "changes with no start": _read(readChangeFeed="true"),
    "changes from after the newest": _read(readChangeFeed="true", startingVersion="7"),
    "changes that end before they start": _read(readChangeFeed="true", startingVersion="1", endingVersion="0"),
    "changes from a version and a time": _read(
        readChangeFeed="true", startingVersion="0", startingTimestamp="2024-01-01"
    ),
    "changes until a version and a time": _read(
        readChangeFeed="true", startingVersion="0", endingVersion="0", endingTimestamp="2024-01-01"
    ),
    "changes from a version that is no number": _read(readChangeFeed="true", startingVersion="x"),
    # --- rules
    "row that breaks a constraint": _after(
        _CHECK, "spark.sql(\"select -1L id, 's' s, 0L p\").write.format('delta').mode('append').save(path)"
    ),
    "update that breaks a constraint": _after(_CHECK, "T.update(set={'id': '-1L'})"),
    "null in a column that is NOT NULL": Request(
        "DeltaTable.create(spark).location(path + '_n').addColumn('id', 'long', nullable=False).execute()\n"
        "spark.sql('select cast(null as long) id').write.format('delta').mode('append').save(path + '_n')"
    ),
    "column left out that is NOT NULL": Request(
        "DeltaTable.create(spark).location(path + '_n').addColumn('id', 'long', nullable=False)"
        ".addColumn('s', 'string').execute()\n"
        "spark.sql(\"select 's' s\").write.format('delta').mode('append').save(path + '_n')"
    ),
    "value that isn't the generated one": Request(
        "DeltaTable.create(spark).location(path + '_n').addColumn('id', 'long')"
        ".addColumn('g', 'long', generatedAlwaysAs='id + 1').execute()\n"
        "spark.sql('select 1L id, 1L g').write.format('delta').mode('append').save(path + '_n')"
    ),
    "value for an identity column": Request(
        "DeltaTable.create(spark).location(path + '_n').addColumn('id', 'long')"
        ".addColumn('g', 'long', generatedAlwaysAs=IdentityGenerator()).execute()\n"
        "spark.sql('select 1L id, 1L g').write.format('delta').mode('append').save(path + '_n')"
    ),
    "update of an identity column": Request(
        "DeltaTable.create(spark).location(path + '_n').addColumn('id', 'long')"
        ".addColumn('g', 'long', generatedAlwaysAs=IdentityGenerator()).execute()\n"
        "DeltaTable.forPath(spark, path + '_n').update(set={'g': '1L'})"
    ),
    "value that is too long": Request(
        "DeltaTable.create(spark).location(path + '_n').addColumn('s', 'varchar(2)').execute()\n"
        "spark.sql(\"select 'long' s\").write.format('delta').mode('append').save(path + '_n')"
    ),
    "value out of the type's range": Request(
        "DeltaTable.create(spark).location(path + '_n').addColumn('i', 'int').execute()\n"
        "spark.sql(\"select 99999999999L i\").write.format('delta').mode('append').save(path + '_n')"
    ),
    "identity column of no bigint": Request(
        "DeltaTable.create(spark).location(path + '_n').addColumn('g', 'int', generatedAlwaysAs=IdentityGenerator())"
        ".addColumn('i', 'int').execute()"
    ),
    "identity column as partition": Request(
        "DeltaTable.create(spark).location(path + '_n').addColumn('g', 'long', generatedAlwaysAs=IdentityGenerator())"
        ".addColumn('i', 'int').partitionedBy('g').execute()"
    ),
    "generation of another type": Request(
        "DeltaTable.create(spark).location(path + '_n').addColumn('id', 'long')"
        ".addColumn('g', 'date', generatedAlwaysAs='id + 1').execute()"
    ),
    "generation from no column": Request(
        "DeltaTable.create(spark).location(path + '_n').addColumn('id', 'long')"
        ".addColumn('g', 'long', generatedAlwaysAs='nope + 1').execute()"
    ),
    "generation by chance": Request(
        "DeltaTable.create(spark).location(path + '_n').addColumn('id', 'long')"
        ".addColumn('g', 'double', generatedAlwaysAs='rand()').execute()"
    ),
    "generation by an aggregate": Request(
        "DeltaTable.create(spark).location(path + '_n').addColumn('id', 'long')"
        ".addColumn('g', 'long', generatedAlwaysAs='max(id)').execute()"
    ),
    "created with a column twice": Request(
        "DeltaTable.create(spark).location(path + '_n').addColumn('id', 'long').addColumn('ID', 'long').execute()"
    ),
    "created partitioned by no column": Request(
        "DeltaTable.create(spark).location(path + '_n').addColumn('id', 'long').partitionedBy('nope').execute()"
    ),
    "created clustered by no column": Request(
        "DeltaTable.create(spark).location(path + '_n').addColumn('id', 'long').clusterBy('nope').execute()"
    ),
    "created partitioned and clustered": Request(
        "DeltaTable.create(spark).location(path + '_n').addColumn('id', 'long').addColumn('p', 'long')"
        ".partitionedBy('p').clusterBy('id').execute()"
    ),
    "constraint there is": _after(_CHECK, "T.addConstraint('C', 'id > 0')", "ADD CONSTRAINT C CHECK (id > 0)"),
    "constraint that rows break": _altered("T.addConstraint('c', 'id > 2')", "ADD CONSTRAINT c CHECK (id > 2)"),
    "constraint of no column": _altered("T.addConstraint('c', 'nope > 2')", "ADD CONSTRAINT c CHECK (nope > 2)"),
    "constraint of no boolean": _altered("T.addConstraint('c', 'id + 2')", "ADD CONSTRAINT c CHECK (id + 2)"),
    "constraint by chance": _altered("T.addConstraint('c', 'rand() < 2')", "ADD CONSTRAINT c CHECK (rand() < 2)"),
    "constraint on an aggregate": _altered(
        "T.addConstraint('c', 'max(id) < 9')", "ADD CONSTRAINT c CHECK (max(id) < 9)"
    ),
    "constraint there isn't": _altered("T.dropConstraint('nope')", "DROP CONSTRAINT nope"),
    # --- columns
    "column there is": _altered("T.addColumns('s string')", "ADD COLUMNS (s string)"),
    "column below no struct": _altered("T.addColumns('`s.x` string')", "ADD COLUMNS (s.x string)"),
    "column after no column": _altered("T.addColumns('n string', 'AFTER nope')", "ADD COLUMNS (n string AFTER nope)"),
    "rename without column mapping": _altered("T.renameColumn('s', 'n')", "RENAME COLUMN s TO n"),
    "drop without column mapping": _altered("T.dropColumn('s')", "DROP COLUMN s"),
    "rename of no column": _after(_MAPPED, "T.renameColumn('nope', 'n')", "RENAME COLUMN nope TO n"),
    "rename to a column there is": _after(_MAPPED, "T.renameColumn('s', 'id')", "RENAME COLUMN s TO id"),
    "drop of no column": _after(_MAPPED, "T.dropColumn('nope')", "DROP COLUMN nope"),
    "drop of a partition column": _after(_MAPPED, "T.dropColumn('p')", "DROP COLUMN p"),
    "type that no value keeps": _altered("T.alterColumn('s', dataType='int')", "ALTER COLUMN s TYPE int"),
    "NOT NULL of a column": _altered("T.alterColumn('s', nullable=False)", "ALTER COLUMN s SET NOT NULL"),
    "change of no column": _altered("T.alterColumn('nope', comment='c')", "ALTER COLUMN nope COMMENT 'c'"),
    "default without its feature": _altered("T.alterColumn('s', default=\"'d'\")", "ALTER COLUMN s SET DEFAULT 'd'"),
    "column mapping by id of a table": _properties(**{"delta.columnMapping.mode": "id"}),
    "column mapping by nothing": _properties(**{"delta.columnMapping.mode": "nope"}),
    "drop of a column that a constraint has": Request(
        f"{_MAPPED.ours}\n{_CHECK.ours}\nT.dropColumn('id')",
        f'{_MAPPED.theirs}\n{_CHECK.theirs}\nspark.sql(f"ALTER TABLE delta.`{{path}}` DROP COLUMN id")',
    ),
    # --- properties and features
    "property that Delta hasn't": _properties(**{"delta.nope": "1"}),
    "property of another type": _properties(**{"delta.appendOnly": "maybe"}),
    "property that is no interval": _properties(**{"delta.logRetentionDuration": "long"}),
    "property that is no number": _properties(**{"delta.checkpointInterval": "-3"}),
    "isolation level there isn't": _properties(**{"delta.isolationLevel": "nope"}),
    "protocol version as text": _properties(**{"delta.minReaderVersion": "x"}),
    "unset of a property that isn't set": _altered("T.unsetProperties(['x.y'])", "UNSET TBLPROPERTIES ('x.y')"),
    "feature there isn't": Request("T.addFeatureSupport('nope')"),
    "feature as a property that isn't": _properties(**{"delta.feature.nope": "supported"}),
    "feature with a status there isn't": _properties(**{"delta.feature.deletionVectors": "nope"}),
    "protocol that there isn't": Request("T.upgradeTableProtocol(9, 99)"),
    "drop of a feature there isn't": Request("T.dropFeatureSupport('nope')"),
    "drop of a feature that the table hasn't": Request("T.dropFeatureSupport('deletionVectors')"),
    "drop of a feature for good": Request("T.dropFeatureSupport('appendOnly')"),
    "drop of a property as a feature": Request("T.dropFeatureSupport('delta.appendOnly')"),
    "drop of a feature whose history is there": Request(
        "T.addFeatureSupport('deletionVectors')\nT.dropFeatureSupport('deletionVectors', True)"
    ),
    "delete from a table of appends": _after(_properties(**{"delta.appendOnly": "true"}), "T.delete('id = 1')"),
    "update of a table of appends": _after(_properties(**{"delta.appendOnly": "true"}), "T.update(set={'s': \"'a'\"})"),
    "overwrite of a table of appends": _after(
        _properties(**{"delta.appendOnly": "true"}), "one.write.format('delta').mode('overwrite').save(path)"
    ),
    # --- upkeep
    "vacuum of what is new": Request("T.vacuum(0)"),
    "vacuum of the future": Request("T.vacuum(-1)"),
    "restore to a version there isn't": Request("T.restoreToVersion(99)"),
    "restore to a time before the first": Request("T.restoreToTimestamp('1999-01-01')"),
    "restore to a time after the last": Request("T.restoreToTimestamp('2999-01-01')"),
    "restore to no time": Request("T.restoreToTimestamp('soon')"),
    "optimize by data": Request("T.optimize().where('id = 1').executeCompaction()"),
    "optimize by no column": Request("T.optimize().where('nope = 1').executeCompaction()"),
    "order by a partition": Request("T.optimize().executeZOrderBy('p')"),
    "order by no column": Request("T.optimize().executeZOrderBy('nope')"),
    "order by a column with no statistics": _after(
        _properties(**{"delta.dataSkippingStatsColumns": "id"}),
        "one.write.format('delta').mode('overwrite').save(path)\nT.optimize().executeZOrderBy('s')",
    ),
    "statistics of no column": _properties(**{"delta.dataSkippingStatsColumns": "nope"}),
    "cluster by the columns of a partitioned table": _altered("T.clusterBy('id')", "CLUSTER BY (id)"),
    "generate what there isn't": Request("T.generate('nope')"),
    "manifests of deletion vectors": _after(
        _properties(**{"delta.enableDeletionVectors": "true"}),
        "T.delete('id = 0')\nspark.range(9).selectExpr('id', \"'x' s\", '0L p').coalesce(1).write.format('delta')"
        ".mode('append').save(path)\nT.delete('id = 4')\nT.generate('symlink_format_manifest')",
    ),
    "clone over a table": Request("T.clone(path + '_n', True)\nT.clone(path + '_n', True)"),
    "deep clone": Request("T.clone(path + '_n')"),
    "clone to a relative path": Request("T.clone('some/where', True)"),
    "clone of a version there isn't": Request("T.cloneAtVersion(99, path + '_n', True)"),
    "convert of nothing": Request("DeltaTable.convertToDelta(spark, f'parquet.`{path}_none`')"),
    "convert of no Parquet": Request("DeltaTable.convertToDelta(spark, f'csv.`{path}_none`')"),
    "convert by other partitions": Request(
        "one.write.partitionBy('p').parquet(path + '_q')\n"
        "DeltaTable.convertToDelta(spark, f'parquet.`{path}_q`', 'nope int')"
    ),
    "convert by no partitions": Request(
        "one.write.partitionBy('p').parquet(path + '_q')\nDeltaTable.convertToDelta(spark, f'parquet.`{path}_q`')"
    ),
}

ANSWER = """
if "IdentityGenerator" not in globals():
    from delta.tables import IdentityGenerator
def answer(code, path):
    scope = {"spark": spark, "DeltaTable": DeltaTable, "IdentityGenerator": IdentityGenerator, "path": path}
    exec(setup, scope)
    try:
        exec(code, scope)
    except Exception as error:
        java = getattr(error, "java_exception", None)
        if java is not None:  # of a Java class for which PySpark has none
            names, at = [], java
            while at is not None:
                names.append(at.getClass().getName())
                if hasattr(at, "getCondition") or "delta" in names[-1]:
                    try:
                        return ["Py4JJavaError", at.getCondition(), at.getSqlState(), names]
                    except Exception:
                        pass
                at = at.getCause()
            return ["Py4JJavaError", None, None, names]
        bases = [one.__name__ for one in type(error).__mro__ if one.__module__ == "pyspark.errors.exceptions.base"]
        if not bases:
            return [type(error).__name__, None, None, []]
        return [bases[0], error.getCondition(), error.getSqlState(), dict(error.getMessageParameters() or {})]
    return None
result = answer(code, path)
"""
