"""Writers, what each of their commits observed, and what must hold of the log at the end."""

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

import pyarrow as pa

from tablelog.core.deltalog import DeltaLog
from tablelog.core.protocol import codec, paths
from tablelog.core.protocol.actions import (
    Action,
    AddFile,
    CommitInfo,
    FileKey,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
)
from tablelog.core.table.predicates import Compare
from tablelog.core.table.snapshot import Snapshot
from tablelog.core.txn.commit import Patience
from tablelog.core.txn.conflict import IsolationLevel
from tablelog.core.txn.operation import Operation
from tablelog.core.txn.transaction import Transaction
from tablelog.errors import (
    CommitInterrupted,
    CommitStateUnknownError,
    DeltaConcurrentModificationException,
    TableNotFoundError,
)

from .scheduler import Scheduler, Workers
from .store import HEAVY_FAULTS, NO_FAULTS, Crash, Disk, Event, Faults, SimulatedStore

WRITERS, COMMITS = 4, 6
TABLE = "mem:///t"
SCHEMA = (
    '{"type":"struct","fields":['
    '{"name":"p","type":"integer","nullable":true,"metadata":{}},'
    '{"name":"v","type":"long","nullable":true,"metadata":{}}]}'
)
PATIENCE = Patience(tries=5, shortest=0.05, longest=1.0)
PARTITIONS = [Compare("=", ("p",), pa.scalar(value, pa.int32())) for value in range(2)]


class Broken(AssertionError):
    """An invariant doesn't hold."""


@dataclass
class Attempt:
    """One commit of one writer: what it saw, and what it was told became of it."""

    name: str
    token: str
    told: str = "nothing"  # nothing | committed | not committed | unknown | crashed
    version: int | None = None
    at: int | None = None  # where it is in truth, once the schedule is over
    read_version: int = -1
    level: IsolationLevel = IsolationLevel.SERIALIZABLE
    metadata: Metadata | None = None
    protocol: Protocol | None = None
    scope: Callable[[AddFile], bool] | None = None  # the files that it depends on: all that match
    seen: frozenset[FileKey] = frozenset()  # ... and which these were
    keys: frozenset[FileKey] = frozenset()  # single files that it depends on
    app: tuple[str, int | None] | None = None
    detail: str = ""


@dataclass
class World:
    """One schedule, made from its seed alone."""

    seed: int
    workers: Workers
    faults: Faults | None = None
    new_token: Callable[[Attempt], str] = lambda attempt: attempt.token
    attempts: list[Attempt] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        self.disk = Disk()
        self.scheduler = Scheduler(self.workers, self.rng)
        self.partitioned = self.rng.random() < 0.15
        self.whole = self.rng.random() < 0.005  # with all that follows a commit: a checkpoint takes milliseconds
        level = "Serializable" if self.rng.random() < 0.6 else "WriteSerializable"
        self.conf = {
            "spark.databricks.delta.properties.defaults.isolationLevel": level,
            "spark.databricks.delta.properties.defaults.checkpointInterval": "5" if self.whole else "1000",
            "spark.databricks.delta.writeChecksumFile.enabled": str(self.whole),
        }
        if self.whole and self.seed % 2:
            self.conf["spark.databricks.delta.checkpoint.partSize"] = "3"
            self.conf["spark.databricks.delta.deltaLog.minorCompaction.useForWrites"] = "true"
            self.conf["spark.databricks.delta.properties.defaults.logCompactionInterval"] = "3"
        self.table_level = IsolationLevel(level)
        drawn = self.rng.random()
        self.faults = self.faults or (Faults() if drawn < 0.7 else NO_FAULTS if drawn < 0.85 else HEAVY_FAULTS)
        self._states: list[dict[FileKey, AddFile]] = []

    def run(self) -> "World":
        """Run the schedule and check it: `Broken` says what doesn't hold."""
        assert self.faults is not None
        logs = []
        for number in range(WRITERS):
            store = SimulatedStore(self.disk, self.scheduler, self.rng, self.faults, number=number, events=self.events)
            logs.append(DeltaLog(TABLE, store, conf=self.conf, clock=self.scheduler))
        self.scheduler.run([Writer(self, number, log).run for number, log in enumerate(logs)])
        commits = self.commits()
        check(commits, self.attempts, self.table_level)
        # Opening a table costs as much as many commits; a reader that saw something else would do so in many schedules.
        if commits and (
            self.whole or self.seed % 4 == 0 or any(attempt.told == "unknown" for attempt in self.attempts)
        ):
            self._check_readers(logs)
        return self

    def _check_readers(self, logs: list[DeltaLog]) -> None:
        """A handle from before and one from after see what the log says, and so does `find_commit`."""
        clear = logs[0].store
        assert isinstance(clear, SimulatedStore)
        clear.set_faults(NO_FAULTS)
        clear.down_until = 0.0
        last = self.files_at(len(self.commits()) - 1)
        for log in (logs[0], DeltaLog(TABLE, clear, clock=self.scheduler)):
            snapshot = log.snapshot()
            require(snapshot.version == len(self._states) - 1, f"a reader sees version {snapshot.version}")
            require(snapshot.num_files == len(last), f"a reader sees {snapshot.num_files} files, not {len(last)}")
        for attempt in self.attempts:
            if attempt.told == "unknown":
                found = logs[0].find_commit(attempt.token)
                require(found == attempt.at, f"find_commit says {found} of {attempt.name}, which is at {attempt.at}")

    def files_at(self, version: int) -> list[AddFile]:
        """The live files of a version by the plainest replay there is."""
        while len(self._states) <= version:
            data, _ = self.disk.files[f"{TABLE}/_delta_log/{paths.commit_name(len(self._states))}"]
            state = dict(self._states[-1]) if self._states else {}
            for action in codec.parse_commit(data):
                if isinstance(action, RemoveFile):
                    state.pop(action.key, None)
                elif isinstance(action, AddFile):
                    state[action.key] = action
            self._states.append(state)
        return list(self._states[version].values())

    def commits(self) -> dict[int, list[Action]]:
        found: dict[int, list[Action]] = {}
        for path, (data, _) in self.disk.files.items():
            file = paths.parse_log_name(path.rpartition("/")[2])
            if file is not None and file.kind == "commit":
                found[file.version] = codec.parse_commit(data)
        return found


