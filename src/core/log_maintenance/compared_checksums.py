"""The version checksums of a log, compared with the states of their versions."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ...logstore.base import LogStore
from ..log import checksum
from ..log.reader import LogReader
from ..log.segment import Listing, name_of
from ..table.second_reading import doubt
from ..table.snapshot import Snapshot
from .problems import Problems

if TYPE_CHECKING:
    from ..log.checksum import VersionChecksum


class ComparedChecksums:
    """Compares checksums of one log, and reports those that contradict.

    Attributes:
        confirmed: The versions whose checksum agrees with the state that was compared.
    """

    def __init__(self, store: LogStore, log_path: str, reader: LogReader, listing: Listing, problems: Problems) -> None:
        self._store = store
        self._log_path = log_path
        self._reader = reader
        self._listing = listing
        self._problems = problems
        self.confirmed: set[int] = set()
        self._found_earlier = False

    def confirms(self, held: Snapshot) -> bool:
        """Whether there is a checksum of the version, and it agrees."""
        known = self._checksum_of(held.version)
        return known is not None and not _contradictions(known, held)

    def check(self, held: Snapshot, *, by_commits: bool) -> None:
        """Report a checksum that contradicts the state; `by_commits`: the commits confirm the state."""
        status = self._listing.checksums.get(held.version)
        if status is None:
            return
        known = self._checksum_of(held.version)
        if known is None:
            self._problems.warn(
                "checksum-damaged",
                [name_of(status)],
                f"the checksum {name_of(status)} can't be read: the state isn't compared with it.",
            )
            return
        sentences = _contradictions(known, held)
        if not sentences:
            self.confirmed.add(held.version)
            return
        message = f"version {held.version} of {held.table} doesn't match its checksum: {'; '.join(sentences)}."
        if by_commits and doubt(self._store, self._log_path, self._reader, held, known) is None:
            self._problems.warn(
                "checksum-wrong",
                [name_of(status)],
                f"{message} The commits contradict {name_of(status)}: the checksum is wrong. Remove it.",
            )
        else:
            self._problems.error(
                "checksum-contradicts",
                [name_of(status)],
                f"{message} The log was changed after the commit, or a writer wrote a wrong checksum: compare the log "
                "with a copy.",
            )

    def check_earlier(self, held: Snapshot) -> None:
        """Report a checksum that contradicts a version before the newest one, if it is the first that does.

        The totals of the state may be those of the version before and the changes since.
        """
        status = self._listing.checksums.get(held.version)
        if status is None or held.version in self.confirmed or self._found_earlier:
            return
        known = self._checksum_of(held.version)
        if known is None or not _contradictions(known, held):
            return
        _ = held.files  # the totals are exact then
        if sentences := _contradictions(known, held):
            self._found_earlier = True
            self._problems.error(
                "checksum-contradicts",
                [name_of(status)],
                f"version {held.version} of {held.table} doesn't match its checksum: {'; '.join(sentences)}. A commit "
                "up to this version was changed after it was made, or a writer wrote a wrong checksum: compare the log "
                "with a copy.",
            )

    def check_lost(self, newest: int) -> None:
        """Report checksums of versions after the newest one: each was written after its commit."""
        for version, status in sorted(self._listing.checksums.items()):
            if version > newest:
                self._problems.error(
                    "checksum-too-new",
                    [name_of(status)],
                    f"the checksum {name_of(status)} is newer than the newest commit, {newest}: the commits up "
                    f"to {version} were probably lost. Restore them. If the versions were removed on purpose, remove "
                    "the checksum too.",
                )

    def _checksum_of(self, version: int) -> "VersionChecksum | None":
        """The checksum of a version, without the time if the commit that has it is gone; None if it can't be read."""
        read = self._reader.checksum(self._listing.checksums.get(version))
        known = None if read is None else read()
        if known is None or version in self._listing.commits:
            return known
        return replace(known, in_commit_timestamp=None)


def _contradictions(known: "VersionChecksum", held: Snapshot) -> Sequence[str]:
    """How a state differs from the checksum of its version, as sentences."""
    totals = held.totals()
    if totals is None:
        _ = held.files
        totals = held.totals()
    assert totals is not None
    return checksum.differences(known, held, totals)
