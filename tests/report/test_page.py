"""The page as text: complete, self-contained, and safe with hostile names."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from report.messy_table import messy, schema, stats
from support.log_builder import LogBuilder, add
from tablelog.errors import InvalidArgumentError, TableNotFoundError
from tablelog.pages import escaped
from tablelog.report import Report, report
from tablelog.report.card import card
from tablelog.report.facts import Point
from tablelog.report.script import SCRIPT
from tablelog.report.sections_history import thinned
from tablelog.report.text import cut, duration, number, percent, short
from tablelog.units import size

SECTIONS = ["advice", "growth", "operations", "files", "partitions", "debt", "skipping", "vectors", "log", "features"]
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\"'&\u202e\x00`" + "w" * 2000


class Elements(HTMLParser):
    VOID = frozenset({"meta", "rect", "path", "br"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.feed(text)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def made() -> Report:
    return report(messy().log())


def test_the_page_is_well_formed_and_has_all_sections(made: Report) -> None:
    text = made.to_html()
    page = Elements(text)
    assert page.open == []
    ids = [value for name, value in page.attributes if name == "id"]
    assert len(ids) == len({*ids})
    assert [name for name in ids if name in SECTIONS] == SECTIONS
    assert {value for name, value in page.attributes if name == "href"} <= {f"#{name}" for name in ids}
    assert ("lang", "en") in page.attributes


def test_the_page_needs_no_network_and_runs_one_script(made: Report) -> None:
    text = made.to_html()
    page = Elements(text)
    assert page.tags.count("script") == 1
    assert not {"link", "img", "iframe", "object", "base", "form"} & {*page.tags}
    assert not re.search(r"https?://|url\(|@import", text)
    digest = base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
    policy = next(
        value or "" for name, value in page.attributes if name == "content" and "default-src" in (value or "")
    )
    assert policy.startswith(f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'")


def test_every_chart_has_a_table_and_a_label(made: Report) -> None:
    text = made.to_html()
    assert len(re.findall('<svg class="plot', text)) == len(
        re.findall('role="img" tabindex="0" aria-label="[^"]{9}', text)
    )
    for name in ("growth", "operations", "files", "partitions", "debt", "skipping", "vectors"):
        section = text.partition(f'<section id="{name}"')[2].partition("</section>")[0]
        assert "<caption>" in section


def hostile() -> LogBuilder:
    log = LogBuilder(root="memory:/hostile")
    fields = [{"name": n, "type": "string", "nullable": True, "metadata": {}} for n in (HOSTILE, "part#")]
    log.create(
        schema=json.dumps({"type": "struct", "fields": fields}),
        partition_columns=("part#",),
        configuration={HOSTILE: HOSTILE, "delta.constraints.x": HOSTILE},
    )
    for i in range(30):
        bounds = stats(3, {HOSTILE: "a"}, {HOSTILE: "z"})
        values = {"part#": HOSTILE if i % 3 else None}
        log.commit(
            add(f"{i}{'<b>' * (i % 2)}", size=1 << 20, partition_values=values, stats=bounds),
            operation_parameters={"predicate": HOSTILE},
            engine_info=HOSTILE,
            user_name=HOSTILE,
        )
    return log


def test_hostile_names_are_text() -> None:
    text = report(hostile().log()).to_html()
    page = Elements(text)
    assert page.open == []
    assert page.tags.count("script") == 1
    assert not {"img", "b"} & {*page.tags}
    assert not any(name.startswith("on") for name, _ in page.attributes)
    assert not re.search("[\x00-\x08\u202e]", text)
    assert "&lt;/script&gt;&lt;script&gt;alert(1)" in text
    assert "\\u202e\\u0000" in text
    assert len(text) < 400_000


def test_escaped_text() -> None:
    assert escaped("<a href='x'>&\"\n\t") == "&lt;a href=&#x27;x&#x27;&gt;&amp;&quot;\n\t"
    assert escaped("\x1b[1m\u2066\ud800\U000e0041") == "\\u001b[1m\\u2066\\ud800\\ue0041"


def test_a_report_in_a_notebook_is_a_frame_of_its_own(made: Report) -> None:
    text = made._repr_html_()
    frame = Elements(text)
    assert frame.tags == ["iframe"]
    attributes = dict(frame.attributes)
    assert attributes["srcdoc"] == made.to_html()
    assert attributes["sandbox"] == "allow-scripts"
    assert repr(made) == "Report('events', version=42: 2 things to improve.)"


def test_a_report_is_saved_or_says_why_not(made: Report, tmp_path: Path) -> None:
    target = made.save(tmp_path / "a.html")
    assert target.read_text("utf-8") == made.to_html()
    with pytest.raises(InvalidArgumentError, match="can't be written"):
        made.save(tmp_path / "no" / "a.html")


def test_json_has_the_advice(made: Report) -> None:
    document = json.loads(made.to_json())
    assert document["version"] == 42
    assert document["advice"][0]["severity"] == "warning"
    assert document["advice"][0]["command"]


def test_no_table_is_an_error_and_no_report(tmp_path: Path) -> None:
    with pytest.raises(TableNotFoundError):
        report(str(tmp_path))


def test_the_card_of_a_table() -> None:
    log = messy()
    text = card(log.log().snapshot())
    page = Elements(text)
    assert page.open == []
    assert {*page.tags} == {"div", "span", "strong"}
    assert "39, 156 MiB" in text
    assert "4 columns: id, user, day, text" in text
    assert "42 of 2023-11-14" in text
    page = Elements(card(hostile().log().snapshot()))
    assert not {"script", "img"} & {*page.tags}
    many = LogBuilder().create(schema=schema(*(f"c{i}" for i in range(30))))
    assert "c11 and 18 more" in card(many.log().snapshot())


def test_growth_is_thinned_to_first_and_last() -> None:
    points = [Point(i, i, i, i, i) for i in range(1000)]
    few = thinned(points, 7)
    assert len(few) == 7
    assert (few[0], few[-1]) == (points[0], points[-1])
    assert thinned(points[:3], 7) == points[:3]


def test_numbers_as_text() -> None:
    assert [size(n) for n in (0, 1023, 1024, 1536, 102 << 20, (1 << 30) - 1)] == [
        "0 B", "1023 B", "1 KiB", "1.5 KiB", "102 MiB", "1 GiB",
    ]  # fmt: skip
    assert [short(n) for n in (0, 999, 1000, 1234, 12_345, 999_999, 2e9, None)] == [
        "0", "999", "1 k", "1.23 k", "12.3 k", "1 M", "2 bn", "unknown",
    ]  # fmt: skip
    assert [percent(n) for n in (0, 0.0004, 0.05, 0.123, 0.9995, 1)] == [
        "0 %", "< 0.1 %", "5 %", "12 %", "> 99.9 %", "100 %",
    ]  # fmt: skip
    assert [duration(n) for n in (1000, 59_000, 60_000, 5_400_000, 86_400_000 * 30)] == [
        "1 second", "59 seconds", "1 minute", "1.5 hours", "30 days",
    ]  # fmt: skip
    assert [number(n) for n in (1234, 1.25, None)] == ["1,234", "1.2", "unknown"]
    assert cut("abcdef", 4) == "abc…"
