"""Two commands at once, of every kind, in every order of their calls of the store: they end as the matrix says."""

from collections.abc import Iterator
from itertools import combinations_with_replacement

import pytest

from tablelog.core.txn.conflict import IsolationLevel

from .invariants import Attempt
from .pairs import KINDS, WRITERS, base, races
from .quick import quick_core
from .scheduler import Workers

S, W = IsolationLevel.SERIALIZABLE, IsolationLevel.WRITE_SERIALIZABLE

ERRORS = {
    ".": "",
    "A": "ConcurrentAppendException",
    "R": "ConcurrentDeleteReadException",
    "M": "MetadataChangedException",
    "P": "ProtocolChangedException",
    "T": "ConcurrentTransactionException",
}

MATRIX = """
                 append stream overwrite dynamic delete wipe update elsewhere merge optimize restore vacuum describe enable replace upgrade drop domain backfill
append           .      .      .         .       .      .    .      .         .     .        .       .      M        .      M       .       P    .      .
stream           .      T      .         .       .      .    .      .         .     .        .       .      M        .      M       .       P    .      .
overwrite        A      A      A         A       A      R    A      A         A     A        R       .      M        .      M       .       P    .      .
dynamic          A      A      A         A       A      R    A      .         A     A        R       .      M        .      M       .       P    .      .
delete           A      A      A         A       A      R    A      .         A     A        R       .      M        .      M       .       P    .      .
wipe             A      A      A         A       A      R    A      .         A     A        R       .      M        .      M       .       P    .      .
update           A      A      A         A       A      R    A      .         A     A        R       .      M        .      M       .       P    .      .
elsewhere        .      .      A         .       .      .    .      A         .     .        .       .      M        .      M       .       P    .      .
merge            A      A      A         A       A      R    A      .         A     A        R       .      M        .      M       .       P    .      .
optimize         .      .      R         R       R      R    R      .         .     R        R       .      M        .      M       .       P    .      .
restore          A      A      A         A       A      R    A      A         A     A        R       .      M        .      M       .       P    .      .
vacuum           .      .      .         .       .      .    .      .         .     .        .       .      M        .      M       .       P    .      .
describe         .      .      .         .       .      .    .      .         .     .        .       .      M        M      M       .       P    .      .
enable           .      .      .         .       .      .    .      .         .     .        .       .      M        M      M       .       P    .      .
replace          A      A      A         A       A      R    A      A         A     A        R       .      M        M      M       .       P    .      .
upgrade          .      .      .         .       .      .    .      .         .     .        .       .      M        .      M       P       P    .      .
drop             P      P      P         P       P      P    P      P         P     P        P       P      P        P      P       P       P    P      P
domain           .      .      .         .       .      .    .      .         .     .        .       .      M        .      M       .       P    T      .
backfill         .      .      .         .       .      .    .      .         .     .        .       .      M        .      M       .       P    .      .
"""  # noqa: E501
"""A row is the command that commits second, a column the one that came first; at Serializable."""

BLIND = ("append", "stream")
WRITES_METADATA = ("describe", "enable", "replace")
NO_DATA = ("vacuum", "describe", "enable", "upgrade", "drop", "domain", "backfill")


def matrix() -> dict[tuple[str, str], str]:
    head, *rows = [line.split() for line in MATRIX.strip().splitlines()]
    return {(row[0], first): letter for row in rows for first, letter in zip(head, row[1:], strict=True)}


def expected(second: str, first: str, level: IsolationLevel) -> str:
    """The error that the second one gets."""
    letter = matrix()[second, first]
    if level is W and letter == "A" and first in BLIND and second not in WRITES_METADATA:
        return ERRORS["."]  # as if what was appended had come later
    return ERRORS[letter]


@pytest.fixture
def workers() -> Iterator[Workers]:
    made = Workers(WRITERS)
    with quick_core():
        yield made
    made.stop()


def test_the_matrix_knows_every_kind() -> None:
    assert {second for second, _ in matrix()} == {first for _, first in matrix()} == KINDS.keys()


@pytest.mark.parametrize("level", [S, W])
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
