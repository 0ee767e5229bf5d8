"""The work by SQL: what each contender runs, and what ours must be at most."""

import statistics
from collections.abc import Callable

from benchmarks import tpc_data
from benchmarks.spark_contests import spark_work
from benchmarks.turns import CLOSE, Bench, Margin, Result
from benchmarks.worker import Worker

BAR = {"delta-spark": 1 / 1.5}

OTHER_TABLES = {
    "SELECT": "SELECT id FROM other.plain WHERE id = 7",
    "WITH": "WITH some AS (SELECT id FROM other.plain WHERE id < 7) SELECT count(*) FROM some",
    "DESCRIBE": "DESCRIBE TABLE other.plain",
    "SHOW TBLPROPERTIES": "SHOW TBLPROPERTIES other.plain",
    "CREATE TABLE": "CREATE TABLE IF NOT EXISTS other.plain (id BIGINT) USING parquet",
    "CREATE VIEW": "CREATE OR REPLACE TEMPORARY VIEW some AS SELECT id FROM other.plain",
    "SET": "SET spark.sql.shuffle.partitions",
}
"""Statements without a Delta table: what `spark.sql` itself takes, for none of them is executed by a Spark job."""


@spark_work
def tpch(bench: Bench, ours: Worker, delta: Worker) -> Result:
    """The 22 queries, at scale 1 where other works have ten million rows; the same data files for all."""
    scale = bench.rows / 10_000_000
    source, tables, plain = (bench.path(f"tpch-{name}") for name in ("source", "delta", "plain"))
    connection = tpc_data.generator("tpch")
    tpc_data.write_parquet(connection, tpc_data.generate(connection, "tpch", scale), bench.directory / "tpch-source")
    connection.close()
    names = ours("make_tables", source=source, directory=tables, plain=plain)
    ours("name_tables", database="tpch_delta", format_="delta", directory=tables, names=names)
    ours("name_tables", database="tpch_plain", format_="parquet", directory=plain, names=names)
    delta("name_tables", database="tpch_delta", format_="delta", directory=tables, names=names)
    queries = tpc_data.queries("tpch")
    seconds = {number: bench.alternate(_query(ours, delta, text)) for number, text in queries.items()}
    bars = {"Parquet": 1.05, **BAR}
    sums = {
        name: [sum(round_) for round_ in zip(*(of_query[name] for of_query in seconds.values()), strict=True)]
        for name in ("ours", *bars)
    }
    lines = ["| query | ours | Parquet | ratio | delta-spark | ratio |", "|---|---|---|---|---|---|"]
    for number, of_query in seconds.items():
        ours_, plain_, peer = (statistics.median(of_query[name]) for name in ("ours", "Parquet", "delta-spark"))
        ratios = f"{plain_:.3g} s | {ours_ / plain_:.2f} | {peer:.3g} s | {ours_ / peer:.2f}"
        lines.append(f"| {number} | {ours_:.3g} s | {ratios} |")
    return Result(f"TPC-H at scale {scale:g}, the sum of 22 queries", sums, bars, details=lines)


def _query(ours: Worker, delta: Worker, text: str) -> dict[str, Callable[[], float]]:
    return {
        "ours": lambda: ours("query", text=text, database="tpch_delta"),
        "Parquet": lambda: ours("query", text=text, database="tpch_plain"),
        "delta-spark": lambda: delta("query", text=text, database="tpch_delta"),
    }


@spark_work
def sql_point_select(bench: Bench, ours: Worker, delta: Worker) -> Result:
    table = bench.path("sql-select")
    ours("make", path=table, n=1_000_000, files=1000)
    seconds = bench.alternate(
        {
            name: lambda worker=worker: worker("point_select", path=table, key=500_100)
            for name, worker in (("ours", ours), ("delta-spark", delta))
        }
    )
    return Result("SELECT of one row by SQL, 1,000 files", seconds, BAR)


@spark_work
def sql_insert(bench: Bench, ours: Worker, delta: Worker) -> Result:
    seconds = bench.alternate(
        {
            "ours": lambda: ours("inserts", path=bench.path("i1"), times=20),
            "delta-spark": lambda: delta("inserts", path=bench.path("i2"), times=20),
        }
    )
    return Result("20 INSERTs of one row by SQL, one after another", seconds, BAR)


@spark_work
def sql_create(bench: Bench, ours: Worker, delta: Worker) -> Result:
    seconds = bench.alternate(
        {
            "ours": lambda: ours("creates", path=bench.path("created1"), times=10),
            "delta-spark": lambda: delta("creates", path=bench.path("created2"), times=10),
        }
    )
    return Result("CREATE TABLE by SQL, 10 tables", seconds, BAR)


@spark_work
def sql_history(bench: Bench, ours: Worker, delta: Worker) -> Result:
    table = bench.path("sql-history")
    ours("make_versions", path=table, versions=1000)
    seconds = bench.alternate(
        {
            name: lambda worker=worker: worker("history", path=table, versions=1000)
            for name, worker in (("ours", ours), ("delta-spark", delta))
        }
    )
    return Result("DESCRIBE HISTORY of 1,000 versions", seconds, BAR)


@spark_work
def sql_other_tables(bench: Bench, ours: Worker, delta: Worker) -> Result:
    """The statements of OTHER_TABLES by our `spark.sql` and, disabled in the same session, by Spark's; one of each."""
    times = 20
    ours("make_plain")
    seconds = {
        what: bench.alternate(
            {
                "ours": lambda text=text: ours("statements", text=text, times=times, enabled=True) / times,
                "plain Spark": lambda text=text: ours("statements", text=text, times=times, enabled=False) / times,
            },
            least=CLOSE,
        )
        for what, text in OTHER_TABLES.items()
    }
    worst = max(seconds, key=lambda what: _more(seconds[what]))
    lines = ["| statement | ours | plain Spark | more |", "|---|---|---|---|"]
    for what, of_statement in seconds.items():
        mine, other = (1000 * statistics.median(of_statement[name]) for name in ("ours", "plain Spark"))
        lines.append(f"| {what} | {mine:.2f} ms | {other:.2f} ms | {mine - other:.2f} ms |")
    work = f"`spark.sql` on other tables, {worst} (the most of {len(seconds)} statements)"
    return Result(work, seconds[worst], {"plain Spark": Margin(0.002)}, details=lines)


def _more(seconds: dict[str, list[float]]) -> float:
    return statistics.median(seconds["ours"]) - statistics.median(seconds["plain Spark"])
