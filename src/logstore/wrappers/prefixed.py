"""A store that shows a part of another store under different paths."""

from collections.abc import Iterator

from ...errors import InvalidArgumentError
from ..base import FileStatus, LogStore
from ..common.uri import shown
from .wrapper import LogStoreWrapper


class PrefixedLogStore(LogStoreWrapper):
    """Maps paths below `shown_as` to paths below `prefix` in the inner store; no other path can be reached.

    A path outside `shown_as` (for example by `..`) raises InvalidArgumentError. Errors of the inner store have the
    inner store's paths.
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
            # The inner store resolves every spelling of a parent directory ("..", "%2e%2e").
            if f"{self.inner.resolve(inside)}/".startswith(f"{self._prefix}/"):
                return inside
        raise InvalidArgumentError(f"{shown(path)} is not below {shown(self._shown_as)}")

    def _outside(self, path: str) -> str:
        return self._shown_as + path.removeprefix(self._prefix)
