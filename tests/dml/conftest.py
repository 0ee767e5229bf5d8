"""What tests of commands share."""

import pytest

from support import forms
from support.large_tables import check_not_loaded, noted_lines
from tablelog.core.txn.bulk_removal import BulkRemoval


@pytest.fixture(autouse=True)
def both_forms(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each condition and value of a test is resolved as text and as a Column."""
    forms.compared(monkeypatch)


@pytest.fixture
def in_pieces(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every log is large; gives the calls that wrote the removes of whole partitions or tables in pieces."""
    return noted_lines(monkeypatch, BulkRemoval, lambda files: check_not_loaded(files.snapshot))
