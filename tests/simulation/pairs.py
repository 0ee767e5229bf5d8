"""Two commands at once, of every kind: what each of them stages, and the orders in which they may come about."""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa

from tablelog.core.deltalog import DeltaLog
from tablelog.core.protocol import features, row_tracking
from tablelog.core.protocol.actions import (
    Action,
    AddFile,
    DeletionVectorDescriptor,
    DomainMetadata,
    FileKey,
    Metadata,
    SetTransaction,
)
from tablelog.core.skipping.predicates import Compare
from tablelog.core.table.snapshot import Snapshot
from tablelog.core.txn.conflict import IsolationLevel
from tablelog.core.txn.operation import Operation
from tablelog.core.txn.transaction import Transaction
from tablelog.errors import DeltaConcurrentModificationException

from .invariants import Attempt, check
from .scheduler import Scheduler, Workers
from .state import Truth
from .store import NO_FAULTS, Disk, SimulatedStore
from .writer import SCHEMA, STATS

TABLE = "mem:///t"
WRITERS = 2
CONF = {"spark.databricks.delta.writeChecksumFile.enabled": "false"}
SUPPORTED = frozenset({"appendOnly", "invariants", "deletionVectors", "domainMetadata", "checkConstraints"})


@dataclass
class Command:
    """One command of one writer, that sees `files`; what it depends on is noted in `attempt`."""

    attempt: Attempt
    transaction: Transaction
    files: dict[FileKey, AddFile]
    level: IsolationLevel

    def read(self, partition: str | None) -> list[AddFile]:
        """Depend on the files of a partition (`None`: of all), which these are."""

        def scope(file: AddFile) -> bool:
            return partition is None or file.partition_values["p"] == partition

        chosen = [file for file in self.files.values() if scope(file)]
        if partition is None:
            self.transaction.read_whole_table()
        else:
            self.transaction.read_predicate(
                Compare("=", ("p",), pa.scalar(int(partition), pa.int32())), time_zone="UTC"
            )
        self.transaction.read_keys(file.key for file in chosen)
        self.attempt.scope, self.attempt.seen = scope, frozenset(file.key for file in chosen)
        return chosen

    def add(self, partition: str = "0", *, data_change: bool = True) -> AddFile:
        return AddFile(f"{self.attempt.name}-{partition}", {"p": partition}, 1, 1, data_change, STATS[0])


Staged = tuple[list[Action], Operation]


def _append(command: Command) -> Staged:
    return [command.add()], Operation("WRITE")


def _stream(command: Command) -> Staged:
    command.attempt.app = "app", command.transaction.transaction_version("app")
    return [SetTransaction("app", (command.attempt.app[1] or 0) + 1), command.add()], Operation("STREAMING UPDATE")


def _overwrite(command: Command) -> Staged:
    gone = command.read(None)
    return [*(file.remove(1) for file in gone), command.add("0"), command.add("1")], Operation("WRITE")


def _dynamic(command: Command) -> Staged:
    return [*(file.remove(1) for file in command.read("0")), command.add()], Operation("WRITE")


def _delete(command: Command) -> Staged:
    """The rows of one file by a deletion vector."""
    vector = DeletionVectorDescriptor("p", f"mem:///t/v-{command.attempt.name}", 10, 1, 1)
    actions: list[Action] = []
    for file in command.read("0")[:1]:
        actions += [file.remove(1), replace(file, deletion_vector=vector, data_change=True)]
    return actions or [command.add()], Operation("DELETE")


def _wipe(command: Command) -> Staged:
    return [file.remove(1) for file in command.read("0")] or [command.add()], Operation("DELETE")


def _update(command: Command) -> Staged:
    """One file of the partition written anew."""
    return [*(file.remove(1) for file in command.read("0")[:1]), command.add()], Operation("UPDATE")


def _update_elsewhere(command: Command) -> Staged:
    return [*(file.remove(1) for file in command.read("1")), command.add("1")], Operation("UPDATE")


def _merge(command: Command) -> Staged:
    """Rows of the source that match none: it has read the partition, and only adds."""
    command.read("0")
    return [command.add()], Operation("MERGE")


