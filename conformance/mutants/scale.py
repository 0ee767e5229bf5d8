"""Stores that are correct for small cases, and broken for many files, long paths, large versions or many writers."""

import os
import threading
import time
from collections.abc import Iterator

from tablelog.logstore import FileStatus, LocalLogStore, MemoryLogStore
from tablelog.logstore.common.conditional_put import Answer, Verdict
from tablelog.logstore.common.uri import local_path

from .memory import Renames
from .mutant import Mutant, in_files, in_memory
from .object_store import MULTIPART_FROM, ObjectStore
from .services import on_a_service

_MANY_FILES, _MANY_WRITERS, _LARGE_VERSION = 1_000, 16, 9_999
_LETTERS_OF_A_DIRECTORY, _LETTERS_OF_A_NAME = 250, 150


class ReplacesAmongManyFiles(LocalLogStore):
    """Replaces existing files in a directory of more than 1,000 files."""

    def write(self, path: str, data: bytes, *, overwrite: bool = False) -> None:
        super().write(path, data, overwrite=overwrite or _among_many(path))


class LooksThenReplacesAmongManyFiles(LocalLogStore):
    """Checks for the file and then replaces it, in a directory of more than 1,000 files."""

    def write(self, path: str, data: bytes, *, overwrite: bool = False) -> None:
        many = _among_many(path)
        if many and not overwrite and os.path.exists(local_path(path)):
            raise FileExistsError(path)
        super().write(path, data, overwrite=overwrite or many)


class LooksThenReplacesLargeVersions(LocalLogStore):
    """Checks for the file and then replaces it, if the version has more than four digits."""

    def write(self, path: str, data: bytes, *, overwrite: bool = False) -> None:
        version = path.rpartition("/")[2].partition(".")[0]
        large = version.isdecimal() and int(version) > _LARGE_VERSION
        if large and not overwrite and os.path.exists(local_path(path)):
            raise FileExistsError(path)
        super().write(path, data, overwrite=overwrite or large)


class KeepsVersionsIn32Bits(LocalLogStore):
    """Stores versions in 32 bits, so that large versions get the names of small ones."""

    def write(self, path: str, data: bytes, *, overwrite: bool = False) -> None:
        super().write(_in_32_bits(path), data, overwrite=overwrite)

    def read(self, path: str) -> bytes:
        return super().read(_in_32_bits(path))


class ListsPagesByPosition(MemoryLogStore):
    """Lists in pages of 1,000 by position: a file that is added or removed shifts the later pages."""

    def list_from(self, path: str) -> Iterator[FileStatus]:
        statuses: list[FileStatus] = []
        while True:
            page = list(super().list_from(path))[len(statuses) : len(statuses) + _MANY_FILES]
            for status in page:  # one by one, because a client also takes some time to parse the reply
                statuses.append(status)
            if len(page) < _MANY_FILES:
                return iter(statuses)


class GivesUpAmongManyWriters(MemoryLogStore):
    """Replaces existing files while more than 16 writers are active (an exhausted pool of locks)."""

    def __init__(self) -> None:
        super().__init__()
        self._active = 0
        self._counting = threading.Lock()

    def write(self, path: str, data: bytes, *, overwrite: bool = False) -> None:
        with self._counting:
            self._active += 1
        try:
            time.sleep(0.05)  # after that all writers that started together are active
            super().write(path, data, overwrite=overwrite or self._active > _MANY_WRITERS)
        finally:
            with self._counting:
                self._active -= 1


class CutsLongPaths(Renames):
    """Truncates the directory of a path to 250 characters."""

    def _other(self, path: str) -> str:
        directory, _, name = path.rpartition("/")
        return f"{directory[:_LETTERS_OF_A_DIRECTORY]}/{name}"


class CutsLongNames(Renames):
    """Truncates each part of a path to 150 characters."""

    def _other(self, path: str) -> str:
        return "/".join(part[:_LETTERS_OF_A_NAME] for part in path.split("/"))


class KeepsItsDirectory(MemoryLogStore):
    """Keeps the directory of a write in an attribute: one client works for one table at a time."""

    _directory = ""

    def write(self, path: str, data: bytes, *, overwrite: bool = False) -> None:
        self._directory, _, name = path.rpartition("/")
        time.sleep(0.0005)
        super().write(f"{self._directory}/{name}", data, overwrite=overwrite)


class BuriesWhatWasDeleted(MemoryLogStore):
    """Loses a write shortly after a delete of the same name, because it treats the delete as the later change."""

    def __init__(self) -> None:
        super().__init__()
        self._deleted: dict[str, float] = {}

    def delete(self, path: str) -> None:
        super().delete(path)
        self._deleted[self.resolve(path)] = time.monotonic()

    def write(self, path: str, data: bytes, *, overwrite: bool = False) -> None:
        deleted = self._deleted.get(self.resolve(path))
        if deleted is None or time.monotonic() - deleted > 1.0:
            super().write(path, data, overwrite=overwrite)


class AsksAgainForParts(ObjectStore):
    """Sends the completion of a multipart upload again after a lost reply, and treats its own file as another's."""

    def attempt(self, path: str, data: bytes) -> Answer:
        answer = super().attempt(path, data)
        if answer.verdict is Verdict.AMBIGUOUS and len(data) >= MULTIPART_FROM:
            return super().attempt(path, data)
        return answer


class TakesEachPageFromItsOwnListing(ObjectStore):
    """Lists again for each page and skips the files that it already has: pages by position on a service."""

    def list_from(self, path: str) -> Iterator[FileStatus]:
        statuses: list[FileStatus] = []
        while True:
            page = list(super().list_from(path))[len(statuses) : len(statuses) + _MANY_FILES]
            statuses += page
            if len(page) < _MANY_FILES:
                return iter(statuses)


def _among_many(path: str) -> bool:
    directory = os.path.dirname(local_path(path))
    return os.path.isdir(directory) and len(os.listdir(directory)) > _MANY_FILES


def _in_32_bits(path: str) -> str:
    directory, _, name = path.rpartition("/")
    version, dot, rest = name.partition(".")
    return f"{directory}/{int(version) % 2**32:020}{dot}{rest}" if version.isdecimal() else path


MUTANTS: tuple[Mutant, ...] = (
    in_files(ReplacesAmongManyFiles, "one_winner_in_a_directory_of_thousands"),
    in_files(LooksThenReplacesAmongManyFiles, "one_winner_in_a_directory_of_thousands"),
    in_files(
        LooksThenReplacesLargeVersions,
        "one_winner_at_large_versions",
        "one_winner_in_every_interleaving",
        "one_winner_when_all_stand_before_the_act",
    ),
    in_files(KeepsVersionsIn32Bits, "one_winner_at_large_versions"),
    in_memory(ListsPagesByPosition, "lists_several_pages_while_others_write"),
    in_memory(GivesUpAmongManyWriters, "one_winner_among_threads"),
    in_memory(CutsLongPaths, "long_and_deep_paths_are_files_of_their_own"),
    in_memory(CutsLongNames, "long_and_deep_paths_are_files_of_their_own"),
    in_memory(KeepsItsDirectory, "threads_share_a_client"),
    in_memory(BuriesWhatWasDeleted, "a_deleted_name_is_won_anew"),
    on_a_service(TakesEachPageFromItsOwnListing, "lists_several_pages_while_others_write"),
    on_a_service(AsksAgainForParts, "a_lost_reply_of_a_large_write_is_never_a_loss"),
)
