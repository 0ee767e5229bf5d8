"""A writer: one process, its handle, and a handful of commits, with now and then several transactions open at once."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from tablelog.core.deltalog import DeltaLog
from tablelog.core.protocol import features, row_tracking
from tablelog.core.protocol.actions import (
    Action,
    AddFile,
    DeletionVectorDescriptor,
    DomainMetadata,
    Metadata,
    SetTransaction,
)
from tablelog.core.skipping.predicates import Compare
from tablelog.core.table.snapshot import Snapshot
from tablelog.core.txn.commit import Patience
from tablelog.core.txn.conflict import IsolationLevel
from tablelog.core.txn.operation import Operation
from tablelog.core.txn.transaction import Transaction
from tablelog.errors import (
    CommitInterrupted,
    CommitStateUnknownError,
    DeltaConcurrentModificationException,
    InvalidArgumentError,
    MissingCommitError,
    TableNotFoundError,
)

from .invariants import Attempt
from .kinds import DAY_S
from .store import Crash

if TYPE_CHECKING:
    from .world import World

COMMITS = 5
SCHEMA = (
    '{"type":"struct","fields":['
    '{"name":"p","type":"integer","nullable":true,"metadata":{}},'
    '{"name":"v","type":"long","nullable":true,"metadata":{}}]}'
)
PATIENCE = Patience(tries=5, shortest=0.05, longest=1.0)
PARTITIONS = [Compare("=", ("p",), pa.scalar(value, pa.int32())) for value in range(2)]
STATS = ('{"numRecords":1}', '{"numRecords":3}')
VECTORS, MAPPING = "delta.enableDeletionVectors", "delta.columnMapping.mode"
# Under each of these, files that were written before are right as they are.
LET_PASS = {
    "enable timestamps": {"delta.enableInCommitTimestamps": "true"},
    "enable vectors": {VECTORS: "true"},
    "map the columns": {MAPPING: "name"},
    "checkpoint as V2": {"delta.checkpointPolicy": "v2"},
    "enable row ids": {row_tracking.ENABLED: "true"},
}


@dataclass
class Open:
    """A transaction that waits for its commit."""

    attempt: Attempt
    transaction: Transaction
    actions: list[Action]
    operation: Operation


class Writer:
    """A process; after a crash, or for no reason, another one may take its place."""

    def __init__(self, world: "World", number: int, open_log: Callable[[], DeltaLog]) -> None:
        self.world, self.number, self.open_log = world, number, open_log
        self.rng = world.rng
        self.log = open_log()
        self.made = 0
        self.open: list[Open] = []

    def run(self) -> None:
        serial, kind = 0, self.world.kind
        while serial < COMMITS or self.open:
            try:
                while serial < COMMITS:
                    self.begin(serial)
                    serial += 1
                    if len(self.open) >= kind.most_open or self.rng.random() < 0.5:
                        break
                if self.open:
                    self.commit(self.open.pop(int(self.rng.random() * len(self.open))))
                self.between()
            except Crash:
                if self.rng.random() < 0.4:
                    serial = COMMITS
                self.restart()

    def between(self) -> None:
        """What a process does beside its commits."""
        kind = self.world.kind
        if kind.long and self.rng.random() < 0.4:
            self.world.leap(self.rng.random() * 2 * DAY_S)
        if kind.restarts and self.rng.random() < kind.restarts:
            self.restart()
        if kind.reads and self.rng.random() < kind.reads:
            self.world.read_old(self.log)

    def restart(self) -> None:
        """Another process, with a handle from nothing."""
        for left in self.open:
            left.attempt.told = "not committed"
            left.attempt.detail += " given up"
        self.open = []
        self.log = self.open_log()
        self.world.restarts += 1

    # --- a commit -------------------------------------------------------------------------------------------------

    def begin(self, serial: int) -> None:
        attempt = Attempt(f"w{self.number}.{serial}", f"token-{self.world.seed}-{self.number}-{serial}.")
        self.world.attempts.append(attempt)
        self.world.enter()
        try:
            transaction = self._transaction(attempt)
        except (OSError, KeyboardInterrupt) as error:
            attempt.told = "not committed"
            attempt.detail = type(error).__name__
            return
        except Crash:
            attempt.told = "crashed"
            raise
        finally:
            self.world.leave()
        snapshot = transaction.snapshot
        attempt.read_version = transaction.read_version
        actions: list[Action]
        operation = Operation("WRITE")
        if snapshot is None:
            transaction.set_metadata(Metadata("id", SCHEMA, ("p",) if self.world.kind.partitioned else ()))
            actions = [self.add()]
            attempt.detail = "create"
        else:
            attempt.level = self.world.table_level
            files = list(self.world.truth.at(snapshot.version).files.values())
            actions, operation = self.stage(attempt, transaction, files)
        self.open.append(Open(attempt, transaction, actions, operation))

    def _transaction(self, attempt: Attempt) -> Transaction:
        """`DeltaLog.transaction`, with the schedule's own dice."""
        snapshot: Snapshot | None
        try:
            snapshot = self.log.snapshot()
        except TableNotFoundError:
            snapshot = None
        new_token = self.world.new_token
        return Transaction(
            self.log, snapshot, dice=self.rng.random, new_token=lambda: new_token(attempt), patience=PATIENCE
        )

    def commit(self, ready: Open) -> None:
        attempt = ready.attempt
        self.world.enter()
        try:
            committed = ready.transaction.commit(ready.actions, ready.operation)
        except CommitStateUnknownError as error:
            attempt.told, attempt.version = "unknown", error.version
        except CommitInterrupted as interrupt:
            attempt.told = {True: "committed", False: "not committed", None: "unknown"}[interrupt.committed]
            attempt.version = interrupt.version
        except (
            DeltaConcurrentModificationException,
            OSError,
            KeyboardInterrupt,
            MissingCommitError,  # it was open for so long that what it has to look at was cleaned up
        ) as error:
            attempt.told = "not committed"
            attempt.detail += f" {type(error).__name__}"
        except InvalidArgumentError as error:
            if "have no row ids yet" not in str(error):
                raise
            attempt.told = "not committed"
            attempt.detail += " too early"
        except Crash:
            attempt.told = "crashed"
            raise
        else:
            attempt.told, attempt.version = "committed", committed.version
        finally:
            self.world.leave()

    # --- what it commits ------------------------------------------------------------------------------------------

    def stage(self, attempt: Attempt, transaction: Transaction, files: list[AddFile]) -> tuple[list[Action], Operation]:
        """Something to commit, and what it depends on."""
        rng = self.rng
        kind = rng.random()
        if self.world.kind.growing and files and rng.random() < 0.5:
            steps = self.change_metadata if kind < 0.4 else self.restate
            if (found := steps(attempt, transaction, files)) is not None:
                return found
        if kind < 0.4 or not files:
            attempt.detail = "append"
            return [self.add() for _ in range(1 + (rng.random() < 0.2))], Operation("WRITE")
        if kind < 0.55:
            attempt.detail = "idempotent"
            app = f"app{int(rng.random() * 2)}"
            attempt.app = app, transaction.transaction_version(app)
            return [SetTransaction(app, (attempt.app[1] or 0) + 1), self.add()], Operation("STREAMING UPDATE")
        if kind < 0.62:
            return self.change_metadata(attempt, transaction, files)
        if kind < 0.66:
            if (found := self.restate(attempt, transaction, files)) is not None:
                return found
        elif kind < 0.78 and len(files) > 1:
            attempt.detail = "compact"
            attempt.level = IsolationLevel.SNAPSHOT
            chosen = rng.sample(files, 2)
            transaction.read_keys(file.key for file in chosen)
            attempt.keys = frozenset(file.key for file in chosen)
            removes = [file.remove(self.now_ms(), data_change=False) for file in chosen]
            return [*removes, self.add(data_change=False)], Operation("OPTIMIZE", changes_data=False)
        return self.rewrite(attempt, transaction, files)

    def rewrite(
        self, attempt: Attempt, transaction: Transaction, files: list[AddFile]
    ) -> tuple[list[Action], Operation]:
        if self.world.kind.partitioned:
            attempt.detail = "rewrite a partition"
            value = int(self.rng.random() * 2)
            scope = _of_partition(str(value))
            transaction.read_predicate(PARTITIONS[value], time_zone="UTC")
        else:
            attempt.detail = "rewrite"
            scope = _everything
            transaction.read_whole_table()
        matching = [file for file in files if scope(file)]
        transaction.read_keys(file.key for file in matching)
        attempt.scope, attempt.seen = scope, frozenset(file.key for file in matching)
        if not matching:
            return [self.add()], Operation("WRITE")
        chosen = self.rng.sample(matching, 1)
        return [*(file.remove(self.now_ms()) for file in chosen), self.add()], Operation("UPDATE")

    def change_metadata(
        self, attempt: Attempt, transaction: Transaction, files: list[AddFile]
    ) -> tuple[list[Action], Operation]:
        metadata = transaction.metadata
        choices = [name for name, change in LET_PASS.items() if not change.items() <= metadata.configuration.items()]
        if not choices or self.rng.random() < (0.1 if self.world.kind.growing else 0.5):
            attempt.detail = "describe"
            transaction.set_metadata(replace(metadata, description=attempt.token))
            return [], Operation("SET TBLPROPERTIES")
        grows = self.world.kind.growing and "enable row ids" in choices
        attempt.detail = "enable row ids" if grows else self.rng.choice(choices)
        if attempt.detail == "enable row ids":
            if not row_tracking.supported(transaction.protocol):
                attempt.detail = "support row ids"
                wanted = features.supported(transaction.protocol) | {row_tracking.FEATURE}
                transaction.set_protocol(features.protocol_of(wanted))
                return [], Operation("UPGRADE PROTOCOL")
            if any(file.base_row_id is None for file in files) and self.rng.random() < 0.8:
                return self.backfill(attempt, files)
        attempt.lets_pass = True
        change = LET_PASS[attempt.detail]
        transaction.set_metadata(replace(metadata, configuration={**metadata.configuration, **change}))
        return [], Operation("SET TBLPROPERTIES")

    def backfill(self, attempt: Attempt, files: list[AddFile]) -> tuple[list[Action], Operation]:
        attempt.detail = "backfill"
        attempt.level = IsolationLevel.SNAPSHOT
        without: list[Action] = [replace(file, data_change=False) for file in files if file.base_row_id is None]
        return without, Operation(row_tracking.BACKFILL, changes_data=False, restates_files=True)

    def restate(
        self, attempt: Attempt, transaction: Transaction, files: list[AddFile]
    ) -> tuple[list[Action], Operation] | None:
        """What the table's features allow: a deletion vector for a file, or a domain; else nothing."""
        rng = self.rng
        if "domainMetadata" in features.supported(transaction.protocol) and rng.random() < 0.5:
            attempt.detail = "domain"
            return [DomainMetadata("app.d", attempt.token, removed=False)], Operation("SET DOMAIN")
        if transaction.metadata.configuration.get(VECTORS) != "true":
            return None
        attempt.detail = "mark"
        file = rng.choice(files)
        self.made += 1
        vector = DeletionVectorDescriptor("p", f"mem:///t/v-{self.number}-{self.made}", 10, 1, 1)
        attempt.keys = frozenset([file.key])
        transaction.read_keys([file.key])
        marked = replace(file, deletion_vector=vector, data_change=True)
        return [file.remove(self.now_ms()), marked], Operation("DELETE")

    def add(self, *, data_change: bool = True) -> AddFile:
        self.made += 1
        partitioned = self.world.kind.partitioned
        values: dict[str, str | None] = {"p": str(int(self.rng.random() * 2))} if partitioned else {}
        return AddFile(f"f-{self.number}-{self.made}", values, 1, 1, data_change, STATS[self.made % 2])

    def now_ms(self) -> int:
        return self.log.clock.now_ms()


def _everything(file: AddFile) -> bool:
    return True


def _of_partition(value: str) -> Callable[[AddFile], bool]:
    return lambda file: file.partition_values["p"] == value
