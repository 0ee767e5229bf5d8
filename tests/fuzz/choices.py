"""Choices that a mutation needs, by a random generator or from bytes that Hypothesis draws and can shrink."""

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

    @classmethod
    def of_bytes(cls, drawn: bytes) -> "Choices":
        """Choices that these bytes make, and 0 after their end: smaller bytes are simpler choices."""
        at = 0

        def below(count: int) -> int:
            nonlocal at
            start, at = at, at + (1 if count <= 256 else 3)
            return int.from_bytes(drawn[start:at], "little") % count

        return cls(below)

    def pick(self, values: Sequence[T]) -> T:
        return values[self.below(len(values))]

    def is_one_of(self, count: int) -> bool:
        """True once in `count` times."""
        return self.below(count) == 0
