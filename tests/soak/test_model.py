"""The soak's model finds each kind of damage in what it is given; and nothing in what is sound."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from soak import counting, effects, journal, places
from soak.effects import NOTHING, Row, digest
from soak.journal import Intent, Journal
from soak.model import LogEntry, Read, problems
from soak.places import Place, Run
from soak.processes import Outages
from soak.reader import broken
from soak.resources import Sample, sample, verdict
from tablelog.core import AddFile, Operation, Transaction
from tablelog.errors import CommitStateUnknownError, ConcurrentAppendException

FIRST = [Row(0, "accounts", 100), Row(1, "accounts", 100)]
INSERTED = [Row(7, "spark", 5), Row(8, "spark", 6)]


def intent(op: str, effect: effects.Effect, outcome: str = "acknowledged", version: int | None = None,
           kind: str = "append") -> Intent:  # fmt: skip
    return Intent(op, 0.0, "local", "main", kind, effect, 0, outcome, version, 5)


INTENTS = [
    intent("a", effects.insert(INSERTED), version=1),
    replace(intent("b", effects.add_where("spark", 2, 1, 10), kind="UPDATE"), before=1),
    intent("c", effects.transfer(0, 1, 30), kind="transfer"),
    intent("d", effects.delete_where("spark", 2, 0), outcome="", kind="DELETE"),
    intent("e", effects.restore(2), kind="RESTORE"),
    intent("f", effects.delete_where("spark", 50, 49), kind="DELETE"),
    intent("g", effects.insert([Row(9, "spark", 1)]), outcome="refused"),
    intent("h", NOTHING, kind="OPTIMIZE"),
    intent("i", effects.insert([Row(10, "spark", 1)]), outcome="unknown"),
]
ENTRIES = [LogEntry(version, op, "") for version, op in enumerate([None, "a", "b", "c", "d", "e", "h", "h"])]
LAST = [*FIRST, Row(7, "spark", 15), Row(8, "spark", 6)]
AT_4 = [Row(0, "accounts", 70), Row(1, "accounts", 130), Row(7, "spark", 15)]
READS = [Read(0, digest(FIRST), "reader"), Read(4, digest(AT_4), "reader"), Read(7, digest(LAST), "reader")]


def test_a_sound_history_has_no_problems() -> None:
    assert problems(INTENTS, ENTRIES, READS, FIRST, LAST) == []


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda i, e, r, last: (i, [*e[:2], *(replace(x, version=x.version - 1) for x in e[3:])], r, last), "is lost"),
        (lambda i, e, r, last: (i, [*e, LogEntry(8, "b", "")], r, last), "b .* more than once"),
        (lambda i, e, r, last: (i, [*e, LogEntry(8, "g", "")], r, last), "g .*refused.* is in the log"),
        (lambda i, e, r, last: (i, [*e, LogEntry(8, "z", "")], r, last), "by nobody"),
        (lambda i, e, r, last: ([replace(i[0], version=3), *i[1:]], e, r, last), "acknowledged as version 3"),
        (lambda i, e, r, last: (i, e[:-1], r, last), "which isn't in the log"),
        (lambda i, e, r, last: (i, [*e[:4], *e[5:]], r, last), "aren't consecutive"),
        (lambda i, e, r, last: (i, e, r, last[:-1]), "1 rows are lost"),
        (lambda i, e, r, last: (i, e, r, [*last, last[0]]), "1 rows are there without reason"),
        (lambda i, e, r, last: (i, e, [replace(r[1], digest=digest(FIRST))], last), "read other rows of version 4"),
        (lambda i, e, r, last: ([*i, intent("j", effects.remove([Row(7, "spark", 5)]))],
                                [*e, LogEntry(8, "j", "")], r, last), "the writer read"),
    ],
    ids=["lost commit", "doubled commit", "refused", "nobody's", "elsewhere", "read of no version", "gap", "lost row",
         "doubled row", "other rows", "stale read"],
)  # fmt: skip
def test_damage_is_found(change: Callable[..., tuple[list[Intent], list[LogEntry], list[Read], list[Row]]], says: str
                         ) -> None:  # fmt: skip
    intents, entries, reads, last = change(INTENTS, ENTRIES, READS, LAST)
    found = problems(intents, entries, reads, FIRST, last)
    assert any(re.search(says, one) for one in found), found


def test_a_commit_of_a_killed_process_may_be_there_or_not() -> None:
    without = [LogEntry(version, op, "") for version, op in enumerate([None, "a", "b", "c", "e", "h", "h"])]
    reads = [READS[0], replace(READS[2], version=6)]
    assert problems(INTENTS, without, reads, FIRST, LAST) == []


def test_the_invariants_of_a_version() -> None:
    sound = [Row(number, "accounts", places.SHARE) for number in range(places.ACCOUNTS)]
    assert broken(sound) == []
    assert broken([*sound, sound[3]])[0] == "rows that are there twice: [3]"
    assert "accounts hold" in broken([sound[0]._replace(amount=1), *sound[1:]])[0]


def test_journals_keep_each_outcome_and_a_torn_line_is_left_out(tmp_path: Path) -> None:
    kept = Journal(str(tmp_path), "core-1.2")
    outcomes: list[Exception | None] = [None, CommitStateUnknownError("t", 1, "token", "why"), RuntimeError("no")]
    for error in outcomes:
        kept.did("local", "main", "append", NOTHING, lambda op, error=error: _done(error), lambda: 4)  # type: ignore[misc]
    with pytest.raises(ConcurrentAppendException):
        kept.did("local", "main", "append", NOTHING, lambda op: _done(ConcurrentAppendException("c")), lambda: 4)
    with kept.errors_told("local"):
        raise OSError("gone")
    with (tmp_path / "core-1.2.jsonl").open("a") as file:
        file.write('{"at": 1, "op": "core-1.2.9", "out')
    found = journal.collected(tmp_path)
    assert [one.outcome for one in found.intents.values()] == ["acknowledged", "unknown", "failed", "refused"]
    assert [one.after for one in found.intents.values()] == [4, None, None, None]
    assert "gone" in found.others[0][1]["error"]


def _done(error: Exception | None) -> int:
    if error is not None:
        raise error
    return 4


def test_errors_are_excused_only_where_and_when_the_server_was_down() -> None:
    outages = Outages(None, 1.0, [(1000.0, 1002.0)])
    assert outages.excuse("minio", 1001.0, 1001.5)
    assert outages.excuse("minio", 990.0, 1001.0)
    assert not outages.excuse("local", 1001.0, 1001.5)
    assert not outages.excuse("minio", 1100.0, 1101.0)
    assert not outages.excuse("minio", 900.0, 999.0)


def test_a_leak_of_descriptors_or_memory_is_found() -> None:
    flat = [Sample(200 << 20, 20 + number % 3) for number in range(40)]
    assert verdict("it", flat[:11]) is None
    judged = verdict("it", flat)
    assert judged is not None
    assert judged.problems == ()
    warm_up = [Sample(number * (20 << 20), number) for number in range(10)]
    judged = verdict("it", [*warm_up, *flat[:30]])
    assert judged is not None
    assert judged.problems == ()
    leak = verdict("it", [Sample((200 + 5 * number) << 20, 20 + number) for number in range(40)])
    assert leak is not None
    assert [one.split(" of ")[0] for one in leak.problems] == ["the memory", "the descriptors"]


OPENS = """
import sys
print("before", flush=True)
sys.stdin.readline()
files = [open(f"{sys.argv[1]}/{number}", "w") for number in range(20)]
print("after", flush=True)
sys.stdin.readline()
"""


def test_open_descriptors_are_counted(tmp_path: Path) -> None:
    """In a process of its own: in this one, threads of other tests open and close some."""
    command = [sys.executable, "-c", OPENS, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        samples = []
        for expected in ("before", "after"):
            assert child.stdout.readline().strip() == expected
            samples.append(sample(child.pid))
            child.stdin.write("\n")
        child.stdin.flush()
    before, after = samples
    assert before is not None
    assert after is not None
    assert after.descriptors == before.descriptors + 20
    assert sample(2**22 + 1) is None


@pytest.fixture
def worked(tmp_path: Path) -> tuple[Run, list[Row]]:
    """A place with an append by a core writer's journal, as after a soak."""
    run = Run(str(tmp_path), 1, (Place("local", str(tmp_path / "tables")),), 40)
    place = run.places[0]
    first = places.create(place, 40)
    kept = Journal(run.directory, "core-0.1")
    for number in range(3):
        rows = [Row(100 + number, "core-0", number)]
        for table in ("main", "events"):
            transaction = place.log(table).transaction()
            add = places.written(place, table, "core-0", rows)

            def commit(op: str, add: AddFile = add, transaction: Transaction = transaction) -> int:
                return transaction.commit([add], Operation("WRITE"), user_metadata=op).version

            kept.did("local", table, "append", effects.insert(rows), commit, lambda n=number: n + 1)  # type: ignore[misc]
    events = place.log("events")
    copy = place.log("copied").transaction()
    copy.set_metadata(events.snapshot().metadata)
    adds = [places.written(place, "copied", "core-0", [row]) for row in places.read(events, events.snapshot())]
    copy.commit(adds, Operation("WRITE"))
    return run, first


