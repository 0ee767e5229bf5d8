"""`python -m soak.reader RUN NAME`: reads whole versions without Spark, and checks what every version must have."""

import os
import random
import sys
import time
from collections import Counter
from collections.abc import Sequence

from soak import places
from soak.effects import Row, digest
from soak.journal import Journal
from soak.places import Place, Run

_TWICE_WITHIN_SECONDS = 10.0


def broken(rows: Sequence[Row]) -> list[str]:
    """What is wrong with the rows of a version of `main`."""
    found = []
    twice = [number for number, times in Counter(row.id for row in rows).items() if times > 1]
    if twice:
        found.append(f"rows that are there twice: {sorted(twice)[:10]}")
    accounts = [row.amount for row in rows if row.p == "accounts"]
    if (len(accounts), sum(accounts)) != (places.ACCOUNTS, places.ACCOUNTS * places.SHARE):
        found.append(f"{len(accounts)} accounts hold {sum(accounts)}")
    return found


class Reader:
    def __init__(self, run: Run, name: str) -> None:
        self._run = run
        self._journal = Journal(run.directory, name)
        self._logs = {place.name: place.log("main") for place in run.places}
        self._last: dict[str, tuple[int, float]] = {}
        self._random = random.Random(f"{run.seed} {name}")

    def _read(self, place: Place, version: int | None) -> None:
        log = self._logs[place.name]
        snapshot = log.snapshot(version)
        last, _ = self._last.get(place.name, (-1, 0.0))
        if snapshot.version < last:
            self._journal.say(broken=f"{place.name}: version {snapshot.version} was read after version {last}")
        rows = places.read(log, snapshot)
        self._journal.say(place=place.name, version=snapshot.version, digest=digest(rows), rows=len(rows))
        for what in broken(rows):
            self._journal.say(broken=f"{place.name}, version {snapshot.version}: {what}")
        self._last[place.name] = snapshot.version, time.monotonic()

    def work(self) -> None:
        """Read new versions, and now and then one again that was read a short time before."""
        self._journal.say(ready={"pid": os.getpid()})
        while not self._run.stopped:
            place = self._random.choice(self._run.places)
            last, at = self._last.get(place.name, (None, 0.0))
            young = time.monotonic() - at < min(_TWICE_WITHIN_SECONDS, self._run.retention_seconds / 4)
            with self._journal.errors_told(place.name):
                self._read(place, last if young and self._random.random() < 0.2 else None)
            time.sleep(self._random.uniform(0.1, 0.5))


if __name__ == "__main__":
    Reader(Run.of(sys.argv[1]), sys.argv[2]).work()
