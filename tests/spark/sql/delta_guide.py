"""The examples in SQL of Delta's user guide (docs.delta.io), with names and rows of our own, and their answers.

`python -m spark.sql.delta_guide` in the folder `tests` prints the table of docs/guide/delta-guide.md.
"""

import datetime
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Example:
    """A statement of a section, and what is true after it.

    `rows` are the answer of the statement or of `query`, its `columns` where these are named. `error` is the
    condition of an error, which Delta raises too if `as_in_delta`. A statement without a section prepares the next
    ones. `since` is the first version of Spark whose parser knows the statement.
    """

    section: str
    statement: str
    rows: tuple[tuple[Any, ...], ...] = ()
    query: str | None = None
    columns: str = ""
    error: str | None = None
    since: str = "4.1"
    as_in_delta: bool = False


def before(statement: str) -> Example:
    """What the next examples need."""
    return Example("", statement)


def shows(section: str, statement: str, *rows: tuple[Any, ...], columns: str = "") -> Example:
    """The statement answers with these rows."""
    return Example(section, statement, rows, columns=columns)


def does(
    section: str, statement: str, query: str, *rows: tuple[Any, ...], columns: str = "", since: str = "4.1"
) -> Example:
    """After the statement, the query answers with these rows."""
    return Example(section, statement, rows, query, columns, since=since)


def refused(section: str, statement: str, condition: str) -> Example:
    """The statement is not supported: an error of this condition."""
    return Example(section, statement, error=condition)


def fails(section: str, statement: str, condition: str) -> Example:
    """The statement is an error of this condition, in Delta too."""
    return Example(section, statement, error=condition, as_in_delta=True)


STAFF = "(id INT, name STRING, team STRING, born DATE, pay INT)"
IDS = "SELECT id FROM staff"
LAST = "operation"
day = datetime.date


def _last(name: str) -> str:
    return f"DESCRIBE HISTORY {name} LIMIT 1"


QUICK_START = (
    does(
        "Create a table",
        "CREATE TABLE delta.`/data/first` USING DELTA AS SELECT col1 AS n FROM VALUES 0, 1, 2",
        "SELECT n FROM delta.`/data/first`",
        (0,), (1,), (2,),
    ),
    shows("Read data", "SELECT * FROM delta.`/data/first`", (0,), (1,), (2,)),
    does(
        "Overwrite",
        "INSERT OVERWRITE delta.`/data/first` SELECT col1 AS n FROM VALUES 5, 6, 7, 8",
        "SELECT n FROM delta.`/data/first`",
        (5,), (6,), (7,), (8,),
    ),
    shows("Conditional update without overwrite", "UPDATE delta.`/data/first` SET n = n + 100 WHERE n % 2 == 0", (2,)),
    shows("Conditional update without overwrite", "DELETE FROM delta.`/data/first` WHERE n % 2 == 0", (2,)),
    does(
        "Conditional update without overwrite",
        "CREATE TEMP VIEW more AS SELECT col1 AS n FROM VALUES 5, 9",
        "SELECT n FROM more",
        (5,), (9,),
    ),
    shows(
        "Conditional update without overwrite",
        "MERGE INTO delta.`/data/first` AS old USING more ON old.n = more.n "
        "WHEN MATCHED THEN UPDATE SET n = more.n WHEN NOT MATCHED THEN INSERT (n) VALUES (more.n)",
        (2, 1, 0, 1),
    ),
    shows("Conditional update without overwrite", "SELECT * FROM delta.`/data/first`", (5,), (7,), (9,)),
    shows("Time travel", "SELECT * FROM delta.`/data/first` VERSION AS OF 0", (0,), (1,), (2,)),
    before("DROP VIEW more"),
)  # fmt: skip

