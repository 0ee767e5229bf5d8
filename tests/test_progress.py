"""The stages of commands: as log records, and on a screen."""

import io
import logging
import threading
from dataclasses import dataclass, field
from typing import Any

import pytest

from tablelog import progress
from tablelog.progress import NotebookLine, Stage, TerminalLine, TerminalLines, reported, screen_of_process, stage


@dataclass
class Shown:
    """A screen that keeps what it was asked to show."""

    lines: list[str] = field(default_factory=list)
    cleared: int = 0
    seen: threading.Event = field(default_factory=threading.Event)

    def show(self, command: str, stage: Stage, seconds: float) -> None:
        assert seconds >= 0
        self.lines.append(f"{command}: {stage}")
        self.seen.set()

    def clear(self) -> None:
        self.cleared += 1


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_stages_are_shown_until_the_command_ends() -> None:
    screen = Shown()
    with reported("DELETE", "/t", lambda: screen, delay=0):
        stage("searching 3 files")
        stage("deleting", 1, 2000)
        stage("listing", 4000)
    assert list(dict.fromkeys(screen.lines)) == [
        "DELETE /t: searching 3 files",
        "DELETE /t: deleting, 1 of 2,000",
        "DELETE /t: listing, 4,000 until now",
    ]
    assert screen.cleared == 1


def test_a_stage_is_shown_again_without_a_call_of_the_command() -> None:
    screen = Shown()
    with reported("MERGE", "/t", lambda: screen, delay=0.01):
        stage("a long job of Spark")
        assert screen.seen.wait(60)
    assert set(screen.lines) == {"MERGE /t: a long job of Spark"}


def test_a_short_command_shows_nothing() -> None:
    screen = Shown()
    with reported("DELETE", "/t", lambda: screen, delay=1000):
        stage("searching 3 files")
    assert (screen.lines, screen.cleared) == ([], 0)


def test_nothing_is_shown_after_the_end() -> None:
    screen = Shown()

    def fails() -> None:
        with reported("DELETE", "/t", lambda: screen, delay=0):
            stage("searching")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    shown = len(screen.lines)
    stage("outside of a command")
    assert (len(screen.lines), screen.cleared) == (shown, 1)


def test_a_command_inside_another_one_reports_to_its_screen() -> None:
    outer, asked = Shown(), []
    with reported("WRITE", "/t", lambda: outer, delay=0):
        with reported("OPTIMIZE", "/t", lambda: asked.append(1), delay=0):
            stage("rewriting 2 files")
        stage("committing")
    assert list(dict.fromkeys(outer.lines)) == ["WRITE /t: rewriting 2 files", "WRITE /t: committing"]
    assert asked == []


def test_a_command_of_another_thread_has_a_progress_of_its_own() -> None:
    screen, found = Shown(), []

    def work() -> None:
        stage("belongs to no command")
        found.append(screen_of_process(shares_line=lambda: False))

    with reported("WRITE", "/t", lambda: screen, delay=0):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert (screen.lines, found) == ([], [None])


def test_a_screen_that_fails_does_not_fail_the_command() -> None:
    class Broken(Shown):
        def show(self, command: str, stage: Stage, seconds: float) -> None:
            super().show(command, stage, seconds)
            raise OSError("no such terminal")

    screen = Broken()
    with reported("WRITE", "/t", lambda: screen, delay=0):
        stage("writing")
        stage("committing")
    assert screen.lines == ["WRITE /t: writing"]


def test_each_stage_is_one_log_record(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "tablelog.progress")
    with reported("VACUUM", "/t", lambda: None):
        for done in range(5):
            stage("deleting files", done, 5)
        stage("committing")
    assert [record.getMessage() for record in caplog.records] == [
        "/t: VACUUM: deleting files",
        "/t: VACUUM: committing",
    ]
    assert {record.__dict__["table"] for record in caplog.records} == {"/t"}


def test_a_line_of_a_terminal_fits_into_its_width_and_is_removed() -> None:
    stream = io.StringIO()
    line = TerminalLine(stream, lambda: 30)
    line.show("DELETE /a/long/path/of/a/table", Stage("searching"), 12.4)
    line.show("DELETE /t", Stage("searching"), 12.4)
    line.clear()
    first, second, last = stream.getvalue().split("\r\x1b[K")[1:]
    assert first == "DELETE /a/long/path/of/a/tabl"
    assert (second, last) == ("DELETE /t: searching (12 s)", "")


def test_lines_beside_sparks_progress_bar_stay_and_are_not_repeated() -> None:
    stream = io.StringIO()
    lines = TerminalLines(stream)
    for done in (1, 2):
        lines.show("OPTIMIZE /t", Stage("rewriting", done, 3), 2)
    lines.show("OPTIMIZE /t", Stage("committing"), 3)
    lines.clear()
    assert stream.getvalue().replace("\r\x1b[K", "") == "OPTIMIZE /t: rewriting, 1 of 3\nOPTIMIZE /t: committing\n"


def test_a_notebook_has_one_output_which_is_updated() -> None:
    calls: list[tuple[str, Any]] = []

    class Handle:
        def update(self, data: dict[str, str], *, raw: bool) -> None:
            calls.append(("update", data["text/plain"]))

    def display(data: dict[str, str], *, raw: bool, display_id: bool) -> Handle:
        assert raw
        assert display_id
        calls.append(("display", data["text/plain"]))
        return Handle()

    line = NotebookLine(display)
    line.show("MERGE /t", Stage("searching"), 2)
    line.show("MERGE /t", Stage("writing"), 3)
    line.clear()
    line.clear()
    assert calls == [
        ("display", "MERGE /t: searching (2 s)"),
        ("update", "MERGE /t: writing (3 s)"),
        ("update", ""),
    ]


@pytest.mark.parametrize(("shares", "kind"), [(True, TerminalLines), (False, TerminalLine)])
def test_a_terminal_has_a_screen(monkeypatch: pytest.MonkeyPatch, shares: bool, kind: type) -> None:
    monkeypatch.setattr(progress.sys, "stderr", Terminal())
    assert type(screen_of_process(shares_line=lambda: shares)) is kind


def test_a_pipe_has_no_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress.sys, "stderr", io.StringIO())
    assert screen_of_process(shares_line=lambda: False) is None
