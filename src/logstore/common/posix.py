"""The steps of a safe write on a POSIX file system: write and flush a temporary file, then rename it exclusively."""

import contextlib
import ctypes
import errno
import functools
import os
import re
import stat
import uuid
from collections.abc import Callable, Iterable
from typing import BinaryIO

from ...errors import (
    CorruptLogError,
    StorageAccessError,
    StorageError,
    TablelogError,
    UnsupportedEnvironmentError,
    WriteOutcomeUnknown,
)
from ...settings.declarations import LOG_STORE

_UUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
# Our names equal those of Delta's HDFSLogStore; Hadoop may leave a checksum file for such a file (HADOOP-16255).
_TEMPORARY = re.compile(rf"\..+\.{_UUID}\.tmp|\.\..+\.{_UUID}\.tmp\.crc".encode(), re.DOTALL).fullmatch
_STAGED_BY_OBJECT_STORE = re.compile(rb".+#[0-9]+", re.DOTALL).fullmatch
_NAME_MAX = 255
_TEMPORARY_OVERHEAD = len(f"..{uuid.UUID(int=0)}.tmp")

# The errors of link(2) if the file system has no hard links (or the kernel forbids this one).
_NO_HARD_LINKS = frozenset(
    {errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL, errno.EXDEV, errno.EMLINK}
)
# Errors that mean: not applied, and never will be. All others (EIO, ETIMEDOUT, ESTALE, ...) may be reported after the
# operation was applied on a network file system.
_NOT_APPLIED = frozenset(
    {
        *(errno.EACCES, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.ENOENT, errno.ENOTDIR, errno.EISDIR),
        *(errno.ENAMETOOLONG, errno.ELOOP, errno.ENOMEM),
    }
)
# A circular link, a directory, a socket: the name exists, but isn't a file.
_NO_FILE = frozenset({errno.ELOOP, errno.EISDIR, errno.ENXIO})
_NO_ACCESS = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
_AT_FDCWD = -100
_RENAME_NOREPLACE = 1


def is_temporary(name: bytes) -> bool:
    """Whether `name` is a temporary file of a write, by this module or by Delta's HDFSLogStore."""
    return _TEMPORARY(name) is not None


def is_hidden(name: bytes) -> bool:
    """Whether a listing omits `name`: a file being written (object_store's `#1` too) or a Hadoop checksum."""
    if name[:1] == b".":
        return is_temporary(name) or (name.endswith(b".crc") and len(name) > len(b"..crc"))
    return b"#" in name and _STAGED_BY_OBJECT_STORE(name) is not None


def open_regular(path: str, shown: str) -> BinaryIO:
    """Open the regular file `path` (or the target of a link), unbuffered. It doesn't block, also not for a pipe.

    Raises CorruptLogError for a directory, a device, a pipe, a socket and circular links, FileNotFoundError, or another
    error of the `StorageError` group. `shown` is the path for messages.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise typed(error, "reading", shown) from error
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            raise CorruptLogError(
                f"{shown} is {_kind(mode)}, not a file. Remove it, or restore the file from a copy", path=shown
            )
        return os.fdopen(descriptor, "rb", buffering=0)
    except BaseException:
        os.close(descriptor)
        raise


def _kind(mode: int) -> str:
    if stat.S_ISDIR(mode):
        return "a directory"
    return "a pipe" if stat.S_ISFIFO(mode) else "a socket" if stat.S_ISSOCK(mode) else "a device"


def typed(error: OSError, doing: str, shown: str) -> Exception:
    """Our error for an error of the operating system, with its `errno`; our own and "not found" are kept."""
    if isinstance(error, TablelogError | FileNotFoundError):
        return error
    if error.errno == errno.ENOTDIR:
        return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), shown)
    reason = error.strerror or type(error).__name__
    if error.errno in _NO_FILE:
        description = "a circular link" if error.errno == errno.ELOOP else "not a file"
        return CorruptLogError(
            f"{shown} is {description} ({reason}). Remove it, or restore the file from a copy", path=shown
        )
    return storage_error(error, doing, shown)


def storage_error(error: OSError, doing: str, shown: str) -> StorageError:
    """The error of the `StorageError` group for an error of the operating system, with its `errno`."""
    reason = error.strerror or type(error).__name__
    typed_error: StorageError
    if error.errno in _NO_ACCESS:
        typed_error = StorageAccessError(
            f"{doing} {shown}: {reason}. Check the permissions, and how the disk is mounted"
        )
    elif error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}:
        typed_error = StorageError(
            f"{doing} {shown}: {reason}. Free some space, or raise the limit; nothing was written"
        )
    else:
        typed_error = StorageError(f"{doing} {shown}: {reason}")
    typed_error.errno = error.errno
    return typed_error.with_context(path=shown)


def temporary_beside(directory: str, name: str) -> str:
    """A new hidden name in `directory` for the temporary file of `name`."""
    if len(os.fsencode(name)) > _NAME_MAX - _TEMPORARY_OVERHEAD:
        name = os.fsencode(name)[: _NAME_MAX - _TEMPORARY_OVERHEAD].decode("utf-8", "ignore")
    return os.path.join(directory, f".{name}.{uuid.uuid4()}.tmp")


def write_whole(path: str, pieces: Iterable[bytes], *, flush: bool = True) -> None:
    """Write the new file `path` and create parent directories; after a failure, also of `pieces`, it is deleted.

    With `flush`, the file is flushed to disk.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags, 0o666)
    except FileNotFoundError:
        make_directories(os.path.dirname(path))
        descriptor = os.open(path, flags, 0o666)
    try:
        try:
            for piece in pieces:
                written = os.write(descriptor, piece)
                while written < len(piece):
                    written += os.write(descriptor, memoryview(piece)[written:])
            if flush:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except BaseException:
        remove_quietly(path)
        raise


