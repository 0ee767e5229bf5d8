"""Runs the checks on a target: each with its own prefix and time limit, followed by a cleanup."""

import contextlib
import difflib
import os
import re
import secrets
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from tablelog.errors import TablelogError, UnsafeStoreError
from tablelog.logstore.common.uri import local_path, scheme_of, shown

from .cleanup import clean
from .harness.bounded import Stuck, bounded
from .harness.interleave import Outcome
from .model import Check, Context, Finding, Level, Target, Verdict
from .verdicts import verdict_of
from .words import title

SHARE_SECONDS = {Level.QUICK: 15.0, Level.STANDARD: 60.0, Level.THOROUGH: 240.0}
"""The time limit of one check in seconds."""

BUDGET_SECONDS = {Level.QUICK: 300.0, Level.STANDARD: 1800.0, Level.THOROUGH: 7200.0}
"""The time limit of all checks in seconds; later checks aren't run, and the report says so."""

_FAIR = 2
"""A check may take this many times the average remaining time per check. Most checks take much less."""

_GRACE_SECONDS = 5.0
_CLEANING_SECONDS = 60.0
_FIRST_TOUCH_SECONDS = 90.0
_MUTUAL_EXCLUSION = 2


class Progress(Protocol):
    """Receives the progress of a run."""

    def starts(self, name: str, number: int, total: int) -> None:
        """The check, or the broken store, with this number (from 1) of `total` starts."""

    def ended(self, name: str, result: str, seconds: float) -> None:
        """It has ended with `result`."""


@dataclass(frozen=True)
class Run:
    """The results of the checks.

    `leftovers`: the paths that couldn't be deleted. `stuck`: the names of the checks that hang and were abandoned.
    """

    findings: tuple[Finding, ...]
    leftovers: tuple[str, ...]
    stuck: tuple[str, ...]


class UnknownCheckError(ValueError):
    """No check has that name or number."""


def chosen(checks: Sequence[Check], level: Level, only: Sequence[str] = ()) -> list[Check]:
    """The checks of `level`, or those that `only` names by name or number, of any level.

    A check is also selected by its title. Raises `UnknownCheckError` for an unknown name or number.
    """
    by_title = {title(check.name).lower(): check.name for check in checks}
    names = {by_title.get(name.strip().lower(), re.sub(r"[\s-]+", "_", name.strip().lower())): name for name in only}
    for name, as_given in names.items():
        if not any(name in {check.name, str(check.number)} for check in checks):
            near = difflib.get_close_matches(name, [check.name for check in checks], 1)
            meant = f"did you mean {near[0]}? " if near else ""
            raise UnknownCheckError(f"no check is named {as_given!r}; {meant}--list shows all checks")
    if names:
        return [check for check in checks if check.name in names or str(check.number) in names]
    return [check for check in checks if check.level.value <= level.value]


def run(
    target: Target,
    checks: Sequence[Check],
    *,
    level: Level,
    seed: int,
    progress: Progress | None = None,
    share_seconds: float | None = None,
    budget_seconds: float | None = None,
    patience: float = 1.0,
    grace_seconds: float = _GRACE_SECONDS,
) -> Run:
    """Run `checks` on `target`, below a new prefix that is removed at the end.

    A check gets at most `share_seconds`, all together get `budget_seconds` (the level's by default), each times
    `patience`. A check that takes longer is NOT ESTABLISHED, and so are all checks if the storage can't be used. Checks
    that last run after the others; the findings are in the order of `checks`.
    """
    share = patience * (share_seconds if share_seconds is not None else SHARE_SECONDS[level])
    end = time.monotonic() + patience * (budget_seconds if budget_seconds is not None else BUDGET_SECONDS[level])
    findings: dict[int, Finding] = {}
    stuck: list[str] = []
    order = sorted(range(len(checks)), key=lambda number: checks[number].lasts)
    with place_of_its_own(target.root) as root:
        obstacle, leftovers = first_touch(target, root)
        if obstacle is not None:
            return Run(tuple(obstacle.finding(check) for check in checks), (), ())
        for before, number in enumerate(order):
            check, remaining = checks[number], end - time.monotonic()
            if progress:
                progress.starts(title(check.name), before + 1, len(checks))
            # Some time remains for each check, however many take too long.
            seconds = min(share, remaining, _FAIR * remaining / (len(order) - before))
            if seconds <= 0:
                finding = _not_run(
                    check, "the time of the whole run had ended before this check; increase it with --patience"
                )
            else:
                own_root = f"{root}/{check.name}"
                finding, left, hangs = run_check(check, target, own_root, level, seed, seconds, grace_seconds)
                leftovers += left
                stuck += [check.name] * hangs
            findings[number] = finding
            if progress:
                progress.ended(title(check.name), finding.verdict, finding.seconds)
    return Run(tuple(findings[number] for number in sorted(findings)), tuple(leftovers), tuple(stuck))


