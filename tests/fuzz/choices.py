"""Choices that a mutation needs, by a random generator or drawn by Hypothesis, which can then shrink them."""

from collections.abc import Callable, Sequence
from random import Random
from typing import TypeVar

T = TypeVar("T")


class Choices:
    """Choices from a function that returns an integer from 0 up to, but not including, its argument."""

    def __init__(self, below: Callable[[int], int]) -> None:
        self.below = below

    @classmethod
    def seeded(cls, seed: int) -> "Choices":
        return cls(Random(seed).randrange)

    def pick(self, values: Sequence[T]) -> T:
        return values[self.below(len(values))]

    def is_one_of(self, count: int) -> bool:
        """True once in `count` times."""
        return self.below(count) == 0
