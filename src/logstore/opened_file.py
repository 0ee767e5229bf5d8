"""A data file that is open for reading, with the errors of this package."""

import io
from collections.abc import Callable
from typing import IO, Any


class OpenedFile(io.RawIOBase):
    """A file of an fsspec file system.

    Args:
        file: The file that fsspec opened. It requests parts of the file as they are read.
        request: Calls a function that makes requests, and returns its result; it may call it twice, and raises typed
            errors.
    """

    def __init__(self, file: IO[bytes], request: Callable[[Callable[[], Any]], Any]) -> None:
        super().__init__()
        self._file = file
        self._request = request

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def read(self, size: int | None = -1, /) -> bytes:
        data: bytes = self._request(lambda: self._file.read(-1 if size is None else size))
        return data

    def readinto(self, buffer: Any, /) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def close(self) -> None:
        self._file.close()
        super().close()