def _optimize(command: Command) -> Staged:
    command.attempt.level = IsolationLevel.SNAPSHOT
    chosen = [file for file in command.files.values() if file.partition_values["p"] == "0"]
    command.transaction.read_keys(file.key for file in chosen)
    command.attempt.keys = frozenset(file.key for file in chosen)
    removes = [file.remove(1, data_change=False) for file in chosen]
    return [*removes, command.add(data_change=False)], Operation("OPTIMIZE", changes_data=False)


def _restore(command: Command) -> Staged:
    """A file that came later goes."""
    return [file.remove(1) for file in command.read(None)[-1:]] or [command.add()], Operation(
        "RESTORE", replaces_table=True, readds_files=True
    )


def _vacuum(command: Command) -> Staged:
    if command.level is IsolationLevel.SERIALIZABLE:
        command.attempt.level = IsolationLevel.SNAPSHOT
    return [], Operation("VACUUM START")


def _describe(command: Command) -> Staged:
    command.transaction.set_metadata(replace(command.transaction.metadata, description=command.attempt.name))
    return [], Operation("SET TBLPROPERTIES")


def _enable(command: Command) -> Staged:
    """A property under which what others have written is right as it is."""
    command.attempt.lets_pass = True
    old = command.transaction.metadata
    enabled = {**old.configuration, "delta.enableDeletionVectors": "true"}
    command.transaction.set_metadata(replace(old, configuration=enabled))
    return [], Operation("SET TBLPROPERTIES")


def _replace(command: Command) -> Staged:
    kept = {"delta.isolationLevel": command.level.value}
    metadata = Metadata("new", SCHEMA, ("p",), kept)
    command.transaction.set_metadata(metadata, replaces_table=True)
    return [file.remove(1) for file in command.read(None)], Operation("REPLACE TABLE", replaces_table=True)


def _upgrade(command: Command) -> Staged:
    command.transaction.set_protocol(
        features.protocol_of(features.supported(command.transaction.protocol) | {"generatedColumns"})
    )
    return [], Operation("UPGRADE PROTOCOL")


def _drop(command: Command) -> Staged:
    lowered = features.supported(command.transaction.protocol) - {"checkConstraints"}
    command.transaction.set_protocol(features.protocol_of(lowered))
    return [], Operation("DROP FEATURE", lowers_protocol=True)


def _domain(command: Command) -> Staged:
    return [DomainMetadata("app.d", command.attempt.name, removed=False)], Operation("SET DOMAIN")


def _backfill(command: Command) -> Staged:
    command.attempt.level = IsolationLevel.SNAPSHOT
    without: list[Action] = [replace(f, data_change=False) for f in command.files.values() if f.base_row_id is None]
    return without, Operation(row_tracking.BACKFILL, changes_data=False, restates_files=True)


KINDS: dict[str, Callable[[Command], Staged]] = {
    "append": _append,
    "stream": _stream,
    "overwrite": _overwrite,
    "dynamic": _dynamic,
    "delete": _delete,
    "wipe": _wipe,
    "update": _update,
    "elsewhere": _update_elsewhere,
    "merge": _merge,
    "optimize": _optimize,
    "restore": _restore,
    "vacuum": _vacuum,
    "describe": _describe,
    "enable": _enable,
    "replace": _replace,
    "upgrade": _upgrade,
    "drop": _drop,
    "domain": _domain,
    "backfill": _backfill,
}


# --- the table, and the orders ------------------------------------------------------------------------------------


class Orders:
    """Every order there is, one after another: `choose` asks, and `advance` goes on to the next order."""

    def __init__(self) -> None:
        self._path: list[int] = []
        self._taken: list[tuple[int, int]] = []

    def choose(self, count: int) -> int:
        at = len(self._taken)
        choice = self._path[at] if at < len(self._path) else 0
        self._taken.append((choice, count))
        return choice

    def advance(self) -> bool:
        """Whether there is another order."""
        taken = self._taken
        while taken and taken[-1][0] + 1 == taken[-1][1]:
            taken.pop()
        self._path = [choice for choice, _ in taken]
        self._taken = []
        if not taken:
            return False
        self._path[-1] += 1
        return True


class InOrder(Scheduler):
    """A scheduler whose every choice is told from outside."""

    def __init__(self, workers: Workers, orders: Orders) -> None:
        super().__init__(workers, random.Random(0))
        self._orders = orders

    def _choose(self) -> int:
        self.steps += 1
        self._pass_time()
        return self._alive[self._orders.choose(len(self._alive))]

    def switch(self) -> None:
        if not self._alive:
            return
        me = self.running
        self.running = self._choose()
        if self.running != me:
            self._workers.batons[self.running].release()
            self._workers.batons[me].acquire()


