"""`python -m soak.core_writer RUN NAME`: a writer without Spark, until the soak ends or it is killed."""

import os
import random
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from soak import effects, places
from soak.effects import NOTHING, Effect, Row
from soak.journal import Journal
from soak.places import Place, Run
from tablelog import retrying
from tablelog.core import Action, DeltaLog, Operation, SetTransaction, Snapshot, Transaction

_MOST_FILES = 6
_RHYTHM_SECONDS, _BUSY_SECONDS = 20.0, 14.0
"""In the rest of each period no core writer commits, so that commands that read the whole table have a chance."""


class Writer:
    def __init__(self, run: Run, name: str) -> None:
        self._run = run
        self._journal = Journal(run.directory, name)
        self._partition, _, incarnation = name.partition(".")
        self._random = random.Random(f"{run.seed} {name}")
        self._next_id = 1_000_000_000 * (1 + int(self._partition.rpartition("-")[2])) + 1_000_000 * int(incarnation)
        self._logs: dict[tuple[str, str], DeltaLog] = {}

    def work(self) -> None:
        self._journal.say(ready={"pid": os.getpid()})
        steps: Sequence[Callable[[Place], None]] = (
            *[self._append] * 4, *[self._append_event] * 4, *[self._update] * 3, *[self._delete] * 2,
            *[self._compact] * 2, self._describe,
        )  # fmt: skip
        while not self._run.stopped:
            step, place = self._random.choice(steps), self._random.choice(self._run.places)
            with self._journal.errors_told(place.name):
                retrying(partial(step, place))
            time.sleep(self._random.uniform(0.05, 0.6))
            while time.time() % _RHYTHM_SECONDS > _BUSY_SECONDS and not self._run.stopped:
                time.sleep(0.2)

    def _log(self, place: Place, table: str) -> DeltaLog:
        return self._logs.setdefault((place.name, table), place.log(table))

    def _commit(
        self, place: Place, transaction: Transaction, actions: Sequence[Action], kind: Operation, effect: Effect
    ) -> None:
        table = transaction.table.rpartition("/")[2]

        def work(operation: str) -> int:
            return transaction.commit(actions, kind, user_metadata=operation).version

        log = self._log(place, table)
        name = kind.name.lower() + ("" if table == "main" else f" {table}")
        self._journal.did(place.name, table, f"core {name}", effect, work, lambda: log.snapshot().version)

    def _new_rows(self, partition: str) -> list[Row]:
        count = self._random.randint(1, 4)
        self._next_id += count
        return [Row(self._next_id - at, partition, self._random.randint(0, 99)) for at in range(count)]

    def _append(self, place: Place) -> None:
        transaction = self._log(place, "main").transaction()
        rows = self._new_rows(self._partition)
        add = places.written(place, "main", self._partition, rows)
        self._commit(place, transaction, [add], Operation("WRITE"), effects.insert(rows))

    def _append_event(self, place: Place) -> None:
        """An idempotent append: the next number of this writer, whatever its earlier incarnations did."""
        transaction = self._log(place, "events").transaction()
        app = f"events of {self._partition}"
        number = (transaction.transaction_version(app) or 0) + 1
        first = 1_000_000_000 * int(self._partition.rpartition("-")[2]) + 10 * number
        rows = [Row(first + at, "e", number) for at in range(self._random.randint(1, 3))]
        add = places.written(place, "events", "e", rows)
        actions: list[Action] = [add, SetTransaction(app, number)]
        self._commit(place, transaction, actions, Operation("WRITE"), effects.insert(rows))

    def _own(self, transaction: Transaction) -> tuple[Snapshot, list[int]]:
        snapshot = transaction.snapshot
        assert snapshot is not None
        values = snapshot.files.column("partitionValues").to_pylist()
        return snapshot, [at for at, value in enumerate(values) if dict(value)["p"] == self._partition]

    def _rewrite(self, place: Place, kind: str, most: int) -> None:
        log = self._log(place, "main")
        transaction = log.transaction()
        snapshot, own = self._own(transaction)
        if kind == "OPTIMIZE" and len(own) < most:
            return
        if not own:
            return
        chosen = own[:most] if kind == "OPTIMIZE" else [self._random.choice(own)]
        rows = places.read(log, snapshot, chosen)
        adds = snapshot.add_files(chosen)
        transaction.read_keys([add.key for add in adds])
        now, moved = int(time.time() * 1000), kind == "OPTIMIZE"
        actions: list[Action] = [add.remove(now, data_change=not moved) for add in adds]
        effect = effects.remove(rows)
        if kind != "DELETE" and rows:
            by = 0 if moved else self._random.randint(1, 9)
            new = [row._replace(amount=row.amount + by) for row in rows]
            actions.append(replace(places.written(place, "main", self._partition, new), data_change=not moved))
            effect = NOTHING if moved else effects.change(rows, by)
        self._commit(place, transaction, actions, Operation(kind, changes_data=not moved), effect)

    def _update(self, place: Place) -> None:
        self._rewrite(place, "UPDATE", 1)

    def _delete(self, place: Place) -> None:
        self._rewrite(place, "DELETE", 1)

    def _compact(self, place: Place) -> None:
        self._rewrite(place, "OPTIMIZE", _MOST_FILES)

    def _describe(self, place: Place) -> None:
        """A change of metadata, which conflicts with every concurrent commit."""
        if self._random.random() > 0.2:
            return
        transaction = self._log(place, "main").transaction()
        transaction.set_metadata(replace(transaction.metadata, description=f"after {self._journal.name}"))
        self._commit(place, transaction, [], Operation("SET TBLPROPERTIES"), NOTHING)


if __name__ == "__main__":
    Writer(Run.of(sys.argv[1]), sys.argv[2]).work()
