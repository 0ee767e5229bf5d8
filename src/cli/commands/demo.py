"""`tablelog demo`: a small table to try the other commands on."""

import random
import tempfile
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ...errors import TableAlreadyExistsError
from ..output import Output
from ..parameters import Command, writes_output

if TYPE_CHECKING:
    import pyarrow as pa

    from ...core.protocol.actions import AddFile

_DAYS, _ROWS = 6, 200
_FIRST = date(2024, 5, 1)
_USERS = ("ada", "grace", "edsger", "barbara", "alan")


@click.command(cls=Command, examples=("tablelog demo", "tablelog demo ./demo-table --json"))
@click.argument("directory", required=False, type=click.Path(path_type=Path))
@writes_output
def command(directory: Path | None, output: Output) -> None:
    """Make a small Delta table in DIRECTORY (default: a new temporary one), and show what to try on it.

    The table has some commits, a checkpoint and many small files. It needs no Spark.
    """
    root = (directory or Path(tempfile.mkdtemp(prefix="tablelog-demo-")) / "events").absolute()
    if root.exists() and any(root.iterdir()):
        raise TableAlreadyExistsError(f"{root} isn't empty: name a new directory")
    versions = _write(root)
    commands = [
        f"tablelog history {root}",
        f"tablelog detail {root}",
        f"tablelog files {root} --where 'amount > 95' --stats",
        f"tablelog cat {root} --where 'user = ada' --limit 5",
        f"tablelog log {root} 2 {versions}",
        f"tablelog check {root}",
        f"tablelog restore {root} 2",
        f"tablelog optimize {root}",
    ]
    if output.as_json:
        output.json({"table": str(root), "version": versions, "commands": commands})
        return
    output.line(f"a table with {versions + 1} versions is in {root}", "bold green")
    output.line("try:")
    for line in commands:
        output.line(f"  {line}", "cyan")


def _write(root: Path) -> int:
    """Write the table; returns its newest version."""
    from ...core import DeltaLog, Metadata, Operation
    from ...core.protocol.schema import from_arrow, to_json

    dice = random.Random(7)
    log = DeltaLog.for_path(str(root))
    transaction = log.transaction()
    first = next(_days(dice))[1]
    schema = to_json(from_arrow(first.schema))
    transaction.set_metadata(Metadata("tablelog-demo", schema, ("day",), {}, name="events"))
    transaction.commit([], Operation("CREATE TABLE", {"partitionBy": ["day"]}))
    written: list[AddFile] = []
    for day, rows in _days(dice):
        written = [_file(root, day, rows.slice(start, _ROWS // 2), start) for start in (0, _ROWS // 2)]
        metrics = {"numFiles": len(written), "numOutputRows": rows.num_rows}
        log.transaction().commit(written, Operation("WRITE", {"mode": "Append", "partitionBy": ["day"]}, metrics))
    log.checkpoint()
    gone = written[0].remove(log.clock.now_ms())
    metrics = {"numRemovedFiles": 1, "numDeletedRows": _ROWS // 2}
    transaction = log.transaction()
    transaction.read_whole_table()
    return transaction.commit(
        [gone],
        Operation(
            "DELETE",
            {"predicate": f"id BETWEEN {(_DAYS - 1) * _ROWS} AND {(_DAYS - 1) * _ROWS + _ROWS // 2 - 1}"},
            metrics,
        ),
    ).version


def _days(dice: random.Random) -> "Iterator[tuple[date, pa.Table]]":
    import pyarrow as pa

    for number in range(_DAYS):
        day = _FIRST + timedelta(days=number)
        ids = range(number * _ROWS, (number + 1) * _ROWS)
        yield (
            day,
            pa.table(
                {
                    "id": pa.array(ids, pa.int64()),
                    "user": [dice.choice(_USERS) for _ in ids],
                    "amount": [round(dice.uniform(1, 100), 2) for _ in ids],
                    "day": pa.array([day] * _ROWS, pa.date32()),
                }
            ),
        )


def _file(root: Path, day: date, rows: "pa.Table", start: int) -> "AddFile":
    import pyarrow.parquet as pq

    from ...core.protocol.actions import AddFile
    from ...core.protocol.schema import from_arrow, leaves
    from ...core.skipping.stats_writer import collect

    name = f"day={day}/part-{start:05}.parquet"
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    data = rows.drop_columns(["day"])
    pq.write_table(data, path)
    status = path.stat()
    stats = collect(data, list(leaves(from_arrow(data.schema))))
    return AddFile(name, {"day": str(day)}, status.st_size, status.st_mtime_ns // 1_000_000, True, stats=stats)
