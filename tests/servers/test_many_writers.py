"""Many processes with mixed commands on one table on MinIO; and what counts them finds each kind of damage."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace

import pytest
from benchmarks import many_writers
from benchmarks.many_writers import Part, part, row
from benchmarks.many_writers_check import Commit, fairness, faults
from benchmarks.many_writers_work import Attempt, Result

from . import MinIO


@pytest.mark.timeout(300)
def test_mixed_commands_of_eight_processes_are_each_there_once(minio: MinIO) -> None:
    made = part(minio, "mixed", 8, 4.0)
    assert not made.faults, row("mixed", made)
    assert made.failed == 0
    assert len(made.results) == 8
    told = [one for result in made.results for one in result.attempts if one.outcome == "acknowledged"]
    assert len({one.version for one in told}) == len(told) >= 8


def attempt(
    op: str, version: int | None, adds: list[str], removes: list[str], outcome: str = "acknowledged"
) -> Attempt:
    return Attempt(op, "append", outcome, version, adds, removes, 0.5, 1)


RESULTS = [
    Result(0, 0.0, 10.0, [attempt("0.0", 1, ["a"], []), attempt("0.1", None, ["x"], [], "refused")], [2.0]),
    Result(1, 0.0, 10.0, [attempt("1.0", 2, ["b"], ["a"]), attempt("1.1", 3, ["c"], [])], [3.0, 4.0]),
]
COMMITS = [
    Commit(1, "0.0", ("a",), ()), Commit(2, "1.0", ("b",), ("a",)), Commit(3, "1.1", ("c",), ())
]  # fmt: skip
LIVE = ["b", "c"]


def test_sound_work_has_no_faults() -> None:
    assert not faults(RESULTS, COMMITS, LIVE)
    assert not faults(
        [replace(RESULTS[0], attempts=[attempt("", None, ["a"], [])])], [Commit(1, None, ("a",), ())], ["a"]
    )


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda commits, live: (commits[:2], live[:1]), "lost"),
        (lambda commits, live: ([*commits, Commit(4, "1.1", ("d",), ())], [*live, "d"]), "doubled"),
        (lambda commits, live: ([*commits[:2], replace(commits[2], version=4)], live), "at another version"),
        (lambda commits, live: ([*commits, Commit(4, "0.1", ("x",), ())], [*live, "x"]), "refused, but there"),
        (lambda commits, live: ([*commits[:2], Commit(3, "1.1", ("z",), ())], ["b", "z"]), "other files"),
        (lambda commits, live: ([*commits, Commit(4, "9.9", (), ())], live), "by nobody"),
        (lambda commits, live: ([*commits, Commit(4, None, ("c",), ())], live), "files added twice"),
        (lambda commits, live: ([*commits[:2], Commit(3, "1.1", ("c",), ("a",))], live),
         "files removed that weren't there"),
        (lambda commits, live: (commits, live[:1]), "files of the newest version that differ"),
    ],
)  # fmt: skip
def test_faults_are_found(
    change: Callable[[list[Commit], list[str]], tuple[list[Commit], list[str]]], fault: str
) -> None:
    commits, live = change(COMMITS, LIVE)
    assert faults(RESULTS, commits, live)[fault] == 1


def test_fairness_counts_the_wait_at_the_end() -> None:
    found = fairness(RESULTS)
    assert (found.fewest, found.most, found.longest_wait) == (1, 2, 8.0)
    assert found.jain == pytest.approx(0.9)
    assert fairness([RESULTS[0], replace(RESULTS[1], waits=[1.0])]).jain == 1.0


@pytest.mark.parametrize(
    ("failed", "wrong", "code"), [(0, {}, 0), (0, {"lost": 1}, 1), (1, {}, 1)], ids=["sound", "lost", "failed"]
)
@pytest.mark.parametrize("work", ["appends by delta-rs", "mixed"])
def test_the_exit_code_tells_of_faults(
    monkeypatch: pytest.MonkeyPatch, work: str, failed: int, wrong: dict[str, int], code: int
) -> None:
    def made(_server: object, of: str, *_: object) -> Part:
        this = of == work
        return Part(of, RESULTS, failed * this, Counter(wrong if this else {}), 1.0, fairness(RESULTS))

    monkeypatch.setattr(MinIO, "start", lambda: SimpleNamespace(stop=lambda: None))
    monkeypatch.setattr(many_writers, "part", made)
    assert many_writers.main(["--rounds", "1"]) == code
