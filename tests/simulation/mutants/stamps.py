"""Mutants that keep what depends on the version when another commit took that version: row ids and timestamps."""

from dataclasses import replace
from typing import Any
from unittest import mock

from tablelog.core.protocol import in_commit_timestamps, row_tracking
from tablelog.core.protocol.actions import Action, CommitInfo, DomainMetadata
from tablelog.core.txn import commit_loop, transaction
from tablelog.core.txn import versioned_fields as stamp
from tablelog.core.txn.conflict import Staged, Winner
from tablelog.core.txn.versioned_fields import ParentVersion

from . import Mutant


def _ground_keeps(name: str) -> Any:
    real = ParentVersion.after

    def after(self: ParentVersion, winner: Winner) -> ParentVersion:
        return replace(real(self, winner), **{name: getattr(self, name)})

    return mock.patch.object(ParentVersion, "after", after)


def _row_ids_not_rebased() -> Any:
    """Another attempt gives out row ids from where the first one did."""
    return _ground_keeps("row_ids")


def _timestamp_not_rebased() -> Any:
    """Another attempt takes the time of the version that the first one stood on."""
    return _ground_keeps("timestamp")


def _mark_not_written() -> Any:
    """A commit gives out row ids and doesn't say so."""
    real = row_tracking.assigned

    def assigned(actions: tuple[Action, ...], *rest: Any, **named: Any) -> tuple[Action, ...]:
        return tuple(a for a in real(actions, *rest, **named) if not isinstance(a, DomainMetadata))

    return mock.patch.object(row_tracking, "assigned", assigned)


def _stamped_once() -> Any:
    """What was made for the first attempt is written again at the next version."""
    real = stamp.stamped
    made: dict[str | None, tuple[CommitInfo, tuple[Action, ...]]] = {}

    def stamped(staged: Staged, info: CommitInfo, ground: ParentVersion, now_ms: int) -> Any:
        if ground.version == -1:
            made.clear()
        return made.setdefault(info.txn_id, real(staged, info, ground, now_ms))

    return mock.patch.object(commit_loop, "stamped", stamped)


def _by_the_clock_alone() -> Any:
    """A commit's time is what the clock says, whatever came before it."""
    return mock.patch.object(in_commit_timestamps, "later", lambda now_ms, before_ms: now_ms)


def _enabled_too_early() -> Any:
    """Row ids are enabled though some files have none."""
    return mock.patch.object(transaction, "_check_row_ids")


MUTANTS = (
    Mutant("row ids not rebased", _row_ids_not_rebased),
    Mutant("the mark of row ids not written", _mark_not_written),
    Mutant("timestamp not rebased", _timestamp_not_rebased),
    Mutant("stamped once", _stamped_once),
    Mutant("timestamps by the clock alone", _by_the_clock_alone),
    Mutant("row ids enabled too early", _enabled_too_early, "growing"),
)
