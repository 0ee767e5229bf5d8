"""The content of a large file for a store that takes it in one request: in a temporary file, not in memory."""

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from io import SEEK_END, BufferedRandom, BytesIO
from typing import TypeAlias

from ...errors import StorageError
from .uri import shown

Content: TypeAlias = bytes | BufferedRandom
"""The content of a file to write: bytes, or a temporary file, whose position doesn't matter."""

IN_MEMORY = 64 << 20
"""If a file has more bytes, its content is in a temporary file."""
_CHUNK = 8 << 20


@contextmanager
def spooled(path: str, pieces: Iterable[bytes]) -> Iterator[Content]:
    """The joined pieces: bytes, or a temporary file of this machine if they are large.

    `path` is the file to write. Raises the errors of `pieces` unchanged, and StorageError if the temporary file can't
    be written.
    """
    memory, remaining = BytesIO(), iter(pieces)
    for piece in remaining:
        memory.write(piece)
        if memory.tell() > IN_MEMORY:
            break
    else:
        yield memory.getvalue()
        return
    file = _temporary_file(path)
    try:
        _append(file, memory.getvalue(), path)
        memory.close()
        for piece in remaining:
            _append(file, piece, path)
        _append(file, None, path)
        yield file
    finally:
        with suppress(OSError):  # it flushes once more what a full disk didn't take
            file.close()


def chunks(content: Content) -> Iterator[bytes]:
    """All bytes, in pieces of a few MiB."""
    if not isinstance(content, BufferedRandom):
        yield content
        return
    content.seek(0)
    while piece := content.read(_CHUNK):
        yield piece


def size_of(content: Content) -> int:
    """The number of bytes."""
    return content.seek(0, SEEK_END) if isinstance(content, BufferedRandom) else len(content)


def joined(content: Content) -> bytes:
    """All bytes, for a store that can't send them from a file."""
    if not isinstance(content, BufferedRandom):
        return content
    content.seek(0)
    return content.read()


def _temporary_file(path: str) -> BufferedRandom:
    try:
        return tempfile.TemporaryFile(prefix="tablelog-")
    except OSError as error:
        raise _no_room(path, error) from error


def _append(file: BufferedRandom, piece: bytes | None, path: str) -> None:
    """Write a piece; None: what is still in the buffer."""
    try:
        if piece is None:
            file.flush()
        else:
            file.write(piece)
    except OSError as error:
        raise _no_room(path, error) from error


def _no_room(path: str, error: OSError) -> StorageError:
    return StorageError(
        f"writing {shown(path)}: it needs a temporary file in {tempfile.gettempdir()}, which can't be written "
        f"({error.strerror}). Nothing was written: free space there, or set TMPDIR",
        path=shown(path),
    )
