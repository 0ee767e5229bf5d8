"""Stores that each break one thing, in ways that real ones do: a check that passes them proves nothing."""

import os
import threading
from collections.abc import Iterator

from tablelog.logstore import FileStatus, LocalLogStore, MemoryLogStore
from tablelog.logstore.uri import local_path


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
        from urllib.parse import unquote

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


class ListsWhatIsBelow(LocalLogStore):
    """Gives nested files too, as a listing by prefix does."""

    def list_from(self, path: str) -> Iterator[FileStatus]:
        found = list(super().list_from(path))
        directory = os.path.dirname(local_path(path))
        for name in os.listdir(directory):
            if os.path.isdir(f"{directory}/{name}"):
                found += super().list_from(f"{directory}/{name}/")
        return iter(sorted(found, key=lambda status: status.path.rpartition("/")[2]))


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


class LosesItsFilesInAPickle(MemoryLogStore):
    """An unpickled one is new."""

    def __reduce__(self) -> tuple[type, tuple[()]]:  # type: ignore[override]
        return type(self), ()


class LeavesWhatFailed(MemoryLogStore):
    """Makes the file, then looks at the data."""

    def write(self, path: str, data: bytes, *, overwrite: bool = False) -> None:
        super().write(path, b"", overwrite=overwrite)
        super().write(path, data + b"", overwrite=True)


class StartsAFreshDirectoryBadly(LocalLogStore):
    """Makes the directory if it wasn't there, and fails if another just did."""

    def write(self, path: str, data: bytes, *, overwrite: bool = False) -> None:
        directory = os.path.dirname(os.path.dirname(local_path(path)))
        if not os.path.exists(directory):
            os.mkdir(directory)
        super().write(path, data, overwrite=overwrite)


class ShowsParts(MemoryLogStore):
    """Admits that a part may be seen."""

    partial_writes_visible = True


BROKEN: dict[type, set[str]] = {
    LooksThenWrites: {"one_winner_in_every_interleaving", "overwrite_and_create_exclude_each_other"},
    LooksThenRenames: {"one_winner_in_every_interleaving", "overwrite_and_create_exclude_each_other"},
    WritesInPlace: {"never_a_part_of_a_file", "overwrite_is_atomic_where_declared"},
    LinksBeforeWriting: {"lists_no_temporary_names"},
    HidesALoss: {"second_writer_loses", "one_winner_among_threads", "a_deleted_name_is_won_anew"},
    ReplacesEmptyFiles: {"second_writer_loses"},
    SaysIOErrorForALoss: {"second_writer_loses", "one_winner_among_threads"},
    ListsUnsorted: {"lists_in_byte_order"},
    ListsInUtf16Order: {"lists_in_byte_order"},
    ListsAfterTheName: {"lists_from_the_name_on", "lists_in_byte_order"},
    ListsOnePage: {"lists_whole_directories"},
    ListsWhatIsBelow: {"lists_no_directories_below"},
    ListsFromACache: {"lists_at_once"},
    ListsInPieces: {"lists_no_later_file_without_the_earlier"},
    ListsLate: {"missing_directory_is_not_found"},
    DeletesOnlyWhatIsThere: {"delete_is_idempotent"},
    OverwritesBehind: {"overwrite_replaces"},
    ForgetsSpellings: {"resolves_spellings"},
    LosesItsFilesInAPickle: {"survives_pickling"},
    LeavesWhatFailed: {"a_failed_write_leaves_nothing", "never_a_part_of_a_file"},
    StartsAFreshDirectoryBadly: {"no_error_after_a_write"},
    ShowsParts: {"declares_what_it_is"},
}
"""Each broken store -> the checks that must find it; others may as well."""