BATCH = (
    does("Create a table", f"CREATE TABLE IF NOT EXISTS staff {STAFF} USING DELTA", _last("staff"),
         ("CREATE TABLE",), columns=LAST),
    does("Create a table", f"CREATE OR REPLACE TABLE staff {STAFF} USING DELTA", _last("staff"),
         ("CREATE OR REPLACE TABLE",), columns=LAST),
    does("Create a table", f"CREATE OR REPLACE TABLE delta.`/data/staff` {STAFF} USING DELTA",
         "DESCRIBE DETAIL '/data/staff'", ("delta", 0), columns="format numFiles"),
    does("Partition data", f"CREATE TABLE by_team {STAFF} USING DELTA PARTITIONED BY (team)",
         "DESCRIBE DETAIL by_team", (["team"],), columns="partitionColumns"),
    shows("Partition data", 'SELECT count(*) > 0 AS `Has a row` FROM by_team WHERE team = "sales"', (False,)),
    does("Control data location", "CREATE TABLE placed USING DELTA LOCATION '/data/staff'",
         "SELECT count(*) FROM placed", (0,)),
    does("Specify default values for columns",
         "CREATE TABLE filled (id INT, team STRING DEFAULT 'none') USING DELTA "
         "TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')",
         "DESCRIBE filled team", ("col_name", "team"), ("data_type", "string"), ("comment", "NULL")),
    does("Default table properties", "SET spark.databricks.delta.properties.defaults.appendOnly = true",
         "SET spark.databricks.delta.properties.defaults.appendOnly", ("true",), columns="value"),
    before("CREATE TABLE appended (id INT) USING DELTA"),
    before("RESET spark.databricks.delta.properties.defaults.appendOnly"),
    fails("Default table properties", "DELETE FROM appended", "DELTA_CANNOT_MODIFY_APPEND_ONLY"),
    before("INSERT INTO staff VALUES (1, 'ann', 'sales', DATE'1980-01-01', 10), (2, 'bob', 'lab', NULL, 20)"),
    before("INSERT INTO delta.`/data/staff` SELECT * FROM staff"),
    shows("Read a table", "SELECT * FROM staff WHERE id = 1", (1, "ann", "sales", day(1980, 1, 1), 10)),
    shows("Read a table", "SELECT id FROM delta.`/data/staff`", (1,), (2,)),
    shows("SQL AS OF syntax", "SELECT id FROM staff VERSION AS OF 1"),
    shows("SQL AS OF syntax", "SELECT id FROM delta.`/data/staff` VERSION AS OF 1", (1,), (2,)),
    fails("SQL AS OF syntax", "SELECT * FROM staff TIMESTAMP AS OF '2018-10-18T22:15:12.013Z'",
            "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION"),
    before("CREATE TEMP VIEW more AS SELECT 3 id, 'cy' name, 'lab' team, DATE'1990-01-01' born, 30 pay"),
    does("Append", "INSERT INTO staff SELECT * FROM more", IDS, (1,), (2,), (3,)),
    does("Overwrite", "INSERT OVERWRITE TABLE staff SELECT * FROM more", IDS, (3,)),
    does("replaceWhere",
         "INSERT INTO TABLE staff REPLACE WHERE born >= '1990-01-01' AND born <= '1990-01-31' "
         "SELECT 4, 'dee', 'lab', DATE'1990-01-31', 40", IDS, (4,)),
    does("replaceWhere", "SET spark.databricks.delta.replaceWhere.constraintCheck.enabled=false",
         "SET spark.databricks.delta.replaceWhere.constraintCheck.enabled", ("false",), columns="value"),
    does("replaceWhere", "INSERT INTO staff REPLACE WHERE id = 4 SELECT 5, 'eve', 'lab', NULL, 50", IDS, (5,)),
    does("replaceWhere", "SET spark.databricks.delta.replaceWhere.dataColumns.enabled=false",
         "SET spark.databricks.delta.replaceWhere.dataColumns.enabled", ("false",), columns="value"),
    does("Dynamic partition overwrites", "SET spark.sql.sources.partitionOverwriteMode=dynamic",
         "SET spark.sql.sources.partitionOverwriteMode", ("dynamic",), columns="value"),
    before("INSERT INTO by_team VALUES (1, 'ann', 'sales', NULL, 10), (2, 'bob', 'lab', NULL, 20)"),
    does("Dynamic partition overwrites", "INSERT OVERWRITE TABLE by_team SELECT * FROM more",
         "SELECT id FROM by_team", (1,), (3,)),
    does("Idempotent writes", "SET spark.databricks.delta.write.txnAppId = load",
         "SET spark.databricks.delta.write.txnAppId", ("load",), columns="value"),
    does("Idempotent writes", "SET spark.databricks.delta.write.txnVersion = 1",
         "SET spark.databricks.delta.write.txnVersion", ("1",), columns="value"),
    before("INSERT INTO staff SELECT * FROM more"),
    does("Idempotent writes", "INSERT INTO staff SELECT * FROM more", IDS, (3,), (5,)),
    does("Idempotent writes", "SET spark.databricks.delta.write.txnVersion.autoReset.enabled = true",
         "SET spark.databricks.delta.write.txnVersion.autoReset.enabled", ("true",), columns="value"),
    before("RESET spark.databricks.delta.write.txnVersion.autoReset.enabled"),
    before("RESET spark.databricks.delta.write.txnVersion"),
    before("RESET spark.databricks.delta.write.txnAppId"),
    does("User-defined commit metadata", "SET spark.databricks.delta.commitInfo.userMetadata=a-correction",
         "SET spark.databricks.delta.commitInfo.userMetadata", ("a-correction",), columns="value"),
    does("User-defined commit metadata", "INSERT OVERWRITE staff SELECT * FROM more",
         _last("staff"), ("a-correction",), columns="userMetadata"),
    before("RESET spark.databricks.delta.commitInfo.userMetadata"),
    does("Add columns", "ALTER TABLE staff ADD COLUMNS (room STRING COMMENT 'of the desk' AFTER name, first INT FIRST)",
         "SHOW COLUMNS IN staff", ("first",), ("id",), ("name",), ("room",), ("team",), ("born",), ("pay",)),
    before("CREATE TABLE boxes (a STRING, b STRUCT<f1: STRING, f2: STRING>) USING DELTA"),
    does("Add columns", "ALTER TABLE boxes ADD COLUMNS (b.inside STRING COMMENT 'new' AFTER f1)",
         "DESCRIBE boxes", ("string",), ("struct<f1:string,inside:string,f2:string>",), columns="data_type"),
    does("Change column comment or ordering", "ALTER TABLE staff ALTER COLUMN pay COMMENT 'in euro'",
         "DESCRIBE staff pay", ("col_name", "pay"), ("data_type", "int"), ("comment", "in euro")),
    does("Change column comment or ordering", "ALTER TABLE staff CHANGE COLUMN room room STRING COMMENT 'a desk'",
         "DESCRIBE staff room", ("col_name", "room"), ("data_type", "string"), ("comment", "a desk")),
    does("Change column comment or ordering", "ALTER TABLE staff ALTER first AFTER id",
         "SHOW COLUMNS IN staff", ("id",), ("first",), ("name",), ("room",), ("team",), ("born",), ("pay",)),
    does("Change column comment or ordering", "ALTER TABLE boxes ALTER COLUMN b.f2 FIRST",
         "DESCRIBE boxes", ("string",), ("struct<f2:string,f1:string,inside:string>",), columns="data_type"),
    does("Replace columns",
         "ALTER TABLE boxes REPLACE COLUMNS (c STRING, b STRUCT<f2: STRING, inside: STRING, f1: STRING>, a STRING)",
         "SHOW COLUMNS IN boxes", ("c",), ("b",), ("a",)),
    before("ALTER TABLE boxes SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"),
    does("Rename columns", "ALTER TABLE boxes RENAME COLUMN a TO lid",
         "SHOW COLUMNS IN boxes", ("c",), ("b",), ("lid",)),
    does("Rename columns", "ALTER TABLE boxes RENAME COLUMN b.f1 TO field001", "DESCRIBE boxes", ("string",),
         ("struct<f2:string,inside:string,field001:string>",), ("string",), columns="data_type"),
    does("Drop columns", "ALTER TABLE boxes DROP COLUMN c", "SHOW COLUMNS IN boxes", ("b",), ("lid",)),
    before("ALTER TABLE boxes ADD COLUMNS (x INT, y INT)"),
    does("Drop columns", "ALTER TABLE boxes DROP COLUMNS (x, y)", "SHOW COLUMNS IN boxes", ("b",), ("lid",)),
    does("Automatic schema update", "SET spark.databricks.delta.schema.autoMerge.enabled=true",
         "SET spark.databricks.delta.schema.autoMerge.enabled", ("true",), columns="value"),
    before("RESET spark.databricks.delta.schema.autoMerge.enabled"),
    before("CREATE TABLE growing (id INT) USING DELTA"),
    does("Automatic schema update", "INSERT WITH SCHEMA EVOLUTION INTO growing SELECT 1 AS id, 'x' AS name",
         "SELECT * FROM growing", (1, "x"), since="4.2"),
    does("Table properties", "ALTER TABLE staff SET TBLPROPERTIES ('floor' = 'two', 'delta.appendOnly' = 'true')",
         "DESCRIBE DETAIL staff", ({"floor": "two", "delta.appendOnly": "true"},), columns="properties"),
    shows("Table properties", "SHOW TBLPROPERTIES staff", ("delta.appendOnly", "true"),
          ("delta.minReaderVersion", "1"), ("delta.minWriterVersion", "2"), ("floor", "two")),
    shows("Table properties", "SHOW TBLPROPERTIES staff ('floor')", ("floor", "two")),
    before("DROP VIEW more"),
)  # fmt: skip

