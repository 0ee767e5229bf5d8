"""A log directory, and system calls that fail."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from logstore.local_log import Failing


@pytest.fixture
def log(tmp_path: Path) -> Path:
    directory = tmp_path / "_delta_log"
    directory.mkdir()
    return directory


@pytest.fixture
def fail(monkeypatch: pytest.MonkeyPatch) -> Failing:
    """`fail("link", errno.EIO)`: `os.link` raises; with `after=True` once it has done its work."""

    def install(call: str, number: int, *, after: bool = False, from_call: int = 1) -> None:
        real: Callable[..., Any] = getattr(os, call)
        calls = 0

        def failing(*args: Any, **kwargs: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls < from_call:
                return real(*args, **kwargs)
            if after:
                real(*args, **kwargs)
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(os, call, failing)

    return install
