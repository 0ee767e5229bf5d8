"""The steps of a safe write on a POSIX file system: whole and durable first, then under its name, exclusively."""

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
from ...settings.honoured import LOG_STORE

_UUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
# Ours are those of Delta's own HDFSLogStore; Hadoop may leave a checksum of such a file beside it (HADOOP-16255).
_TEMPORARY = re.compile(rf"\..+\.{_UUID}\.tmp|\.\..+\.{_UUID}\.tmp\.crc".encode(), re.DOTALL).fullmatch
_STAGED_BY_OBJECT_STORE = re.compile(rb".+#[0-9]+", re.DOTALL).fullmatch
_NAME_MAX = 255
_TEMPORARY_OVERHEAD = len(f"..{uuid.UUID(int=0)}.tmp")

# What link(2) says where the file system has no hard links (or the kernel forbids this one).
_NO_HARD_LINKS = frozenset(
    {errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL, errno.EXDEV, errno.EMLINK}
)
# Errors that mean: not applied, and never will be. All others (EIO, ETIMEDOUT, ESTALE, ...) may come after the fact
# on a network file system.
_NOT_APPLIED = frozenset(
    {
        *(errno.EACCES, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.ENOENT, errno.ENOTDIR, errno.EISDIR),
        *(errno.ENAMETOOLONG, errno.ELOOP, errno.ENOMEM),
    }
)
# A link that leads in a circle, a directory, a socket: the name is there, and no file.
_NO_FILE = frozenset({errno.ELOOP, errno.EISDIR, errno.ENXIO})
_NO_ACCESS = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
_AT_FDCWD = -100
_RENAME_NOREPLACE = 1


def is_temporary(name: bytes) -> bool:
    """Whether `name` is that of a file that is being written, here or by Delta's HDFSLogStore."""
    return _TEMPORARY(name) is not None


def is_hidden(name: bytes) -> bool:
    """Whether a listing leaves `name` out: a file being written (object_store's `#1` too) or a Hadoop checksum."""
    if name[:1] == b".":
        return is_temporary(name) or (name.endswith(b".crc") and len(name) > len(b"..crc"))
    return b"#" in name and _STAGED_BY_OBJECT_STORE(name) is not None


def open_regular(path: str, shown: str) -> BinaryIO:
    """Open the regular file `path`, unbuffered, or what a link leads to. It never waits, as a pipe would have it.

    Raises CorruptLogError for a directory, a device, a pipe, a socket and links in a circle, FileNotFoundError, and
    another error of the `StorageError` group. `shown` is the path for messages.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise typed(error, "reading", shown) from error
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            raise CorruptLogError(f"{shown} is {_kind(mode)}, and no file. Remove it, or restore the file from a copy")
        return os.fdopen(descriptor, "rb", buffering=0)
    except BaseException:
        os.close(descriptor)
        raise


def _kind(mode: int) -> str:
    if stat.S_ISDIR(mode):
        return "a directory"
    return "a pipe" if stat.S_ISFIFO(mode) else "a socket" if stat.S_ISSOCK(mode) else "a device"


def typed(error: OSError, doing: str, shown: str) -> Exception:
    """The error of ours for one of the operating system, with its `errno`; ours, and "not found", as they are."""
    if isinstance(error, TablelogError | FileNotFoundError):
        return error
    if error.errno == errno.ENOTDIR:
        return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), shown)
    reason = error.strerror or type(error).__name__
    if error.errno in _NO_FILE:
        what = "links that lead in a circle" if error.errno == errno.ELOOP else "no file"
        return CorruptLogError(f"{shown} is {what} ({reason}). Remove it, or restore the file from a copy")
    return storage_error(error, doing, shown)


def storage_error(error: OSError, doing: str, shown: str) -> StorageError:
    """The error of the `StorageError` group for one of the operating system, with its `errno`."""
    reason = error.strerror or type(error).__name__
    found: StorageError
    if error.errno in _NO_ACCESS:
        found = StorageAccessError(f"{doing} {shown}: {reason}. Check the permissions, and how the disk is mounted")
    elif error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}:
        found = StorageError(f"{doing} {shown}: {reason}. Make room, or raise the limit; nothing was written")
    else:
        found = StorageError(f"{doing} {shown}: {reason}")
    found.errno = error.errno
    return found


def temporary_beside(directory: str, name: str) -> str:
    """A new hidden name in `directory` for what will be `name`."""
    if len(os.fsencode(name)) > _NAME_MAX - _TEMPORARY_OVERHEAD:
        name = os.fsencode(name)[: _NAME_MAX - _TEMPORARY_OVERHEAD].decode("utf-8", "ignore")
    return os.path.join(directory, f".{name}.{uuid.uuid4()}.tmp")


def write_whole(path: str, pieces: Iterable[bytes], *, flush: bool = True) -> None:
    """Write the new file `path`, making parents; nothing of it stays after a failure, of `pieces` too.

    With `flush`, it is on disk.
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
    """Give the file `temporary` the name `final` as well, or instead, unless there is such a file.

    Raises `FileExistsError` (lost), `WriteOutcomeUnknown`, `UnsupportedEnvironmentError` where the file system has
    no exclusive way, and another `OSError` where nothing was done. `shown` is the path for messages.
    """
    try:
        os.link(temporary, final)
        return
    except OSError as error:
        failure = error
    # NFS repeats a request whose reply was lost, and then reports that the name exists, or just an error.
    landed = _is_same_file(temporary, final)
    if landed:
        return
    if landed is None:
        raise WriteOutcomeUnknown(shown, f"link failed ({failure.strerror}) and so did looking for what it did")
    if isinstance(failure, FileExistsError):
        raise lost(shown)
    if failure.errno in _NO_HARD_LINKS:
        _rename_exclusively(temporary, final, shown, failure)
    elif failure.errno in _NOT_APPLIED:
        raise failure
    else:
        raise WriteOutcomeUnknown(shown, f"link failed: {failure.strerror}") from failure


