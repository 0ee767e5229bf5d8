"""The command line in this process, and a table for it to look at."""

from pathlib import Path

import pytest

from support.arrow_table import ArrowTable
from support.command_line import Ran, Run
from tablelog.cli import main


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command in this process."""

    def call(*words: object) -> Ran:
        capsys.readouterr()
        code = main([str(word) for word in words])
        written = capsys.readouterr()
        assert "Traceback" not in written.err
        return Ran(code, written.out, written.err)

    return call


@pytest.fixture
def table(tmp_path: Path) -> ArrowTable:
    """Three files of three rows, in three commits after the first."""
    return ArrowTable(tmp_path / "events").with_rows()
