"""Classes that a user might name in the configuration."""

from collections.abc import Iterator, Mapping
from typing import Any, Self

from tablelog.errors import LogStoreConfigurationError
from tablelog.logstore import FileStatus, LogStore, MemoryLogStore


class Own(MemoryLogStore):
    """A store that takes options."""

    configuration_prefixes = ("fs.own.", "spark.hadoop.fs.own.")

    def __init__(self, scheme: str = "", conf: Any = None, storage_options: Any = None) -> None:
        super().__init__()
        self.got = (scheme, conf, storage_options)

    @classmethod
    def configured(cls, scheme: str, conf: Mapping[str, str], storage_options: Mapping[str, Any]) -> Self:
        if "refuse" in storage_options:
            raise LogStoreConfigurationError("refuse makes no sense")
        return cls(scheme, dict(conf), dict(storage_options))


class NeedsAnArgument(MemoryLogStore):
    """The registry has nothing to give it."""

    def __init__(self, needed: str) -> None:
        super().__init__()


class Undeclared(LogStore):
    """All methods, no declaration."""

    atomic_overwrite = True

    def read(self, path: str) -> bytes:
        raise NotImplementedError

    def write(self, path: str, data: bytes, *, overwrite: bool = False) -> None:
        raise NotImplementedError

    def list_from(self, path: str) -> Iterator[FileStatus]:
        raise NotImplementedError

    def delete(self, path: str) -> None:
        raise NotImplementedError

    def resolve(self, path: str) -> str:
        raise NotImplementedError


class Unfinished(LogStore):
    """Not all methods."""

    def read(self, path: str) -> bytes:
        raise NotImplementedError


class NoStore:
    """Something else."""


a_function = print
