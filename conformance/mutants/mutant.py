"""What a mutant is: a broken store, what it breaks, and the checks that are meant to catch it."""

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
    """A store that breaks one thing, in the way that a real one does.

    `caught_by` names the checks of which each must fail it. `make_target` takes a local directory that the mutant may
    use. `available` says what is missing to run it here, or gives None.
    """

    name: str
    what: str
    caught_by: tuple[str, ...]
    make_target: Callable[[str], Target]
    available: Callable[[], str | None] = _here


def in_files(kind: type[LogStore], *caught_by: str) -> Mutant:
    """A broken store of files; what it is called and does, its class says."""
    return Mutant(kind.__name__, _said(kind), caught_by, partial(file_target, kind))


def file_target(kind: type[LogStore], directory: str) -> Target:
    """A target with a store of files below `directory`."""
    return Target(kind, Path(directory).resolve().as_uri() + "/table", _said(kind))


def in_memory(kind: type[LogStore], *caught_by: str) -> Mutant:
    """A broken store of this process: every client is the same one."""
    return Mutant(kind.__name__, _said(kind), caught_by, partial(_memory_target, kind))


def _memory_target(kind: type[LogStore], _directory: str) -> Target:
    only = kind()
    return Target(lambda: only, "memory:///table", _said(kind))


def _said(kind: type) -> str:
    return (kind.__doc__ or "").partition("\n")[0]


def needs(*packages: str) -> Callable[[], str | None]:
    """Available where these packages are installed."""

    def available() -> str | None:
        missing = [package for package in packages if find_spec(package) is None]
        return f"not installed: {', '.join(missing)}" if missing else None

    return available
