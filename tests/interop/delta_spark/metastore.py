"""`python metastore.py ours|theirs <directory>`: run the code of stdin in a session on the directory's Hive metastore.

The metastore is Derby's, which serves one process at a time. The code's `result` is printed as JSON.
"""

import json
import sys
from typing import Any

from pyspark.sql import SparkSession

who, directory = sys.argv[1:]
builder = (
    SparkSession.builder.master("local[2]")
    .config("spark.ui.enabled", "false")
    .config("spark.ui.showConsoleProgress", "false")
    .config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.sql.shuffle.partitions", "2")
    .config("spark.databricks.delta.snapshotPartitions", "2")
    .config("spark.sql.warehouse.dir", f"{directory}/warehouse")
    .config(
        "spark.driver.extraJavaOptions",
        f"-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -Dderby.stream.error.file={directory}/derby.log",
    )
    .config("spark.hadoop.javax.jdo.option.ConnectionURL", f"jdbc:derby:;databaseName={directory}/store;create=true")
    .enableHiveSupport()
)
if who == "theirs":
    builder = (
        builder.config("spark.jars.packages", "io.delta:delta-spark_4.2_2.13:4.4.0")
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
    )
spark = builder.getOrCreate()
names: dict[str, Any] = {"spark": spark, "directory": directory}
if who == "ours":
    from tablelog.spark import DeltaTable, enable

    enable(spark)
    names["DeltaTable"] = DeltaTable
exec(sys.stdin.read(), names)
print(json.dumps(names["result"]))
spark.stop()
