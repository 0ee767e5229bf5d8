"""A program that reads tables as a session would, under a limit of memory; a line for each says how that ended."""

import json
import resource
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from tablelog.core import DeltaLog, Operation
from tablelog.core.skipping.predicates import Compare
from tablelog.core.table.snapshot import Snapshot
from tablelog.errors import TablelogError

MEMORY = 3 << 30
SECONDS = 120


class TooSlowError(BaseException):
    """The time of a case is over."""


def state(snapshot: Snapshot) -> list[Any]:
    """What a version holds, in plain values."""
    files = sorted(
        (file.path, file.size, str(file.deletion_vector), file.stats, sorted(file.partition_values.items()))
        for file in snapshot.add_files()
    )
    header = (snapshot.protocol, snapshot.metadata.id, snapshot.transactions, snapshot.domain_metadata)
    return [snapshot.version, files, *map(str, header)]


def uses(snapshot: Snapshot) -> list[str]:
    """Ask a snapshot for its other parts; each may raise an error of ours. Returns errors without table or version."""
    without = []
    asked: list[Callable[[], Any]] = [
        lambda: snapshot.schema,
        lambda: snapshot.properties,
        lambda: list(snapshot.tombstones.to_pylist()),
        lambda: snapshot.num_records().to_pylist(),
        lambda: snapshot.prune_mask(Compare("<", ("id",), pa.scalar(4)), time_zone="UTC"),
        lambda: [piece.to_pylist() for piece in snapshot.pieces(with_stats=True)],
        lambda: snapshot.timestamp_ms,
    ]
    for ask in asked:
        try:
            ask()
        except TablelogError as error:
            if error.table != snapshot.table or error.version is None:
                without.append(f"{error!r}: {error.table}, {error.version}"[:300])
    return without


def read(table: str) -> dict[str, Any]:
    log = DeltaLog.for_path(table)
    found: dict[str, Any] = {}
    for name, ask in {
        "state": lambda: state(log.snapshot()),
        "uses": lambda: uses(log.snapshot()),
        "health": lambda: str(log.health()),
        "history": lambda: len(log.history(3)),
        "commit": lambda: log.transaction().commit([], Operation("NOTHING")).version,
    }.items():
        try:
            found[name] = ask()  # type: ignore[no-untyped-call]
        except TablelogError as error:
            found[name] = None
            found[f"{name} error"] = type(error).__name__
            found[f"{name} message"] = str(error)[:300]
            if error.table != log.table:
                found[f"{name} without table"] = str(error)[:300]
        except Exception as error:
            found[name] = None
            found["untyped"] = f"{name}: {type(error).__name__}: {str(error)[:300]}"
    return found


def _over(*_: object) -> None:
    raise TooSlowError


def main(directory: str) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.signal(signal.SIGALRM, _over)
    for path in sorted(Path(directory).iterdir()):
        started = time.process_time()
        signal.alarm(SECONDS)
        try:
            found = read(str(path))
        except TooSlowError:
            found = {"untyped": f"it took more than {SECONDS} s"}
        signal.alarm(0)
        seconds = round(time.process_time() - started, 2)
        print(json.dumps({"case": path.name, "seconds": seconds, **found}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
