"""Commands on a log of many files, made by `large_log make`: one after another in one process, and what each took.

The files of the log don't exist, but the partition 2025-01-01, which `prepare` writes. So a command reads rows of that
partition only; what it costs beside that is its work on the log. The JVM gets 1.5 GiB and the Python process as much
data as 2.5 GiB allow: both together are a driver with 4 GiB.
"""

import json
import os
import resource
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession

from .large_log import DAYS, ROWS

if TYPE_CHECKING:
    from tablelog.spark import DeltaTable

REAL_DAY = "2025-01-01"
_FILES = 3
_JVM, _PYTHON = "1536m", 2560 << 20


def _rows(spark: SparkSession, day: str, count: int, files: int) -> Any:
    return spark.range(0, count, 1, files).selectExpr(
        f"'{day}' AS day", "id", "id % 500 AS k", "CAST(id AS DOUBLE) AS x", "CAST(id AS STRING) AS s"
    )


def _write(spark: SparkSession, table: str, day: str, mode: str, **options: str) -> None:
    _rows(spark, day, 800, 8).write.format("delta").mode(mode).options(**options).save(table)


def _merge(delta: "DeltaTable", spark: SparkSession) -> None:
    source = _rows(spark, REAL_DAY, 810, 1).where("id > 790").alias("s")
    merge = delta.alias("t").merge(source, "t.day = s.day AND t.id = s.id")
    merge.whenMatchedUpdate(set={"x": "s.x + 1"}).whenNotMatchedInsertAll().execute()


def _optimize(delta: "DeltaTable", spark: SparkSession) -> None:
    spark.conf.set("spark.databricks.delta.optimize.minFileSize", "1000000")  # the other files have at least as much
    delta.optimize().executeCompaction()


def _vacuum(delta: "DeltaTable", spark: SparkSession) -> None:
    delta.vacuum()


def _change(delta: "DeltaTable", spark: SparkSession, table: str) -> None:
    delta.setProperties({"delta.enableChangeDataFeed": "true"})
    _write(spark, table, REAL_DAY, "append")
    delta.delete(f"day = '{REAL_DAY}' AND id = 5")


def _read_changes(delta: "DeltaTable", spark: SparkSession, table: str) -> None:
    first = delta.history(3).collect()[-1].version
    feed = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", first).load(table)
    counts = {row["_change_type"]: row["count"] for row in feed.groupBy("_change_type").count().collect()}
    assert counts["insert"] == 800, counts
    assert counts["delete"] >= 1, counts


def _plan_all_changes(delta: "DeltaTable", spark: SparkSession, table: str) -> None:
    """Plan the change feed of a commit that removed all files, which don't exist, so that they can't be read."""
    version = delta.history(1).collect()[0].version
    options = {"readChangeFeed": "true", "startingVersion": version, "endingVersion": version}
    assert spark.read.format("delta").options(**options).load(table).rdd.getNumPartitions() > 1


