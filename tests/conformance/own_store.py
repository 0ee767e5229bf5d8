"""Stores and factories as a user writes them, to be named on a command line."""

import os
import threading
from collections.abc import Mapping
from typing import Any, Self

from tablelog.errors import UnsafeStoreError, UnsupportedEnvironmentError
from tablelog.logstore import LocalLogStore, LogStore, MemoryLogStore


class OwnStore(LocalLogStore):
    """Correct."""


class Replaces(LocalLogStore):
    """Every writer wins."""

    def write(self, path: str, data: bytes, *, overwrite: bool = False) -> None:
        super().write(path, data, overwrite=True)


class Quotes(LocalLogStore):
    """Tells everyone its password."""

    configuration_prefixes = ("fs.own.",)

    def __init__(self, password: str = "") -> None:
        super().__init__()
        self._password = password

    @classmethod
    def configured(cls, scheme: str, conf: Mapping[str, str], storage_options: Mapping[str, Any]) -> Self:
        return cls(f"{conf.get('fs.own.key', '')} {storage_options.get('password', '')}")

    def read(self, path: str) -> bytes:
        raise ValueError(f"can't log in with {self._password!r}")


_only = MemoryLogStore()


def in_memory() -> LogStore:
    return _only


in_memory.root = "memory://here/there"  # type: ignore[attr-defined]


class Client(LocalLogStore):
    """Talks to a service, in theory."""

    def __init__(self, endpoint: str) -> None:
        super().__init__()
        self.endpoint = endpoint


def served(endpoint: str = "http://127.0.0.1:9000") -> LogStore:
    return Client(endpoint)


class Keeps(MemoryLogStore):
    """Deletes nothing."""

    schemes = frozenset({"keeps"})

    def delete(self, path: str) -> None:
        pass


_only_keeps = Keeps()


def keeps() -> LogStore:
    return _only_keeps


keeps.root = "keeps://here/there"  # type: ignore[attr-defined]


class Elsewhere(MemoryLogStore):
    schemes = frozenset({"elsewhere"})


class OnOneNode(MemoryLogStore):
    schemes = frozenset({"hdfs"})


def no_store() -> str:
    return "a string"


def raises() -> LogStore:
    raise RuntimeError("no configuration found")


class Hangs(LocalLogStore):
    """Never returns from a write, after it has said so to who reads the pipe."""

    def write(self, path: str, data: bytes, *, overwrite: bool = False) -> None:
        super().write(path, data, overwrite=overwrite)
        if "first-touch" not in path:
            with open(os.environ["PIPE"], "w"):
                threading.Event().wait()


class NeedsMore(LocalLogStore):
    """Asks for a package that isn't installed."""

    def write(self, path: str, data: bytes, *, overwrite: bool = False) -> None:
        raise UnsupportedEnvironmentError("a path on Own needs the package own: pip install 'tablelog[own]'")


class Ignored(LocalLogStore):
    """Found out that its service ignores the condition."""

    def write(self, path: str, data: bytes, *, overwrite: bool = False) -> None:
        raise UnsafeStoreError("the service at Own ignores If-None-Match")
