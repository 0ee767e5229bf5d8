"""Broken stores of files."""

import os
import threading
from collections.abc import Iterator

from tablelog.logstore import FileStatus, LocalLogStore
from tablelog.logstore.uri import local_path

from .mutant import Mutant, in_files


def _store(path: str, data: bytes, mode: str) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, mode) as file:
        file.write(data)


class LooksThenWrites(LocalLogStore):
    """Asks whether the file exists, then writes it (fsspec's local `pipe_file(mode="create")`)."""

    def write(self, path: str, data: bytes, *, overwrite: bool = False) -> None:
        if not overwrite and os.path.exists(local_path(path)):
            raise FileExistsError(path)
        super().write(path, data, overwrite=True)


class LooksThenRenames(LocalLogStore):
    """Whole temporary file, but a rename that replaces."""

    def write(self, path: str, data: bytes, *, overwrite: bool = False) -> None:
        final = local_path(path)
        if not overwrite and os.path.exists(final):
            raise FileExistsError(path)
        temporary = f"{os.path.dirname(final)}/.{os.path.basename(final)}.{os.urandom(16).hex()}"
        _store(temporary, data, "xb")
        os.rename(temporary, final)

    def list_from(self, path: str) -> Iterator[FileStatus]:
        return (status for status in super().list_from(path) if "/." not in status.path)


class LocksItsOwnThreads(LooksThenRenames):
    """Takes a lock around it all: safe in one process, and says that it is for the whole host."""

    _lock = threading.Lock()

    def write(self, path: str, data: bytes, *, overwrite: bool = False) -> None:
        with self._lock:
            super().write(path, data, overwrite=overwrite)


class WritesInPlace(LocalLogStore):
    """Exclusive by O_EXCL, under the final name from the start: readers see a part, a crash leaves one."""

    def write(self, path: str, data: bytes, *, overwrite: bool = False) -> None:
        _store(local_path(path), data, "wb" if overwrite else "xb")


class LinksBeforeWriting(LocalLogStore):
    """Shows its temporary file in listings."""

    def write(self, path: str, data: bytes, *, overwrite: bool = False) -> None:
        final = local_path(path)
        temporary = f"{final}.tmp{os.urandom(8).hex()}"
        _store(temporary, data, "xb")
        try:
            if overwrite:
                os.replace(temporary, final)
            else:
                os.link(temporary, final)
        finally:
            if os.path.exists(temporary):
                os.unlink(temporary)


class ListsWhatIsBelow(LocalLogStore):
    """Gives nested files too, as a listing by prefix does."""

    def list_from(self, path: str) -> Iterator[FileStatus]:
        found = list(super().list_from(path))
        directory = os.path.dirname(local_path(path))
        for name in os.listdir(directory):
            if os.path.isdir(f"{directory}/{name}"):
                found += super().list_from(f"{directory}/{name}/")
        return iter(sorted(found, key=lambda status: status.path.rpartition("/")[2]))


class ListsLate(LocalLogStore):
    """Finds out that the directory is missing when the listing is read."""

    def list_from(self, path: str) -> Iterator[FileStatus]:
        yield from super().list_from(path)


class DeletesOnlyWhatIsThere(LocalLogStore):
    """An absent file is an error."""

    def delete(self, path: str) -> None:
        os.unlink(local_path(path))


class OverwritesBehind(LocalLogStore):
    """Keeps what was longer: opens for writing and doesn't cut off."""

    def write(self, path: str, data: bytes, *, overwrite: bool = False) -> None:
        if overwrite and os.path.exists(local_path(path)):
            _store(local_path(path), data, "r+b")
        else:
            super().write(path, data, overwrite=overwrite)


class ForgetsSpellings(LocalLogStore):
    """Takes a path as it comes."""

    def resolve(self, path: str) -> str:
        return path


class StartsAFreshDirectoryBadly(LocalLogStore):
    """Makes the directory if it wasn't there, and fails if another just did."""

    def write(self, path: str, data: bytes, *, overwrite: bool = False) -> None:
        directory = os.path.dirname(os.path.dirname(local_path(path)))
        if not os.path.exists(directory):
            os.mkdir(directory)
        super().write(path, data, overwrite=overwrite)


MUTANTS: tuple[Mutant, ...] = (
    in_files(LooksThenWrites, "one_winner_in_every_interleaving", "overwrite_and_create_exclude_each_other"),
    in_files(LooksThenRenames, "one_winner_in_every_interleaving", "overwrite_and_create_exclude_each_other"),
    in_files(WritesInPlace, "never_a_part_of_a_file", "overwrite_is_atomic_where_declared"),
    in_files(LinksBeforeWriting, "lists_no_temporary_names"),
    in_files(ListsWhatIsBelow, "lists_no_directories_below"),
    in_files(ListsLate, "missing_directory_is_not_found"),
    in_files(DeletesOnlyWhatIsThere, "delete_is_idempotent"),
    in_files(OverwritesBehind, "overwrite_replaces"),
    in_files(ForgetsSpellings, "resolves_spellings"),
    in_files(StartsAFreshDirectoryBadly, "no_error_after_a_write"),
    in_files(LocksItsOwnThreads, "one_winner_when_all_stand_before_the_act"),
)
