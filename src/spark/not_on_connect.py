"""The error for what tablelog doesn't do on Spark Connect."""

from ..errors import UnsupportedFeatureError


def refused(operation: str, instead: str) -> UnsupportedFeatureError:
    """The error for an operation that only a classic session supports."""
    return UnsupportedFeatureError(
        f"{operation} is not supported on Spark Connect. Use {instead}, or a classic session.",
        (f"{operation} on Spark Connect",),
    )
