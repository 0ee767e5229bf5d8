"""What a path gets as its store, how safe that is, and whether it can be reached."""

import time
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import TablelogError
from .text import one_line

if TYPE_CHECKING:
    from ..core.deltalog import DeltaLog

_SAFETY = {
    "global": "safe for writers on any number of machines",
    "host": "safe for writers on this machine; not on several machines that share the directory",
    "process": "safe for the threads of one process only: a second writer can lose commits",
}
_LARGE_SKEW_MS = 5_000


@dataclass(frozen=True, slots=True)
class StoreReport:
    """`reachable` is None if that wasn't tried; `clock_skew_ms` is the store's time minus this machine's."""

    name: str
    exclusion: str
    safety: str
    partial_writes_visible: bool
    atomic_overwrite: bool
    reachable: bool
    is_table: bool
    list_ms: int
    error: str | None
    clock_skew_ms: int | None

    @property
    def problems(self) -> list[str]:
        """What a user should do something about."""
        found = [] if self.error is None else [self.error]
        if self.partial_writes_visible:
            found.append("a reader may see a part of a commit: writing is refused")
        if self.clock_skew_ms is not None and abs(self.clock_skew_ms) > _LARGE_SKEW_MS:
            found.append(
                f"the clock of the store differs by {self.clock_skew_ms / 1000:.1f} s from this machine's, and time "
                "travel and VACUUM depend on both: synchronise the clocks"
            )
        return found


def examine(log: "DeltaLog", *, probe: bool) -> StoreReport:
    """Look at the store of a table.

    Args:
        log: The table's log; there may be no table.
        probe: Whether to write a small file beside the table and delete it again, to compare the clocks.
    """
    store = log.store
    started = time.monotonic()
    error: str | None = None
    skew: int | None = None
    is_table = False
    try:
        is_table = log.exists()
        skew = _probed(log) if probe else _ahead(log) if is_table else None
    except (TablelogError, OSError) as failure:
        error = one_line(failure)
    return StoreReport(
        name=type(store).__name__,
        exclusion=store.exclusion,
        safety=_SAFETY[store.exclusion],
        partial_writes_visible=store.partial_writes_visible,
        atomic_overwrite=store.atomic_overwrite,
        reachable=error is None,
        is_table=is_table,
        list_ms=round((time.monotonic() - started) * 1000),
        error=error,
        clock_skew_ms=skew,
    )


def _ahead(log: "DeltaLog") -> int | None:
    """How far the newest commit is in the future, which no clock but another one can explain; `None`: it isn't."""
    commits = log.reader.list(0).commits
    if not commits:
        return None
    ahead = commits[max(commits)].modification_time_ms - log.clock.now_ms()
    return ahead if ahead > 0 else None


def _probed(log: "DeltaLog") -> int | None:
    """The time that the store gives to a new file, minus this machine's time in the middle of the request."""
    from ..logstore.data_files import DataFiles

    files = DataFiles.of(log.table, log.conf, log.storage_options)
    directory = f"_tablelog_doctor-{uuid.uuid4()}"
    before = log.clock.now_ms()
    try:
        files.write(f"{directory}/probe", b"tablelog doctor\n")
        after = log.clock.now_ms()
        times = [modified for _, _, modified in files.statuses(directory)]
    finally:
        files.delete_all(directory)
    if not times:
        return None
    # Stores round to seconds: a difference below a second beyond the request isn't a skew.
    return 0 if before - 1000 <= times[0] <= after + 1000 else times[0] - (before + after) // 2
