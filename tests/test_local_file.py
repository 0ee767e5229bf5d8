"""Files that the user names, and that can't be written."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tablelog import local_file
from tablelog.errors import InvalidArgumentError, StorageError


def test_no_part_of_a_file_is_left_on_a_full_disk(tmp_path: Path) -> None:
    def parts() -> Iterator[str]:
        yield "a" * 100_000
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(StorageError, match=r"files\.txt wasn't written: No space left on device"):
        local_file.write(tmp_path / "files.txt", parts())
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_a_device_is_not_removed() -> None:
    with pytest.raises(StorageError, match="/dev/full wasn't written"):
        local_file.write(Path("/dev/full"), ["a"])
    assert os.path.exists("/dev/full")


def test_a_file_that_can_not_be_opened_is_a_wrong_argument(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="it is a directory"):
        local_file.write(tmp_path, ["a"])
    with pytest.raises(InvalidArgumentError, match="can't be written: File name too long"):
        local_file.write(tmp_path / ("a" * 300), ["a"])
