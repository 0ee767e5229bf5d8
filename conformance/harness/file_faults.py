"""A failing file system for one process: functions of `os` raise errors before, after or long before they are applied.

A network file system does all of this: the reply to a link is lost, a request is sent twice and the second fails
because of the first, and a cache hides an existing file. Stores that call the kernel from C aren't affected.
"""

import contextlib
import errno
import os
from collections.abc import Callable, Iterator
from typing import Any, Literal

CHANGES = ("open", "link", "rename", "replace", "mkdir", "fsync", "write")
"""The functions that change the file system."""

_OF_NAMES = frozenset({"link", "rename", "replace"})
_LOOKS = ("stat", "lstat")


When = Literal["before", "after", "late"]
"""A call fails without effect, or takes effect and then fails, or fails and takes effect at the end."""


@contextlib.contextmanager
def failing(number: int, code: int, when: When) -> Iterator[list[str]]:
    """Let the call number `number`, from 1, among `CHANGES` fail with the errno `code`.

    The yielded list gets the names of the calls up to that one. Late effects are applied at the end.
    """
    calls: list[str] = []
    late: list[Callable[[], Any]] = []

    def wrapped(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            if len(calls) >= number:
                return real(*arguments, **named)
            calls.append(name)
            if len(calls) < number:
                return real(*arguments, **named)
            if when == "after":
                result = real(*arguments, **named)
                if name == "open":
                    os.close(result)
            elif when == "late" and name in _OF_NAMES:
                late.append(lambda: real(*arguments, **named))
            raise OSError(code, os.strerror(code), *arguments[:1])

        return call

    with _patched({name: wrapped(name, getattr(os, name)) for name in CHANGES}):
        yield calls
    for work in late:
        with contextlib.suppress(OSError):
            work()


@contextlib.contextmanager
def blind(directory: str) -> Iterator[list[str]]:
    """Let every status call for a path below `directory` fail with "not found"; the yielded list gets these calls."""
    looks: list[str] = []

    def wrapped(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(path: Any, *arguments: Any, **named: Any) -> Any:
            if isinstance(path, str | bytes) and os.fsdecode(path).startswith(directory):
                looks.append(name)
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
            return real(path, *arguments, **named)

        return call

    with _patched({name: wrapped(name, getattr(os, name)) for name in _LOOKS}):
        yield looks


@contextlib.contextmanager
def _patched(functions: dict[str, Callable[..., Any]]) -> Iterator[None]:
    real = {name: getattr(os, name) for name in functions}
    for name, function in functions.items():
        setattr(os, name, function)
    try:
        yield
    finally:
        for name, function in real.items():
            setattr(os, name, function)