class Race:
    """One order of two commands on the table that `base` makes."""

    def __init__(self, workers: Workers, orders: Orders, before: "Race | None" = None) -> None:
        self.disk, self.attempts = Disk(), []
        if before is not None:
            self.disk.files, self.disk.commits = dict(before.disk.files), dict(before.disk.commits)
            self.attempts = list(before.attempts)
        self.scheduler = InOrder(workers, orders)

    def log(self, number: int) -> DeltaLog:
        clock = self.scheduler
        store = SimulatedStore(
            self.disk, clock, random.Random(0), NO_FAULTS, number=number, events=[], file_clock=clock
        )
        return DeltaLog(TABLE, store, conf=CONF, clock=clock)

    def begin(self, name: str, level: IsolationLevel, snapshot: Snapshot | None, log: DeltaLog) -> Command:
        attempt = Attempt(name, f"token-{name}.", level=level)
        self.attempts.append(attempt)
        made = Transaction(log, snapshot, dice=lambda: 0.5, new_token=lambda: attempt.token)
        attempt.read_version = made.read_version
        files = {} if snapshot is None else {file.key: file for file in snapshot.add_files()}
        return Command(attempt, made, files, level)

    def run(self, kinds: Sequence[str], level: IsolationLevel) -> None:
        """Both commands, each from its look at the table to the end of its commit; then every invariant is checked."""
        logs = [self.log(number) for number in range(len(kinds))]
        for log in logs:
            log.snapshot()  # what follows is then one listing and one write, for each

        def command(number: int) -> None:
            log = logs[number]
            begun = self.begin(f"{kinds[number]}-{number}", level, log.snapshot(), log)
            commit(begun, *KINDS[kinds[number]](begun))

        self.scheduler.run([partial(command, number) for number in range(len(kinds))])
        check(self.disk, Truth(self.disk), self.attempts, level)

    def run_after_each_other(self, first: str, second: str, level: IsolationLevel) -> None:
        """Both look at the table, then the first commits, then the second."""
        logs = [self.log(number) for number in range(WRITERS)]
        kinds = (first, second)
        begun = [self.begin(f"{kinds[n]}-{n}", level, logs[n].snapshot(), logs[n]) for n in range(WRITERS)]
        for kind, command in zip(kinds, begun, strict=True):
            commit(command, *KINDS[kind](command))
        check(self.disk, Truth(self.disk), self.attempts, level)


def commit(command: Command, actions: list[Action], operation: Operation) -> None:
    """Commit, and note what was told of it."""
    attempt = command.attempt
    try:
        attempt.version = command.transaction.commit(actions, operation).version
        attempt.told = "committed"
    except DeltaConcurrentModificationException as error:
        attempt.told, attempt.detail = "not committed", type(error).__name__


def base(workers: Workers, level: IsolationLevel) -> Race:
    """A table of three files, two of them in the partition 0, which are older than its row ids."""
    race = Race(workers, Orders())
    log = race.log(0)
    for number, files in enumerate([["a-0", "b-1"], ["c-0"], []]):
        begun = race.begin(f"base-{number}", level, log.snapshot() if number else None, log)
        if not number:
            begun.transaction.set_metadata(Metadata("id", SCHEMA, ("p",), {"delta.isolationLevel": level.value}))
            begun.transaction.set_protocol(features.protocol_of(SUPPORTED))
        elif not files:
            begun.transaction.set_protocol(features.protocol_of(SUPPORTED | {row_tracking.FEATURE}))
            begun.transaction.set_metadata(begun.transaction.metadata)  # which gets the names of columns for row ids
        commit(begun, [AddFile(name, {"p": name[-1]}, 1, 1, True, STATS[0]) for name in files], Operation("WRITE"))
    return race


def races(names: Sequence[str], level: IsolationLevel, workers: Workers, before: Race) -> Iterator[list[Attempt]]:
    """What became of the commands, in each order of their calls of the store."""
    orders = Orders()
    while True:
        race = Race(workers, orders, before)
        race.run(names, level)
        yield sorted(race.attempts[-len(names) :], key=lambda attempt: attempt.name.rpartition("-")[2])
        if not orders.advance():
            return
