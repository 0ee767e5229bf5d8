"""What a report says, in each of its forms: the same, whole, readable, and with no markup of its own."""

import io
import json
import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest

from support.conformance_reports import ALL_PASSED, CALIBRATION, FAILED, OPEN, PASSED, RACED, REPORT
from tablelog.conformance import CHECKS, words
from tablelog.conformance.calibration import Calibration
from tablelog.conformance.model import Verdict
from tablelog.conformance.reports.junit import to_junit
from tablelog.conformance.reports.matrix import matrix
from tablelog.conformance.reports.page import to_html
from tablelog.conformance.reports.report import Report, from_json, to_json
from tablelog.conformance.reports.terminal import Paint, Ticker, summary
from tablelog.conformance.titles import TITLES

PLAIN = Paint(io.StringIO())


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


# ---- the verdict of a whole run ----


@pytest.mark.parametrize(
    ("findings", "calibration", "code"),
    [
        ((PASSED, RACED), None, 0),
        ((PASSED, FAILED), None, 1),
        ((PASSED, OPEN), None, 3),
        ((OPEN, FAILED), None, 1),
        ((PASSED,), CALIBRATION, 3),  # a mutant was missed
        ((), Calibration(CALIBRATION.mutants[:1], (PASSED,), 1.0), 0),
        ((), CALIBRATION, 3),
    ],
)
def test_the_exit_code_is_that_of_the_worst(findings: tuple, calibration: Calibration | None, code: int) -> None:  # type: ignore[type-arg]
    assert replace(REPORT, findings=findings, calibration=calibration).exit_code == code


# ---- JSON ----


@pytest.mark.parametrize("report", [REPORT, ALL_PASSED])
def test_json_comes_back_as_it_was(report: Report) -> None:
    text = to_json(report)
    again = from_json(text)
    assert to_json(again) == text
    assert again.verdict is report.verdict
    assert again.calibration == report.calibration or again.calibration is not None
    assert json.loads(text)["verdict"] == report.verdict


@pytest.mark.parametrize("text", ["[]", "{}", '{"format": "tablelog-conformance/0"}', "no json"])
def test_what_is_no_report_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"report|Expecting"):
        from_json(text)


# ---- a run in which no check was run ----

OBSTACLE = "the store refuses: a path on S3 needs the package s3fs"
NOT_RUN = replace(OPEN, message=OBSTACLE)
BLOCKED = replace(
    REPORT,
    findings=tuple(replace(NOT_RUN, check=replace(NOT_RUN.check, name=f"check_{number}")) for number in range(53)),
    calibration=None,
)


@pytest.mark.parametrize(
    "shown", [lambda report: summary(report, PLAIN, 200), to_html, to_junit, lambda r: matrix([r])]
)
def test_what_is_in_the_way_of_all_checks_is_said_once(shown: Callable[[Report], str]) -> None:
    assert BLOCKED.obstacle == OBSTACLE
    assert shown(BLOCKED).count(OBSTACLE) == 1
    assert shown(from_json(to_json(BLOCKED))).count(OBSTACLE) == 1


def test_a_reason_of_some_checks_is_not_in_the_way_of_all() -> None:
    assert REPORT.obstacle == ALL_PASSED.obstacle == ""
    assert replace(REPORT, findings=(OPEN,)).obstacle == ""
    assert replace(REPORT, findings=(OPEN, replace(OPEN, seconds=3.0))).obstacle == ""


# ---- JUnit ----


def test_junit_has_a_case_for_each_check() -> None:
    suite = ElementTree.fromstring(to_junit(REPORT))
    assert {name: suite.get(name) for name in ("tests", "failures", "skipped", "errors")} == {
        "tests": "4",
        "failures": "1",
        "skipped": "1",
        "errors": "0",
    }
    cases = {case.get("name"): case for case in suite.iter("testcase")}
    failure = cases["one_winner_in_every_interleaving"].find("failure")
    assert failure is not None
    assert "2 of 2 writers" in (failure.get("message") or "")
    assert "told that it won" in (failure.text or "")
    skipped = cases["a_lost_reply_is_never_lost"].find("skipped")
    assert skipped is not None
    assert (skipped.get("message") or "").startswith("NOT ESTABLISHED: the address")


