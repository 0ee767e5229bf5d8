"""A store that shows a part of another one under paths of its own."""

from collections.abc import Iterator

from ...errors import InvalidArgumentError
from ..base import FileStatus, LogStore
from ..common.uri import shown
from .wrapper import LogStoreWrapper


class PrefixedLogStore(LogStoreWrapper):
    """Serves paths below `shown_as` by what is below `prefix` in the store inside, and nothing outside of it.

    A path that leaves `shown_as` (by `..`, say) is an InvalidArgumentError, so the rest of the store can't be reached
    through it. Paths in errors of the store inside are that store's.
    """

    def __init__(self, inner: LogStore, prefix: str, *, shown_as: str) -> None:
        super().__init__(inner)
        self._prefix = inner.resolve(prefix)
        self._shown_as = shown_as.rstrip("/")

    def read(self, path: str) -> bytes:
        return super().read(self._inside(path))

    def write(self, path: str, data: bytes, *, overwrite: bool = False) -> None:
        super().write(self._inside(path), data, overwrite=overwrite)

    def list_from(self, path: str) -> Iterator[FileStatus]:
        listing = super().list_from(self._inside(path))
        return (status._replace(path=self._outside(status.path)) for status in listing)

    def delete(self, path: str) -> None:
        super().delete(self._inside(path))

    def resolve(self, path: str) -> str:
        return self._outside(super().resolve(self._inside(path)))

    def _inside(self, path: str) -> str:
        below = path.removeprefix(self._shown_as)
        if below != path and below[:1] in ("", "/"):
            inside = self._prefix + below
            # However the way out is spelt ("..", "%2e%2e"), the store inside says where it leads.
            if f"{self.inner.resolve(inside)}/".startswith(f"{self._prefix}/"):
                return inside
        raise InvalidArgumentError(f"{shown(path)} is not below {shown(self._shown_as)}")

    def _outside(self, path: str) -> str:
        return self._shown_as + path.removeprefix(self._prefix)
