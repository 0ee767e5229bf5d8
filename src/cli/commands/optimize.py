"""`tablelog optimize`: fewer and larger files, or files sorted for skipping. It runs Spark."""

import click

from ...units import size
from .. import text
from ..column_names import listed
from ..output import Output
from ..parameters import Command, Location, on_table, writes_output


@click.command(
    cls=Command,
    examples=(
        "tablelog optimize ./events",
        "tablelog optimize ./events --where \"day >= '2024-05-01'\"",
        "tablelog optimize s3a://bucket/events --zorder user,day --conf fs.s3a.endpoint=...",
    ),
)
@on_table
@click.option("--where", metavar="SQL", help="Only these partitions, as a condition in SQL.")
@click.option("--zorder", metavar="NAME,...", help="Sort by these columns, so that filters on them skip files.")
@click.option("--full", is_flag=True, help="Cluster all files of a clustered table again.")
@click.option("--master", default="local[*]", show_default=True, metavar="URL", help="Spark's master.")
@writes_output
def command(location: Location, where: str | None, zorder: str | None, full: bool, master: str, output: Output) -> None:
    """Rewrite small files of TABLE as larger ones. It starts a local Spark session.

    Rows don't change, and running readers aren't disturbed. `tablelog vacuum` deletes the old files later.
    """
    from ..spark_session import delta_table, local_session

    log = location.log()
    before = log.snapshot()  # an error about the table is faster than Spark
    with local_session(location, master) as spark:
        builder = delta_table(spark, location.uri).optimize()
        if where is not None:
            builder = builder.where(where)
        if zorder is not None:
            frame = builder.executeZOrderBy(*listed(zorder, "--zorder"))
        elif full:
            frame = builder.executeFull()
        else:
            frame = builder.executeCompaction()
        metrics = frame.collect()[0]["metrics"].asDict(recursive=True)
    after = log.snapshot()
    document = {
        "table": text.shown(log.table),
        "from": before.version,
        "version": after.version,
        "numFilesRemoved": metrics["numFilesRemoved"],
        "numFilesAdded": metrics["numFilesAdded"],
        "numFilesBefore": before.num_files,
        "numFilesAfter": after.num_files,
        "sizeInBytesBefore": before.size_in_bytes,
        "sizeInBytesAfter": after.size_in_bytes,
    }
    if output.as_json:
        output.json(document)
        return
    output.line(f"{document['table']}, version {after.version}", "bold")
    output.facts(
        {
            "files": f"{before.num_files:,} before, {after.num_files:,} now",
            "rewritten": f"{metrics['numFilesRemoved']:,} files as {metrics['numFilesAdded']:,}",
            "size": f"{size(before.size_in_bytes)} before, {size(after.size_in_bytes)} now",
        }
    )