UPDATE = (
    before(f"CREATE TABLE staff {STAFF} USING DELTA"),
    before("INSERT INTO staff VALUES (1, 'ann', 'F', DATE'1950-01-01', 1), "
           "(2, 'bob', 'M', NULL, 2), (3, 'cy', 'F', NULL, 3)"),
    before("CREATE TABLE delta.`/data/staff` USING DELTA AS SELECT * FROM staff"),
    shows("Delete from a table", "DELETE FROM staff WHERE born < '1955-01-01'", (1,)),
    shows("Delete from a table", "DELETE FROM delta.`/data/staff` WHERE born < '1955-01-01'", (1,)),
    shows("Update a table", "UPDATE staff SET team = 'Female' WHERE team = 'F'", (1,)),
    shows("Update a table", "UPDATE delta.`/data/staff` SET team = 'Male' WHERE team = 'M'", (1,)),
    before("CREATE TABLE news USING DELTA AS SELECT 3 id, 'cy' name, 'lab' team, CAST(NULL AS DATE) born, 30 pay "
           "UNION ALL SELECT 4, 'dee', 'lab', NULL, 40"),
    shows("Upsert into a table using merge",
          "MERGE INTO staff USING news ON staff.id = news.id WHEN MATCHED THEN UPDATE SET id = news.id, "
          "name = news.name, team = news.team, born = news.born, pay = news.pay "
          "WHEN NOT MATCHED THEN INSERT (id, name, team, born, pay) "
          "VALUES (news.id, news.name, news.team, news.born, news.pay)", (2, 1, 0, 1)),
    shows("Modify all unmatched rows using merge",
          "MERGE INTO staff USING news ON news.id = staff.id WHEN MATCHED THEN UPDATE SET * "
          "WHEN NOT MATCHED THEN INSERT * WHEN NOT MATCHED BY SOURCE THEN DELETE", (3, 2, 1, 0)),
    before("CREATE TABLE growing (id INT) USING DELTA"),
    shows("Automatic schema evolution",
          "MERGE WITH SCHEMA EVOLUTION INTO growing USING (SELECT 1 AS id, 'x' AS name) s ON s.id = growing.id "
          "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *", (1, 0, 0, 1)),
    before("CREATE TABLE seen (key INT, last DATE, status STRING) USING DELTA"),
    before("INSERT INTO seen VALUES (1, current_date(), 'active'), (2, current_date(), 'active'), "
           "(3, DATE'2020-01-01', 'active')"),
    shows("Modify all unmatched rows using merge",
          "MERGE INTO seen USING (SELECT 1 AS key, current_date() AS at UNION ALL SELECT 9, current_date()) s "
          "ON s.key = seen.key WHEN MATCHED THEN UPDATE SET seen.last = s.at "
          "WHEN NOT MATCHED THEN INSERT (key, last, status) VALUES (s.key, s.at, 'active') "
          "WHEN NOT MATCHED BY SOURCE AND seen.last >= (current_date() - INTERVAL '5' DAY) "
          "THEN UPDATE SET seen.status = 'inactive'", (3, 2, 0, 1)),
    before("CREATE TABLE log (uid INT, date DATE) USING DELTA PARTITIONED BY (date)"),
    before("INSERT INTO log VALUES (1, current_date())"),
    before("CREATE TEMP VIEW newlog AS SELECT col1 AS uid, current_date() AS date FROM VALUES 1, 2"),
    shows("Data deduplication when writing into tables",
          "MERGE INTO log USING newlog ON log.uid = newlog.uid WHEN NOT MATCHED THEN INSERT *", (1, 0, 0, 1)),
    shows("Data deduplication when writing into tables",
          "MERGE INTO log USING newlog ON log.uid = newlog.uid AND log.date > current_date() - INTERVAL 7 DAYS "
          "WHEN NOT MATCHED AND newlog.date > current_date() - INTERVAL 7 DAYS THEN INSERT *", (0, 0, 0, 0)),
    before("DROP VIEW newlog"),
)  # fmt: skip

