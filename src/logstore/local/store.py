"""The store for a file system of this machine: a whole temporary file, then one exclusive link."""

import contextlib
import errno
import logging
import os
import stat
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from ...clock import Clock, SystemClock
from ...errors import InvalidArgumentError, TablelogError, WriteOutcomeUnknown
from ..base import Exclusion, FileStatus, LogStore, too_large
from ..common import posix
from ..common.listing import is_numbered, without_false_gaps
from ..common.schemes import served_by
from ..common.uri import escaped, local_path, local_uri, shown

STALE_AFTER_MS = 24 * 60 * 60 * 1000
"""A temporary file older than this was left by a writer that died."""

_SWEEP_EVERY_SECONDS = 3600.0
_MOST_SWEPT = 10_000

_TOLD_AGAIN = ".crc"
"""Version checksums aren't flushed to disk: they double the time of a commit, and one that a power failure damages is
ignored by every reader, for it says nothing that the log doesn't."""

logger = logging.getLogger(__name__)


class LocalLogStore(LogStore):
    """Files on a local file system, for any number of processes on one host.

    A write makes a whole temporary file with a hidden name (`.<name>.<uuid>.tmp`), flushes it, and links it to its
    final name, which the kernel refuses when that name is taken. A process that dies on the way leaves at most a
    hidden temporary file; an overwrite (once for each checkpoint) removes those that are older than a day.

    Hadoop keeps a checksum of each local file in a hidden sidecar (`.<name>.crc`) and refuses the file when they
    differ, so a sidecar never outlives the bytes that it was made for.
    """

    exclusion: Exclusion = "host"
    partial_writes_visible = False
    atomic_overwrite = True
    schemes: ClassVar[frozenset[str]] = served_by("local")

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._swept: dict[str, float] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {"_clock": self._clock, "_swept": {}}

    def read(self, path: str) -> bytes:
        return self._read(path, None)

    def read_at_most(self, path: str, most: int) -> bytes:
        return self._read(path, most)

    @staticmethod
    def _read(path: str, most: int | None) -> bytes:
        with posix.open_regular(local_path(path), shown(path)) as file:
            size = os.fstat(file.fileno()).st_size
            if most is not None and size > most:
                raise too_large(path, size, most)
            try:
                return file.read()
            except OSError as error:
                raise posix.typed(error, "reading", shown(path)) from error

    def write(self, path: str, data: bytes, *, overwrite: bool = False) -> None:
        self._write(path, (data,), overwrite)

    def write_pieces(self, path: str, pieces: Iterable[bytes], *, overwrite: bool = False) -> None:
        self._write(path, pieces, overwrite)

    def _write(self, path: str, pieces: Iterable[bytes], overwrite: bool) -> None:
        own: list[BaseException] = []

        def watched() -> Iterator[bytes]:
            try:
                yield from pieces
            except BaseException as error:
                own.append(error)
                raise

        try:
            self._place(path, watched(), overwrite)
        except FileExistsError:
            raise
        except OSError as error:
            # What made the pieces fail is the caller's, and comes through as it is.
            if error in own or isinstance(error, TablelogError):
                raise
            if error.errno in {errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP}:
                raise posix.storage_error(error, "writing", shown(path)) from error
            raise posix.typed(error, "writing", shown(path)) from error

    def _place(self, path: str, pieces: Iterable[bytes], overwrite: bool) -> None:
        final = local_path(path)
        directory, name = os.path.split(final)
        if not name or posix.is_hidden(os.fsencode(name)):
            raise InvalidArgumentError(f"{path} can't be written: a listing would never show a file of that name")
        if not overwrite and os.path.lexists(final):
            raise posix.lost(path)  # link would say the same, after a flush that takes longer than all the rest
        flush = not name.endswith(_TOLD_AGAIN)
        temporary = posix.temporary_beside(directory, name)
        posix.write_whole(temporary, pieces, flush=flush)
        try:
            sidecar = os.path.join(directory, f".{name}.crc")
            if overwrite:
                # The sidecar goes first: between the two steps, and after a crash there, the old bytes have none.
                _remove_if_there(sidecar)
                os.replace(temporary, final)
            else:
                if os.path.lexists(sidecar) and not os.path.lexists(final):
                    _remove_if_there(sidecar)
                posix.place(temporary, final, path)
        finally:
            posix.remove_quietly(temporary)
        try:
            if flush:
                posix.flush_directory(directory or ".")
        except OSError as error:
            # Others see the file and may have built on it, so it stays; but a power failure may still take it away.
            raise WriteOutcomeUnknown(
                path, f"it is there, but its directory couldn't be flushed to disk: {error.strerror}"
            ) from error
        if overwrite:
            self._sweep(directory)

    def list_from(self, path: str) -> Iterator[FileStatus]:
        directory, start = os.path.split(os.fsencode(local_path(path)))
        directory = directory or b"."

        def scan() -> list[bytes]:
            return [name for name in os.listdir(directory) if name >= start and not posix.is_hidden(name)]

        try:
            names = without_false_gaps(scan, start)
        except OSError as error:
            error.filename = os.fsdecode(directory)
            raise posix.typed(error, "listing", shown(path)) from error
        return _statuses(directory, names)

    def delete(self, path: str) -> None:
        final = local_path(path)
        directory, name = os.path.split(final)
        try:
            _remove_if_there(os.path.join(directory, f".{name}.crc"))
            _remove_if_there(final)
        except OSError as error:
            raise posix.typed(error, "removing", shown(path)) from error

    def resolve(self, path: str) -> str:
        """`file:///…` with symbolic links, `.`, `..` and trailing slashes resolved, percent-escaped.

        A link that is turned to another place later doesn't move what was resolved before.
        """
        return local_uri(os.path.realpath(local_path(path)))

    def _sweep(self, directory: str) -> None:
        """Remove stale temporary files, now and then: no part of the write, so a failure only warns."""
        now = self._clock.monotonic()
        if now - self._swept.get(directory, float("-inf")) < _SWEEP_EVERY_SECONDS:
            return
        if len(self._swept) >= _MOST_SWEPT:
            self._swept.clear()  # some directories are looked at again too soon
        self._swept[directory] = now
        try:
            remove_stale_temporaries(directory or ".", STALE_AFTER_MS, self._clock.now_ms())
        except OSError as error:
            logger.warning("couldn't look for stale temporary files in %s: %s", directory, error)


