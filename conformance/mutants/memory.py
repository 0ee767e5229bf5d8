"""Broken stores in memory."""

import functools
import secrets
import unicodedata
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, unquote

from tablelog.logstore import FileStatus, MemoryLogStore

from ..model import Target
from .mutant import Mutant, in_memory


class HidesALoss(MemoryLogStore):
    """Takes "exists" for success, as a client does that retries a write whose reply it lost."""

    def write(self, path: str, data: bytes, *, overwrite: bool = False) -> None:
        try:
            super().write(path, data, overwrite=overwrite)
        except FileExistsError:
            return


class ReplacesEmptyFiles(MemoryLogStore):
    """Takes an empty file for none (s3fs `open("xb")` with an empty body)."""

    def write(self, path: str, data: bytes, *, overwrite: bool = False) -> None:
        if not overwrite and not data:
            overwrite = True
        super().write(path, data, overwrite=overwrite)


class SaysIOErrorForALoss(MemoryLogStore):
    """A loser gets an error that isn't FileExistsError (s3fs against Ceph)."""

    def write(self, path: str, data: bytes, *, overwrite: bool = False) -> None:
        try:
            super().write(path, data, overwrite=overwrite)
        except FileExistsError as error:
            raise OSError(22, "Invalid argument", path) from error


class ListsUnsorted(MemoryLogStore):
    """Lists as the directory comes."""

    def list_from(self, path: str) -> Iterator[FileStatus]:
        return iter(sorted(super().list_from(path), key=lambda status: hash(status.path[::-1])))


class ListsInUtf16Order(MemoryLogStore):
    """Sorts as Java's String does."""

    def list_from(self, path: str) -> Iterator[FileStatus]:
        return iter(sorted(super().list_from(path), key=lambda status: unquote(status.path).encode("utf-16-be")))


class ListsAfterTheName(MemoryLogStore):
    """Starts after the name (S3's `StartAfter`)."""

    def list_from(self, path: str) -> Iterator[FileStatus]:
        wanted = self.resolve(path)
        return (status for status in super().list_from(path) if status.path != wanted)


class ListsOnePage(MemoryLogStore):
    """Gives the first 1,000."""

    def list_from(self, path: str) -> Iterator[FileStatus]:
        return iter(list(super().list_from(path))[:1000])


class ListsFromACache(MemoryLogStore):
    """Remembers a listing (s3fs, adlfs by default)."""

    def __init__(self) -> None:
        super().__init__()
        self._listings: dict[str, list[FileStatus]] = {}

    def list_from(self, path: str) -> Iterator[FileStatus]:
        directory = path.rpartition("/")[0]
        if directory not in self._listings:
            self._listings[directory] = list(super().list_from(f"{directory}/"))
        return (status for status in self._listings[directory] if status.path >= self.resolve(path))


class ListsInPieces(MemoryLogStore):
    """Reads the directory in two pieces that aren't in the order of names, as ext4 does."""

    def list_from(self, path: str) -> Iterator[FileStatus]:
        even = [status for status in super().list_from(path) if status.path[-6:-5] in {*"02468"}]
        odd = [status for status in super().list_from(path) if status.path[-6:-5] not in {*"02468"}]
        return iter(sorted(even + odd))


class LosesItsFilesInAPickle(MemoryLogStore):
    """An unpickled one is new."""

    def __reduce__(self) -> tuple[type, tuple[()]]:
        return type(self), ()


class LeavesWhatFailed(MemoryLogStore):
    """Makes the file, then looks at the data."""

    def write(self, path: str, data: bytes, *, overwrite: bool = False) -> None:
        super().write(path, b"", overwrite=overwrite)
        super().write(path, data + b"", overwrite=True)


class ShowsParts(MemoryLogStore):
    """Admits that a part may be seen."""

    partial_writes_visible = True


class Renames(MemoryLogStore):
    """Takes another path than it is given."""

    def _other(self, path: str) -> str:
        raise NotImplementedError

    def read(self, path: str) -> bytes:
        return super().read(self._other(path))

    def write(self, path: str, data: bytes, *, overwrite: bool = False) -> None:
        super().write(self._other(path), data, overwrite=overwrite)

    def list_from(self, path: str) -> Iterator[FileStatus]:
        return super().list_from(self._other(path))

    def resolve(self, path: str) -> str:
        return super().resolve(self._other(path))


class FoldsCase(Renames):
    """Takes upper and lower case for the same."""

    def _other(self, path: str) -> str:
        return quote(unquote(path).lower(), safe=":/")


class NormalisesLetters(Renames):
    """Takes the two forms of a letter with an accent for the same (macOS)."""

    def _other(self, path: str) -> str:
        return quote(unicodedata.normalize("NFC", unquote(path)), safe=":/")


class DecodesTwice(Renames):
    """Takes `%20` in a name for a space."""

    def _other(self, path: str) -> str:
        return quote(unquote(unquote(path)), safe=":/")


class LivesInOneProcess(MemoryLogStore):
    """Keeps its files in the process, and says that the whole host shares them."""

    exclusion = "host"

    def _check_process(self) -> None:
        """Serve everyone, each with files of his own."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _of_this_process, ()


@functools.cache
def _of_this_process() -> LivesInOneProcess:
    return LivesInOneProcess()


MUTANTS: tuple[Mutant, ...] = (
    in_memory(FoldsCase, "hostile_names_are_files_of_their_own", "hostile_tables_are_tables_of_their_own"),
    in_memory(NormalisesLetters, "hostile_names_are_files_of_their_own", "hostile_tables_are_tables_of_their_own"),
    in_memory(DecodesTwice, "hostile_names_are_files_of_their_own", "hostile_tables_are_tables_of_their_own"),
    Mutant(
        LivesInOneProcess.__name__,
        (LivesInOneProcess.__doc__ or "").partition("\n")[0],
        (
            "one_winner_among_processes",
            "processes_make_one_contiguous_log",
            "other_processes_see_it_at_once",
            "a_second_process_is_served_or_refused",
            "survives_a_fork",
        ),
        lambda _directory: Target(_of_this_process, f"memory:///{secrets.token_hex(6)}", ""),
    ),
    in_memory(HidesALoss, "second_writer_loses", "one_winner_among_threads", "a_deleted_name_is_won_anew"),
    in_memory(ReplacesEmptyFiles, "second_writer_loses"),
    in_memory(SaysIOErrorForALoss, "second_writer_loses", "one_winner_among_threads"),
    in_memory(ListsUnsorted, "lists_in_byte_order"),
    in_memory(ListsInUtf16Order, "lists_in_byte_order"),
    in_memory(ListsAfterTheName, "lists_from_the_name_on", "lists_in_byte_order"),
    in_memory(ListsOnePage, "lists_whole_directories"),
    in_memory(ListsFromACache, "lists_at_once"),
    in_memory(ListsInPieces, "lists_no_later_file_without_the_earlier"),
    in_memory(LosesItsFilesInAPickle, "survives_pickling"),
    in_memory(LeavesWhatFailed, "a_failed_write_leaves_nothing", "never_a_part_of_a_file"),
    in_memory(ShowsParts, "declares_what_it_is"),
)
