"""The runner: a place for each check, a bound on its time, a verdict for whatever it ends with, and no traces."""

import _thread
import os
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tablelog.conformance import CHECKS, words
from tablelog.conformance.checks.suite import commit
from tablelog.conformance.failures import GuaranteeBrokenError, NotEstablishedError
from tablelog.conformance.model import Check, Context, Level, Target, Verdict
from tablelog.conformance.runner import UnknownCheckError, chosen, run
from tablelog.conformance.verdicts import verdict_of
from tablelog.errors import StorageUnavailableError, UnsafeStoreError, WriteOutcomeUnknown
from tablelog.logstore import LocalLogStore, LogStore, MemoryLogStore


def check(
    run_it: Callable[[Context], None], name: str = "a_check", guarantee: int = 1, level: Level = Level.QUICK
) -> Check:
    return Check(1, name, guarantee, "A check.", run_it, level)


def target(store: LogStore, root: str = "memory://bucket/prefix") -> Target:
    return Target(lambda: store, root, "a store")


def files_of(store: MemoryLogStore) -> list[str]:
    return [directory for directory, files in store._directories.items() if files]


def writes(context: Context) -> None:
    for version in range(3):
        context.make().write(commit(context.root, version), b"x")


def fails_with(error: Exception) -> Callable[[Context], None]:
    def raises(_context: Context) -> None:
        raise error

    return raises


# ---- verdicts ----


@pytest.mark.parametrize(
    ("error", "verdict", "said"),
    [
        (None, Verdict.PASS, ""),
        (GuaranteeBrokenError("two won"), Verdict.FAIL, "two won"),
        (NotEstablishedError("no proxy"), Verdict.NOT_ESTABLISHED, "no proxy"),
        (StorageUnavailableError("503"), Verdict.NOT_ESTABLISHED, "503"),
        (WriteOutcomeUnknown("p", "time-out"), Verdict.NOT_ESTABLISHED, "time-out"),
        (ConnectionResetError("reset"), Verdict.NOT_ESTABLISHED, "reset"),
        (FileNotFoundError("gone"), Verdict.FAIL, "gone"),
        (FileExistsError("there"), Verdict.FAIL, "there"),
        (UnsafeStoreError("ignores the condition"), Verdict.FAIL, "ignores the condition"),
        (ZeroDivisionError("the check's own"), Verdict.NOT_ESTABLISHED, "the suite itself failed: ZeroDivisionError"),
    ],
)
def test_what_a_check_ends_with_is_a_verdict(error: Exception | None, verdict: Verdict, said: str) -> None:
    found, message = verdict_of(error)
    assert found is verdict
    assert said in message


def test_an_unknown_error_out_of_the_stores_own_code_is_its_failure() -> None:
    class Odd(MemoryLogStore):
        def delete(self, path: str) -> None:
            raise KeyError(path)

    with pytest.raises(KeyError) as caught:
        Odd().delete("memory://b/x")
    verdict, message = verdict_of(caught.value)
    assert verdict is Verdict.FAIL
    assert "KeyError" in message


# ---- places and traces ----


def test_each_check_has_a_place_of_its_own_and_none_leaves_anything() -> None:
    store = MemoryLogStore()
    roots: list[str] = []

    def elsewhere(context: Context) -> None:
        roots.append(context.root)
        writes(context)
        context.directories.add(f"{context.root}/table/_delta_log")
        context.make().write(commit(f"{context.root}/table", 0), b"x")
        raise GuaranteeBrokenError("and it fails")

    found = run(target(store), [check(elsewhere, "one"), check(elsewhere, "two")], level=Level.QUICK, seed=1)
    assert [finding.verdict for finding in found.findings] == [Verdict.FAIL, Verdict.FAIL]
    assert [root.rpartition("/")[2] for root in roots] == ["one", "two"]
    assert all(root.startswith("memory://bucket/prefix/tablelog-conformance-") for root in roots)
    assert found.leftovers == ()
    assert files_of(store) == []


@pytest.mark.parametrize("made_before", [True, False])
def test_a_local_place_is_left_as_it_was_found(tmp_path: Path, made_before: bool) -> None:
    place = tmp_path / "place"
    if made_before:
        place.mkdir()
        (place / "of the user").touch()

    def litters(context: Context) -> None:
        writes(context)
        directory = Path(context.root.removeprefix("file://"), "_delta_log")
        (directory / ".temporary").touch()
        os.mkdir(directory / "unknown to the runner")

    found = run(target(LocalLogStore(), f"file://{place}"), [check(litters)], level=Level.QUICK, seed=1)
    assert found.findings[0].verdict is Verdict.PASS
    assert found.leftovers == ()
    assert [path.name for path in place.iterdir()] == ["of the user"] if made_before else not place.exists()