class Writer:
    """A process: one handle, and a handful of commits one after the other."""

    def __init__(self, world: World, number: int, log: DeltaLog) -> None:
        self.world, self.number, self.log = world, number, log
        self.rng = world.rng
        self.made = 0

    def run(self) -> None:
        for serial in range(COMMITS):
            attempt = Attempt(f"w{self.number}.{serial}", f"token-{self.world.seed}-{self.number}-{serial}.")
            self.world.attempts.append(attempt)
            try:
                self.commit(attempt)
            except Crash:
                attempt.told = "crashed"
                return

    def commit(self, attempt: Attempt) -> None:
        try:
            transaction = self.begin(attempt)
            snapshot = transaction.snapshot
            attempt.read_version = transaction.read_version
            actions: list[Action]
            operation = Operation("WRITE")
            if snapshot is None:
                transaction.set_metadata(Metadata("id", SCHEMA, ("p",) if self.world.partitioned else ()))
                actions = [self.add()]
                attempt.detail = "create"
            else:
                attempt.metadata, attempt.protocol = snapshot.metadata, snapshot.protocol
                attempt.level = self.world.table_level
                actions, operation = self.stage(attempt, transaction, self.world.files_at(snapshot.version))
            committed = transaction.commit(actions, operation)
        except CommitStateUnknownError as error:
            attempt.told, attempt.version = "unknown", error.version
        except CommitInterrupted as interrupt:
            attempt.told = {True: "committed", False: "not committed", None: "unknown"}[interrupt.committed]
            attempt.version = interrupt.version
        except (DeltaConcurrentModificationException, OSError, KeyboardInterrupt) as error:
            attempt.told = "not committed"
            attempt.detail += f" {type(error).__name__}"
        else:
            attempt.told, attempt.version = "committed", committed.version

    def begin(self, attempt: Attempt) -> Transaction:
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

    def stage(self, attempt: Attempt, transaction: Transaction, files: list[AddFile]) -> tuple[list[Action], Operation]:
        """Something to commit, and what it depends on."""
        rng = self.rng
        kind = rng.random()
        if kind < 0.4 or not files:
            attempt.detail = "append"
            return [self.add() for _ in range(1 + (rng.random() < 0.2))], Operation("WRITE")
        if kind < 0.55:
            attempt.detail = "idempotent"
            app = f"app{int(rng.random() * 2)}"
            attempt.app = app, transaction.transaction_version(app)
            return [SetTransaction(app, (attempt.app[1] or 0) + 1), self.add()], Operation("STREAMING UPDATE")
        if kind < 0.6:
            attempt.detail = "metadata"
            transaction.set_metadata(replace(transaction.metadata, description=attempt.token))
            return [], Operation("SET TBLPROPERTIES")
        if kind < 0.75 and len(files) > 1:
            attempt.detail = "compact"
            attempt.level = IsolationLevel.SNAPSHOT
            chosen = rng.sample(files, 2)
            transaction.read_keys(file.key for file in chosen)
            attempt.keys = frozenset(file.key for file in chosen)
            removes = [file.remove(1, data_change=False) for file in chosen]
            return [*removes, self.add(data_change=False)], Operation("OPTIMIZE", changes_data=False)
        if self.world.partitioned:
            attempt.detail = "rewrite a partition"
            value = int(rng.random() * 2)
            scope = _of_partition(str(value))
            transaction.read_predicate(PARTITIONS[value])
        else:
            attempt.detail = "rewrite"
            scope = _everything
            transaction.read_whole_table()
        matching = [file for file in files if scope(file)]
        transaction.read_keys(file.key for file in matching)
        attempt.scope, attempt.seen = scope, frozenset(file.key for file in matching)
        if not matching:
            return [self.add()], Operation("WRITE")
        chosen = rng.sample(matching, 1)
        return [*(file.remove(1) for file in chosen), self.add()], Operation("UPDATE")

    def add(self, *, data_change: bool = True) -> AddFile:
        self.made += 1
        values: dict[str, str | None] = {"p": str(int(self.rng.random() * 2))} if self.world.partitioned else {}
        return AddFile(f"f-{self.number}-{self.made}", values, 1, 1, data_change)


