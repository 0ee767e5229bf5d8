"""The commands that pages show are run, and print what the pages show."""

from pathlib import Path

import pytest

from . import consoles

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "docs" / "index.md", ROOT / "docs" / "guide" / "command-line.md"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_commands_of_a_page_print_what_it_shows(page: Path, tmp_path: Path) -> None:
    assert consoles.run(page, tmp_path) > 0


PAGE = """
```console
$ echo made at 2024-05-01 10:00:00; touch /tmp/made
made at 2026-11-25 02:28:17.123Z

$ ls /tmp/made
/tmp/made
$ cat /tmp/made
```
"""


def test_another_output_or_a_failure_is_reported(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    assert consoles.run(page, tmp_path / "") == 3
    assert (tmp_path / "made").exists()

    page.write_text(PAGE.replace("made at 2026", "found at 2026"))
    with pytest.raises(AssertionError, match=r"line 3: .* prints"):
        consoles.run(page, tmp_path)
    page.write_text(PAGE.replace("cat /tmp/made", "cat /tmp/absent"))
    with pytest.raises(AssertionError, match="ended with 1"):
        consoles.run(page, tmp_path)
