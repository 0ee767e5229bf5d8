"""Paths of files as a plan of Spark Connect names them."""

import re

_PATTERN = re.compile(r"[{}\[\]*?\\]")


def without_pattern(path: str) -> str:
    """A path with a backslash before each character that would make it a pattern for Hadoop."""
    return _PATTERN.sub(r"\\\g<0>", path)


def with_scheme(path: str) -> str:
    """A path that isn't URL-encoded, with a scheme: without one, Hadoop would take the server's default."""
    return path if "://" in path else f"file:{path}"
