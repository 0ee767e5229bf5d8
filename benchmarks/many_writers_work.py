"""What one of many writers does: mixed transactions of the core, or appends by either contender, for a given time."""

import json
import os
import random
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from tablelog import retrying
from tablelog.core import Action, AddFile, DeltaLog, Metadata, Operation, SetTransaction, Transaction
from tablelog.core.skipping.predicates import Compare
from tablelog.errors import CommitStateUnknownError, DeltaConcurrentModificationException

SCHEMA = json.dumps(
    {"type": "struct", "fields": [{"name": name, "type": kind, "nullable": True, "metadata": {}}
                                  for name, kind in (("id", "long"), ("p", "string"))]}
)  # fmt: skip
_WARM_UP = 1
_COMPACTED = 8
_METADATA_SECONDS = 30.0
"""Every change of metadata conflicts with each commit that is on its way: one of the writers does it now and then."""
_KINDS = {
    "append": 50, "append with txn": 12, "delete": 10, "update": 12, "delete another's": 4, "optimize": 8,
    "read another's, append": 4,
}  # fmt: skip


@dataclass
class Attempt:
    """One attempt of a command, `seconds` after the command began. `op` is the `userMetadata` of its commit."""

    op: str
    kind: str
    outcome: str
    version: int | None
    adds: list[str]
    removes: list[str]
    seconds: float
    tries: int = 0


@dataclass
class Result:
    """What a process did between `start` and `end` (seconds since the epoch); `waits`: seconds from one commit to the
    next."""

    number: int
    start: float = 0.0
    end: float = 0.0
    attempts: list[Attempt] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    given_up: int = 0

    @property
    def commits(self) -> int:
        return len(self.waits)


def new_table(url: str, conf: Mapping[str, str]) -> DeltaLog:
    log = DeltaLog.for_path(url, conf=conf)
    transaction = log.transaction()
    transaction.set_metadata(Metadata("many-writers", SCHEMA, ("p",)))
    transaction.commit([], Operation("CREATE TABLE"))
    return log


class MixedWriter:
    """Stages what each command stages. Its own partition is `w<number>`."""

    def __init__(self, log: DeltaLog, number: int, processes: int, result: Result) -> None:
        self._log, self._number, self._processes, self._result = log, number, processes, result
        self._random = random.Random(number)
        self._serial = 0
        self._began = 0.0
        self._metadata_at = time.monotonic() + _METADATA_SECONDS / 2

    def step(self) -> None:
        """One command, again after each conflict."""
        kind = self._random.choices(list(_KINDS), list(_KINDS.values()))[0]
        if self._number == 0 and time.monotonic() > self._metadata_at:
            kind, self._metadata_at = "set metadata", time.monotonic() + _METADATA_SECONDS
        self._began = time.monotonic()
        try:
            retrying(lambda: self._attempt(kind), attempts=20)
        except DeltaConcurrentModificationException:
            self._result.given_up += 1

    def _attempt(self, kind: str) -> None:
        transaction = self._log.transaction()
        actions, operation = self._staged(kind, transaction)
        op = f"{self._number}.{self._serial}"
        self._serial += 1
        outcome, version, tries = "refused", None, 0
        try:
            committed = transaction.commit(actions, operation, user_metadata=op)
            outcome, version, tries = "acknowledged", committed.version, committed.attempts
        except CommitStateUnknownError as error:
            version = self._log.find_commit(error.token)
            outcome = "unknown" if version is None else "acknowledged"
        finally:
            adds = [action.path for action in actions if isinstance(action, AddFile)]
            removes = [action.path for action in actions if not isinstance(action, AddFile) and hasattr(action, "path")]
            took = time.monotonic() - self._began
            self._result.attempts.append(Attempt(op, kind, outcome, version, adds, removes, took, tries))

    def _add(self, *, data_change: bool = True) -> AddFile:
        p = f"w{self._number}"
        return AddFile(f"p={p}/{uuid.uuid4()}.parquet", {"p": p}, 1000, 1_700_000_000_000, data_change,
                       '{"numRecords":10}')  # fmt: skip

    def _files(self, transaction: Transaction, number: int) -> list[AddFile]:
        """The files of a writer's partition, which are recorded as read."""
        found = transaction.read_files(Compare("=", ("p",), pa.scalar(f"w{number}")), time_zone="UTC")
        paths = set(found.column("path").to_pylist())
        assert transaction.snapshot is not None
        every = transaction.snapshot.files.column("path").to_pylist()
        return transaction.snapshot.add_files([at for at, path in enumerate(every) if path in paths])

    def _staged(self, kind: str, transaction: Transaction) -> tuple[list[Action], Operation]:
        now = int(time.time() * 1000)
        other = self._random.randrange(self._processes)
        if kind == "append with txn":
            app = f"app {self._number}"
            number = (transaction.transaction_version(app) or 0) + 1
            return [self._add(), SetTransaction(app, number)], Operation("WRITE")
        if kind == "set metadata":
            transaction.set_metadata(replace(transaction.metadata, description=f"at {now}"))
            return [], Operation("SET TBLPROPERTIES")
        if kind == "read another's, append":
            self._files(transaction, other)
        elif kind != "append":
            own = self._files(transaction, other if kind == "delete another's" else self._number)
            if kind == "optimize" and len(own) >= 2:
                chosen = own[:_COMPACTED]
                removes = [add.remove(now, data_change=False) for add in chosen]
                return [*removes, self._add(data_change=False)], Operation("OPTIMIZE", changes_data=False)
            if kind != "optimize" and own:
                removes = [self._random.choice(own).remove(now)]
                return ([*removes, self._add()], Operation("UPDATE")) if kind == "update" else (
                    [*removes], Operation("DELETE"))  # fmt: skip
        return [self._add()], Operation("WRITE")


