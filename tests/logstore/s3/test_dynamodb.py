"""The steps of S3DynamoDBLogStore, its recovery and its expiry, on services in this process."""

import logging
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from logstore.fake_s3 import FakeS3, Reply
from logstore.s3_crashes import each_death
from support.clocks import NO_PAUSES
from tablelog.errors import (
    CorruptLogError,
    StorageAccessError,
    StorageError,
    StorageUnavailableError,
    WriteOutcomeUnknown,
)
from tablelog.logstore.common.conditional_put import Answer, Verdict
from tablelog.logstore.s3.dynamodb_entries import DynamoDBEntry, Entries, EntrySettings, verdict_of
from tablelog.logstore.s3.dynamodb_store import S3DynamoDBLogStore
from tablelog.logstore.s3.settings import S3Access, S3Settings

LOG = "s3a://bucket/t/_delta_log"
KEY = "/bucket/t/_delta_log"
NAME = f"{0:020}.json"


class FakeEntries(Entries):
    """The items in a dictionary. `before` is called with what is about to be done."""

    def __init__(self) -> None:
        super().__init__(EntrySettings())
        self.items: dict[tuple[str, str], DynamoDBEntry] = {}
        self.before: Callable[[str], None] = lambda _what: None
        self.answer: Answer | None = None
        self.guard = threading.Lock()

    def get(self, table_path: str, file_name: str) -> DynamoDBEntry | None:
        self.before("get")
        return self.items.get((table_path, file_name))

    def newest(self, table_path: str) -> DynamoDBEntry | None:
        self.before("newest")
        names = [name for table, name in self.items if table == table_path and name < ":"]
        return self.items[table_path, max(names)] if names else None

    def put_new(self, entry: DynamoDBEntry, path: str) -> Answer:
        self.before("put_new")
        answer, self.answer = self.answer, None
        if answer is not None and answer.reason != "applied":
            return answer
        with self.guard:
            if entry[:2] in self.items:
                return Answer(Verdict.EXISTS)
            self.items[entry[:2]] = entry
        return answer or Answer(Verdict.APPLIED)

    def complete(self, entry: DynamoDBEntry) -> None:
        self.before("complete")
        found = self.items.get(entry[:2])
        if found is not None and found.temp_path == entry.temp_path:
            self.items[entry[:2]] = found._replace(complete=True)

    def remove(self, table_path: str, file_name: str) -> DynamoDBEntry | None:
        self.before("remove")
        return self.items.pop((table_path, file_name), None)


@pytest.fixture
def fake() -> Iterator[FakeS3]:
    with FakeS3() as service:
        service.enforces = False  # what this store is for
        yield service


@pytest.fixture
def entries() -> FakeEntries:
    return FakeEntries()


@pytest.fixture
def make(fake: FakeS3, entries: FakeEntries) -> Callable[[], S3DynamoDBLogStore]:
    def make() -> S3DynamoDBLogStore:
        store = S3DynamoDBLogStore(S3Settings.of("s3a", fake.conf, {}), retries=NO_PAUSES)
        store._entries = entries
        return store

    return make


Make = Callable[[], S3DynamoDBLogStore]


def commit(version: int) -> str:
    return f"{LOG}/{version:020}.json"


@pytest.mark.parametrize(
    ("status", "code", "verdict"),
    [
        (400, "ConditionalCheckFailedException", Verdict.EXISTS),
        (400, "ProvisionedThroughputExceededException", Verdict.NOT_APPLIED),
        (400, "ThrottlingException", Verdict.NOT_APPLIED),
        (400, "TransactionConflictException", Verdict.NOT_APPLIED),
        (500, "InternalServerError", Verdict.AMBIGUOUS),
        (503, "ServiceUnavailable", Verdict.AMBIGUOUS),
        (400, "AccessDeniedException", Verdict.FAILED),
        (400, "ValidationException", Verdict.FAILED),
    ],
)
def test_what_a_reply_of_dynamodb_means(status: int, code: str, verdict: Verdict) -> None:
    assert verdict_of(status, code) is verdict


