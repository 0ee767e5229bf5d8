"""Mutants of what follows a commit: a checkpoint that lacks something, a cleanup that removes too much."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any
from unittest import mock

import pyarrow as pa

from tablelog.core.log import segment
from tablelog.core.log.segment import Checkpoint, Listing, name_of
from tablelog.core.log_maintenance import checkpoint_rows, cleanup, compaction
from tablelog.core.protocol.actions import Action, RemoveFile, SetTransaction
from tablelog.core.protocol.paths import commit_name
from tablelog.core.table.snapshot import Snapshot
from tablelog.core.txn import commit_loop
from tablelog.logstore.base import FileStatus

from . import Mutant


def _one_commit_too_many() -> Any:
    """The commit of the version that the log begins with is removed as well."""
    real = cleanup.expired

    def expired(statuses: Sequence[FileStatus], boundary: int) -> list[FileStatus]:
        return [*real(statuses, boundary), *(s for s in statuses if name_of(s) == commit_name(boundary))]

    return mock.patch.object(cleanup, "expired", expired)


def _the_checkpoint_too() -> Any:
    """The checkpoint that stands for what is removed goes with it."""
    real = cleanup.expired
    return mock.patch.object(cleanup, "expired", lambda statuses, boundary: real(statuses, boundary + 1))


def _retention_ignored() -> Any:
    """Whatever a checkpoint makes superfluous is removed at once."""
    return mock.patch.object(cleanup, "cut_off", lambda now_ms, *rest: now_ms)


def _by_time_alone() -> Any:
    """All that has expired is removed, though the newest checkpoint is older than that."""
    real = cleanup.boundaries

    def boundaries(listing: Listing, cutoff_ms: int) -> list[Checkpoint]:
        return [replace(found, version=max(listing.commits)) for found in real(listing, cutoff_ms)[:1]]

    return mock.patch.object(cleanup, "boundaries", boundaries)


def _old_transaction_looks_at_nothing() -> Any:
    """A transaction that was open for days writes at the next version, which was cleaned up meanwhile."""
    return mock.patch.object(commit_loop, "_LISTING_IS_FRESH_S", float("inf"))


def _a_file_lost() -> Any:
    """A checkpoint lacks a file."""
    real = checkpoint_rows.CheckpointLayout.rows

    def rows(self: checkpoint_rows.CheckpointLayout, pieces: Iterable[pa.Table]) -> Iterator[pa.StructArray]:
        return (piece[1:] for piece in real(self, pieces))

    return mock.patch.object(checkpoint_rows.CheckpointLayout, "rows", rows)


def _transactions_lost() -> Any:
    """A checkpoint lacks the transactions of applications."""
    real = checkpoint_rows.header

    def header(snapshot: Snapshot, now_ms: int) -> list[Action]:
        return [action for action in real(snapshot, now_ms) if not isinstance(action, SetTransaction)]

    return mock.patch.object(checkpoint_rows, "header", header)


def _parts_missing() -> Any:
    """A checkpoint in parts is read although some of them are missing."""
    real = segment._complete

    def complete(single: Any, parts: dict[tuple[int, int], dict[int, FileStatus]]) -> tuple[Checkpoint, ...]:
        there = {(version, len(found)): found for (version, _), found in parts.items()}
        return real(single, {key: dict(enumerate(found.values(), 1)) for key, found in there.items()})

    return mock.patch.object(segment, "_complete", complete)


def _removes_lost() -> Any:
    """A log compaction lacks what was removed."""
    real = compaction.reconciled

    def reconciled(commits: Iterable[Sequence[Action]], table: str) -> list[Action]:
        return [action for action in real(commits, table) if not isinstance(action, RemoveFile)]

    return mock.patch.object(compaction, "reconciled", reconciled)


MUTANTS = (
    Mutant("a cleanup removes one commit too many", _one_commit_too_many, "long", 50),
    Mutant("a cleanup removes its checkpoint", _the_checkpoint_too, "long", 50),
    Mutant("a cleanup ignores the retention", _retention_ignored, "long", 50),
    Mutant("a cleanup goes by time alone", _by_time_alone, "long", 50),
    Mutant("an old transaction looks at nothing", _old_transaction_looks_at_nothing, "long", 100),
    Mutant("a checkpoint lacks a file", _a_file_lost, "whole", 50),
    Mutant("a checkpoint lacks the transactions", _transactions_lost, "whole", 50),
    Mutant("a checkpoint lacks parts", _parts_missing, "whole", 50),
    Mutant("a compaction lacks the removes", _removes_lost, "whole", 50),
)