def _everything(file: AddFile) -> bool:
    return True


def _of_partition(value: str) -> Callable[[AddFile], bool]:
    return lambda file: file.partition_values["p"] == value


# --- what must hold -----------------------------------------------------------------------------------------------


def require(holds: bool, what: str) -> None:
    if not holds:
        raise Broken(what)


def check(commits: dict[int, list[Action]], attempts: Iterable[Attempt], table_level: IsolationLevel) -> None:
    """All invariants of a finished log: `Broken` names the first that doesn't hold."""
    require(sorted(commits) == list(range(len(commits))), f"versions are not contiguous: {sorted(commits)}")
    by_token = {attempt.token: attempt for attempt in attempts}
    at: dict[str, int] = {}
    history: list[tuple[Attempt, CommitInfo, list[Action]]] = []
    for version in range(len(commits)):
        info = commits[version][0]
        if not isinstance(info, CommitInfo) or info.txn_id not in by_token:
            raise Broken(f"version {version} is nobody's")
        require(info.txn_id not in at, f"{info.txn_id} was committed twice: {at.get(info.txn_id)} and {version}")
        at[info.txn_id] = version
        history.append((by_token[info.txn_id], info, commits[version]))
    for attempt in by_token.values():
        attempt.at = at.get(attempt.token)
        _check_told(attempt, attempt.at)
    _check_serial(history, table_level)


def _check_told(attempt: Attempt, version: int | None) -> None:
    if attempt.told == "committed":
        require(version == attempt.version, f"{attempt.name} was told {attempt.version}, and is at {version}")
    elif attempt.told == "not committed":
        require(version is None, f"{attempt.name} was told that it failed, and is at {version}: {attempt.detail}")
    elif attempt.told == "unknown":
        require(version in (None, attempt.version), f"{attempt.name} may be at {attempt.version}, and is at {version}")
    else:
        require(attempt.told == "crashed", f"{attempt.name} was told nothing")


def _check_serial(history: list[tuple[Attempt, CommitInfo, list[Action]]], table_level: IsolationLevel) -> None:
    """Each commit would have read at its place in the log what it read: the log is a serial order.

    At WriteSerializable it may have missed what blind appends added in between, as if it had come before them.
    """
    files: dict[FileKey, tuple[AddFile, int]] = {}
    apps: dict[str, int] = {}
    metadata: Metadata | None = None
    protocol: Protocol | None = None
    blind: list[bool] = []
    for version, (attempt, info, actions) in enumerate(history):
        where = f"{attempt.name} ({attempt.detail}) at version {version}"
        level = attempt.level if attempt.level is IsolationLevel.SNAPSHOT else table_level
        if version:
            require(info.isolation_level == level.value, f"{where} was checked at {info.isolation_level}")
        require(attempt.read_version < version, f"{where} read a later version")
        require(metadata == attempt.metadata, f"{where} didn't see the metadata")
        require(protocol == attempt.protocol, f"{where} didn't see the protocol")
        if attempt.app is not None:
            require(apps.get(attempt.app[0]) == attempt.app[1], f"{where} didn't see the transaction of {attempt.app}")
        if attempt.scope is not None:
            now = {key for key, (file, _) in files.items() if attempt.scope(file)}
            missed = now - attempt.seen
            if level is IsolationLevel.WRITE_SERIALIZABLE:
                missed = {key for key in missed if not blind[files[key][1]]}
            require(not missed, f"{where} missed {missed}")
            require(attempt.seen <= now, f"{where} read what is gone: {attempt.seen - now}")
        require(attempt.keys <= files.keys(), f"{where} read what is gone: {attempt.keys - files.keys()}")
        for action in actions:
            if isinstance(action, AddFile):
                require(action.key not in files, f"{where} adds {action.path} again")
                files[action.key] = action, version
            elif isinstance(action, RemoveFile):
                require(files.pop(action.key, None) is not None, f"{where} removes {action.path}, which is gone")
            elif isinstance(action, SetTransaction):
                apps[action.app_id] = action.version
            elif isinstance(action, Metadata):
                metadata = action
            elif isinstance(action, Protocol):
                protocol = action
        blind.append(info.is_blind_append is True)