UTILITY = (
    before("CREATE TABLE events (id INT, date DATE) USING DELTA PARTITIONED BY (date) LOCATION '/data/events'"),
    before("INSERT INTO events VALUES (1, DATE'2024-01-01'), (2, DATE'2024-01-02')"),
    shows("Vacuum", "VACUUM events", ("/data/events",)),
    shows("Vacuum", "VACUUM events LITE", ("/data/events",)),
    shows("Vacuum", "VACUUM '/data/events'", ("/data/events",)),
    shows("Vacuum", "VACUUM delta.`/data/events/`", ("/data/events",)),
    shows("Vacuum", "VACUUM delta.`/data/events/` RETAIN 200 HOURS", ("/data/events",)),
    fails("Vacuum", "VACUUM delta.`/data/events/` RETAIN 100 HOURS", "DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT"),
    shows("Vacuum", "VACUUM events DRY RUN"),
    before("CREATE TABLE inventory (path STRING, length BIGINT, isDir BOOLEAN, modificationTime BIGINT) USING DELTA"),
    shows("Vacuum", "VACUUM events USING INVENTORY inventory", ("/data/events",)),
    shows("Vacuum", "VACUUM events USING INVENTORY (SELECT * FROM inventory)", ("/data/events",)),
    shows("History", "DESCRIBE HISTORY '/data/events' LIMIT 1", ("VACUUM END",), columns=LAST),
    shows("History", "DESCRIBE HISTORY '/data/events/' LIMIT 1", ("VACUUM END",), columns=LAST),
    shows("History", "DESCRIBE HISTORY delta.`/data/events/` LIMIT 1", ("VACUUM END",), columns=LAST),
    shows("History", "DESCRIBE HISTORY events LIMIT 1", ("VACUUM END",), columns=LAST),
    shows("Show partitions", "SHOW PARTITIONS events", (day(2024, 1, 1),), (day(2024, 1, 2),)),
    shows("Show partitions", "SHOW PARTITIONS events PARTITION (date = '2024-01-01')", (day(2024, 1, 1),)),
    shows("Show partitions", "SHOW PARTITIONS delta.`/data/events/`", (day(2024, 1, 1),), (day(2024, 1, 2),)),
    shows("Detail", "DESCRIBE DETAIL '/data/events/'", ("delta", ["date"], 2),
          columns="format partitionColumns numFiles"),
    shows("Detail", "DESCRIBE DETAIL events", ("delta", ["date"], 2), columns="format partitionColumns numFiles"),
    does("Manifests", "GENERATE symlink_format_manifest FOR TABLE delta.`/data/events`",
         "SELECT count(*) FROM text.`/data/events/_symlink_format_manifest`", (2,)),
    before("CREATE TABLE flat USING PARQUET LOCATION '/data/flat' AS SELECT 1 AS id"),
    before("CREATE TABLE flat2 USING PARQUET LOCATION '/data/flat2' AS SELECT 1 AS id"),
    before("CREATE TABLE parts USING PARQUET PARTITIONED BY (part, part2) LOCATION '/data/parts' AS "
           "SELECT 1 AS id, 2 AS part, 3 AS part2"),
    before("CREATE TABLE parts2 USING PARQUET PARTITIONED BY (part, part2) LOCATION '/data/parts2' AS "
           "SELECT 1 AS id, 2 AS part, 3 AS part2"),
    does("Convert", "CONVERT TO DELTA parquet.`/data/flat`", "SELECT * FROM delta.`/data/flat`", (1,)),
    does("Convert", "CONVERT TO DELTA parquet.`/data/flat2` NO STATISTICS", "SELECT * FROM delta.`/data/flat2`", (1,)),
    does("Convert", "CONVERT TO DELTA parquet.`/data/parts` PARTITIONED BY (part INT, part2 INT)",
         "SELECT * FROM delta.`/data/parts`", (1, 2, 3)),
    does("Convert", "CONVERT TO DELTA parquet.`/data/parts2` NO STATISTICS PARTITIONED BY (part INT, part2 INT)",
         "SELECT * FROM delta.`/data/parts2`", (1, 2, 3)),
    refused("Convert", "CONVERT TO DELTA iceberg.`/data/ice`", "DELTA_OPERATION_NOT_ALLOWED"),
    before("CREATE TABLE target (id INT) USING DELTA LOCATION '/data/target'"),
    before("INSERT INTO target VALUES (1)"),
    does("Restore", "RESTORE TABLE target TO VERSION AS OF 0", "SELECT * FROM target"),
    does("Restore", "RESTORE TABLE delta.`/data/target/` TO VERSION AS OF 1", "SELECT * FROM target", (1,)),
    fails("Restore", "RESTORE TABLE delta.`/data/target/` TO TIMESTAMP AS OF '2018-01-01'",
            "DELTA_CANNOT_RESTORE_TIMESTAMP_EARLIER"),
    does("Shallow clone", "CREATE TABLE delta.`/data/c1` SHALLOW CLONE delta.`/data/target/`",
         "SELECT * FROM delta.`/data/c1`", (1,)),
    does("Shallow clone", "CREATE OR REPLACE TABLE c2 SHALLOW CLONE target", "SELECT * FROM c2", (1,)),
    does("Shallow clone", "CREATE TABLE IF NOT EXISTS delta.`/data/c1` SHALLOW CLONE events",
         "SELECT * FROM delta.`/data/c1`", (1,)),
    does("Shallow clone", "CREATE TABLE c3 SHALLOW CLONE delta.`/data/target`", "SELECT * FROM c3", (1,)),
    does("Shallow clone", "CREATE TABLE c4 SHALLOW CLONE delta.`/data/target` VERSION AS OF 0", "SELECT * FROM c4"),
    fails("Shallow clone", "CREATE TABLE c5 SHALLOW CLONE delta.`/data/target` TIMESTAMP AS OF '2018-01-01'",
            "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION"),
    does("Shallow clone", "CREATE TABLE delta.`/data/model` SHALLOW CLONE target VERSION AS OF 1",
         "SELECT * FROM delta.`/data/model`", (1,)),
    before("CREATE TABLE prod (user INT, bad BOOLEAN) USING DELTA"),
    before("INSERT INTO prod VALUES (1, false), (NULL, false)"),
    does("Shallow clone: experiments", "CREATE OR REPLACE TABLE trial SHALLOW CLONE prod",
         "SELECT count(*) FROM trial", (2,)),
    shows("Shallow clone: experiments", "UPDATE trial SET bad = true WHERE user IS NULL", (1,)),
    shows("Shallow clone: experiments", "MERGE INTO prod USING trial ON trial.user <=> prod.user "
          "WHEN MATCHED AND trial.user IS NULL THEN UPDATE SET *", (1, 1, 0, 0)),
    does("Shallow clone: experiments", "DROP TABLE trial", "SELECT count_if(bad) FROM prod", (1,)),
    does("Shallow clone: table properties",
         "CREATE OR REPLACE TABLE archive SHALLOW CLONE prod TBLPROPERTIES (delta.logRetentionDuration = '3650 days', "
         "delta.deletedFileRetentionDuration = '3650 days') LOCATION '/data/archive'",
         "SHOW TBLPROPERTIES archive (delta.logRetentionDuration)", ("delta.logRetentionDuration", "3650 days")),
    before("CREATE TABLE flat3 USING PARQUET LOCATION '/data/flat3' AS SELECT 1 AS id"),
    refused("Clone Parquet or Iceberg", "CREATE OR REPLACE TABLE cloned SHALLOW CLONE parquet.`/data/flat3`",
            "DELTA_CLONE_UNSUPPORTED_SOURCE"),
    refused("Clone Parquet or Iceberg", "CREATE OR REPLACE TABLE cloned SHALLOW CLONE iceberg.`/data/ice`",
            "DELTA_CLONE_UNSUPPORTED_SOURCE"),
)  # fmt: skip