def test_what_cannot_be_cleaned_up_is_said() -> None:
    class Keeps(MemoryLogStore):
        def delete(self, path: str) -> None:
            if path.endswith("2.json"):
                raise StorageUnavailableError("no")

    found = run(target(Keeps()), [check(writes)], level=Level.QUICK, seed=1)
    assert any("a_check/_delta_log" in path for path in found.leftovers)


def test_a_listing_that_ends_too_early_is_cleaned_up_all_the_same() -> None:
    class Capped(MemoryLogStore):
        def list_from(self, path):  # type: ignore[no-untyped-def]
            return iter(list(super().list_from(path))[:1])

    store = Capped()
    assert run(target(store), [check(writes)], level=Level.QUICK, seed=1).leftovers == ()
    assert files_of(store) == []


def test_an_interrupt_ends_the_run_and_cleans_up() -> None:
    store = MemoryLogStore()
    never = threading.Event()

    def interrupted(context: Context) -> None:
        writes(context)
        _thread.interrupt_main()
        never.wait()

    with pytest.raises(KeyboardInterrupt):
        run(target(store), [check(interrupted)], level=Level.QUICK, seed=1)
    never.set()
    assert files_of(store) == []


# ---- bounds ----


def test_a_check_that_hangs_is_not_established_and_the_next_one_runs() -> None:
    never = threading.Event()

    def hangs_forever(_context: Context) -> None:
        never.wait()

    found = run(
        target(MemoryLogStore()),
        [check(hangs_forever, "hangs"), check(writes, "goes on")],
        level=Level.QUICK,
        seed=1,
        share_seconds=0.05,
        grace_seconds=0.0,
    )
    never.set()
    hangs, goes_on = found.findings
    assert hangs.verdict is Verdict.NOT_ESTABLISHED
    assert "timed out" in hangs.message
    assert "hangs_forever" in hangs.message
    assert found.stuck == ("hangs",)
    assert goes_on.verdict is Verdict.PASS


def test_when_the_time_of_the_run_is_used_up_the_rest_is_not_asked_and_said_so() -> None:
    asked: list[str] = []
    found = run(
        target(MemoryLogStore()),
        [check(lambda context: asked.append(context.root))],
        level=Level.QUICK,
        seed=1,
        budget_seconds=0.0,
    )
    assert found.findings[0].verdict is Verdict.NOT_ESTABLISHED
    assert "time of the whole run" in found.findings[0].message
    assert asked == []


def test_the_deadline_is_the_share_of_the_check() -> None:
    left: list[float] = []
    run(
        target(MemoryLogStore()),
        [check(lambda context: left.append(context.time_left))],
        level=Level.QUICK,
        seed=1,
        share_seconds=7.0,
    )
    assert 6.0 < left[0] <= 7.0


def test_what_lasts_comes_last_and_each_has_its_share_of_what_is_left() -> None:
    asked: list[str] = []
    left: list[float] = []

    def notes(context: Context) -> None:
        asked.append(context.root.rpartition("/")[2])
        left.append(context.time_left)

    lasting = replace(check(notes, "lasting"), lasts=True)
    checks = [lasting, check(notes, "short"), check(notes, "shorter"), replace(lasting, name="last")]
    found = run(target(MemoryLogStore()), checks, level=Level.QUICK, seed=1, share_seconds=1000, budget_seconds=400)
    assert asked == ["short", "shorter", "lasting", "last"]
    assert [finding.check.name for finding in found.findings] == ["lasting", "short", "shorter", "last"]
    assert [round(seconds, -1) for seconds in left] == [200, 270, 400, 400]


# ---- storage that can't be used ----


class Refusing(MemoryLogStore):
    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error
        self.asked = 0

    def write(self, path: str, data: bytes, *, overwrite: bool = False) -> None:
        self.asked += 1
        raise self.error


def test_a_storage_out_of_reach_is_asked_once_and_nothing_is_established() -> None:
    store = Refusing(StorageUnavailableError("s3://bucket: connection refused; start it"))
    found = run(target(store), [check(writes, "one"), check(writes, "two")], level=Level.QUICK, seed=1)
    assert store.asked == 1
    assert {finding.verdict for finding in found.findings} == {Verdict.NOT_ESTABLISHED}
    assert all("connection refused; start it" in finding.message for finding in found.findings)


