"""How much of a table's log a handle holds in memory."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MemoryLimits:
    """The limits of one handle. Only tests use other values."""

    tail_actions: int = 2_000
    """If a snapshot has more actions than this after its base, a newer checkpoint is read, which saves memory."""
    compacted_bytes: int = 64 << 20
    """The most bytes of commits that are compacted after a commit, because they are all in memory at once."""
    kept_file_bytes: int = 16 << 20
    """A file of a checkpoint of up to this size stays in memory, so that reading more columns costs no request."""


DEFAULT_LIMITS = MemoryLimits()
