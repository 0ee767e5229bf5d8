"""Run the checks on a target: each in a prefix of its own, within its share of the time, cleaned up after."""

import contextlib
import os
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from tablelog.errors import TablelogError, UnsafeStoreError
from tablelog.logstore.uri import local_path, scheme_of

from .bounded import Stuck, bounded
from .cleanup import clean
from .model import Check, Context, Finding, Level, Target, Verdict
from .verdicts import verdict_of

SHARE_SECONDS = {Level.QUICK: 15.0, Level.STANDARD: 60.0, Level.THOROUGH: 240.0}
"""How long one check may take."""

BUDGET_SECONDS = {Level.QUICK: 300.0, Level.STANDARD: 1800.0, Level.THOROUGH: 7200.0}
"""How long all of them may take; what would come after that isn't asked, and the report says so."""

_FAIR = 2
"""So many times the average of what is left may a check take: most take far less."""

_GRACE_SECONDS = 5.0
_CLEANING_SECONDS = 60.0
_FIRST_TOUCH_SECONDS = 90.0
_MUTUAL_EXCLUSION = 2


class Progress(Protocol):
    """What follows a run while it goes on."""

    def starts(self, name: str, number: int, total: int) -> None:
        """The check, or the broken store, with this number, from 1, of so many begins."""

    def ended(self, name: str, result: str, seconds: float) -> None:
        """It ended so."""


@dataclass(frozen=True)
class Run:
    """What came out of the checks: `leftovers` are the paths that couldn't be cleaned up, `stuck` the names of the
    checks that were left behind running."""

    findings: tuple[Finding, ...]
    leftovers: tuple[str, ...]
    stuck: tuple[str, ...]


class UnknownCheckError(ValueError):
    """No check has that name or number."""


def chosen(checks: Sequence[Check], level: Level, only: Sequence[str] = ()) -> list[Check]:
    """The checks of `level`, or those that `only` names by name or number, whatever their level.

    Raises `UnknownCheckError` for a name or number that no check has.
    """
    for name in only:
        if not any(name in {check.name, str(check.number)} for check in checks):
            raise UnknownCheckError(f"no check is called {name!r}; --list shows them all")
    if only:
        return [check for check in checks if check.name in only or str(check.number) in only]
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
) -> Run:
    """Run `checks` on `target`, below a prefix of this run's own that is gone at the end.

    A check gets at most `share_seconds`, all of them together `budget_seconds` (both by the level unless given); one
    that overruns is NOT ESTABLISHED, and so are all where the storage can't be used at all. Those that last come last;
    the findings are in the order of `checks`.
    """
    share = share_seconds if share_seconds is not None else SHARE_SECONDS[level]
    end = time.monotonic() + (budget_seconds if budget_seconds is not None else BUDGET_SECONDS[level])
    findings: dict[int, Finding] = {}
    leftovers: list[str] = []
    stuck: list[str] = []
    order = sorted(range(len(checks)), key=lambda number: checks[number].lasts)
    with place_of_its_own(target.root) as root:
        useless = _first_touch(target, f"{root}/first-touch", leftovers)
        for before, number in enumerate(order):
            check, remaining = checks[number], end - time.monotonic()
            if progress:
                progress.starts(check.name, before + 1, len(checks))
            # So there is something left for each, however many overrun.
            seconds = min(share, remaining, _FAIR * remaining / (len(order) - before))
            if useless is not None:
                finding = useless(check)
            elif seconds <= 0:
                finding = _not_run(check, "the time of the whole run was used up before it; run it with --only")
            else:
                finding, left, hangs = run_check(check, target, f"{root}/{check.name}", level, seed, seconds)
                leftovers += left
                stuck += [check.name] * hangs
            findings[number] = finding
            if progress:
                progress.ended(check.name, finding.verdict, finding.seconds)
    return Run(tuple(findings[number] for number in sorted(findings)), tuple(leftovers), tuple(stuck))


def run_check(
    check: Check, target: Target, root: str, level: Level, seed: int, seconds: float
) -> tuple[Finding, list[str], bool]:
    """One check below `root`: its finding, what couldn't be cleaned up, and whether it still hangs."""
    started = time.monotonic()
    context = Context(target, root, level, seed, started + seconds)
    try:
        end = bounded(lambda: check.run(context), seconds + _GRACE_SECONDS)
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
    """A name below `root` that no other run has; local directories that this makes are gone at the end."""
    place = f"{root.rstrip('/')}/tablelog-conformance-{secrets.token_hex(6)}"
    if scheme_of(root) != "file":
        yield place
        return
    above = local_path(root)
    made = not os.path.lexists(above)
    try:
        yield place
    finally:
        for directory in (local_path(place), above)[: 1 + made]:
            with contextlib.suppress(OSError):
                os.rmdir(directory)


def _first_touch(target: Target, root: str, leftovers: list[str]) -> Callable[[Check], Finding] | None:
    """Use the storage once, so that one that can't be used is said to be so once, and quickly.

    Gives back None, or what to say of each check.
    """

    def touch() -> None:
        store, path = target.factory(), f"{root}/_delta_log/{0:020}.json"
        store.write(path, b"tablelog conformance\n")
        store.read(path)

    end = bounded(touch, _FIRST_TOUCH_SECONDS)
    if isinstance(end, Stuck):
        message = f"a first write and read timed out after {_FIRST_TOUCH_SECONDS:.0f} s at {end.where}"
        return lambda check: _not_run(check, message)
    error = end.error
    verdict, message = verdict_of(error)
    if isinstance(error, UnsafeStoreError):
        return lambda check: replace(
            _not_run(check, message),
            verdict=Verdict.FAIL if check.guarantee == _MUTUAL_EXCLUSION else Verdict.NOT_ESTABLISHED,
        )
    if isinstance(error, OSError | TablelogError) and verdict is Verdict.NOT_ESTABLISHED:
        return lambda check: _not_run(check, message)
    leftovers += _cleaned(target, root, set())
    return None


def _not_run(check: Check, message: str) -> Finding:
    return Finding(check, Verdict.NOT_ESTABLISHED, message, 0.0, {}, ())
