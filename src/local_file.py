"""Text files that the user names, on the local disk."""

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from .errors import InvalidArgumentError, StorageError


def check(path: Path) -> None:
    """Check before long work that there is a place for the file.

    Args:
        path: The file to write later.

    Raises:
        InvalidArgumentError: There is no such directory, or the path is a directory.
    """
    if not os.path.isdir(path.parent):  # Path.is_dir raises for some paths
        raise InvalidArgumentError(f"{path} can't be written: there is no directory {path.parent}")
    if os.path.isdir(path):
        raise InvalidArgumentError(f"{path} can't be written: it is a directory")


def write(path: Path, parts: Iterable[str]) -> None:
    """Write a text as UTF-8; an existing file is replaced.

    Args:
        path: The file.
        parts: The text, in parts that aren't all needed in memory.

    Raises:
        InvalidArgumentError: The file can't be opened for writing.
        StorageError: Writing failed, for example on a full disk. No part of the file is left.
    """
    check(path)
    try:
        file = path.open("w", encoding="utf-8")
    except OSError as error:
        raise InvalidArgumentError(f"{path} can't be written: {error.strerror}") from error
    try:
        with file:
            file.writelines(parts)
    except OSError as error:
        if os.path.isfile(path):  # and no device
            with suppress(OSError):
                path.unlink()
        raise StorageError(f"{path} wasn't written: {error.strerror}") from error
