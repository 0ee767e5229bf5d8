"""The exceptions of checks, and helper functions to raise them."""

from typing import NoReturn


class GuaranteeBrokenError(AssertionError):
    """The store broke a guarantee of the contract; the message says what it did."""


def broken(message: str) -> NoReturn:
    """Raise GuaranteeBrokenError: the store did what `message` says."""
    raise GuaranteeBrokenError(message)


def require(kept: object, message: str) -> None:
    """Raise unless `kept`."""
    if not kept:
        broken(message)


class NotEstablishedError(Exception):
    """The check can't determine the result here; the message says why."""