def _removed_by_another(table: str) -> None:
    """A commit that removes all files and adds one, without a checkpoint: its writer ended between them."""
    from tablelog.core import AddFile, CommitInfo, DeltaLog
    from tablelog.core.protocol.codec import serialise
    from tablelog.core.txn.bulk_removal import bulk_removal

    snapshot = DeltaLog.for_path(table).snapshot()
    removal = bulk_removal(snapshot, snapshot.metadata, time.time_ns() // 1_000_000)
    assert removal is not None
    add = AddFile("day=2024-01-08/new.parquet", {"day": "2024-01-08"}, 1, 1, True)
    with Path(table, "_delta_log", f"{snapshot.version + 1:020}.json").open("xb") as file:
        file.write(serialise([CommitInfo(timestamp=0, operation="WRITE"), add]))
        file.writelines(removal.lines())


def _query(spark: SparkSession, table: str) -> None:
    from tablelog.engine.read.explain import describe

    found = describe(spark.read.format("delta").load(table).where("day = '2024-01-08'"))
    assert ", 1 of " in found, found


def _late_append(table: str) -> None:
    """An append by a transaction that began before the newest commit."""
    from tablelog.core import AddFile, DeltaLog, Operation
    from tablelog.core.txn.transaction import Transaction

    log = DeltaLog.for_path(table)
    begun = Transaction(log, log.snapshot(log.reader.list(0).newest - 1))  # type: ignore[operator]
    begun.commit([AddFile("day=2024-01-09/new.parquet", {"day": "2024-01-09"}, 1, 1, True)], Operation("WRITE"))


def _restore_all(delta: "DeltaTable", spark: SparkSession, table: str) -> None:
    """Restore version 0, whose files don't exist."""
    spark.conf.set("spark.sql.files.ignoreMissingFiles", "true")
    delta.restoreToVersion(0)


def _update_all(delta: "DeltaTable", spark: SparkSession) -> None:
    spark.conf.set("spark.sql.files.openCostInBytes", "4096")  # otherwise a task reads and writes some 30 files
    delta.update(set={"x": "x + 1"})


def _search(delta: "DeltaTable", spark: SparkSession) -> None:
    spark.conf.set("spark.sql.files.openCostInBytes", "4096")  # otherwise a task reads some 30 files
    delta.delete("concat(day, ' ', x) = '2024-01-05 17.0'")


def _touch_all(spark: SparkSession, change: Callable[[str], Any]) -> None:
    """Change one row in each file: no condition on statistics excludes one."""
    spark.conf.set("spark.sql.files.openCostInBytes", "4096")  # otherwise a task reads some 30 files
    change("concat(id, '') = '17'")


def _lay_out(delta: "DeltaTable", spark: SparkSession) -> None:
    spark.conf.set("spark.sql.files.openCostInBytes", "4096")  # otherwise a task reads some 30 files
    delta.optimize().executeZOrderBy("k", "x")


def _mirror(delta: "DeltaTable", spark: SparkSession) -> None:
    """The source has each row but those of one day, and one new row."""
    spark.conf.set("spark.sql.files.openCostInBytes", "4096")  # otherwise a task reads some 30 files
    days = spark.range(DAYS).selectExpr("format_string('2024-%02d-%02d', id DIV 31 + 1, id % 31 + 1) AS day")
    ids = spark.range(ROWS + 1).withColumnRenamed("id", "i")
    rows = days.crossJoin(ids).where(f"day <> '2024-01-05' AND (i < {ROWS} OR day = '2024-01-06')")
    source = rows.selectExpr("day", "i AS id", "i % 500 AS k", "CAST(i AS DOUBLE) AS x", "CAST(i AS STRING) AS s")
    merge = delta.alias("t").merge(source.alias("s"), "t.day = s.day AND t.id = s.id")
    merge.whenMatchedUpdateAll("t.x <> s.x").whenNotMatchedInsertAll().whenNotMatchedBySourceDelete().execute()


def _commands(spark: SparkSession, table: str) -> dict[str, Callable[[], Any]]:
    from tablelog.spark import DeltaTable

    delta = DeltaTable.forPath(spark, table)
    return {
        "prepare": lambda: [_write(spark, table, REAL_DAY, "append") for _ in range(_FILES)],
        "DELETE of a partition": lambda: delta.delete("day = '2024-01-08'"),
        "DELETE of rows": lambda: delta.delete(f"day = '{REAL_DAY}' AND id % 10 = 3"),
        "UPDATE": lambda: delta.update(f"day = '{REAL_DAY}' AND id % 10 = 4", {"x": "x + 1"}),
        "MERGE": lambda: _merge(delta, spark),
        "OPTIMIZE": lambda: _optimize(delta, spark),
        "overwrite of a partition": lambda: _write(
            spark, table, "2024-01-09", "overwrite", partitionOverwriteMode="dynamic"
        ),
        "replaceWhere": lambda: _write(spark, table, "2024-01-10", "overwrite", replaceWhere="day = '2024-01-10'"),
        "RESTORE": lambda: spark.sql("SET spark.sql.files.ignoreMissingFiles=true") and delta.restoreToVersion(_FILES),
        "VACUUM": lambda: _vacuum(delta, spark),
        "changes": lambda: _change(delta, spark, table),
        "change feed": lambda: _read_changes(delta, spark, table),
        "enable the change feed": lambda: delta.setProperties({"delta.enableChangeDataFeed": "true"}),
        "change feed of all": lambda: _plan_all_changes(delta, spark, table),
        "DELETE of all": delta.delete,
        "DELETE of most partitions": lambda: delta.delete("day >= '2024-02-01'"),
        "DELETE by a condition that excludes no file": lambda: _search(delta, spark),
        "MERGE that mirrors its source": lambda: _mirror(delta, spark),
        "enable deletion vectors": lambda: delta.setProperties({"delta.enableDeletionVectors": "true"}),
        "DELETE of a row in each file": lambda: _touch_all(spark, delta.delete),
        "UPDATE of a row in each file": lambda: _touch_all(spark, lambda rows: delta.update(rows, {"x": "x + 1"})),
        "OPTIMIZE ZORDER BY": lambda: _lay_out(delta, spark),
        "overwrite": lambda: _write(spark, table, REAL_DAY, "overwrite"),
        "append": lambda: _write(spark, table, REAL_DAY, "append"),
        "a commit without a checkpoint": lambda: _removed_by_another(table),
        "opening": lambda: DeltaTable.forPath(spark, table).toDF(),
        "query": lambda: _query(spark, table),
        "late append": lambda: _late_append(table),
        "opening again": lambda: DeltaTable.forPath(spark, table).toDF(),
        "UPDATE of all": lambda: _update_all(delta, spark),
        "clone": lambda: delta.clone(f"{table}-clone", isShallow=True),
        "clone again": lambda: delta.clone(f"{table}-clone", isShallow=True, replace=True),
        "RESTORE of all": lambda: _restore_all(delta, spark, table),
    }


DISTRIBUTED = (
    "prepare",
    "DELETE of a partition",
    "DELETE of rows",
    "UPDATE",
    "MERGE",
    "OPTIMIZE",
    "overwrite of a partition",
    "replaceWhere",
    "RESTORE",
    "VACUUM",
    "changes",
    "change feed",
)
"""In this order: each command changes the table."""
WHOLE = ("overwrite", "append", "VACUUM")
"""The commit of the first one has an action for each file of the table."""
KILLED = ("a commit without a checkpoint", "opening", "query", "late append", "opening again", "query")
"""The writer of a commit that removes all files ended before its checkpoint."""
FEED = ("enable the change feed", "overwrite", "change feed of all")
"""The last one has a deleted file for each file of the table."""
PARTITIONS = ("DELETE of most partitions", "append")
"""The first one removes eleven twelfths of the files, without reading them."""
SEARCH = ("DELETE by a condition that excludes no file", "append")
"""The first one reads all files, which must exist, and rewrites those of one day."""
MIRROR = ("MERGE that mirrors its source", "append")
"""The first one reads all files, which must exist, and removes those of one day."""
MARK = ("enable deletion vectors", "DELETE of a row in each file", "append")
"""The second one reads all files, which must exist, and marks a row in each."""
REWRITE = ("UPDATE of a row in each file", "append")
"""The first one reads all files, which must exist, and rewrites them."""
LAYOUT = ("OPTIMIZE ZORDER BY", "append")
"""The first one reads all files, which must exist, and writes few for each day."""
CLONE = ("clone",)
"""Its commit, in a directory beside the table, has an action for each file too."""
UPDATE = ("UPDATE of all", "append")
"""The first one rewrites all files, which must exist."""
RESTORE = ("overwrite", "RESTORE of all", "append")
"""The second one adds all files again."""
REPLACE = ("clone", "overwrite", "clone again", "RESTORE of all", "clone again")
"""The clones replace a table: the first one by some files, the second one adds all files again."""


def _read(process: int, name: str) -> str:
    """A file of a process in /proc; nothing if the process has ended."""
    try:
        return Path(f"/proc/{process}/{name}").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def _numbers(process: int) -> list[int]:
    """The numbers of a process in /proc/PID/stat from its parent on; zeros if it has ended."""
    return [int(text) for text in _read(process, "stat").rpartition(")")[2].split()[1:15]] or [0] * 14


def _below(process: int) -> list[int]:
    """The process and its descendants, while they live: the JVM, and the Python workers of its tasks."""
    parents = {int(entry.name): _numbers(int(entry.name))[0] for entry in Path("/proc").glob("[0-9]*")}
    found = [process]
    for one in found:
        found += [child for child, parent in parents.items() if parent == one]
    return found


def _cpu(processes: list[int]) -> float:
    """The seconds of CPU of these processes, and of their children that have ended."""
    return sum(sum(_numbers(process)[10:14]) for process in processes) / os.sysconf("SC_CLK_TCK")


def _most(process: int) -> int:
    """The most memory that a process has had, in MiB; 0 if it has ended."""
    told = _read(process, "status").partition("VmHWM:")[2].split()
    return int(told[0]) >> 10 if told else 0


def run(table: str, names: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Run commands, one after another; what each took, and the peak memory of the driver's processes until then."""
    from tablelog.core.log import checkpoint
    from tablelog.settings.declarations import LOG_DRIVER_BYTES
    from tablelog.spark import conf, enable

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.memory", _JVM).config("spark.sql.shuffle.partitions", 2)
    spark = enable(builder.getOrCreate())
    resource.setrlimit(resource.RLIMIT_DATA, (_PYTHON, _PYTHON))
    # The log of a quarter of a million files is large too, as that of ten million is.
    spark.conf.set(LOG_DRIVER_BYTES.key, "40m")
    checkpoint._AT_ONCE = 40 << 20
    spark.range(10).count()
    jvm = spark.sparkContext._gateway.proc.pid
    commands = _commands(spark, table)
    for name in names:
        log = conf.delta_log(table, conf.session_conf(spark, table))
        version = log.reader.list(0).newest or 0
        start, cpu, of_tasks = time.perf_counter(), time.process_time(), _cpu(_below(jvm))
        commands[name]()
        seconds, cpu, of_tasks = time.perf_counter() - start, time.process_time() - cpu, _cpu(_below(jvm)) - of_tasks
        base = log.snapshot().base if name not in KILLED else None
        written = [
            path.stat().st_size
            for number in range(version + 1, (log.reader.list(0).newest or 0) + 1)
            if (path := Path(table, "_delta_log", f"{number:020}.json")).exists()
        ]
        yield {
            "command": name,
            "seconds": round(seconds, 1),
            "CPU of the driver's Python": round(cpu, 1),
            "CPU of JVM and tasks": round(of_tasks, 1),
            "Python, MiB": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
            "JVM, MiB": _most(jvm),
            "a worker, MiB": max((_most(process) for process in _below(jvm) if process != jvm), default=0),
            "columns on the driver": base is not None and base.loaded,
            "commits, KiB": -(-sum(written) // 1024),
        }


if __name__ == "__main__":
    groups = {
        "": DISTRIBUTED,
        "whole": WHOLE,
        "clone": CLONE,
        "feed": FEED,
        "killed": KILLED,
        "update": UPDATE,
        "restore": RESTORE,
        "replace": REPLACE,
        "partitions": PARTITIONS,
        "search": SEARCH,
        "mirror": MIRROR,
        "mark": MARK,
        "rewrite": REWRITE,
        "layout": LAYOUT,
    }
    names = groups.get(" ".join(sys.argv[2:]), sys.argv[2:])
    for taken in run(sys.argv[1], names):
        print(json.dumps(taken), flush=True)