def _remove_if_there(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


def _statuses(directory: bytes, names: list[bytes]) -> Iterator[FileStatus]:
    prefix = local_uri(os.path.abspath(os.fsdecode(directory))).rstrip("/") + "/"
    beside = os.path.join(directory, b"")
    for name in names:
        try:
            status = os.stat(beside + name)
        except FileNotFoundError:  # removed since
            continue
        except OSError:  # links that lead in a circle, say
            try:
                status = os.lstat(beside + name)
            except FileNotFoundError:
                continue
            except OSError as error:
                raise posix.typed(error, "listing", prefix + escaped(name)) from error
        # A pipe with the name of a file of the log is listed, and can't be read: to leave it out would hide a version.
        if stat.S_ISREG(status.st_mode) or (is_numbered(name) and not stat.S_ISDIR(status.st_mode)):
            yield FileStatus(prefix + escaped(name), status.st_size, status.st_mtime_ns // 1_000_000)


def remove_stale_temporaries(directory: str, older_than_ms: int, now_ms: int) -> int:
    """Remove the temporary files in `directory` that were last changed more than `older_than_ms` before `now_ms`.

    `directory` is a bare path or a `file:` URI. Returns how many there were; a writer that still held one would
    fail, with nothing written. Raises `OSError` where the directory can't be read.
    """
    root = os.fsencode(local_path(directory))
    removed = 0
    for name in os.listdir(root):
        if not posix.is_temporary(name):
            continue
        path = os.path.join(root, name)
        try:
            if os.lstat(path).st_mtime_ns // 1_000_000 < now_ms - older_than_ms:
                os.unlink(path)
                removed += 1
        except FileNotFoundError:
            continue
        except OSError as error:
            logger.warning("couldn't remove the stale temporary file %s: %s", os.fsdecode(path), error)
    return removed
