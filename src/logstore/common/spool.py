"""The content of a large file for a store that takes or gives it in one request: in a temporary file, not in memory."""

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from io import SEEK_END, BufferedRandom, BytesIO
from typing import BinaryIO, TypeAlias

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
    content = _collected(f"writing {shown(path)}", pieces)
    try:
        yield content
    finally:
        if isinstance(content, BufferedRandom):
            _close(content)


def received(path: str, pieces: Iterable[bytes]) -> BinaryIO:
    """The content of the file `path`, which comes in pieces, open for reading; the caller closes it.

    Raises as `spooled` does.
    """
    content = _collected(f"reading {shown(path)}", pieces)
    if not isinstance(content, BufferedRandom):
        return BytesIO(content)
    content.seek(0)
    return content


def _collected(doing: str, pieces: Iterable[bytes]) -> Content:
    memory, remaining = BytesIO(), iter(pieces)
    for piece in remaining:
        memory.write(piece)
        if memory.tell() > IN_MEMORY:
            break
    else:
        return memory.getvalue()
    file = _temporary_file(doing)
    try:
        _append(file, memory.getvalue(), doing)
        memory.close()
        for piece in remaining:
            _append(file, piece, doing)
        _append(file, None, doing)
    except BaseException:
        _close(file)
        raise
    return file


def _close(file: BufferedRandom) -> None:
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


class Upload:
    """The body of a request from a temporary file. It is read from its start each time that the request is sent."""

    def __init__(self, content: Content) -> None:
        self._content = content
        self._size = size_of(content)

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[bytes]:
        return chunks(self._content)


def joined(content: Content) -> bytes:
    """All bytes, for a store that can't send them from a file."""
    if not isinstance(content, BufferedRandom):
        return content
    content.seek(0)
    return content.read()


def _temporary_file(doing: str) -> BufferedRandom:
    try:
        return tempfile.TemporaryFile(prefix="tablelog-")
    except OSError as error:
        raise _no_room(doing, error) from error


def _append(file: BufferedRandom, piece: bytes | None, doing: str) -> None:
    """Write a piece; None: what is still in the buffer."""
    try:
        if piece is None:
            file.flush()
        else:
            file.write(piece)
    except OSError as error:
        raise _no_room(doing, error) from error


def _no_room(doing: str, error: OSError) -> StorageError:
    return StorageError(
        f"{doing}: it needs a temporary file in {tempfile.gettempdir()}, which can't be written ({error.strerror}). "
        "Nothing was done: free space there, or set TMPDIR",
        path=doing.partition(" ")[2],
    )