def run_check(
    check: Check,
    target: Target,
    root: str,
    level: Level,
    seed: int,
    seconds: float,
    grace_seconds: float = _GRACE_SECONDS,
) -> tuple[Finding, list[str], bool]:
    """Run one check below `root`; return its finding, what couldn't be cleaned up, and whether it still hangs."""
    started = time.monotonic()
    context = Context(target, root, level, seed, started + seconds)
    try:
        end = bounded(lambda: check.run(context), seconds + grace_seconds)
    except KeyboardInterrupt:
        _cleaned(target, root, set(context.directories))
        raise
    took = time.monotonic() - started
    if isinstance(end, Stuck):
        verdict = Verdict.NOT_ESTABLISHED
        message = f"timed out after {took:.0f} s at {end.where}"
    else:
        verdict, message = verdict_of(end.error)
    finding = Finding(check, verdict, message, took, dict(context.evidence), tuple(context.timeline))
    return finding, _cleaned(target, root, set(context.directories)), isinstance(end, Stuck)


def _cleaned(target: Target, root: str, directories: set[str]) -> list[str]:
    end = bounded(lambda: clean(target.factory(), root, directories), _CLEANING_SECONDS)
    if isinstance(end, Stuck):
        return [f"{root} (cleaning up timed out)"]
    if end.error is not None:
        return [f"{root} (cleaning up failed: {type(end.error).__name__})"]
    left: list[str] = end.value
    return left


@contextlib.contextmanager
def place_of_its_own(root: str) -> Iterator[str]:
    """A new name below `root`; local directories that this creates are removed at the end."""
    place = f"{root.rstrip('/')}/tablelog-conformance-{secrets.token_hex(6)}"
    if scheme_of(root) != "file":
        yield place
        return
    above = local_path(root)
    created = not os.path.lexists(above)
    try:
        yield place
    finally:
        for directory in (local_path(place), above)[: 1 + created]:
            with contextlib.suppress(OSError):
                os.rmdir(directory)


@dataclass(frozen=True)
class Obstacle:
    """Why no check can run on a target, in one sentence; `unsafe`: the store itself refuses to be used for a log."""

    message: str
    unsafe: bool = False

    def finding(self, check: Check) -> Finding:
        """The finding of a check that wasn't run."""
        failed = self.unsafe and check.guarantee == _MUTUAL_EXCLUSION
        return replace(_not_run(check, self.message), verdict=Verdict.FAIL if failed else Verdict.NOT_ESTABLISHED)


def first_touch(target: Target, place: str) -> tuple[Obstacle | None, list[str]]:
    """Write and read one file below `place`, so that a storage that can't be used is detected once, and quickly.

    Returns the obstacle, if there is one, and what couldn't be cleaned up. An error that breaks the store's own
    interface isn't an obstacle: the checks report more about it.
    """
    root = f"{place}/first-touch"
    path = f"{root}/_delta_log/{0:020}.json"
    written = bounded(lambda: target.factory().write(path, b"tablelog conformance\n"), _FIRST_TOUCH_SECONDS)
    obstacle = _obstacle(written, f"nothing can be written below {shown(target.root)}")
    if obstacle is None and not _is_denied(written):
        obstacle = _obstacle(bounded(lambda: target.factory().read(path), _FIRST_TOUCH_SECONDS), "a file can't be read")
    return obstacle, [] if obstacle else _cleaned(target, root, set())


def _obstacle(end: Outcome | Stuck, doing: str) -> Obstacle | None:
    if isinstance(end, Stuck):
        return Obstacle(f"{doing}: it timed out after {_FIRST_TOUCH_SECONDS:.0f} s at {end.where}")
    error = end.error
    if isinstance(error, UnsafeStoreError):
        return Obstacle(verdict_of(error)[1], unsafe=True)
    # FileNotFoundError in a read is an error of the store, because the file was written; in a write, of the location.
    place_is_missing = isinstance(error, FileNotFoundError) and doing.startswith("nothing")
    if isinstance(error, OSError) and (place_is_missing or verdict_of(error)[0] is Verdict.NOT_ESTABLISHED):
        return Obstacle(f"{doing}: {type(error).__name__}: {error}")
    if isinstance(error, TablelogError) and verdict_of(error)[0] is Verdict.NOT_ESTABLISHED:
        return Obstacle(verdict_of(error)[1])
    return None


def _is_denied(end: Outcome | Stuck) -> bool:
    return isinstance(end, Stuck) or end.error is not None


def _not_run(check: Check, message: str) -> Finding:
    return Finding(check, Verdict.NOT_ESTABLISHED, message, 0.0, {}, ())
