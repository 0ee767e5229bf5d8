"""`tablelog convert`: makes a Delta table of a directory of Parquet files. It runs Spark."""

from pathlib import Path

import click

from ...errors import TableAlreadyExistsError, TableNotFoundError
from ...units import size
from .. import text
from ..output import Output
from ..parameters import Command, Location, on_table, writes_output


@click.command(
    cls=Command,
    examples=(
        "tablelog convert ./parquet-files",
        "tablelog convert ./by-day --partitioned-by 'day DATE'",
        "tablelog convert s3a://bucket/files --no-statistics --conf fs.s3a.endpoint=...",
    ),
)
@on_table
@click.option("--partitioned-by", metavar="DDL", help="The partition columns with their types, such as 'day DATE'.")
@click.option("--statistics/--no-statistics", default=True, help="Whether to collect statistics (default: yes).")
@click.option("--master", default="local[*]", show_default=True, metavar="URL", help="Spark's master.")
@writes_output
def command(location: Location, partitioned_by: str | None, statistics: bool, master: str, output: Output) -> None:
    """Convert the directory TABLE of Parquet files to a Delta table in place. It starts a local Spark session.

    No file is rewritten: a log is added. Programs that write Parquet files there must not do so afterwards.
    """
    from ...logstore.common.uri import local_path, scheme_of
    from ..spark_session import local_session

    log = location.log()
    if scheme_of(log.table) == "file" and not Path(local_path(log.table)).is_dir():  # faster than Spark
        raise TableNotFoundError(f"there is no directory {text.shown(log.table)}")
    if log.exists():
        raise TableAlreadyExistsError(f"{text.shown(log.table)} is a Delta table already")
    with local_session(location, master) as spark:
        path = location.uri.replace("`", "``")
        parts = f" PARTITIONED BY ({partitioned_by})" if partitioned_by else ""
        rest = "" if statistics else " NO STATISTICS"
        spark.sql(f"CONVERT TO DELTA parquet.`{path}`{rest}{parts}")
    snapshot = log.snapshot()
    if output.as_json:
        output.json(
            {
                "table": text.shown(log.table),
                "version": snapshot.version,
                "numFiles": snapshot.num_files,
                "sizeInBytes": snapshot.size_in_bytes,
            }
        )
    else:
        many = f"{text.count(snapshot.num_files, 'file')}, {size(snapshot.size_in_bytes)}"
        output.line(f"{text.shown(log.table)} is a Delta table now: {many}", "green")