CLUSTERED = (
    does("Enable liquid clustering", "CREATE TABLE one (a INT, b STRING) USING DELTA CLUSTER BY (a)",
         "DESCRIBE DETAIL one", (["a"],), columns="clusteringColumns"),
    does("Enable liquid clustering",
         "CREATE EXTERNAL TABLE two USING DELTA CLUSTER BY (a) LOCATION '/data/two' AS SELECT * FROM one",
         "DESCRIBE DETAIL two", (["a"],), columns="clusteringColumns"),
    before("CREATE TABLE three (a INT, b STRING) USING DELTA"),
    does("Enable liquid clustering", "ALTER TABLE three CLUSTER BY (b)",
         "DESCRIBE DETAIL three", (["b"],), columns="clusteringColumns"),
    before("INSERT INTO one VALUES (1, 'x')"),
    before("INSERT INTO one VALUES (2, 'y')"),
    does("Trigger clustering", "OPTIMIZE one", "DESCRIBE DETAIL one", (1,), columns="numFiles"),
    does("Recluster entire table", "OPTIMIZE one FULL", "DESCRIBE DETAIL one", (1,), columns="numFiles"),
    shows("Read data from a clustered table", "SELECT * FROM one WHERE a = 2", (2, "y")),
    does("Change clustering columns", "ALTER TABLE one CLUSTER BY (b, a)",
         "DESCRIBE DETAIL one", (["b", "a"],), columns="clusteringColumns"),
    does("Change clustering columns", "ALTER TABLE one CLUSTER BY NONE",
         "DESCRIBE DETAIL one", ([],), columns="clusteringColumns"),
    shows("See how table is clustered", "DESCRIBE DETAIL one", ([],), columns="clusteringColumns"),
)  # fmt: skip

