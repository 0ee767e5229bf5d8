"""Broken stores of files."""

import contextlib
import multiprocessing
import os
import threading
import time
from collections.abc import Iterable, Iterator

from tablelog.logstore import FileStatus, LocalLogStore
from tablelog.logstore.common.uri import local_path

from .mutant import Mutant, in_files


def _store(path: str, data: bytes, mode: str) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, mode) as file:
        file.write(data)


class LooksThenWrites(LocalLogStore):
    """Checks whether the file exists, then writes it (fsspec's local `pipe_file(mode="create")`)."""

    def write(self, path: str, data: bytes, *, overwrite: bool = False) -> None:
        if not overwrite and os.path.exists(local_path(path)):
            raise FileExistsError(path)
        super().write(path, data, overwrite=True)


class LooksThenRenames(LocalLogStore):
    """Checks whether the file exists, then renames a complete temporary file, which replaces an existing file."""

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
    """Locks only the threads of one process, but declares exclusion for the whole host."""

    _lock = threading.Lock()

    def write(self, path: str, data: bytes, *, overwrite: bool = False) -> None:
        with self._lock:
            super().write(path, data, overwrite=overwrite)


class WritesInPlace(LocalLogStore):
    """Creates the final file with O_EXCL and then writes it: readers see partial files, and a crash leaves one."""

    def write(self, path: str, data: bytes, *, overwrite: bool = False) -> None:
        _store(local_path(path), data, "wb" if overwrite else "xb")


class LinksBeforeWriting(LocalLogStore):
    """Shows its temporary files in listings."""

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
    """Lists files in subdirectories too, as a listing by prefix does."""

    def list_from(self, path: str) -> Iterator[FileStatus]:
        statuses = list(super().list_from(path))
        directory = os.path.dirname(local_path(path))
        for name in os.listdir(directory):
            if os.path.isdir(f"{directory}/{name}"):
                statuses += super().list_from(f"{directory}/{name}/")
        return iter(sorted(statuses, key=lambda status: status.path.rpartition("/")[2]))


class ListsLate(LocalLogStore):
    """Raises the error for a missing directory only when the listing is read."""

    def list_from(self, path: str) -> Iterator[FileStatus]:
        yield from super().list_from(path)


class DeletesOnlyWhatIsThere(LocalLogStore):
    """Raises an error when it deletes a missing file."""

    def delete(self, path: str) -> None:
        os.unlink(local_path(path))


class OverwritesBehind(LocalLogStore):
    """Overwrites without truncating: the end of a longer old file stays."""

    def write(self, path: str, data: bytes, *, overwrite: bool = False) -> None:
        if overwrite and os.path.exists(local_path(path)):
            _store(local_path(path), data, "r+b")
        else:
            super().write(path, data, overwrite=overwrite)


class ForgetsSpellings(LocalLogStore):
    """Doesn't convert paths to their canonical form."""

    def resolve(self, path: str) -> str:
        return path


class StartsAFreshDirectoryBadly(LocalLogStore):
    """Creates a missing directory, and fails if another writer creates it at the same time."""

    def write(self, path: str, data: bytes, *, overwrite: bool = False) -> None:
        directory = os.path.dirname(local_path(path))
        if not os.path.exists(directory):
            os.makedirs(os.path.dirname(directory), exist_ok=True)
            try:
                os.mkdir(directory)
            except FileExistsError as error:
                raise NotADirectoryError(f"{directory} appeared") from error
        super().write(path, data, overwrite=overwrite)


class WritesInPieces(LocalLogStore):
    """Creates the file exclusively and fills it piece by piece (HDFS `create(overwrite=False)`)."""

    def write(self, path: str, data: bytes, *, overwrite: bool = False) -> None:
        _store(local_path(path), b"", "wb" if overwrite else "xb")
        for start in range(0, len(data), _PIECE):
            _store(local_path(path), data[start : start + _PIECE], "ab")


class AppendsPieces(LocalLogStore):
    """Appends the pieces directly to the final file."""

    def write_pieces(self, path: str, pieces: Iterable[bytes], *, overwrite: bool = False) -> None:
        _store(local_path(path), b"", "wb" if overwrite else "xb")
        for piece in pieces:
            _store(local_path(path), piece, "ab")


class ReplacesByPieces(LocalLogStore):
    """Checks whether the file exists only before it reads the pieces, not after them."""

    def write_pieces(self, path: str, pieces: Iterable[bytes], *, overwrite: bool = False) -> None:
        if not overwrite and os.path.exists(local_path(path)):
            raise FileExistsError(path)
        super().write_pieces(path, pieces, overwrite=True)


class LeavesItsLock(LocalLogStore):
    """Waits until a lock file is deleted, but nobody deletes it after a crash."""

    def write(self, path: str, data: bytes, *, overwrite: bool = False) -> None:
        lock = _lock_file(path)
        while not _created(lock, b""):
            time.sleep(0.001)
        try:
            super().write(path, data, overwrite=overwrite)
        finally:
            os.unlink(lock)


class StealsALockThatRanOut(LooksThenRenames):
    """Takes over a lock older than a minute, but the old holder may still be writing (locks with a lease)."""

    def write(self, path: str, data: bytes, *, overwrite: bool = False) -> None:
        lock = _lock_file(path)
        while not _created(lock, str(time.time()).encode()):
            with contextlib.suppress(FileNotFoundError, ValueError):
                with open(lock) as file:
                    since = float(file.read())
                if time.time() - since > _LEASE_SECONDS:
                    os.unlink(lock)
            time.sleep(0.001)
        try:
            super().write(path, data, overwrite=overwrite)
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(lock)


