"""Broken stores to test the suite itself: each has one defect that also occurs in real stores.

`MUTANTS` contains all of them, each with the checks that must catch it. `POSITIVE_CONTROL` creates a target with a
correct store, which must fail no check.
"""

from functools import partial

from . import files, libraries, memory, scale, services
from .mutant import Mutant, file_target
from .sound import UnderOneLock

__all__ = ["MUTANTS", "POSITIVE_CONTROL", "Mutant"]

MUTANTS: tuple[Mutant, ...] = (
    *files.MUTANTS,
    *memory.MUTANTS,
    *scale.MUTANTS,
    *services.MUTANTS,
    *libraries.MUTANTS,
)

POSITIVE_CONTROL = partial(file_target, UnderOneLock)
