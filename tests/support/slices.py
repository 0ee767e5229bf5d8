"""Commands that change their files in slices although the log is small."""

from typing import Any

import pytest

from tablelog.core.txn import bulk_actions
from tablelog.core.txn.sliced_removal import SlicedRemoval
from tablelog.engine.read import file_groups


def slices_of(patched: pytest.MonkeyPatch, files: int) -> None:
    """A group and a slice have so many files, and a log whose actions are written in pieces may be small."""
    patched.setattr(file_groups, "MOST_FILES", files)
    patched.setattr(bulk_actions, "_BYTES", 0)


def noted_slices(patched: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """For each slice, the numbers of files that go to the local disk: removed ones, and those that are added again."""
    found: list[tuple[int, int]] = []
    put = SlicedRemoval.put

    def noted(self: SlicedRemoval, removed: Any, added: Any) -> None:
        found.append((len(removed), len(added)))
        put(self, removed, added)

    patched.setattr(SlicedRemoval, "put", noted)
    return found
