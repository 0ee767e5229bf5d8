"""Ours against plain Parquet, delta-spark and delta-rs, alternating in one run; prints a Markdown table of ratios.

`python -m benchmarks [WORK ...] [--rounds N] [--rows N]`; with no WORK, all. Spark work runs both engines on Spark 4.2
in the environment that TABLELOG_PEER_PYTHON names (`make bench` makes it). Times are medians of the rounds, after a
warm-up; every ratio is ours divided by the other's, so smaller is better.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from benchmarks import sql_contests, stream_contests  # noqa: F401 (their work is in SPARK_WORK)
from benchmarks.log_contests import LOG_WORK, ON_REQUEST
from benchmarks.spark_contests import SPARK_WORK
from benchmarks.turns import Bench, Result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work", nargs="*", help=f"of {', '.join([*SPARK_WORK, *LOG_WORK])}")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=10_000_000)
    arguments = parser.parse_args()
    wanted = arguments.work or [name for name in (*SPARK_WORK, *LOG_WORK) if name not in ON_REQUEST]
    if unknown := set(wanted) - {*SPARK_WORK, *LOG_WORK}:
        parser.error(f"no such work: {', '.join(unknown)}")
    results: list[Result] = []
    with tempfile.TemporaryDirectory(prefix="tablelog-bench-") as directory:
        bench = Bench(Path(directory), arguments.rounds, arguments.rows)
        for name in (name for name in LOG_WORK if name in wanted):
            print(f"  {name}", file=sys.stderr, flush=True)
            results.append(LOG_WORK[name](bench))
        if any(name in SPARK_WORK for name in wanted):
            with bench.engines() as (ours, delta):
                for name in (name for name in SPARK_WORK if name in wanted):
                    print(f"  {name}", file=sys.stderr, flush=True)
                    results.append(SPARK_WORK[name](bench, ours, delta))
    print("| work | ours | against | theirs | ratio | bar | verdict | remark |\n|---|---|---|---|---|---|---|---|")
    for result in results:
        for line in result.lines():
            print(line)
    for result in results:
        if result.details:
            print(f"\n{result.work}:\n")
            print("\n".join(result.details))


if __name__ == "__main__":
    main()
