"""A store around a store: the base of those that count, delay or fail."""

from collections.abc import Iterator

from ..base import FileStatus, LogStore


class LogStoreWrapper(LogStore):
    """Passes every call on to `inner` and declares what it declares; override what shall differ.

    A file in pieces comes as one `write`, so that who overrides that sees all that is written.
    """

    def __init__(self, inner: LogStore) -> None:
        self.inner = inner
        self.exclusion = inner.exclusion
        self.partial_writes_visible = inner.partial_writes_visible
        self.atomic_overwrite = inner.atomic_overwrite
        self.endangered_by = dict(inner.endangered_by)  # a view, which the class may have, can't be pickled

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