class ForgetsWhatIsOld(LocalLogStore):
    """Replaces files older than an hour (a DynamoDB table with a time to live)."""

    def write(self, path: str, data: bytes, *, overwrite: bool = False) -> None:
        with contextlib.suppress(FileNotFoundError):
            overwrite = overwrite or time.time() - os.stat(local_path(path)).st_mtime > 3600
        super().write(path, data, overwrite=overwrite)


class ListsWhatHasSettled(LocalLogStore):
    """Lists a file only a short time after its write (S3 before 2020)."""

    def list_from(self, path: str) -> Iterator[FileStatus]:
        settled = time.time() * 1000 - 50
        return (status for status in super().list_from(path) if status.modification_time_ms < settled)


class KeepsACallInItself(LocalLogStore):
    """Keeps the arguments of a call in attributes: one client works in one thread only."""

    _path = ""
    _data = b""

    def write(self, path: str, data: bytes, *, overwrite: bool = False) -> None:
        self._path, self._data = path, data
        time.sleep(0.0005)
        super().write(self._path, self._data, overwrite=overwrite)


class LeavesDescriptors(LocalLogStore):
    """Opens the existing file when it loses, and doesn't close it."""

    def write(self, path: str, data: bytes, *, overwrite: bool = False) -> None:
        try:
            super().write(path, data, overwrite=overwrite)
        except FileExistsError:
            os.open(local_path(path), os.O_RDONLY)
            raise


class LeavesTemporaries(LocalLogStore):
    """Doesn't delete the temporary file of a write that lost."""

    def write(self, path: str, data: bytes, *, overwrite: bool = False) -> None:
        final = local_path(path)
        if not overwrite and os.path.exists(final):
            _store(f"{os.path.dirname(final)}/.{os.urandom(16).hex()}", data, "xb")
        super().write(path, data, overwrite=overwrite)


class DeclaresByProcess(LocalLogStore):
    """Declares a wider exclusion in a child process."""

    def __init__(self) -> None:
        super().__init__()
        self.exclusion = "host" if multiprocessing.parent_process() is None else "global"


class DeniesALink(LocalLogStore):
    """Treats each error of the last step as an existing file (NFS, which may send a link twice)."""

    def write(self, path: str, data: bytes, *, overwrite: bool = False) -> None:
        final = local_path(path)
        temporary = f"{os.path.dirname(final)}/.{os.urandom(16).hex()}"
        _store(temporary, data, "xb")
        try:
            (os.replace if overwrite else os.link)(temporary, final)
        except OSError as error:
            raise FileExistsError(path) from error


_PIECE = 1 << 16
_LEASE_SECONDS = 60.0


def _lock_file(path: str) -> str:
    final = local_path(path)
    os.makedirs(os.path.dirname(final), exist_ok=True)
    return f"{os.path.dirname(final)}/.{os.path.basename(final)}.lock"


def _created(path: str, data: bytes) -> bool:
    try:
        _store(path, data, "xb")
    except FileExistsError:
        return False
    return True


MUTANTS: tuple[Mutant, ...] = (
    in_files(WritesInPieces, "a_reader_never_sees_a_part", "never_a_part_of_a_file"),
    in_files(AppendsPieces, "pieces_are_seen_as_one", "pieces_that_fail_leave_nothing"),
    in_files(ReplacesByPieces, "pieces_exclude_as_any_write_does"),
    in_files(LeavesItsLock, "a_killed_writer_leaves_all_or_nothing"),
    in_files(StealsALockThatRanOut, "a_lock_that_ran_out_is_lost_safely"),
    in_files(ForgetsWhatIsOld, "a_clock_that_is_off_changes_nothing"),
    in_files(ListsWhatHasSettled, "lists_at_once", "lists_while_others_write"),
    in_files(KeepsACallInItself, "threads_share_a_client"),
    in_files(LeavesDescriptors, "losers_leave_nothing_behind"),
    in_files(LeavesTemporaries, "losers_leave_nothing_behind"),
    in_files(DeclaresByProcess, "declares_the_same_everywhere"),
    in_files(DeniesALink, "a_lost_reply_is_never_a_loss", "what_was_never_sent_is_never_won"),
    in_files(LooksThenWrites, "one_winner_in_every_interleaving", "overwrite_and_create_exclude_each_other"),
    in_files(
        LooksThenRenames,
        "a_paused_writer_goes_on_safely",
        "exists_is_seen_in_every_form",
        "one_winner_in_every_interleaving",
        "overwrite_and_create_exclude_each_other",
    ),
    in_files(
        WritesInPlace,
        "a_killed_writer_leaves_all_or_nothing",
        "a_write_without_room_leaves_nothing",
        "never_a_part_of_a_file",
        "overwrite_is_atomic_where_declared",
    ),
    in_files(LinksBeforeWriting, "lists_no_temporary_names"),
    in_files(ListsWhatIsBelow, "lists_no_directories_below"),
    in_files(ListsLate, "missing_directory_is_not_found"),
    in_files(DeletesOnlyWhatIsThere, "delete_is_idempotent"),
    in_files(OverwritesBehind, "overwrite_replaces"),
    in_files(ForgetsSpellings, "resolves_spellings"),
    in_files(StartsAFreshDirectoryBadly, "no_error_after_a_write"),
    in_files(LocksItsOwnThreads, "one_winner_when_all_stand_before_the_act"),
)
