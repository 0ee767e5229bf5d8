"""How much one batch may read: `maxFilesPerTrigger` and `maxBytesPerTrigger`, by Delta's rules."""

from dataclasses import dataclass

DEFAULT_FILES = 1000
_UNLIMITED = 1 << 62


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """The limits that the user set; None: not set. Without any, a batch has at most 1000 files."""

    files: int | None = None
    bytes: int | None = None

    @property
    def effective(self) -> tuple[int, int]:
        """The most files and the most bytes of a batch."""
        default = DEFAULT_FILES if self.bytes is None else _UNLIMITED
        return default if self.files is None else self.files, _UNLIMITED if self.bytes is None else self.bytes


NO_LIMITS = ReadLimits()
"""What applies if the user sets no limit."""


class Admission:
    """What a batch may still read. A batch has at least one file; the last one may exceed the limit of bytes."""

    def __init__(self, limits: ReadLimits) -> None:
        self._files, self._bytes = limits.effective
        self._begun = False

    @property
    def has_capacity(self) -> bool:
        return self._files > 0 and self._bytes > 0

    def file(self, size: int) -> bool:
        """Whether the batch may have this file too."""
        admitted = self.has_capacity
        self._take(1, size)
        return admitted

    def mark(self) -> None:
        """Note that the batch has passed the begin or the end of a version, which is always admitted."""
        self._begun = True

    def group(self, count: int, size: int) -> bool:
        """Whether the batch may have these `count` entries, which must stay together. The first group always fits."""
        if not count:
            return True
        admitted = not self._begun or (self._files >= count and self._bytes >= size)
        self._take(count, size)
        return admitted

    def _take(self, count: int, size: int) -> None:
        self._files -= count
        self._bytes -= size
        self._begun = True