FILES = (
    before("CREATE TABLE events (kind STRING, date DATE) USING DELTA PARTITIONED BY (date) LOCATION '/data/events'"),
    before("INSERT INTO events VALUES ('a', DATE'2024-01-01'), ('b', DATE'2024-01-02')"),
    before("INSERT INTO events VALUES ('c', DATE'2024-01-01'), ('d', DATE'2024-01-02')"),
    does("Compaction", "OPTIMIZE events WHERE date >= '2024-01-02'",
         "DESCRIBE DETAIL events", (3,), columns="numFiles"),
    does("Compaction", "OPTIMIZE '/data/events'", "DESCRIBE DETAIL events", (2,), columns="numFiles"),
    does("Compaction", "OPTIMIZE events", "DESCRIBE DETAIL events", (2,), columns="numFiles"),
    does("Compaction", "OPTIMIZE delta.`/data/events`", "DESCRIBE DETAIL events", (2,), columns="numFiles"),
    does("Z-ordering", "OPTIMIZE events ZORDER BY (kind)", _last("events"), ("OPTIMIZE",), columns=LAST),
    does("Z-ordering", "OPTIMIZE events WHERE date = '2024-01-01' ZORDER BY (kind)", _last("events"), ("OPTIMIZE",),
         columns=LAST),
    does("Deletion vectors", "ALTER TABLE events SET TBLPROPERTIES ('delta.enableDeletionVectors' = true)",
         "SHOW TBLPROPERTIES events (delta.enableDeletionVectors)", ("delta.enableDeletionVectors", "true")),
    before("DELETE FROM events WHERE kind = 'a'"),
    does("Apply changes with REORG TABLE", "REORG TABLE events WHERE date >= '2024-01-02' APPLY (PURGE)",
         _last("events"), ("DELETE",), columns=LAST),
    does("Apply changes with REORG TABLE",
         "REORG TABLE events WHERE date >= current_timestamp() - INTERVAL '1' DAY APPLY (PURGE)",
         _last("events"), ("DELETE",), columns=LAST),
    does("Apply changes with REORG TABLE", "REORG TABLE events APPLY (PURGE)",
         _last("events"), ("REORG",), columns=LAST),
)  # fmt: skip