def test_tables_are_counted_from_outside(worked: tuple[Run, list[Row]]) -> None:
    run, first = worked
    found, counts = counting.place_problems(run, run.places[0], journal.collected(Path(run.directory)), first)
    assert found == []
    assert (counts["commits to main"], counts["rows of main"]) == (4, places.ACCOUNTS + 3)


def _lose_commit(place: Place) -> None:
    newest = Path(place.url("main"), "_delta_log", f"{3:020d}.json")
    newest.unlink()
    newest.with_suffix(".crc").unlink(missing_ok=True)


def _double_commit(place: Place) -> None:
    log = Path(place.url("main"), "_delta_log")
    lines = (log / f"{3:020d}.json").read_text()
    (log / f"{4:020d}.json").write_text(lines)


def _other_row(place: Place) -> None:
    add = next(add for add in place.log("main").snapshot().add_files() if add.partition_values["p"] == "core-0")
    other = places.written(place, "main", "core-0", [Row(100, "core-0", 99)])
    Path(place.url("main"), other.path).replace(Path(place.url("main"), add.path))


def _row_not_copied(place: Place) -> None:
    copied = place.log("copied")
    transaction = copied.transaction()
    transaction.commit([copied.snapshot().add_files()[0].remove(1)], Operation("DELETE"))


def _left_over(place: Place) -> None:
    places.written(place, "main", "core-0", [Row(1, "core-0", 1)])


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (_lose_commit, "acknowledged as version 3 and is at []"),
        (_double_commit, "in the log more than once: [3, 4]"),
        (_other_row, "1 rows are lost"),
        (_row_not_copied, "copied: 1 rows are lost"),
        (_left_over, "1 files are left over"),
    ],
)
def test_damage_on_disk_is_found(worked: tuple[Run, list[Row]], damage: Callable[[Place], None], says: str) -> None:
    run, first = worked
    damage(run.places[0])
    found, _ = counting.place_problems(run, run.places[0], journal.collected(Path(run.directory)), first)
    assert any(says in one for one in found), found


def test_a_run_is_told_to_its_processes_as_text() -> None:
    run = Run("/d", 3, (Place("minio", "s3a://b/t", {"k": "v"}, vectors=True),), 40, "a.jar")
    again = Run.of(run.text())
    assert json.loads(again.text()) == json.loads(run.text())
    assert again.places[0].conf == {"k": "v"}
