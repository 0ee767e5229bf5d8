"""One attempt at one version: every answer of a store, and what becomes of it."""

import random
from collections.abc import Callable, Iterator

import pytest

from tablelog.core.protocol.actions import CommitInfo, SetTransaction
from tablelog.core.protocol.codec import serialise
from tablelog.core.txn.commit import Lost, Outcome, Patience, Unknown, Won, attempt, is_own, look
from tablelog.errors import WriteOutcomeUnknown
from tablelog.logstore.base import FileStatus, LogStore

PATH = "/t/_delta_log/00000000000000000007.json"
TOKEN = "7f9d2a6e-0a53-4a0c-8c55-7f5a4f3d9b11"
OURS = serialise([CommitInfo(operation="WRITE", txn_id=TOKEN), SetTransaction("app", 1)])
THEIRS = serialise([CommitInfo(operation="DELETE", txn_id="another")])

Step = Callable[["ScriptedStore", str], bytes | None]


class Clock:
    def __init__(self) -> None:
        self.slept: list[float] = []

    def now_ms(self) -> int:
        return 0

    def monotonic(self) -> float:
        return sum(self.slept)

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


class ScriptedStore(LogStore):
    """Each write and each read follows the next step of its script; a script that ran out works as it should."""

    exclusion = "process"
    partial_writes_visible = False
    atomic_overwrite = True

    def __init__(self, writes: list[Step], reads: list[Step] | None = None) -> None:
        self.files: dict[str, bytes] = {}
        self.writes, self.reads = writes, reads or []
        self.calls: list[str] = []
        self.sent: list[bytes] = []

    def write(self, path: str, data: bytes, *, overwrite: bool = False) -> None:
        self.calls.append("write")
        self.sent.append(data)
        if self.writes:
            self.writes.pop(0)(self, path)
        if path in self.files:
            raise FileExistsError(path)
        self.files[path] = data

    def read(self, path: str) -> bytes:
        self.calls.append("read")
        page = self.reads.pop(0)(self, path) if self.reads else None
        if page is not None:
            return page
        if path not in self.files:
            raise FileNotFoundError(path)
        return self.files[path]

    def list_from(self, path: str) -> Iterator[FileStatus]:
        raise NotImplementedError

    def delete(self, path: str) -> None:
        raise NotImplementedError

    def resolve(self, path: str) -> str:
        return path


def works(store: ScriptedStore, path: str) -> None:
    pass


def lost_reply(store: ScriptedStore, path: str) -> None:
    store.files.setdefault(path, OURS)
    raise WriteOutcomeUnknown(path, "reset")


def lost_request(store: ScriptedStore, path: str) -> None:
    raise WriteOutcomeUnknown(path, "timed out")


def asked_twice(store: ScriptedStore, path: str) -> None:
    store.files.setdefault(path, OURS)
    raise FileExistsError(path)


def other_wins(store: ScriptedStore, path: str) -> None:
    store.files.setdefault(path, THEIRS)


def other_wins_unseen(store: ScriptedStore, path: str) -> None:
    store.files.setdefault(path, THEIRS)
    raise WriteOutcomeUnknown(path, "timed out")


def arrives_late(store: ScriptedStore, path: str) -> None:
    store.files.setdefault(path, OURS)


def refused(store: ScriptedStore, path: str) -> None:
    raise PermissionError(f"no right to write {path}")


def unreachable(store: ScriptedStore, path: str) -> None:
    raise ConnectionError("no route to the store")


def html(store: ScriptedStore, path: str) -> bytes:
    return b"<html>\n<body>Please log in</body>\n</html>"


def other_json(store: ScriptedStore, path: str) -> bytes:
    return b'{"message": "Bad gateway"}'


def nothing(store: ScriptedStore, path: str) -> bytes:
    return b""


def cut(store: ScriptedStore, path: str) -> bytes:
    return store.files[path][:20]


def run(store: ScriptedStore, clock: Clock | None = None, tries: int = 4) -> Outcome:
    return attempt(store, PATH, OURS, TOKEN, clock=clock or Clock(), dice=lambda: 0.5, patience=Patience(tries=tries))


