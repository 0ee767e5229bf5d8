"""What tests of the Spark surface share."""

import pytest

from support import forms


@pytest.fixture(autouse=True)
def both_forms(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each condition and value of a test is resolved as text and as a Column."""
    forms.compared(monkeypatch)