FEATURES = (
    before("SET spark.sql.sources.default = delta"),
    does("Column mapping", "CREATE TABLE wide (a INT, b INT, c INT, d BYTE)", "DESCRIBE DETAIL wide", (1, 2),
         columns="minReaderVersion minWriterVersion"),
    does("Column mapping", "ALTER TABLE wide SET TBLPROPERTIES ('delta.minReaderVersion' = '2', "
         "'delta.minWriterVersion' = '5', 'delta.columnMapping.mode' = 'name')", "DESCRIBE DETAIL wide", (2, 5),
         columns="minReaderVersion minWriterVersion"),
    does("Column mapping", "ALTER TABLE wide RENAME COLUMN a TO z",
         "SHOW COLUMNS IN wide", ("z",), ("b",), ("c",), ("d",)),
    does("Column mapping", "ALTER TABLE wide DROP COLUMN z", "SHOW COLUMNS IN wide", ("b",), ("c",), ("d",)),
    does("Column mapping", "ALTER TABLE wide DROP COLUMNS (b, c)", "SHOW COLUMNS IN wide", ("d",)),
    does("Type widening", "ALTER TABLE wide SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')",
         "SHOW TBLPROPERTIES wide (delta.enableTypeWidening)", ("delta.enableTypeWidening", "true")),
    does("Type widening",
         "CREATE TABLE widened (n INT) USING DELTA TBLPROPERTIES ('delta.enableTypeWidening' = 'true')",
         "SHOW TBLPROPERTIES widened (delta.enableTypeWidening)", ("delta.enableTypeWidening", "true")),
    does("Type widening", "ALTER TABLE wide ALTER COLUMN d TYPE INT", "DESCRIBE wide", ("int",), columns="data_type"),
    does("Type widening", "ALTER TABLE wide SET TBLPROPERTIES ('delta.enableTypeWidening' = 'false')",
         "SHOW TBLPROPERTIES wide (delta.enableTypeWidening)", ("delta.enableTypeWidening", "false")),
    does("Type widening", "ALTER TABLE wide DROP FEATURE 'typeWidening'", _last("wide"), ("DROP FEATURE",),
         columns=LAST),
    does("Row tracking", "CREATE TABLE pupil (id INT, name STRING) TBLPROPERTIES ('delta.enableRowTracking' = 'true')",
         "SHOW TBLPROPERTIES pupil (delta.enableRowTracking)", ("delta.enableRowTracking", "true")),
    before("CREATE TABLE course (id INT)"),
    does("Row tracking",
         "CREATE TABLE course_new TBLPROPERTIES ('delta.enableRowTracking' = 'true') AS SELECT * FROM course",
         "SHOW TBLPROPERTIES course_new (delta.enableRowTracking)", ("delta.enableRowTracking", "true")),
    does("Row tracking", "CREATE TABLE graduate LIKE pupil",
         "SHOW TBLPROPERTIES graduate (delta.enableRowTracking)", ("delta.enableRowTracking", "true")),
    does("Row tracking", "CREATE TABLE alumni SHALLOW CLONE pupil",
         "SHOW TBLPROPERTIES alumni (delta.enableRowTracking)", ("delta.enableRowTracking", "true")),
    does("Row tracking", "ALTER TABLE course SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')",
         "SHOW TBLPROPERTIES course (delta.enableRowTracking)", ("delta.enableRowTracking", "true")),
    does("Row tracking", "SET spark.databricks.delta.properties.defaults.enableRowTracking = true",
         "SET spark.databricks.delta.properties.defaults.enableRowTracking", ("true",), columns="value"),
    before("RESET spark.databricks.delta.properties.defaults.enableRowTracking"),
    before("INSERT INTO pupil VALUES (7, 'ann')"),
    refused("Row tracking", "SELECT _metadata.row_id, _metadata.row_commit_version, * FROM pupil", "FIELD_NOT_FOUND"),
    does("Row tracking", "ALTER TABLE pupil SET TBLPROPERTIES (delta.enableRowTracking = false)",
         "SHOW TBLPROPERTIES pupil (delta.enableRowTracking)", ("delta.enableRowTracking", "false")),
    does("Change data feed",
         "CREATE TABLE student (id INT, name STRING) TBLPROPERTIES (delta.enableChangeDataFeed = true)",
         "SHOW TBLPROPERTIES student (delta.enableChangeDataFeed)", ("delta.enableChangeDataFeed", "true")),
    does("Change data feed", "ALTER TABLE course SET TBLPROPERTIES (delta.enableChangeDataFeed = true)",
         "SHOW TBLPROPERTIES course (delta.enableChangeDataFeed)", ("delta.enableChangeDataFeed", "true")),
    does("Change data feed", "SET spark.databricks.delta.properties.defaults.enableChangeDataFeed = true",
         "SET spark.databricks.delta.properties.defaults.enableChangeDataFeed", ("true",), columns="value"),
    before("RESET spark.databricks.delta.properties.defaults.enableChangeDataFeed"),
    before("CREATE TABLE fed (id INT) LOCATION '/data/fed' TBLPROPERTIES (delta.enableChangeDataFeed = true)"),
    before("INSERT INTO fed VALUES (7)"),
    before("DELETE FROM fed"),
    shows("Change data feed", "SELECT * FROM table_changes('fed', 0, 2)", (7, "insert", 1), (7, "delete", 2),
          columns="id _change_type _commit_version"),
    shows("Change data feed", "SELECT * FROM table_changes('fed', 2)", (7, "delete"), columns="id _change_type"),
    shows("Change data feed", "SELECT * FROM table_changes('fed', '2021-04-21 05:45:46')", (7, "insert"),
          (7, "delete"), columns="id _change_type"),
    shows("Change data feed", "SELECT * FROM table_changes_by_path('/data/fed', 0, 1)", (7, "insert"),
          columns="id _change_type"),
    does("Change data feed", "SET spark.databricks.delta.changeDataFeed.timestampOutOfRange.enabled = true",
         "SET spark.databricks.delta.changeDataFeed.timestampOutOfRange.enabled", ("true",), columns="value"),
    before("CREATE TABLE ruled (id INT NOT NULL, middle STRING NOT NULL, born TIMESTAMP) USING DELTA"),
    fails("NOT NULL constraint", "INSERT INTO ruled VALUES (1, NULL, NULL)", "DELTA_NOT_NULL_CONSTRAINT_VIOLATED"),
    does("NOT NULL constraint", "ALTER TABLE ruled CHANGE COLUMN middle DROP NOT NULL",
         "SELECT count(*) FROM ruled", (0,)),
    does("CHECK constraint", "ALTER TABLE ruled ADD CONSTRAINT in_range CHECK (born > '1900-01-01')",
         "SHOW TBLPROPERTIES ruled (delta.constraints.in_range)", ("delta.constraints.in_range",
         "born > '1900-01-01'")),
    does("CHECK constraint", "ALTER TABLE ruled DROP CONSTRAINT in_range", "DESCRIBE DETAIL ruled", ({},),
         columns="properties"),
    does("CHECK constraint", "ALTER TABLE ruled ADD CONSTRAINT valid_ids CHECK (id > 1 and id < 99999999)",
         "DESCRIBE DETAIL ruled", ({"delta.constraints.valid_ids": "id > 1 and id < 99999999"},), columns="properties"),
    fails("CHECK constraint", "INSERT INTO ruled VALUES (1, 'x', NULL)", "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"),
    does("Default columns", "ALTER TABLE ruled SET TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'enabled')",
         "SHOW TBLPROPERTIES ruled (delta.feature.allowColumnDefaults)",
         ("delta.feature.allowColumnDefaults", "supported")),
    does("Default columns", "ALTER TABLE ruled ALTER COLUMN middle SET DEFAULT 'none'", "SELECT count(*) FROM ruled",
         (0,)),
    does("Default columns", "INSERT INTO ruled VALUES (2, DEFAULT, NULL)", "SELECT middle FROM ruled", ("none",)),
    before("CREATE TABLE old (id INT)"),
    does("Protocol versions", "ALTER TABLE old SET TBLPROPERTIES ('delta.minReaderVersion' = '1', "
         "'delta.minWriterVersion' = '3')", "DESCRIBE DETAIL old", (1, 3), columns="minReaderVersion minWriterVersion"),
    does("Presto, Athena: update manifests",
         "ALTER TABLE old SET TBLPROPERTIES (delta.compatibility.symlinkFormatManifest.enabled = true)",
         "SHOW TBLPROPERTIES old (delta.compatibility.symlinkFormatManifest.enabled)",
         ("delta.compatibility.symlinkFormatManifest.enabled", "true")),
    refused("Catalog-managed tables",
            "CREATE TABLE sales (id BIGINT) TBLPROPERTIES ('delta.feature.catalogManaged' = 'supported')",
            "DELTA_UNSUPPORTED_FEATURES_FOR_READ"),
    shows("Catalog-managed tables", "DESCRIBE DETAIL old", (["appendOnly", "checkConstraints", "invariants"],),
          columns="tableFeatures"),
    does("UniForm", "CREATE TABLE t (c INT) USING DELTA TBLPROPERTIES ('delta.enableIcebergCompatV2' = 'true', "
         "'delta.universalFormat.enabledFormats' = 'iceberg')",
         "SHOW TBLPROPERTIES t (delta.universalFormat.enabledFormats)",
         ("delta.universalFormat.enabledFormats", "iceberg")),
    refused("UniForm", "ALTER TABLE old SET TBLPROPERTIES ('delta.enableIcebergCompatV2' = 'true', "
            "'delta.universalFormat.enabledFormats' = 'iceberg')",
            "DELTA_ICEBERG_COMPAT_VIOLATION"),
    does("UniForm", "REORG TABLE old APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = 2))",
         "SHOW TBLPROPERTIES old (delta.universalFormat.enabledFormats)",
         ("delta.universalFormat.enabledFormats", "iceberg")),
    refused("UniForm", "ALTER TABLE old SET TBLPROPERTIES ('delta.universalFormat.enabledFormats' = 'hudi')",
            "DELTA_OPERATION_NOT_ALLOWED"),
)  # fmt: skip