CASES: list[tuple[str, list[Step], list[Step], Outcome, list[str]]] = [
    ("a clean win needs no second look", [works], [], Won(), ["write"]),
    ("another's commit is there", [other_wins], [], Lost(THEIRS), ["write", "read"]),
    ("the reply was lost", [lost_reply], [], Won(read_back=True), ["write", "read"]),
    ("a layer below asked twice", [asked_twice], [], Won(read_back=True), ["write", "read"]),
    ("lost reply, and another had won", [other_wins_unseen], [], Lost(THEIRS), ["write", "read"]),
    ("the request was lost: written again", [lost_request], [], Won(), ["write", "read", "write"]),
    (
        "the first write arrives after it was missed, before the second",
        [lost_request, arrives_late],
        [],
        Won(read_back=True),
        ["write", "read", "write", "read"],
    ),
    (
        "another takes the version between the tries",
        [lost_request, other_wins],
        [],
        Lost(THEIRS),
        ["write", "read", "write", "read"],
    ),
    (
        "reading back fails once",
        [lost_reply],
        [unreachable],
        Won(read_back=True),
        ["write", "read", "write", "read"],
    ),
    *(
        (
            f"a reply that is no commit says nothing: {page.__name__}",
            [lost_reply],
            [page],
            Won(read_back=True),
            ["write", "read", "write", "read"],
        )
        for page in (html, other_json, nothing, cut)
    ),
    (
        "an honest error after an ambiguous answer settles nothing",
        [lost_reply, refused],
        [unreachable],
        Won(read_back=True),
        ["write", "read", "write", "read"],
    ),
]


@pytest.mark.parametrize(("name", "writes", "reads", "expected", "calls"), CASES, ids=[case[0] for case in CASES])
def test_outcome(name: str, writes: list[Step], reads: list[Step], expected: Outcome, calls: list[str]) -> None:
    store = ScriptedStore(list(writes), list(reads))
    assert run(store) == expected
    assert store.calls == calls
    assert set(store.sent) == {OURS}, "every try at one version sends the same bytes"


def test_an_error_that_guarantees_that_nothing_was_written_comes_through() -> None:
    store = ScriptedStore([refused])
    with pytest.raises(PermissionError, match="no right"):
        run(store)
    assert store.calls == ["write"]


def test_patience_ends_in_unknown_and_never_in_a_verdict() -> None:
    clock = Clock()
    store = ScriptedStore([lost_request] * 4, [unreachable] * 4)
    outcome = run(store, clock)
    assert isinstance(outcome, Unknown)
    assert "4 tries" in outcome.reason
    assert "no route to the store" in outcome.reason
    assert isinstance(outcome.cause, ConnectionError)
    assert len(clock.slept) == 3
    assert clock.slept == sorted(clock.slept), "each wait is longer than the one before"


def test_a_store_that_needs_minutes_for_each_answer_is_asked_for_some_minutes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = Clock()

    def silent(store: ScriptedStore, path: str) -> None:
        clock.sleep(100)
        raise WriteOutcomeUnknown(path, "no reply")

    outcome = run(ScriptedStore([silent] * 20, [unreachable] * 20), clock, tries=20)
    assert isinstance(outcome, Unknown)
    assert "after 3 tries" in outcome.reason
    assert ["attempt 2 of 20" in caplog.text, "attempt 3 of 20" in caplog.text, len(caplog.records)] == [True, True, 2]


def test_exists_that_cannot_be_looked_at_is_unknown() -> None:
    # It may be our own: a layer below may have asked twice.
    assert isinstance(run(ScriptedStore([asked_twice] * 4, [unreachable] * 4)), Unknown)


def test_pauses_are_bounded_and_jittered() -> None:
    patience, dice = Patience(shortest=0.1, longest=2.0), random.Random(3).random
    pauses = [patience.pause(k, dice) for k in (1, 1, 3, 30)]
    assert 0.1 <= pauses[0] <= 0.2
    assert pauses[0] != pauses[1]
    assert 0.4 <= pauses[2] <= 0.8
    assert 1.0 <= pauses[3] <= 2.0


def test_look() -> None:
    store = ScriptedStore([])
    assert isinstance(look(store, PATH, OURS, TOKEN), Unknown)
    store.files[PATH] = OURS
    assert look(store, PATH, OURS, TOKEN) == Won(read_back=True)
    store.files[PATH] = THEIRS
    assert look(store, PATH, OURS, TOKEN) == Lost(THEIRS)
    for step in (unreachable, html):
        store.reads = [step]
        assert isinstance(look(store, PATH, OURS, TOKEN), Unknown)


INFO = f'{{"commitInfo":{{"operation":"WRITE","txnId":"{TOKEN}"}}}}'
ADD = '{"add":{"path":"a","partitionValues":{},"size":1,"modificationTime":1,"dataChange":true}}'


@pytest.mark.parametrize(
    ("found", "own"),
    [
        (OURS, True),
        (f"{ADD}\n{INFO}\n".encode(), True),  # commitInfo on another line, other spacing
        (OURS.replace(b"\n", b"\r\n"), True),
        (THEIRS, False),
        (b"", False),
        (f'{{"commitInfo":{{"userMetadata":"after {TOKEN}","txnId":"other"}}}}\n'.encode(), False),
        (f'{{"txn":{{"appId":"{TOKEN}","version":1}}}}\n'.encode(), False),
        (f'{{"commitInfo":{{"txnId":"{TOKEN}"\n{ADD}\n'.encode(), False),  # no JSON: nobody's
    ],
)
def test_is_own(found: bytes, own: bool) -> None:
    assert is_own(found, OURS, TOKEN) is own
