"""docs/settings.md is what the declarations say."""

from pathlib import Path

from tablelog.settings.reference import page


def test_the_page_is_made_of_the_declarations() -> None:
    path = Path(__file__).resolve().parents[2] / "docs" / "settings.md"
    assert path.read_text(encoding="utf-8") == page(), "python -m tablelog.settings > docs/settings.md"
