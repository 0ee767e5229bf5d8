"""One Hive metastore: delta-spark finds our tables in it by their names, and we its."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = str(Path(__file__).with_name("metastore.py"))

OURS = """
spark.range(3).write.format("delta").saveAsTable("ours_managed")
DeltaTable.create(spark).tableName("ours_external").location(f"{directory}/e").addColumn("id", "bigint").execute()
spark.range(4).selectExpr("id", "id % 2 p").write.partitionBy("p").saveAsTable("ours_converted", format="parquet")
DeltaTable.convertToDelta(spark, "ours_converted")
spark.sql("CREATE TABLE ours_of_hive (id BIGINT) PARTITIONED BY (p BIGINT) STORED AS PARQUET")
spark.sql("INSERT INTO ours_of_hive PARTITION (p = 1) VALUES (1), (2)")
DeltaTable.convertToDelta(spark, "ours_of_hive")
spark.sql("CREATE TABLE ours_of_hive_whole (id BIGINT) STORED AS PARQUET")
spark.sql("INSERT INTO ours_of_hive_whole VALUES (1)")
spark.sql("CONVERT TO DELTA ours_of_hive_whole")
result = None
"""

THEIRS = """
spark.sql("INSERT INTO ours_managed VALUES (9)")
spark.sql("INSERT INTO ours_external VALUES (7)")
spark.sql("DELETE FROM ours_converted WHERE id = 1")
spark.sql("INSERT INTO ours_of_hive VALUES (3, 2)")
spark.sql("INSERT INTO ours_of_hive_whole VALUES (2)")
spark.range(5).write.format("delta").saveAsTable("theirs_managed")
spark.sql(f"CREATE TABLE theirs_external (id BIGINT) USING delta LOCATION '{directory}/te'")
spark.sql("INSERT INTO theirs_external VALUES (1)")
spark.range(3).write.saveAsTable("theirs_converted", format="parquet")
spark.sql("CONVERT TO DELTA theirs_converted")
tables = [row.tableName for row in spark.sql("SHOW TABLES").collect()]
result = {name: spark.sql(f"DESCRIBE DETAIL {name}").first().format for name in tables}
"""

OURS_AGAIN = """
tables = [row.tableName for row in spark.sql("SHOW TABLES").collect()]
result = {name: sorted(row.id for row in spark.table(name).collect()) for name in tables}
for name in ("theirs_managed", "theirs_external"):
    spark.range(9, 10).write.format("delta").mode("append").saveAsTable(name)
    assert DeltaTable.forName(spark, name).history(1).first().operation == "WRITE"
    spark.sql(f"DROP TABLE {name}")
result["left"] = [row.tableName for row in spark.sql("SHOW TABLES LIKE 'theirs*'").collect()]
"""


@pytest.mark.timeout(900)  # three processes of Spark with Hive, one after the other
def test_both_use_the_names_of_one_metastore(tmp_path: Path) -> None:
    peer = os.environ.get("TABLELOG_PEER_PYTHON")
    if not peer:
        pytest.skip("TABLELOG_PEER_PYTHON names no environment with delta-spark: run `make interop`")

    def run(python: str, who: str, code: str) -> object:
        command = [python, SCRIPT, who, str(tmp_path)]
        done = subprocess.run(
            command, input=code, capture_output=True, text=True, timeout=600, cwd=tmp_path, check=False
        )
        assert done.returncode == 0, done.stderr[-4000:]
        return json.loads(done.stdout.splitlines()[-1])

    run(sys.executable, "ours", OURS)
    formats = run(peer, "theirs", THEIRS)
    assert isinstance(formats, dict)
    assert len(formats) == 8
    assert set(formats.values()) == {"delta"}
    assert run(sys.executable, "ours", OURS_AGAIN) == {
        "ours_converted": [0, 2, 3],
        "ours_external": [7],
        "ours_managed": [0, 1, 2, 9],
        "ours_of_hive": [1, 2, 3],
        "ours_of_hive_whole": [1, 2],
        "theirs_converted": [0, 1, 2],
        "theirs_external": [1],
        "theirs_managed": [0, 1, 2, 3, 4],
        "left": ["theirs_converted"],
    }
    assert not (tmp_path / "warehouse" / "theirs_managed").exists()
    assert (tmp_path / "te" / "_delta_log").is_dir()