class Signed:
    """A client of DynamoDB with the credentials `signer`, which may have expired after two requests."""

    def __init__(self, signer: int, code: str, sent: list[tuple[int, str]], *, expires: bool) -> None:
        self.signer, self.code, self.sent, self.expires = signer, code, sent, expires

    def __getattr__(self, name: str) -> Callable[..., dict[str, Any]]:
        def request(**_: Any) -> dict[str, Any]:
            self.sent.append((self.signer, name))
            if self.expires and len(self.sent) > 2:
                reply = {"Error": {"Code": self.code}, "ResponseMetadata": {"HTTPStatusCode": 400}}
                raise ClientError(reply, name)  # type: ignore[arg-type]
            return {}

        return request


def with_expiring(
    monkeypatch: pytest.MonkeyPatch, code: str, access: S3Settings, *, signers: int = 1
) -> tuple[Entries, list[Any]]:
    """Items in a service that rejects the credentials of the first `signers`, and what was sent to it."""
    sent: list[tuple[int, str]] = []
    made: list[Signed] = []

    def client(_self: S3Access, service: str, **_: Any) -> Signed:
        made.append(Signed(len(made) + 1, code, sent, expires=len(made) < signers))
        return made[-1]

    monkeypatch.setattr(S3Access, "client", client)
    return Entries(EntrySettings(access=access), retries=NO_PAUSES), sent


ENTRY = DynamoDBEntry("s3a://bucket/t", NAME, ".tmp/x")


