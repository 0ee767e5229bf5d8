"""The store for a local file system: write a whole temporary file, then link it exclusively."""

import contextlib
import errno
import io
import logging
import os
import stat
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO, ClassVar, cast

from ...clock import Clock, SystemClock
from ...errors import InvalidArgumentError, TablelogError, WriteOutcomeUnknown
from ..base import Exclusion, FileStatus, LogStore, too_large
from ..common import posix
from ..common.listing import is_numbered, without_false_gaps
from ..common.schemes import served_by
from ..common.uri import escaped, local_path, local_uri, shown

STALE_AFTER_MS = 24 * 60 * 60 * 1000
"""A temporary file older than this was left by a writer that was killed."""

_SWEEP_EVERY_SECONDS = 3600.0
_MOST_SWEPT = 10_000
_BUFFER_BYTES = 1 << 20

_UNFLUSHED = ".crc"
"""The suffix of version checksums, which aren't flushed to disk. A flush would double the time of a commit, and readers
ignore a checksum that a power failure damaged: the log has all of its information."""

logger = logging.getLogger(__name__)


class LocalLogStore(LogStore):
    """Files on a local file system, for any number of processes on one host.

    A write creates a whole temporary file with a hidden name (`.<name>.<uuid>.tmp`), flushes it, and links it to its
    final name; the kernel refuses the link if that name exists. A process that is killed leaves at most a hidden
    temporary file. An overwrite (once for each checkpoint) removes those that are older than a day.

    Hadoop keeps a checksum of each local file in a hidden sidecar (`.<name>.crc`) and rejects the file if they don't
    match, so a sidecar is always deleted before its file is replaced.
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

    def open_file(self, path: str) -> BinaryIO:
        raw = posix.open_regular(local_path(path), shown(path))
        return io.BufferedReader(cast(io.FileIO, raw), _BUFFER_BYTES)

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
        piece_errors: list[BaseException] = []

        def watched() -> Iterator[bytes]:
            try:
                yield from pieces
            except BaseException as error:
                piece_errors.append(error)
                raise

        try:
            self._place(path, watched(), overwrite)
        except FileExistsError:
            raise
        except OSError as error:
            # An error of `pieces` is the caller's, and is raised unchanged.
            if error in piece_errors or isinstance(error, TablelogError):
                raise
            if error.errno in {errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP}:
                raise posix.storage_error(error, "writing", shown(path)) from error
            raise posix.typed(error, "writing", shown(path)) from error

    def _place(self, path: str, pieces: Iterable[bytes], overwrite: bool) -> None:
        final = local_path(path)
        directory, name = os.path.split(final)
        if not name or posix.is_hidden(os.fsencode(name)):
            raise InvalidArgumentError(
                f"{shown(path)} can't be written: listings omit files with such a name. Use another name"
            )
        if not overwrite and os.path.lexists(final):
            raise posix.lost(path)  # link would fail too, but only after the flush, which is the slowest step
        flush = not name.endswith(_UNFLUSHED)
        temporary = posix.temporary_beside(directory, name)
        posix.write_whole(temporary, pieces, flush=flush)
        try:
            sidecar = os.path.join(directory, f".{name}.crc")
            if overwrite:
                # The sidecar is removed first: a crash between the two steps leaves the old file without a sidecar.
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
            # Others may have read the file, so it can't be removed; but a power failure may still remove it.
            raise WriteOutcomeUnknown(
                path, f"the file exists, but its directory couldn't be flushed to disk: {error.strerror}"
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

        If a link is changed later, paths that were resolved before don't change.
        """
        return local_uri(os.path.realpath(local_path(path)))

    def _sweep(self, directory: str) -> None:
        """Remove stale temporary files, at most once an hour. It isn't part of the write, so a failure only warns."""
        now = self._clock.monotonic()
        if now - self._swept.get(directory, float("-inf")) < _SWEEP_EVERY_SECONDS:
            return
        if len(self._swept) >= _MOST_SWEPT:
            self._swept.clear()  # then some directories are checked again too early
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
    parent = os.path.join(directory, b"")
    for name in names:
        try:
            status = os.stat(parent + name)
        except FileNotFoundError:  # removed after the listing
            continue
        except OSError:  # for example circular links
            try:
                status = os.lstat(parent + name)
            except FileNotFoundError:
                continue
            except OSError as error:
                raise posix.typed(error, "listing", prefix + escaped(name)) from error
        # A pipe with the name of a log file is listed but can't be read: omitting it would hide a version.
        if stat.S_ISREG(status.st_mode) or (is_numbered(name) and not stat.S_ISDIR(status.st_mode)):
            yield FileStatus(prefix + escaped(name), status.st_size, status.st_mtime_ns // 1_000_000)


def remove_stale_temporaries(directory: str, older_than_ms: int, now_ms: int) -> int:
    """Remove the temporary files in `directory` that were last changed more than `older_than_ms` before `now_ms`.

    A writer that still uses such a file fails, with nothing written.

    Args:
        directory: A bare path or a `file:` URI.
        older_than_ms: The minimal age in milliseconds.
        now_ms: The current time in milliseconds since the epoch.

    Returns:
        The number of removed files.

    Raises:
        OSError: The directory can't be read.
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
