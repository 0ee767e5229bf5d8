"""`python metastore.py ours|theirs <directory>`: run the code of stdin in a session on the directory's Hive metastore.

The metastore is Derby's, which serves one process at a time. The code's `result` is printed as JSON.
"""

import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from support.sessions import DELTA_SPARK, session_builder

who, directory = sys.argv[1:]
settings = {
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.sql.warehouse.dir": f"{directory}/warehouse",
    "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={directory}/store;create=true",
    "spark.sql.catalogImplementation": "hive",
    **(DELTA_SPARK if who == "theirs" else {}),
}
spark = session_builder(
    "local[2]", settings, more_java_options=f"-Dderby.stream.error.file={directory}/derby.log"
).getOrCreate()
names: dict[str, Any] = {"spark": spark, "directory": directory}
if who == "ours":
    from tablelog.spark import DeltaTable, enable

    enable(spark)
    names["DeltaTable"] = DeltaTable
exec(sys.stdin.read(), names)
print(json.dumps(names["result"]))
spark.stop()