@pytest.mark.parametrize("code", ["ExpiredTokenException", "UnrecognizedClientException"])
def test_credentials_that_dynamodb_calls_expired_are_taken_again(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    entries, sent = with_expiring(monkeypatch, code, S3Settings())
    assert entries.get(*ENTRY[:2]) is None
    assert entries.put_new(ENTRY, commit(0)).verdict is Verdict.APPLIED
    entries.complete(ENTRY)
    assert entries.put_new(ENTRY, commit(0)).verdict is Verdict.APPLIED
    before = [(1, "get_item"), (1, "put_item"), (1, "update_item")]
    assert sent == [*before, (2, "update_item"), (2, "put_item")]


def test_credentials_that_stay_expired_are_taken_again_once(monkeypatch: pytest.MonkeyPatch) -> None:
    entries, sent = with_expiring(monkeypatch, "ExpiredTokenException", S3Settings(), signers=2)
    entries.get(*ENTRY[:2])
    entries.get(*ENTRY[:2])
    assert entries.put_new(ENTRY, commit(0)).verdict is Verdict.FAILED
    assert sent[2:] == [(1, "put_item"), (2, "put_item")]


def test_a_commit_with_fixed_keys_that_have_expired_fails_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    fixed = S3Settings.of("s3a", {"fs.s3a.access.key": "AK", "fs.s3a.secret.key": "s3cret"}, {})
    entries, sent = with_expiring(monkeypatch, "ExpiredTokenException", fixed)
    entries.get(*ENTRY[:2])
    entries.get(*ENTRY[:2])
    assert entries.put_new(ENTRY, commit(0)).verdict is Verdict.FAILED
    with pytest.raises(StorageAccessError, match="the session token has expired"):
        entries.complete(ENTRY)
    assert [name for _, name in sent] == ["get_item", "get_item", "put_item", "update_item"]


def test_the_layout_is_deltas(fake: FakeS3, entries: FakeEntries, make: Make) -> None:
    seen: list[tuple[str, list[str]]] = []
    entries.before = lambda what: seen.append((what, sorted(fake.objects)))
    make().write("s3://bucket/a%20b/_delta_log/" + NAME, b"data")
    ((table, name),) = entries.items
    assert (table, name) == ("s3a://bucket/a b", NAME)
    entry = entries.items[table, name]
    assert entry.complete
    assert entry.temp_path.startswith(f".tmp/{NAME}.")
    assert [what for what, _ in seen] == ["put_new", "complete"]
    assert seen[0][1] == [f"/bucket/a b/_delta_log/{entry.temp_path}"]
    assert fake.objects == {f"/bucket/a b/_delta_log/{NAME}": b"data"}
    assert fake.methods() == ["HEAD", "PUT", "HEAD", "PUT?", "DELETE"]


def test_whichever_request_a_writer_dies_before_the_commit_is_whole_or_not_there(
    fake: FakeS3, entries: FakeEntries, make: Make
) -> None:
    def recover_by_list(path: str) -> bytes | None:
        found = [status.path for status in make().list_from(path.rpartition("/")[0] + "/")]
        return make().read(path) if path in found else None

    def recover_by_read(path: str) -> bytes | None:
        try:
            return make().read(path)
        except FileNotFoundError:
            return None

    def recover_by_next(path: str) -> bytes | None:
        make().write(path.replace(NAME, f"{1:020}.json"), b"next")
        return fake.objects.get("/" + path.removeprefix("s3a://"))

    def recover_by_rival(path: str) -> bytes | None:
        try:
            make().write(path, b"rival")
        except FileExistsError:
            return fake.objects["/" + path.removeprefix("s3a://")]
        return None

    for recover in (recover_by_list, recover_by_read, recover_by_next, recover_by_rival):
        for path, done, lived in each_death(
            make, lambda k, r=recover: f"s3a://bucket/{r.__name__}{k}/_delta_log/{NAME}", b"data"
        ):
            expected = b"data" if lived or "put_new" in done else None
            assert recover(path) == expected, (recover.__name__, done)
            if expected and "complete" in done:
                assert make().read(path) == b"data"
    for table, _ in list(entries.items):
        make().list_from(f"{table}/_delta_log/")
    assert all(entry.complete for entry in entries.items.values())


def test_an_expired_item_doesnt_make_a_version_writable_again(fake: FakeS3, entries: FakeEntries, make: Make) -> None:
    make().write(commit(0), b"first")
    entries.items.clear()
    with pytest.raises(FileExistsError):
        make().write(commit(0), b"second")
    assert make().read(commit(0)) == b"first"


@pytest.mark.parametrize("at", ["put_new", "get"])
def test_nor_for_a_writer_that_looked_before_the_winner_wrote(
    fake: FakeS3, entries: FakeEntries, make: Make, at: str
) -> None:
    """delta#1410: it slept from its look until the winner had committed and the winner's item had expired."""
    make().write(commit(0), b"start")

    def meanwhile(what: str) -> None:
        if what == at:
            entries.before = lambda _what: None
            make().write(commit(1), b"first")
            entries.items.clear()

    entries.before = meanwhile
    with pytest.raises(FileExistsError):
        make().write(commit(1), b"second")
    assert make().read(commit(1)) == b"first"
    assert all(entry.complete for entry in entries.items.values())
    assert not [key for key in fake.objects if "/.tmp/" in key]


def test_a_lost_reply_of_dynamodb_is_looked_up(fake: FakeS3, entries: FakeEntries, make: Make) -> None:
    entries.answer = Answer(Verdict.AMBIGUOUS, "applied")
    make().write(commit(0), b"data")
    entries.answer = Answer(Verdict.AMBIGUOUS, "lost on the way")
    with pytest.raises(WriteOutcomeUnknown):
        make().write(commit(1), b"data")
    assert len([key for key in fake.objects if "/.tmp/" in key]) == 1  # the item may yet arrive


def test_a_commit_that_s3_doesnt_take_in_yet_is_won_and_put_in_place_by_the_next_reader(
    fake: FakeS3, entries: FakeEntries, make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    fake.scripted = lambda asked: "if-none-match" in asked.headers
    fake.replies = [Reply(500, "InternalError")] * 2
    with caplog.at_level(logging.WARNING):
        make().write(commit(0), b"data")
    assert "the next reader writes it" in caplog.text
    assert f"{KEY}/{NAME}" not in fake.objects
    with pytest.raises(StorageUnavailableError, match="is committed"):
        make().list_from(commit(0))
    assert [status.path for status in make().list_from(commit(0))] == [commit(0)]
    assert make().read(commit(0)) == b"data"
    assert not [key for key in fake.objects if "/.tmp/" in key]


def test_another_file_that_s3_doesnt_take_in_is_unknown(fake: FakeS3, make: Make) -> None:
    fake.scripted = lambda asked: "if-none-match" in asked.headers
    fake.replies = [Reply(500, "InternalError")]
    with pytest.raises(WriteOutcomeUnknown):
        make().write(f"{LOG}/{0:020}.crc", b"data")


def test_a_lost_reply_of_the_copy_is_looked_up_and_not_sent_again(
    fake: FakeS3, entries: FakeEntries, make: Make
) -> None:
    fake.scripted = lambda asked: "if-none-match" in asked.headers
    fake.replies = [Reply(0, applied=True)]
    make().write(commit(0), b"data")
    assert fake.methods().count("PUT?") == 1
    assert entries.items["s3a://bucket/t", NAME].complete


def test_when_s3_cant_be_seen_after_the_decision_it_is_unknown(fake: FakeS3, entries: FakeEntries, make: Make) -> None:
    def fail(what: str) -> None:
        if what == "put_new":
            fake.scripted, fake.replies = lambda _asked: True, [Reply(403, "AccessDenied")] * 10

    entries.before = fail
    with pytest.raises(WriteOutcomeUnknown):
        make().write(commit(0), b"data")


def test_a_service_that_knows_no_condition_gets_none(fake: FakeS3, make: Make) -> None:
    fake.scripted = lambda asked: "if-none-match" in asked.headers
    fake.replies = [Reply(501, "NotImplemented")]
    make().write(commit(0), b"data")
    assert fake.methods().count("PUT?") == 1
    assert make().read(commit(0)) == b"data"


def test_a_refusal_of_dynamodb_leaves_nothing(fake: FakeS3, entries: FakeEntries, make: Make) -> None:
    entries.answer = Answer.failed(StorageUnavailableError("no"))
    with pytest.raises(StorageUnavailableError):
        make().write(commit(0), b"data")
    assert fake.objects == {}


def test_a_table_removed_behind_the_stores_back_is_named(fake: FakeS3, make: Make) -> None:
    make().write(commit(0), b"old")
    fake.objects.clear()
    with pytest.raises(StorageError, match="tablePath = s3a://bucket/t"):
        make().write(commit(0), b"new")


def test_a_file_removed_by_the_store_is_won_anew(entries: FakeEntries, make: Make) -> None:
    make().write(commit(0), b"old")
    make().delete(commit(0))
    assert entries.items == {}
    make().write(commit(0), b"new")
    assert make().read(commit(0)) == b"new"


def test_a_temporary_file_that_is_gone_is_named(fake: FakeS3, entries: FakeEntries, make: Make) -> None:
    entries.items["s3a://bucket/t", NAME] = DynamoDBEntry("s3a://bucket/t", NAME, ".tmp/gone")
    with pytest.raises(StorageError, match=r"\.tmp/gone"):
        make().list_from(commit(0))


class OneItem:
    """DynamoDB with one item, for each request."""

    def __init__(self, **texts: object) -> None:
        whole = {"tablePath": "s3a://bucket/t", "fileName": NAME, "tempPath": f".tmp/{NAME}.1", "complete": "false"}
        self.item = {key: {"S": text} for key, text in {**whole, **texts}.items() if text is not None}

    def get_item(self, **_: object) -> dict[str, object]:
        return {"Item": self.item}

    def query(self, **_: object) -> dict[str, object]:
        return {"Items": [self.item]}

    def close(self) -> None:
        """Nothing is open."""


def entries_of(client: OneItem, monkeypatch: pytest.MonkeyPatch) -> Entries:
    monkeypatch.setattr(S3Access, "client", lambda _self, _service, **_: client)
    return Entries(EntrySettings())


def test_an_item_is_read_as_delta_writes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    found = entries_of(OneItem(complete="TRUE", expireTime="7"), monkeypatch).newest("s3a://bucket/t")
    assert found == DynamoDBEntry("s3a://bucket/t", NAME, f".tmp/{NAME}.1", complete=True)


@pytest.mark.parametrize(
    "texts",
    [
        {"tempPath": NAME},
        {"tempPath": None},
        {"tempPath": f"../{NAME}"},
        {"tempPath": ".tmp/\ud800"},
        {"fileName": ""},
        {"fileName": f"x/{NAME}"},
        {"fileName": 7},
        {"complete": None},
        {"complete": "yes"},
        {"tablePath": "s3a://other/t"},
    ],
)
def test_a_damaged_item_is_a_typed_error_and_removes_no_commit(
    fake: FakeS3, monkeypatch: pytest.MonkeyPatch, make: Make, texts: dict[str, object]
) -> None:
    make().write(commit(0), b"data")
    store = make()
    store._entries = entries_of(OneItem(**texts), monkeypatch)
    with pytest.raises(CorruptLogError, match="in DynamoDB is damaged"):
        store.list_from(commit(0))
    assert fake.objects[f"{KEY}/{NAME}"] == b"data"