def place(temporary: str, final: str, shown: str) -> None:
    """Link or rename the file `temporary` to `final`, unless `final` exists.

    Raises `FileExistsError` (lost), `WriteOutcomeUnknown`, `UnsupportedEnvironmentError` if the file system has no
    exclusive link or rename, and another `OSError` if nothing was done. `shown` is the path for messages.
    """
    try:
        os.link(temporary, final)
        return
    except OSError as error:
        failure = error
    # NFS repeats a request whose reply was lost, and then reports that the name exists, or another error.
    linked = _is_same_file(temporary, final)
    if linked:
        return
    if linked is None:
        raise WriteOutcomeUnknown(
            shown, f"link failed ({failure.strerror}), and the check whether it was applied failed too"
        )
    if isinstance(failure, FileExistsError):
        raise lost(shown)
    if failure.errno in _NO_HARD_LINKS:
        _rename_exclusively(temporary, final, shown, failure)
    elif failure.errno in _NOT_APPLIED:
        raise failure
    else:
        raise WriteOutcomeUnknown(shown, f"link failed: {failure.strerror}") from failure


def _is_same_file(temporary: str, final: str) -> bool | None:
    """Whether both names are one file; None if that can't be determined. `open` makes NFS ask the server again."""
    try:
        ours = _status(temporary)
        # The number of links alone isn't enough: a backup with hard links may have linked the temporary file.
        return ours.st_nlink > 1 and os.path.samestat(ours, _status(final))
    except OSError:
        return None


def _status(path: str) -> os.stat_result:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.fstat(descriptor)
    finally:
        os.close(descriptor)


def lost(shown: str) -> FileExistsError:
    """The error for a writer whose file exists already."""
    return FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), shown)


@functools.cache
def _renameat2() -> Callable[..., int] | None:
    """The function renameat2 of the C library (Linux)."""
    function = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if function is not None:
        function.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
        function.restype = ctypes.c_int
    return function


def _rename_exclusively(temporary: str, final: str, shown: str, no_link: OSError) -> None:
    """`renameat2(RENAME_NOREPLACE)`: exclusive without hard links; a file system without it returns EINVAL."""
    rename = _renameat2()
    if rename is None:
        raise _no_exclusive_way(shown, no_link)
    if rename(_AT_FDCWD, os.fsencode(temporary), _AT_FDCWD, os.fsencode(final), _RENAME_NOREPLACE) == 0:
        return
    number = ctypes.get_errno()
    if number == errno.EEXIST:
        if os.path.lexists(temporary):
            raise lost(shown)
        raise WriteOutcomeUnknown(shown, "rename reports that the file exists, but may have created it itself")
    if number in _NO_HARD_LINKS:
        raise _no_exclusive_way(shown, no_link)
    if number in _NOT_APPLIED:
        raise OSError(number, os.strerror(number), shown)
    raise WriteOutcomeUnknown(shown, f"rename failed: {os.strerror(number)}")


def _no_exclusive_way(shown: str, no_link: OSError) -> UnsupportedEnvironmentError:
    return UnsupportedEnvironmentError(
        f"{shown} was not written: its file system has neither hard links ({no_link.strerror}) nor an exclusive rename "
        "(renameat2), so two writers could overwrite each other's commits. Keep the table on a file system with one "
        f"of them (ext4, xfs, btrfs, APFS, NFS), or configure another store with {LOG_STORE.prefix}file.impl",
        path=shown,
    )


def make_directories(directory: str) -> None:
    """Create `directory` and its parents, and flush each new entry to disk."""
    missing = []
    directory = directory or "."
    while not os.path.isdir(directory):
        missing.append(directory)
        directory = os.path.dirname(directory) or "."
        if directory == missing[-1]:
            break
    for new in reversed(missing):
        with contextlib.suppress(FileExistsError):  # another writer created it; if it is a file, the next step fails
            os.mkdir(new)
        flush_directory(os.path.dirname(new) or ".")


def flush_directory(directory: str) -> None:
    """Flush the entries of `directory` to disk; does nothing if its file system doesn't support that."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in {errno.EINVAL, errno.EBADF, errno.ENOTSUP, errno.EOPNOTSUPP}:
            raise
    finally:
        os.close(descriptor)


def remove_quietly(path: str) -> None:
    """Remove a file, ignoring errors."""
    with contextlib.suppress(OSError):
        os.unlink(path)
