"""How two commands at once end: the conflict matrix as a table, for whoever races them."""

from tablelog.core.txn.conflict import IsolationLevel

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
restore          A      A      A         A       A      R    A      A         A     A        R       R      M        .      M       .       P    .      .
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
