"""The bar of long commands: on a terminal with the time that is left, until the result; in a pipe nothing."""

import io
import re
from pathlib import Path

import pytest

from support.arrow_table import ArrowTable
from support.command_line import in_process, on_terminal
from tablelog.cli.progress import progress_bar
from tablelog.core.table_maintenance import table_files
from tablelog.core.table_maintenance.unneeded_files import Directory, ListedFile
from tablelog.progress import Stage

STEPS = [
    ("check {table}", "reading commits", "sound"),
    ("check {table}", "reading footers", "sound"),
    ("repair {table}", "reading commits", "nothing to repair"),
    ("repair {table}", "comparing checkpoints", "nothing to repair"),
    ("repair {table}", "listing files", "nothing to repair"),
    ("vacuum {table}", "listing files", "0 files, 0 B"),
    ("report {table} -o {directory}/page.html --no-check-log", "reading commits", "page.html"),
    ("restore {table} 3", "looking for files to restore", "dry run"),
    ("cat {table}", "reading data files", "amount"),
    ("export {table} --output {directory}/files.txt", "writing locations", ""),
]
TIME_LEFT = re.compile(r"(?:\d|-):(?:\d\d|--):(?:\d\d|--)")
_CODE = re.compile(r"\x1b\[\??([\d;]*)([A-Za-z])|([\r\n])")


def left_on(written: str) -> list[str]:
    """The lines that a terminal shows after all that was written to it: the codes that a bar uses are obeyed."""
    lines, row, column, at = [""], 0, 0, 0
    for match in [*_CODE.finditer(written), None]:
        text = written[at : match.start() if match else None]
        lines[row] = lines[row][:column].ljust(column) + text + lines[row][column + len(text) :]
        column += len(text)
        if match is None:
            break
        at = match.end()
        number, code, control = match.groups()
        if control == "\r":
            column = 0
        elif control == "\n":
            row, column = row + 1, 0
            lines += [""] * (row + 1 - len(lines))
        elif code == "A":
            row -= int(number or 1)
        elif code == "K":
            assert number == "2"
            lines[row] = ""
    return lines


@pytest.fixture
def shrunk(table: ArrowTable) -> ArrowTable:
    """The table after its first file was removed, with a checkpoint."""
    table.commit(table.log().snapshot().add_files([0])[0].remove(1))
    table.log().checkpoint()
    return table


@pytest.mark.one_case
@pytest.mark.many
@pytest.mark.parametrize(
    ("line", "doing", "result"), STEPS, ids=[f"{line.split()[0]}, {doing}" for line, doing, _ in STEPS]
)
def test_a_bar_is_shown_until_the_result(
    line: str, doing: str, result: str, shrunk: ArrowTable, tmp_path: Path
) -> None:
    words = line.format(table=shrunk.path, directory=tmp_path).split()
    written = on_terminal(*words, keys=b"n\n").out
    shown = [part for part in written.split("\x1b[2K") if doing in part]
    assert TIME_LEFT.search(shown[0])
    left = "\n".join(left_on(written))
    assert doing not in left
    assert result in left
    piped = in_process(*words)
    assert piped.err == ""
    assert doing not in piped.out
    assert result in piped.out


@pytest.mark.parametrize(("expected", "time_left"), [(4, [True, True]), (3, [True, False]), (0, [False, False])])
def test_a_listing_has_a_time_left_while_files_of_the_version_are_expected(
    expected: int, time_left: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    stages: list[Stage] = []
    monkeypatch.setattr(table_files, "stage", lambda *args: stages.append(Stage(*args)))
    two = [Directory(name, [ListedFile(str(i), 1, 1) for i in range(2)]) for name in "ab"]
    assert list(table_files.counted(two, expected)) == two
    assert [stage.done for stage in stages] == [2, 4]
    assert [stage.total > 0 for stage in stages] == time_left


def test_a_step_of_unknown_length_has_no_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if its length was known at first."""
    screen = io.StringIO()
    monkeypatch.setattr(screen, "isatty", lambda: True)
    monkeypatch.setattr("sys.stderr", screen)
    with progress_bar() as advance:
        advance("listing files", 2, 3)
        known = screen.tell()
        advance("listing files", 4, 0)
    written = screen.getvalue()
    assert "2 of 3" in written[:known]
    assert TIME_LEFT.search(written[:known])
    assert "4 until now" in written[known:]
    assert not TIME_LEFT.search(written[known:])


@pytest.mark.one_case
@pytest.mark.many
@pytest.mark.parametrize("words", [("cat",), ("cat", "--json"), ("export",)])
def test_rows_that_go_to_a_file_have_a_bar(words: tuple[str, ...], table: ArrowTable, tmp_path: Path) -> None:
    with (tmp_path / "rows").open("wb") as file:
        written = on_terminal(words[0], table.path, *words[1:], output=file).out
    assert TIME_LEFT.search(written)
    assert left_on(written) == [""] * len(left_on(written))
    assert (tmp_path / "rows").read_text() == in_process(words[0], table.path, *words[1:]).out


def test_rows_that_go_to_the_terminal_one_by_one_have_no_bar(table: ArrowTable) -> None:
    for words in (("cat", "--json"), ("export",)):
        assert not TIME_LEFT.search(on_terminal(words[0], table.path, *words[1:]).out)
