"""Seeded bugs in the core, each of which breaks an invariant in some schedule: how far the simulation sees.

A mutant is a patch that stands while schedules run. `only` and `enough` say in which kind of schedule it is looked for,
and within how many it has to be found.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, TypeAlias

Patch: TypeAlias = Callable[[], AbstractContextManager[Any]]


@dataclass(frozen=True, slots=True)
class Mutant:
    """One bug; its name says what the core does then."""

    name: str
    patch: Patch
    only: str | None = None
    enough: int = 500


def every() -> Iterator[Mutant]:
    """All of them."""
    from . import conflicts, outcomes, stamps, upkeep

    for module in (outcomes, conflicts, stamps, upkeep):
        yield from module.MUTANTS
