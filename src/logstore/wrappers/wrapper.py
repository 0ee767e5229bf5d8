"""The base class of stores that wrap another store."""

from collections.abc import Iterator

from ..base import FileStatus, LogStore


class LogStoreWrapper(LogStore):
    """Passes every call to `inner` and copies its declarations; override the methods that should differ.

    A file written in pieces becomes one `write`, so a subclass that overrides `write` gets every write.
    """

    def __init__(self, inner: LogStore) -> None:
        self.inner = inner
        self.exclusion = inner.exclusion
        self.partial_writes_visible = inner.partial_writes_visible
        self.atomic_overwrite = inner.atomic_overwrite
        self.endangered_by = dict(inner.endangered_by)  # a copy: a MappingProxyType can't be pickled

    def read(self, path: str) -> bytes:
        return self.inner.read(path)

    def write(self, path: str, data: bytes, *, overwrite: bool = False) -> None:
        self.inner.write(path, data, overwrite=overwrite)

    def list_from(self, path: str) -> Iterator[FileStatus]:
        return self.inner.list_from(path)

    def delete(self, path: str) -> None:
        self.inner.delete(path)

    def resolve(self, path: str) -> str:
        return self.inner.resolve(path)