MIGRATION = (
    before("CREATE TABLE source USING PARQUET LOCATION '/data/pipeline' AS SELECT 1 AS id"),
    does("Convert to a Delta table", "CONVERT TO DELTA parquet.`/data/pipeline/`",
         "SELECT * FROM delta.`/data/pipeline`", (1,)),
    does("Convert to a Delta table", "CREATE TABLE events USING DELTA LOCATION '/data/pipeline/'",
         "SELECT * FROM events", (1,)),
    before("CREATE TABLE source2 USING PARQUET LOCATION '/data/pipeline2' AS SELECT 1 AS id"),
    does("Convert to a Delta table", "CREATE TABLE named USING PARQUET OPTIONS (path '/data/pipeline2/')",
         "SELECT * FROM named", (1,)),
    does("Convert to a Delta table", "CONVERT TO DELTA named", "DESCRIBE DETAIL named", ("delta",), columns="format"),
    does("Replace the content or schema of a table",
         "REPLACE TABLE named USING DELTA PARTITIONED BY (part) AS SELECT 2 AS id, 3 AS part",
         "SELECT * FROM named", (2, 3)),
    does("Replace the content or schema of a table",
         "REPLACE TABLE events USING DELTA PARTITIONED BY (part) LOCATION '/data/pipeline/' AS "
         "SELECT 2 AS id, 3 AS part",
         "SELECT * FROM events", (2, 3)),
)  # fmt: skip

PAGES = {
    "Quick start": QUICK_START,
    "Batch reads and writes": BATCH,
    "Deletes, updates, and merges": UPDATE,
    "Utility commands": UTILITY,
    "Liquid clustering": CLUSTERED,
    "Optimizations, deletion vectors": FILES,
    "Table features": FEATURES,
    "Porting, best practices": MIGRATION,
}


def table() -> str:
    """The table of the page: each statement, and whether it is served."""
    lines = []
    for page, examples in PAGES.items():
        lines += [f"## {page}", "", "| section | statement | |", "|---|---|---|"]
        for one in examples:
            if one.section:
                kind = "error as in Delta" if one.as_in_delta else "not supported"
                answer = f"{kind}: `{one.error}`" if one.error else "served"
                if one.since != "4.1":
                    answer += f", Spark {one.since} and later"
                lines.append(f"| {one.section} | `` {one.statement} `` | {answer} |")
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
