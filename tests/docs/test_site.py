"""What the site of the documentation needs beside its pages; `make docs` builds it and checks its links."""

from pathlib import Path

import pytest
from website import hooks, interleaving
from website.outside_requests import outside_requests

from . import pages

DOCS = Path(__file__).resolve().parents[2] / "docs"
POLICY = """<meta http-equiv="Content-Security-Policy" content="default-src 'self' 'unsafe-inline' data:">"""
STEPS = """
Writer | Store
Writer > Store: put <4.json>
Store x> Writer: created
Writer unknown: no reply
"""


def test_a_page_that_loads_only_its_own_files_passes(tmp_path: Path) -> None:
    links = '<a href="https://example.com">away</a> <link rel="canonical" href="https://example.com/">'
    own = '<script src="a.js"></script><img src="../b.png"><link rel="stylesheet" href="c.css">'
    (tmp_path / "a.html").write_text(f"{POLICY}{links}{own}")
    (tmp_path / "c.css").write_text("a { background: url('data:image/png;base64,AA') }")
    assert outside_requests(tmp_path) == []


@pytest.mark.parametrize(
    "element",
    [
        '<script src="https://unpkg.com/a.js"></script>',
        '<link rel="stylesheet" href="//fonts.example/css">',
        '<img src="HTTP://example.com/a.png">',
        '<p style="background: url(https://example.com/a.png)">',
    ],
)
def test_a_page_that_loads_from_elsewhere_is_reported(tmp_path: Path, element: str) -> None:
    (tmp_path / "a.html").write_text(f"{POLICY}{element}")
    assert len(outside_requests(tmp_path)) == 1


def test_a_style_sheet_that_loads_from_elsewhere_is_reported(tmp_path: Path) -> None:
    (tmp_path / "a.css").write_text("@import 'https://example.com/b.css'; @font-face { src: url(//example.com/c) }")
    assert len(outside_requests(tmp_path)) == 2


@pytest.mark.parametrize("policy", ["", POLICY.replace("'self'", "'self' https://example.com")])
def test_a_page_without_a_policy_is_reported(tmp_path: Path, policy: str) -> None:
    (tmp_path / "a.html").write_text(policy)
    assert len(outside_requests(tmp_path)) == 1


def test_an_interleaving_shows_each_step_and_marks_what_is_lost() -> None:
    drawn = interleaving.svg(STEPS)
    for text in ("put &lt;4.json&gt;", "created", "no reply"):
        assert f">{text}</text>" in drawn
    assert drawn.count('class="message"') == 1
    assert drawn.count('class="message dropped"') == 1
    assert drawn.count('class="unknown"') == 1


@pytest.mark.parametrize("step", ["Writer puts 4.json", "Reader > Store: list"])
def test_an_interleaving_with_a_wrong_step_is_an_error(step: str) -> None:
    with pytest.raises(ValueError, match=r"not a step|no actor"):
        interleaving.svg(f"Writer | Store\n{step}")


def test_the_landing_page_shows_the_code_of_the_readme_which_is_run() -> None:
    landing, readme = (path.read_text(encoding="utf-8") for path in (DOCS / "index.md", DOCS.parent / "README.md"))
    shown = [block.code for block in pages.blocks(landing)]
    assert shown
    assert shown == [block.code for block in pages.blocks(readme)]


def test_long_names_break_at_their_parts_in_tables_alone() -> None:
    name = "<code>spark.tablelog.externalPaths</code>"
    assert hooks.on_page_content(f"<p>{name}</p>") == f"<p>{name}</p>"
    broken = "<td>the <code>spark.<wbr>tablelog.<wbr>external<wbr>Paths</code></td>"
    assert hooks.on_page_content(f"<td>the {name}</td>") == broken
