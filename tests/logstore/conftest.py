"""What tests of stores share."""

import tempfile
from typing import Any

import pytest

from tablelog.logstore.common import spool


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """More than four bytes are a large file; gives the temporary files."""
    made: list[Any] = []
    new = tempfile.TemporaryFile

    def noted(*args: Any, **arguments: Any) -> Any:
        made.append(new(*args, **arguments))
        return made[-1]

    monkeypatch.setattr(spool, "IN_MEMORY", 4)
    monkeypatch.setattr(tempfile, "TemporaryFile", noted)
    return made
