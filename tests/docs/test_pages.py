"""What the guide and the README show works: each page is run, and what it shows is compared."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from . import consoles, fences, pages

ROOT = Path(__file__).resolve().parents[2]
GUIDE = ROOT / "docs" / "guide.md"
TUTORIAL = ROOT / "docs" / "tutorial.md"
LANDING = ROOT / "docs" / "index.md"  # has the code of the README
PAGES = [page for page in fences.PAGES if page != LANDING and pages.has_code(page)]


@pytest.fixture
def settings(spark: SparkSession) -> Iterator[None]:
    """A page leaves the session's settings as they were."""
    before = dict(spark.conf.getAll)
    yield
    for key in spark.conf.getAll.keys() - before.keys():
        spark.conf.unset(key)
    for key, value in before.items():
        if spark.conf.get(key) != value:
            spark.conf.set(key, value)


@pytest.mark.usefixtures("settings")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_does_what_it_shows(spark: SparkSession, tmp_path: Path, page: Path) -> None:
    pages.run(page, {"spark": spark}, tmp_path)
    if page == TUTORIAL:  # its commands look at the table that its Python made
        assert consoles.run(page, tmp_path) > 0


NAMED_FILE = re.compile(r"`((?:[a-z_0-9]+/)+[a-z_0-9]+\.py)[`:]")


def test_the_files_that_the_docs_name_exist() -> None:
    texts = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "src").rglob("*.py")]
    named = {(file, name) for file in texts for name in NAMED_FILE.findall(file.read_text(encoding="utf-8"))}
    assert len(named) > 100
    missing = [f"{file}: {name}" for file, name in named if not any((ROOT / at / name).exists() for at in ("src", "."))]
    assert not missing


def test_the_guide_lists_each_of_its_pages() -> None:
    text = GUIDE.read_text(encoding="utf-8")
    listed = {page.name for page in GUIDE.parent.glob("guide/*.md") if f"(guide/{page.name})" in text}
    assert listed == set(os.listdir(GUIDE.parent / "guide"))


PAGE = """
<!-- setup
rows = [1, 2]
-->
```python
for row in rows:
    print(f"| {row} |")
# | 1 |
# | 2 |
print("done")
# > done
rows = rows[:1]  # in one namespace
# not a table
open("/data/a", "w").close()
```
```python
# not run: needs a server
raise OSError
```
"""


def test_a_page_runs_in_order_and_a_wrong_one_fails(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    pages.run(page, {}, tmp_path)
    assert (tmp_path / "a").exists()
    assert [block.not_run for block in pages.blocks(PAGE)] == [None, None, "needs a server"]

    page.write_text(PAGE.replace("# | 2 |", "# | 3 |"))
    with pytest.raises(AssertionError, match="line 7"):
        pages.run(page, {}, tmp_path)
    page.write_text(PAGE.replace("# > done", "# > not done"))
    with pytest.raises(AssertionError, match="line 10"):
        pages.run(page, {}, tmp_path)
    page.write_text(PAGE.replace("rows = [1, 2]", "rows = one"))
    with pytest.raises(NameError):
        pages.run(page, {}, tmp_path)
    with pytest.raises(ValueError, match="why"):
        pages.blocks(PAGE.replace("needs a server", ""))
    with pytest.raises(ValueError, match="no end"):
        pages.blocks(PAGE.removesuffix("```\n"))
