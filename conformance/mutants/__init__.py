"""Stores that each break one thing, in ways that real ones do: a suite that passes them proves nothing.

`MUTANTS` has them all, with the checks that must catch each. `POSITIVE_CONTROL` makes a target with a correct store,
which no check may fail.
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
