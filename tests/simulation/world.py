"""One schedule: the disk, the writers, the readers, and what is looked at once it is over."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from tablelog.core.deltalog import DeltaLog
from tablelog.core.protocol.actions import AddFile
from tablelog.core.table.snapshot import Snapshot
from tablelog.core.txn.conflict import IsolationLevel
from tablelog.errors import CorruptLogError, TableNotFoundError, VersionNotFoundError

from .invariants import Attempt, check
from .kinds import DAY_S, RETENTION_MS, Kind, drawn
from .quick import names
from .scheduler import Scheduler, Workers, WriterClock
from .state import Broken, Truth, num_rows, require
from .store import HEAVY_FAULTS, NO_FAULTS, Disk, Event, Faults, SimulatedStore
from .writer import Writer

WRITERS = 4
TABLE = "mem:///t"
_SLACK_MS = 200_000
"""How far two clocks can be apart in a schedule in which logs expire."""


@dataclass
class World:
    """One schedule, made from its seed alone. `only` names its kind: see `kinds.drawn`."""

    seed: int
    workers: Workers
    only: str | None = None
    new_token: Callable[[Attempt], str] = lambda attempt: attempt.token
    attempts: list[Attempt] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)

    def __post_init__(self) -> None:
        names.begin(self.seed)
        self.rng = random.Random(self.seed)
        self.disk = Disk()
        self.truth = Truth(self.disk)
        self.scheduler = Scheduler(self.workers, self.rng)
        self.kind: Kind = drawn(self.rng, self.only)
        level = IsolationLevel.SERIALIZABLE if self.kind.serializable else IsolationLevel.WRITE_SERIALIZABLE
        self.table_level = level
        self.conf = self.kind.conf()
        dice = self.rng.random()
        self.faults = Faults() if dice < 0.7 else NO_FAULTS if dice < 0.85 else HEAVY_FAULTS
        self._busy = 0
        self._leap_s = 0.0
        self.leaps = self.restarts = self.reads = self.passed = self.cleaned = 0

    def run(self) -> "World":
        """Run the schedule and check it: `Broken` says what doesn't hold."""
        writers = [Writer(self, number, self._opener(number)) for number in range(WRITERS)]
        self.scheduler.run([writer.run for writer in writers])
        self.passed = check(self.disk, self.truth, self.attempts, self.table_level)
        if self.truth.newest < 0:
            return self
        used = self._mended(writers[0].log)
        self._check_find_commit(used)
        # Opening a table costs as much as many commits; a reader that saw something else would do so in many schedules.
        if self.kind.upkeep or self.seed % 16 == 0:
            self._check_newest(used)
            if self.kind.upkeep:
                self._check_versions()
            if self.kind.long:
                self._check_cleanup()
        return self

    def _opener(self, number: int) -> Callable[[], DeltaLog]:
        kind, clock = self.kind, self.scheduler
        own = WriterClock(clock, self.rng, kind.skew_s) if kind.skew_s else clock
        file_clock = own if kind.own_file_times else clock
        store = SimulatedStore(
            self.disk, clock, self.rng, self.faults, number=number, events=self.events, file_clock=file_clock
        )
        return lambda: DeltaLog(TABLE, store, conf=self.conf, clock=own)

    # --- days that pass ---------------------------------------------------------------------------------------------

    def leap(self, seconds: float) -> None:
        """Let a long time pass as soon as nobody is between a look at the log and what follows of it.

        That takes less than minutes: a cleanup relies on it.
        """
        self._leap_s = seconds
        self._rest()

    def enter(self) -> None:
        """A writer begins to look at the log, or to commit."""
        while self._leap_s:
            self.scheduler.sleep(0.01)
        self._busy += 1

    def leave(self) -> None:
        """It is done with it, or gone."""
        self._busy -= 1
        self._rest()

    def _rest(self) -> None:
        if self._leap_s and not self._busy:
            self.scheduler.leap(self._leap_s)
            self._leap_s = 0.0
            self.leaps += 1

    # --- readers --------------------------------------------------------------------------------------------------

    def read_old(self, log: DeltaLog) -> None:
        """Some version that is or was there, in the midst of all: it is as it was, or it has expired."""
        if self.truth.newest < 0:
            return
        version = int(self.rng.random() * (self.truth.newest + 1))
        try:
            self._read(log, version)
        except TableNotFoundError:
            raise Broken(f"there is no table, says a reader of version {version}") from None
        except OSError:
            pass  # the store's

    def _read(self, log: DeltaLog, version: int) -> Snapshot | None:
        """A version as it must be; `None` where it has expired."""
        self.reads += 1
        try:
            snapshot = log.snapshot(version)
            self._agrees(snapshot)
        except (VersionNotFoundError, CorruptLogError) as error:
            require(self._expired(version), f"version {version} hasn't expired, and can't be read: {error}")
            return None
        return snapshot

    def _expired(self, version: int) -> bool:
        oldest = self.scheduler.now_ms() - RETENTION_MS + _SLACK_MS
        return self.kind.long and self.disk.commits[version][1] <= oldest

    def _agrees(self, snapshot: Snapshot) -> None:
        where, state = f"a reader of version {snapshot.version}", self.truth.at(snapshot.version)
        require(snapshot.metadata == state.metadata, f"{where} sees other metadata")
        require(snapshot.protocol == state.protocol, f"{where} sees another protocol")
        apps = {app: txn.version for app, txn in snapshot.transactions.items()}
        require(apps == state.apps, f"{where} sees the transactions {apps}, not {state.apps}")
        require(dict(snapshot.domain_metadata) == state.domains, f"{where} sees other domains")
        found = sorted(map(_essence, snapshot.add_files()))
        expected = sorted(map(_essence, state.files.values()))
        require(found == expected, f"{where} sees the files {found}, not {expected}")

    def _clear_log(self) -> DeltaLog:
        """A new handle through a store that works."""
        clock = self.scheduler
        store = SimulatedStore(
            self.disk, clock, self.rng, NO_FAULTS, number=WRITERS, events=self.events, file_clock=clock
        )
        return DeltaLog(TABLE, store, conf=self.conf, clock=clock)

    def _mended(self, used: DeltaLog) -> DeltaLog:
        """A writer's handle, whose way to the store fails no more."""
        assert isinstance(used.store, SimulatedStore)
        used.store.set_faults(NO_FAULTS)
        used.store.down_until = 0.0
        return used

    def _check_newest(self, used: DeltaLog) -> None:
        """A handle from before and one from after see what the log says."""
        for log in (used, self._clear_log()):
            snapshot = log.snapshot()
            require(snapshot.version == self.truth.newest, f"a reader sees version {snapshot.version}")
            self._agrees(snapshot)

    def _check_find_commit(self, used: DeltaLog) -> None:
        """Who doesn't know what became of a commit can ask, until the commit is cleaned up."""
        for attempt in self.attempts:
            if attempt.told == "unknown":
                found = used.find_commit(attempt.token)
                gone = found is None and attempt.at is not None and self._expired(attempt.at)
                require(
                    found == attempt.at or gone,
                    f"find_commit says {found} of {attempt.name}, which is at {attempt.at}",
                )

    def _check_versions(self) -> None:
        """Old versions that haven't expired are as they were, for a reader with nothing but what stands there now."""
        log = self._clear_log()
        for _ in range(2):
            self._read(log, int(self.rng.random() * (self.truth.newest + 1)))

    def _check_cleanup(self) -> None:
        """A cleanup changes no version that it leaves, nor its time; and it leaves all that haven't expired."""
        log = self._clear_log()
        self.scheduler.leap(self.rng.random() * 4 * DAY_S)
        before = {entry.version: entry.timestamp_ms for entry in log.history()}
        first = log.clean_up().first_version
        if first is None:
            return
        self.cleaned += 1
        log = self._clear_log()
        after = {entry.version: entry.timestamp_ms for entry in log.history()}
        kept = {version: time for version, time in before.items() if version >= first}
        require(after == kept, f"a cleanup up to version {first} changed the history from {kept} to {after}")
        some = int(self.rng.random() * (self.truth.newest + 1))
        for version in {max(first - 1, 0), first, some}:
            snapshot = self._read(log, version)
            require((snapshot is not None) == (version >= first), f"version {version} after a cleanup up to {first}")


def _essence(file: AddFile) -> tuple[str, str, str, int, int, int]:
    """What of a file has to be the same, whatever it was read from."""
    base = -1 if file.base_row_id is None else file.base_row_id
    since = -1 if file.default_row_commit_version is None else file.default_row_commit_version
    values = ",".join(f"{name}={value}" for name, value in sorted(file.partition_values.items()))
    return file.path, str(file.key[1]), values, num_rows(file.stats), base, since