def test_junit_holds_what_xml_cannot() -> None:
    odd = replace(REPORT, findings=(replace(FAILED, message="key \x00\x1b <&\ud800"),))
    failure = ElementTree.fromstring(to_junit(odd)).find(".//failure")
    assert failure is not None
    assert "<&" in (failure.get("message") or "")


# ---- the terminal ----


def test_the_summary_says_all_that_decides() -> None:
    said = summary(REPORT, PLAIN, 80)
    assert re.search(r"2\. Mutual exclusion +FAIL\n", said)
    assert re.search(r"4\. An honest answer +NOT ESTABLISHED\n", said)
    flat = " ".join(said.split())
    assert "40 rounds x 8 writers; overlap: 7.26" in flat
    assert "2 of 2 writers of one file were told that they won" in flat
    assert "the address of the service isn't known" in flat
    assert "FAIL 2 of 4 checks passed, 1 failed, 1 not established, in 61 s" in flat
    assert "not deleted: s3://bucket/prefix/tablelog-conformance-1/x" in said
    assert "caps its listing: missed" in flat
    assert "on the correct store: one of several threads creates the file: 40 rounds x 8 writers" in flat
    assert "rclone serve s3: not run, rclone isn't installed" in flat
    assert f"again: {REPORT.replay}" in said
    assert "writes_of_100_mb" in flat


@pytest.mark.parametrize("width", [20, 60, 80, 300])
def test_the_summary_keeps_to_the_width(width: int) -> None:
    lines = [
        line
        for line in summary(REPORT, PLAIN, width).splitlines()
        if "run again:" not in line and "not deleted" not in line
    ]
    assert max(len(line) for line in lines) <= min(max(width, 60), 120)


def test_colours_are_for_terminals_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert "\x1b[" in summary(REPORT, Paint(Terminal()), 80)
    assert "\x1b[" not in summary(REPORT, PLAIN, 80)
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in summary(REPORT, Paint(Terminal()), 80)


def test_progress_is_a_bar_on_a_terminal_and_lines_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    plain, terminal = io.StringIO(), Terminal()
    for stream in (plain, terminal):
        ticker = Ticker(stream, "checking")
        for number, name in enumerate(("one", "two"), 1):
            ticker.starts(name, number, 2)
            ticker.ended(name, Verdict.PASS, 0.25)
    assert plain.getvalue().splitlines() == [
        "checking  1/2 PASS            one (0.2 s)",
        "checking  2/2 PASS            two (0.2 s)",
    ]
    assert "█" in terminal.getvalue()
    assert "\n" not in terminal.getvalue()
    assert terminal.getvalue().endswith("\r\x1b[K"), "the bar is gone at the end"


# ---- the page ----


