"""Text files that the user names, on the local disk."""

from collections.abc import Iterable
from pathlib import Path

from .errors import InvalidArgumentError


def check(path: Path) -> None:
    """Check before long work that there is a place for the file.

    Args:
        path: The file to write later.

    Raises:
        InvalidArgumentError: There is no such directory, or the path is a directory.
    """
    if not path.parent.is_dir():
        raise InvalidArgumentError(f"{path} can't be written: there is no directory {path.parent}")
    if path.is_dir():
        raise InvalidArgumentError(f"{path} can't be written: it is a directory")


def write(path: Path, parts: Iterable[str]) -> None:
    """Write a text as UTF-8; an existing file is replaced.

    Args:
        path: The file.
        parts: The text, in parts that aren't all needed in memory.

    Raises:
        InvalidArgumentError: The file can't be written.
    """
    check(path)
    try:
        with path.open("w", encoding="utf-8") as file:
            file.writelines(parts)
    except OSError as error:
        raise InvalidArgumentError(f"{path} can't be written: {error.strerror}") from error
