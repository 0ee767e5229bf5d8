"""The bar of long commands: on a terminal with the time that is left, until the result; in a pipe nothing."""

import re
from pathlib import Path

import pytest

from support.arrow_table import ArrowTable
from support.command_line import in_process, on_terminal

COUNTED = [
    ("check {table}", "reading footers", "sound"),
    ("report {table} -o {directory}/page.html --no-check-log", "reading commits", "page.html"),
    ("restore {table} 3", "looking for files to restore", "dry run"),
    ("cat {table}", "reading data files", "amount"),
    ("export {table} --output {directory}/files.txt", "writing locations", ""),
]
UNCOUNTED = [
    ("repair {table}", "reading the log", "nothing to repair"),
    ("vacuum {table}", "listing files", "0 files, 0 B"),
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
    """The table after its first file was removed."""
    table.commit(table.log().snapshot().add_files([0])[0].remove(1))
    return table


@pytest.mark.many
@pytest.mark.parametrize(
    ("line", "doing", "result"), COUNTED + UNCOUNTED, ids=[line.split()[0] for line, _, _ in COUNTED + UNCOUNTED]
)
def test_a_bar_is_shown_until_the_result(
    line: str, doing: str, result: str, shrunk: ArrowTable, tmp_path: Path
) -> None:
    words = line.format(table=shrunk.path, directory=tmp_path).split()
    written = on_terminal(*words, keys=b"n\n").out
    bar = written[written.index(doing) : written.rindex("\x1b[2K")]
    assert bool(TIME_LEFT.search(bar)) == ((line, doing, result) in COUNTED)
    left = "\n".join(left_on(written))
    assert doing not in left
    assert result in left
    piped = in_process(*words)
    assert piped.err == ""
    assert doing not in piped.out
    assert result in piped.out


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
