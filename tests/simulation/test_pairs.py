"""Two commands at once, of every kind, in every order of their calls of the store: they end as the matrix says."""

from collections.abc import Iterator
from itertools import combinations_with_replacement, product

import pytest

from support.conflict_matrix import NO_DATA, S, expected, matrix
from tablelog.core.txn.conflict import IsolationLevel

from .invariants import Attempt
from .pairs import KINDS, WRITERS, Orders, Race, base, races
from .quick import quick_core
from .scheduler import Workers


@pytest.fixture
def workers() -> Iterator[Workers]:
    made = Workers(WRITERS)
    with quick_core():
        yield made
    made.stop()


def test_the_matrix_knows_every_kind() -> None:
    assert {second for second, _ in matrix()} == {first for _, first in matrix()} == KINDS.keys()


@pytest.mark.parametrize("level", [S, IsolationLevel.WRITE_SERIALIZABLE])
def test_both_begin_before_one_commits(level: IsolationLevel, workers: Workers) -> None:
    """One order of each pair, in place of all: few seconds."""
    before = base(workers, level)
    for first, second in product(KINDS, repeat=2):
        race = Race(workers, Orders(), before)
        race.run_after_each_other(first, second, level)
        earlier, later = race.attempts[-2:]
        assert earlier.told == "committed"
        assert later.detail == expected(second, first, level), f"{second} after {first}"


@pytest.mark.parametrize("level", [S, IsolationLevel.WRITE_SERIALIZABLE])
@pytest.mark.slow
def test_every_order_of_every_pair(level: IsolationLevel, workers: Workers) -> None:
    before = base(workers, level)
    # Where no data is read or written, the levels don't differ.
    kinds = [kind for kind in KINDS if level is S or kind not in NO_DATA or kind == "describe"]
    for pair in combinations_with_replacement(kinds, 2):
        seen = set()
        for one, other in races(pair, level, workers, before):
            order = (0, 1) if _version(one) < _version(other) else (1, 0)
            first, second = ((one, other)[number] for number in order)
            raced = second.read_version < _version(first)
            error = expected(pair[order[1]], pair[order[0]], level) if raced else ""
            assert first.told == "committed"
            assert second.detail == error, f"{pair[order[1]]} after {pair[order[0]]}"
            seen.add((order, raced))
        assert len(seen) == 4, "each of the two first, and each of them begun before the other's commit and after it"


def _version(attempt: Attempt) -> int:
    return 1 << 30 if attempt.version is None else attempt.version
