"""The installed wheel, used as a user would use it: `make wheel` runs this in the wheel's own environment."""

import subprocess
import sys
import tempfile
from pathlib import Path

import tablelog
from tablelog.core import DeltaLog

assert "pyspark" not in sys.modules, "tablelog.core must not import pyspark"
assert "site-packages" in str(tablelog.__file__), f"this is not the installed wheel: {tablelog.__file__}"

from pyspark.sql import SparkSession  # noqa: E402 (after the check that the core needs no Spark)

from tablelog.spark import DeltaTable, enable  # noqa: E402

spark = (
    SparkSession.builder.master("local[1]")
    .config("spark.ui.enabled", "false")
    .config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.driver.host", "127.0.0.1")
    .getOrCreate()
)
enable(spark)
with tempfile.TemporaryDirectory() as directory:
    path = str(Path(directory) / "t")
    spark.range(10).write.format("delta").save(path)
    DeltaTable.forPath(spark, path).delete("id < 4")
    assert spark.read.format("delta").load(path).count() == 6
    assert DeltaLog.for_path(path).snapshot().version == 1
    command = [Path(sys.executable).with_name("tablelog"), "conformance", f"{directory}/store", "--level", "quick"]
    subprocess.run([*command, "--only", "second_writer_loses"], check=True)
spark.stop()
print(f"tablelog {tablelog.__version__}: the wheel writes, deletes and reads, and its command runs")