def _appends(log: DeltaLog, number: int) -> Callable[[], str]:
    def commit() -> str:
        path = f"p=w{number}/{uuid.uuid4()}.parquet"
        add = AddFile(path, {"p": f"w{number}"}, 1000, 1_700_000_000_000, True, '{"numRecords":10}')
        log.transaction().commit([add], Operation("WRITE", {"mode": "Append", "partitionBy": ["p"]}))
        return path

    return commit


def _appends_by_delta_rs(url: str, number: int) -> Callable[[], str]:
    from deltalake import CommitProperties, DeltaTable, Schema
    from deltalake.transaction import AddAction

    patient = CommitProperties(max_commit_retries=1_000_000)  # with its default of 15, processes fail
    options = {"AWS_ALLOW_HTTP": "true", "conditional_put": "etag"}
    opened = DeltaTable(url, storage_options=options)
    schema = Schema.from_json(SCHEMA)

    def commit() -> str:
        path = f"p=w{number}/{uuid.uuid4()}.parquet"
        add = AddAction(path, 1000, {"p": f"w{number}"}, 1_700_000_000_000, True, '{"numRecords":10}')
        opened.create_write_transaction([add], "append", schema, ["p"], commit_properties=patient)
        opened.update_incremental()
        return path

    return commit


def run(work: str, url: str, conf: Mapping[str, str], environment: Mapping[str, str], number: int, processes: int,
        seconds: float, barrier: Any, out: str) -> None:  # fmt: skip
    """The life of a process: its result is the file `<number>.json` in the directory `out`."""
    os.environ.update(environment)
    result = Result(number)
    step = _step(work, url, conf, number, processes, result)
    for _ in range(_WARM_UP):  # a process's first commit imports modules and makes its client
        step()
    barrier.wait(600)
    result.start = last = time.time()
    while time.time() < result.start + seconds:
        before = len(result.attempts)
        step()
        if any(attempt.outcome == "acknowledged" for attempt in result.attempts[before:]):
            result.waits.append(time.time() - last)
            last = time.time()
    result.end = time.time()
    Path(out, f"{number}.json").write_text(json.dumps(asdict(result)))


def _step(work: str, url: str, conf: Mapping[str, str], number: int, processes: int, result: Result
          ) -> Callable[[], None]:  # fmt: skip
    if work == "mixed":
        log = DeltaLog.for_path(url, conf=conf)
        log.snapshot()
        return MixedWriter(log, number, processes, result).step
    if work == "appends":
        log = DeltaLog.for_path(url, conf=conf)
        log.snapshot()
        commit = _appends(log, number)
    else:
        commit = _appends_by_delta_rs(url, number)

    def step() -> None:
        began = time.monotonic()
        path = commit()
        result.attempts.append(Attempt("", "append", "acknowledged", None, [path], [], time.monotonic() - began))

    return step


def results(out: Path, processes: int) -> list[Result]:
    """What the processes did that came to their end."""
    found = []
    for number in range(processes):
        path = out / f"{number}.json"
        if path.exists():
            values = json.loads(path.read_text())
            attempts: Sequence[Any] = values.pop("attempts")
            found.append(Result(**values, attempts=[Attempt(**one) for one in attempts]))
    return found