def _is_same_file(temporary: str, final: str) -> bool | None:
    """Whether both names are one file; None where that can't be seen. `open` makes NFS ask the server anew."""
    try:
        ours = _status(temporary)
        # The number of links alone wouldn't do: a backup by hard links may have given the temporary a second name.
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
    """The answer to a writer whose file is there already."""
    return FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), shown)


@functools.cache
def _renameat2() -> Callable[..., int] | None:
    """The C library's renameat2 (Linux)."""
    function = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if function is not None:
        function.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
        function.restype = ctypes.c_int
    return function


def _rename_exclusively(temporary: str, final: str, shown: str, no_link: OSError) -> None:
    """`renameat2(RENAME_NOREPLACE)`: exclusive where there are no hard links; a file system without it says EINVAL."""
    rename = _renameat2()
    if rename is None:
        raise _no_exclusive_way(shown, no_link)
    if rename(_AT_FDCWD, os.fsencode(temporary), _AT_FDCWD, os.fsencode(final), _RENAME_NOREPLACE) == 0:
        return
    number = ctypes.get_errno()
    if number == errno.EEXIST:
        if os.path.lexists(temporary):
            raise lost(shown)
        raise WriteOutcomeUnknown(shown, "the rename says that the file exists, and may itself have made it so")
    if number in _NO_HARD_LINKS:
        raise _no_exclusive_way(shown, no_link)
    if number in _NOT_APPLIED:
        raise OSError(number, os.strerror(number), shown)
    raise WriteOutcomeUnknown(shown, f"rename failed: {os.strerror(number)}")


def _no_exclusive_way(shown: str, no_link: OSError) -> UnsupportedEnvironmentError:
    return UnsupportedEnvironmentError(
        f"{shown} was not written: its file system has neither hard links ({no_link.strerror}) nor a rename that "
        "never replaces (renameat2), so two writers could take one another's commit away. Keep the table on a file "
        "system that has one of them (ext4, xfs, btrfs, APFS, NFS), or configure another store with "
        f"{LOG_STORE.prefix}file.impl"
    )


def make_directories(directory: str) -> None:
    """Make `directory` and its parents, each new entry on disk before this returns."""
    missing = []
    directory = directory or "."
    while not os.path.isdir(directory):
        missing.append(directory)
        directory = os.path.dirname(directory) or "."
        if directory == missing[-1]:
            break
    for new in reversed(missing):
        with contextlib.suppress(FileExistsError):  # another writer's is as good; a file is found out by the next step
            os.mkdir(new)
        flush_directory(os.path.dirname(new) or ".")


def flush_directory(directory: str) -> None:
    """Put the entries of `directory` on disk; nothing where its file system has no such thing."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in {errno.EINVAL, errno.EBADF, errno.ENOTSUP, errno.EOPNOTSUPP}:
            raise
    finally:
        os.close(descriptor)


def remove_quietly(path: str) -> None:
    """Remove a file whose staying harms nobody."""
    with contextlib.suppress(OSError):
        os.unlink(path)
