"""What a check raises, and the few words that the checks are written in."""

from typing import NoReturn


class GuaranteeBrokenError(AssertionError):
    """The store broke a guarantee of the contract; the message says what it did."""


def broken(message: str) -> NoReturn:
    """The store did what `message` says, and mustn't."""
    raise GuaranteeBrokenError(message)


def require(kept: object, message: str) -> None:
    """Raise unless `kept`."""
    if not kept:
        broken(message)


class NotEstablishedError(Exception):
    """The check can't tell here; the message says what was missing."""
