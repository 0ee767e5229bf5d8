"""A file system that fails, for one process: calls of `os` err before, after or long before they do their work.

A network file system does all of it: the reply to a link is lost, a request is sent twice and the second finds what the
first made, and a cache says that a file isn't there which is. Stores that call the kernel from C aren't reached.
"""

import contextlib
import errno
import os
from collections.abc import Callable, Iterator
from typing import Any, Literal

CHANGES = ("open", "link", "rename", "replace", "mkdir", "fsync", "write")
"""The calls that make something."""

_OF_NAMES = frozenset({"link", "rename", "replace"})
_LOOKS = ("stat", "lstat")


When = Literal["before", "after", "late"]
"""A call fails and does nothing, or does its work and fails, or fails and does its work when all is over."""


@contextlib.contextmanager
def failing(number: int, code: int, when: When) -> Iterator[list[str]]:
    """Let the call number `number`, from 1, among `CHANGES` fail with the errno `code`.

    What is given fills with the names of the calls up to that one. What is to come late is done at the end.
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
    """Let every look at a path say that nothing below `directory` is there; what is given fills with such looks."""
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
