"""The description of a broken store: its defect, and the checks that must catch it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from tablelog.logstore import LogStore

from ..model import Target


def _here() -> None:
    return None


@dataclass(frozen=True)
class Mutant:
    """A store with one defect that also occurs in real stores.

    `what` describes the defect. `caught_by`: the names of the checks that must all fail. `make_target` takes a local
    directory that the store may use. `available` returns the reason why the store can't run here, or None.
    """

    name: str
    what: str
    caught_by: tuple[str, ...]
    make_target: Callable[[str], Target]
    available: Callable[[], str | None] = _here


def in_files(kind: type[LogStore], *caught_by: str) -> Mutant:
    """A broken store of local files, with the name and the docstring of its class."""
    return Mutant(kind.__name__, _description(kind), caught_by, partial(file_target, kind))


def file_target(kind: type[LogStore], directory: str) -> Target:
    """A target with a store of local files below `directory`."""
    return Target(kind, Path(directory).resolve().as_uri() + "/table", _description(kind))


def in_memory(kind: type[LogStore], *caught_by: str) -> Mutant:
    """A broken store in memory: all clients are one instance."""
    return Mutant(kind.__name__, _description(kind), caught_by, partial(_memory_target, kind))


def _memory_target(kind: type[LogStore], _directory: str) -> Target:
    store = kind()
    return Target(lambda: store, "memory:///table", _description(kind))


def _description(kind: type) -> str:
    return (kind.__doc__ or "").partition("\n")[0]


def needs(*packages: str) -> Callable[[], str | None]:
    """A function for `Mutant.available`: the store needs these packages."""

    def available() -> str | None:
        missing = [package for package in packages if find_spec(package) is None]
        return f"not installed: {', '.join(missing)}" if missing else None

    return available
