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
    """Treats an existing file as success, like a client that retries a write after a lost reply."""

    def write(self, path: str, data: bytes, *, overwrite: bool = False) -> None:
        try:
            super().write(path, data, overwrite=overwrite)
        except FileExistsError:
            return


class ReplacesEmptyFiles(MemoryLogStore):
    """Replaces an existing file by an empty one (s3fs `open("xb")` with an empty body)."""

    def write(self, path: str, data: bytes, *, overwrite: bool = False) -> None:
        if not overwrite and not data:
            overwrite = True
        super().write(path, data, overwrite=overwrite)


class SaysIOErrorForALoss(MemoryLogStore):
    """Raises another error than FileExistsError for an existing file (s3fs against Ceph)."""

    def write(self, path: str, data: bytes, *, overwrite: bool = False) -> None:
        try:
            super().write(path, data, overwrite=overwrite)
        except FileExistsError as error:
            raise OSError(22, "Invalid argument", path) from error


class ListsUnsorted(MemoryLogStore):
    """Lists in the order of the directory, unsorted."""

    def list_from(self, path: str) -> Iterator[FileStatus]:
        return iter(sorted(super().list_from(path), key=lambda status: hash(status.path[::-1])))


class ListsInUtf16Order(MemoryLogStore):
    """Sorts by UTF-16, like Java's String."""

    def list_from(self, path: str) -> Iterator[FileStatus]:
        return iter(sorted(super().list_from(path), key=lambda status: unquote(status.path).encode("utf-16-be")))


class ListsAfterTheName(MemoryLogStore):
    """Starts a listing after the given name (S3's `StartAfter`)."""

    def list_from(self, path: str) -> Iterator[FileStatus]:
        start = self.resolve(path)
        return (status for status in super().list_from(path) if status.path != start)


class ListsOnePage(MemoryLogStore):
    """Lists only the first 1,000 files."""

    def list_from(self, path: str) -> Iterator[FileStatus]:
        return iter(list(super().list_from(path))[:1000])


class ListsFromACache(MemoryLogStore):
    """Caches listings (s3fs and adlfs by default)."""

    def __init__(self) -> None:
        super().__init__()
        self._listings: dict[str, list[FileStatus]] = {}

    def list_from(self, path: str) -> Iterator[FileStatus]:
        directory = path.rpartition("/")[0]
        if directory not in self._listings:
            self._listings[directory] = list(super().list_from(f"{directory}/"))
        return (status for status in self._listings[directory] if status.path >= self.resolve(path))


class ListsInPieces(MemoryLogStore):
    """Reads the directory in two parts that aren't ordered by name, as ext4 does."""

    def list_from(self, path: str) -> Iterator[FileStatus]:
        even = [status for status in super().list_from(path) if status.path[-6:-5] in {*"02468"}]
        odd = [status for status in super().list_from(path) if status.path[-6:-5] not in {*"02468"}]
        return iter(sorted(even + odd))


class LosesItsFilesInAPickle(MemoryLogStore):
    """Is empty after unpickling."""

    def __reduce__(self) -> tuple[type, tuple[()]]:
        return type(self), ()


class LeavesWhatFailed(MemoryLogStore):
    """Creates the file before it checks the data."""

    def write(self, path: str, data: bytes, *, overwrite: bool = False) -> None:
        super().write(path, b"", overwrite=overwrite)
        super().write(path, data + b"", overwrite=True)


class ShowsParts(MemoryLogStore):
    """Declares that readers may see partial files."""

    partial_writes_visible = True


class Renames(MemoryLogStore):
    """Uses another path than the given one."""

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
    """Treats upper and lower case as the same."""

    def _other(self, path: str) -> str:
        return quote(unquote(path).lower(), safe=":/")


class NormalisesLetters(Renames):
    """Treats the two Unicode forms of an accented letter as the same (macOS)."""

    def _other(self, path: str) -> str:
        return quote(unicodedata.normalize("NFC", unquote(path)), safe=":/")


class DecodesTwice(Renames):
    """Decodes names twice: `%20` in a name becomes a space."""

    def _other(self, path: str) -> str:
        return quote(unquote(unquote(path)), safe=":/")


class LivesInOneProcess(MemoryLogStore):
    """Keeps its files in one process, but declares exclusion for the whole host."""

    exclusion = "host"

    def _check_process(self) -> None:
        """Accept every process; each has its own files."""

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