def test_a_store_that_refuses_itself_as_unsafe_fails_the_exclusion() -> None:
    store = Refusing(UnsafeStoreError("the endpoint ignores If-None-Match"))
    found = run(target(store), [check(writes, "one", 1), check(writes, "two", 2)], level=Level.QUICK, seed=1)
    assert [finding.verdict for finding in found.findings] == [Verdict.NOT_ESTABLISHED, Verdict.FAIL]


@pytest.mark.parametrize("place", ["/proc/x", "/dev/null/x", "/etc/hostname/x"])
def test_a_place_that_cannot_be_written_establishes_nothing_and_is_said_in_one_sentence(place: str) -> None:
    nowhere = Target(LocalLogStore, f"file://{place}", "")
    found = run(nowhere, [check(writes, "one", 1), check(writes, "two", 2)], level=Level.QUICK, seed=1)
    assert {finding.verdict for finding in found.findings} == {Verdict.NOT_ESTABLISHED}
    [message] = {finding.message for finding in found.findings}
    assert message.startswith(f"nothing can be written below file://{place}: ")
    assert "\n" not in message


class Forgets(MemoryLogStore):
    """Takes what is written and hasn't it."""

    def write(self, path: str, data: bytes, *, overwrite: bool = False) -> None:
        """Keep nothing."""


def test_a_store_that_has_not_what_it_took_is_checked_and_fails() -> None:
    def reads(context: Context) -> None:
        writes(context)
        context.make().read(commit(context.root, 0))

    found = run(target(Forgets()), [check(reads)], level=Level.QUICK, seed=1)
    assert found.findings[0].verdict is Verdict.FAIL


def test_nobody_is_told_of_checks_that_were_not_run() -> None:
    told: list[str] = []

    class Follows:
        def starts(self, name: str, number: int, total: int) -> None:
            told.append(name)

        def ended(self, name: str, result: str, seconds: float) -> None:
            told.append(name)

    store = Refusing(StorageUnavailableError("s3://bucket: connection refused; start it"))
    run(target(store), [check(writes, "one"), check(writes, "two")], level=Level.QUICK, seed=1, progress=Follows())
    assert told == []


def test_patience_is_so_many_times_the_time() -> None:
    left: list[float] = []
    notes = check(lambda context: left.append(context.time_left))
    run(target(MemoryLogStore()), [notes], level=Level.QUICK, seed=1, share_seconds=7.0, patience=3)
    assert 20.0 < left[0] <= 21.0


def test_a_store_with_a_bug_is_still_checked() -> None:
    found = run(target(Refusing(TypeError("a bug"))), [check(writes)], level=Level.QUICK, seed=1)
    assert found.findings[0].verdict is Verdict.FAIL
    assert "a bug" in found.findings[0].message


# ---- choosing ----


def test_checks_are_chosen_by_level_name_or_number() -> None:
    quick, slow = check(writes, "quick"), Check(7, "slow", 1, "", writes, Level.THOROUGH)
    assert chosen([quick, slow], Level.STANDARD) == [quick]
    assert chosen([quick, slow], Level.THOROUGH) == [quick, slow]
    assert chosen([quick, slow], Level.QUICK, ["7"]) == [slow]
    assert chosen([quick, slow], Level.QUICK, ["slow", "1"]) == [quick, slow]
    with pytest.raises(UnknownCheckError, match="'fast'"):
        chosen([quick, slow], Level.QUICK, ["fast"])
    with pytest.raises(UnknownCheckError, match=r"'quik'; did you mean quick\?"):
        chosen([quick, slow], Level.QUICK, ["quik"])


@pytest.mark.parametrize("one", CHECKS, ids=lambda one: one.name)
def test_each_check_is_chosen_alone_by_its_id_or_its_title(one: Check) -> None:
    as_words = one.name.replace("_", " ").capitalize()
    for name in (one.name, as_words, words.title(one.name), words.title(one.name).upper()):
        assert chosen(CHECKS, Level.QUICK, [name]) == [one]


@pytest.mark.parametrize("one", CHECKS, ids=lambda one: one.name)
def test_each_check_names_what_it_writes_so_that_nothing_stays_behind(one: Check) -> None:
    store = MemoryLogStore()
    found = run(target(store), [one], level=Level.QUICK, seed=1)
    assert found.leftovers == ()
    assert files_of(store) == []
    assert found.findings[0].verdict is not Verdict.FAIL, found.findings[0].message
