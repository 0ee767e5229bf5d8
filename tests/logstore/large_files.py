"""Pieces of a file that counts as large with the fixture `files`."""

from collections.abc import Iterator

PIECES = [b"abc", b"", b"defgh", b"i" * 100]
WHOLE = b"".join(PIECES)


def broken_pieces() -> Iterator[bytes]:
    """All pieces, and then an error."""
    yield from PIECES
    raise ZeroDivisionError