class Page(HTMLParser):
    VOID = frozenset({"meta", "br"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.tags: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize("report", [REPORT, ALL_PASSED, replace(REPORT, findings=())])
def test_the_page_is_well_formed_and_needs_nothing_else(report: Report) -> None:
    text = to_html(report)
    page = Page(text)
    assert page.open == []
    assert not {"script", "link", "img", "iframe"} & {*page.tags}
    assert not re.search(r"https?://|url\(|@import", text)
    links = {value for name, value in page.attributes if name == "href"}
    ids = [value for name, value in page.attributes if name == "id"]
    assert len(ids) == len({*ids})
    assert links <= {f"#{value}" for value in ids}
    assert ("lang", "en") in page.attributes


def test_the_page_shows_the_interleaving_with_a_column_for_each_actor() -> None:
    text = to_html(REPORT)
    assert all(f'<th scope="col">{actor}</th>' in text for actor in ("When", "writer A", "writer B", "reader"))
    assert '<td data-who="writer B">told that it won</td>' in text
    assert "&lt;b&gt;only&lt;/b&gt;" in text
    assert "<b>" not in text


def test_the_page_lists_what_a_table_of_evidence_holds() -> None:
    assert "<li>the reply is lost: unknown</li><li>500 &lt;late&gt;: won</li>" in to_html(REPORT)


def test_long_evidence_is_cut_in_the_terminal_and_nowhere_else() -> None:
    long = replace(ALL_PASSED, findings=(replace(PASSED, evidence={"words": "word " * 100 + "the end"}),))
    assert "the end" not in summary(long, PLAIN, 80)
    assert "in the page and the JSON" in " ".join(summary(long, PLAIN, 80).split())
    assert "the end" in to_html(long)
    assert "the end" in to_junit(long)


def test_the_page_says_how_far_the_suite_could_see() -> None:
    said = " ".join(re.sub(r"<[^>]+>", " ", to_html(REPORT)).split())
    assert "caught 1 of 2 broken stores (50 %)" in said
    assert "1 could not be run here" in said
    assert "The races on the correct store: One of several threads creates the file: 40 rounds x 8 writers" in said
    assert "not calibrated" in to_html(ALL_PASSED)
    assert REPORT.replay in to_html(REPORT)


# ---- words ----


def test_each_check_has_a_title_that_no_other_check_has() -> None:
    assert {check.name for check in CHECKS} == TITLES.keys()
    assert len({title.lower() for title in TITLES.values()}) == len(TITLES)
    assert all(title.strip() == title and title[0].isupper() and len(title.split()) > 3 for title in TITLES.values())


def test_a_title_fits_beside_its_verdict_on_the_narrowest_terminal() -> None:
    assert {title for title in TITLES.values() if len(title) > 48} == set()


def test_a_check_of_another_version_is_shown_by_its_id_as_words() -> None:
    assert words.title("a_check_of_tomorrow") == "A check of tomorrow"


@pytest.mark.parametrize("shown", [lambda report: summary(report, PLAIN, 80), to_html, lambda r: matrix([r])])
def test_a_report_shows_the_title_of_a_failed_check(shown: Callable[[Report], str]) -> None:
    assert "One of two writers wins at every step" in shown(REPORT)


def test_the_page_has_the_id_of_each_check_for_only() -> None:
    assert "check 3: one_winner_in_every_interleaving, 1.5 s" in to_html(REPORT)


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ({}, ""),
        ({"rounds": 40, "writers": 8, "seed": 358755}, "40 rounds x 8 writers"),
        ({"writers": 3}, "3 writers"),
        ({"rounds": 1, "writers": 2}, "1 round x 2 writers"),
        ({"sizes": [0, 1, 1048576]}, "sizes: 0, 1, 1,048,576"),
        ({"overlap": 7.259, "commits": 12}, "overlap: 7.26; 12 commits"),
        ({"late_joiners": True}, "late joiners: yes"),
        ({"answers": {"won": 1, "lost": 7}}, "answers: won: 1, lost: 7"),
    ],
)
def test_evidence_in_words(found: dict[str, object], said: str) -> None:
    assert words.evidence(found) == said


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("+12.3 ms writer A: PUT x -> 200", ("+12.3 ms", "writer A", "PUT x -> 200")),
        ("first: goes on and returns", ("", "first", "goes on and returns")),
        ("       2835 µs  writer 0 begins", ("2835 µs", "writer 0", "begins")),
        ("      10939 µs  writer 5 ends: won", ("10939 µs", "writer 5", "ends: won")),
        ("both wait", ("", "", "both wait")),
    ],
)
def test_a_step_of_a_timeline(line: str, parts: tuple[str, str, str]) -> None:
    assert words.step(line) == parts
