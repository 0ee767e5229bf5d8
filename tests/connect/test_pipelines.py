"""Spark's declarative pipelines with Delta tables: `spark-pipelines` as a program, against the server of the tests."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.spark_tables import Table

HEAD = """
from pyspark import pipelines as dp
from tablelog.spark import enable

enable(spark)
"""
SOURCE = """
@dp.temporary_view
def clicks():
    return spark.read.format("delta").load({path!r}).where("id % 2 = 0")

@dp.materialized_view(name={name!r}, format="parquet")
def of_clicks():
    return spark.read.table("clicks").selectExpr("id * 10 AS id")
"""


def run(remote: str, folder: Path, text: str, suffix: str = "py") -> "subprocess.CompletedProcess[str]":
    """The run of a pipeline with a file of definitions; SQL comes after a file that enables the session."""
    folder.mkdir(exist_ok=True)
    (folder / "definitions").mkdir(exist_ok=True)
    (folder / "definitions" / "a.py").write_text(HEAD + (text if suffix == "py" else ""))
    globs = ["a.py"]
    if suffix == "sql":
        (folder / "definitions" / "b.sql").write_text(text)
        globs.append("b.sql")
    libraries = "".join(f"\n  - glob:\n      include: definitions/{name}" for name in globs)
    spec = folder / "spark-pipeline.yml"
    spec.write_text(f"name: test\nstorage: file://{folder}/storage\nlibraries:{libraries}\n")
    return subprocess.run(
        [sys.executable, "-m", "pyspark.pipelines.cli", "run", "--spec", str(spec)],
        env={**os.environ, "SPARK_REMOTE": remote},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_a_materialized_view_reads_a_table_and_is_written_to_one(
    spark: Any, remote: str, table: Table, tmp_path: Path
) -> None:
    table.write(spark.range(6))
    name = f"of_clicks_{os.getpid()}"
    try:
        for wanted in ([0, 20, 40], [0, 20, 40, 60]):  # the second run reads the newest version
            done = run(remote, tmp_path, SOURCE.format(path=table.path, name=name))
            assert done.returncode == 0, done.stdout + done.stderr
            target = str(tmp_path / "target")
            spark.catalog.refreshTable(name)  # another session wrote it
            spark.read.table(name).write.format("delta").mode("overwrite").save(target)
            assert sorted(row.id for row in spark.read.format("delta").load(target).collect()) == wanted
            table.write(spark.range(6, 7))
    finally:
        spark.sql(f"DROP TABLE IF EXISTS {name}")


@pytest.mark.parametrize(
    ("suffix", "text", "message"),
    [
        (
            "py",
            '@dp.materialized_view(format="delta")\ndef target():\n    return spark.range(1)',
            "target of a declarative pipeline (spark-pipelines) as a Delta table",
        ),
        ("py", 'dp.create_streaming_table("target", format="Delta")', "as a Delta table is not supported"),
        ("py", 'dp.create_sink("target", "delta", {"path": "/nowhere"})', "as a Delta table is not supported"),
        (
            "py",
            '@dp.table(format="parquet")\ndef target():\n    return spark.readStream.format("delta").load({path!r})',
            "A stream that reads a Delta table in a declarative pipeline",
        ),
        (
            "py",
            "rows = spark.readStream.table('delta.`{path}`')\n"
            '@dp.table(format="parquet")\ndef target():\n    return rows',
            "A stream that reads a Delta table in a declarative pipeline",
        ),
        (
            "sql",
            "CREATE MATERIALIZED VIEW target USING delta AS SELECT 1",
            "SQL on a Delta table in a declarative pipeline",
        ),
        (
            "sql",
            "CREATE MATERIALIZED VIEW target AS SELECT * FROM delta.`{path}`",
            "SQL on a Delta table in a declarative pipeline",
        ),
    ],
)
def test_what_a_pipeline_does_not_do(
    spark: Any, remote: str, table: Table, tmp_path: Path, suffix: str, text: str, message: str
) -> None:
    table.write(spark.range(1))
    done = run(remote, tmp_path, text.replace("{path!r}", repr(table.path)).replace("{path}", table.path), suffix)
    assert done.returncode != 0
    assert message in done.stderr
    assert "UnsupportedFeatureError" in done.stderr
