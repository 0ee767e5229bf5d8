"""Sets the fields of errors (`table`, `version`, `path`) where they pass code that knows them.

Code that raises an error often doesn't know the table. Its callers do: they set the fields once, at the end of the
operation, so that not every `raise` has to. A field that is set already keeps its value.
"""

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from .errors import TablelogError


class _OfTable(Protocol):
    @property
    def table(self) -> str: ...


_Owner = TypeVar("_Owner", bound=_OfTable)
_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


@contextmanager
def error_context(*, table: str | None = None, version: int | None = None, path: str | None = None) -> Iterator[None]:
    """Set these fields of a TablelogError that leaves the block, where they are None."""
    try:
        yield
    except TablelogError as error:
        error.with_context(table=table, version=version, path=path)
        raise


def sets_table(
    method: Callable[Concatenate[_Owner, _Arguments], _Result],
) -> Callable[Concatenate[_Owner, _Arguments], _Result]:
    """Decorates a method: sets the fields of errors from the attributes `table` and, if there is one, `version`."""

    @functools.wraps(method)
    def call(self: _Owner, /, *args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
        try:
            return method(self, *args, **kwargs)
        except TablelogError as error:
            error.with_context(table=self.table, version=getattr(self, "version", None))
            raise

    return call
