"""Links between the pages, and references to decision records, have targets."""

import re
from pathlib import Path

import pytest

_ROOT = Path(__file__).resolve().parents[2]
_DECISIONS = _ROOT / "docs" / "decisions"
_RECORDS = sorted(_DECISIONS.glob("[0-9]*.md"))
_PAGES = sorted([*_ROOT.glob("*.md"), *(_ROOT / "docs").rglob("*.md")])
_CODE = [path for folder in ("src", "conformance", "tests") for path in sorted((_ROOT / folder).rglob("*.py"))]
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_FENCED = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
_NUMBER = re.compile(r"\bdecisions? (\d+)(?:(?:, | and )(\d+))*|docs/decisions/(\d{4})")
_SECTIONS = ["## Context", "## Decision", "## Consequences", "## Alternatives"]


def _name(path: Path) -> str:
    return path.relative_to(_ROOT).as_posix()


def _anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", _FENCED.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", _PAGES, ids=_name)
def test_the_links_of_a_page_have_targets(page: Path) -> None:
    broken = []
    for target in _LINK.findall(_FENCED.sub("", page.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:|\.\.\.$", target):
            continue
        file, _, anchor = target.partition("#")
        path = (page.parent / file).resolve() if file else page
        if not path.exists() or (anchor and path.suffix == ".md" and anchor not in _anchors(path)):
            broken.append(target)
    assert broken == []


def test_references_to_decisions_have_records() -> None:
    numbers = {int(path.name[:4]) for path in _RECORDS}
    for path in [*_PAGES, *_CODE]:
        for match in _NUMBER.finditer(path.read_text(encoding="utf-8")):
            assert {int(number) for number in re.findall(r"\d+", match[0])} <= numbers, f"{_name(path)}: {match[0]}"


def test_the_index_lists_each_record_once() -> None:
    index = (_DECISIONS / "README.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"\]\((\d{4}-[^)]*)\)", index)) == [path.name for path in _RECORDS]


@pytest.mark.parametrize("record", _RECORDS, ids=_name)
def test_a_record_has_the_form_of_the_index(record: Path) -> None:
    lines = record.read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith(f"# {int(record.name[:4])}. ")
    assert lines[2].startswith("Status: ")
    assert [line for line in lines if line.startswith("## ")] == _SECTIONS
