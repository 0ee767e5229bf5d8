"""Standard error of a program whose commands fail has the errors, and before them no stack traces or JSON of Spark."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import sys
from pyspark.sql import SparkSession
from support.sessions import session_builder
from tablelog.spark import DeltaTable, disable, enable

path, other = sys.argv[1:]
spark = session_builder("local[1]", {"spark.log.level": "WARN"}).getOrCreate()
enable(spark)
spark.sql(f"CREATE TABLE delta.`{path}` (id bigint NOT NULL, word varchar(3), small tinyint) USING delta")
table = DeltaTable.forPath(spark, path)
table.addConstraint("few", "id < 100")
spark.sql(f"INSERT INTO delta.`{path}` VALUES (1, 'a', 1)")


def fails(name, work):
    print(f"=== {name}", file=sys.stderr, flush=True)
    try:
        work()
    except Exception as error:
        print(f"--- {type(error).__name__}", file=sys.stderr, flush=True)


def append(*columns):
    return lambda: spark.range(1, 2).selectExpr(*columns).write.format("delta").mode("append").save(path)


fails("constraint", append("id + 200 id", "'a' word", "1 small"))
fails("null", append("nullif(id, 1) id", "'a' word", "1 small"))
fails("long", append("id", "'abcdef' word", "1 small"))
fails("overflow", append("id", "'a' word", "id + 1000 small"))
fails("update", lambda: table.update("id = 1", {"id": "1000"}))
fails("column of a method", lambda: table.delete("nope = 1"))
fails("column of a statement", lambda: spark.sql(f"DELETE FROM delta.`{path}` WHERE nope = 1"))
fails("a query of Spark's", lambda: spark.sql("SELECT nope FROM range(1)"))
disable(spark)
fails("a write of Spark's", lambda: spark.range(1).selectExpr(
    "raise_error('tablelog:constraint:[]') x").write.parquet(other))
"""


@pytest.mark.slow
def test_errors_of_commands_have_no_stack_traces_or_json_before_them(tmp_path: Path) -> None:
    tests = Path(__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "t"), str(tmp_path / "other")],
        env={**os.environ, "PYTHONPATH": str(tests), "PYSPARK_PYTHON": sys.executable},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=240,
        check=True,
    )
    printed = {}
    for part in done.stderr.split("=== ")[1:]:
        name, _, rest = part.partition("\n")
        said, _, kind = rest.partition("--- ")
        printed[name] = ("\tat " in said, '"level"' in said, kind.split()[0])
    assert printed == {
        "constraint": (False, False, "ConstraintViolationError"),
        "null": (False, False, "ConstraintViolationError"),
        "long": (False, False, "ConstraintViolationError"),
        "overflow": (False, False, "SchemaMismatchError"),
        "update": (False, False, "ConstraintViolationError"),
        "column of a method": (False, False, "AnalysisException"),
        "column of a statement": (False, False, "AnalysisException"),
        # What isn't a command of ours is logged as before.
        "a query of Spark's": (False, True, "AnalysisException"),
        "a write of Spark's": (True, False, "SparkRuntimeException"),
    }
