"""The store on Google Cloud Storage: what is sent, how often, and what each answer of the service means."""

import gc
import json
import os
import pickle
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from email.utils import formatdate
from pathlib import Path
from urllib.parse import unquote

import pytest
from google.oauth2.credentials import Credentials

from logstore.playback import NO_REPLY, Playback, Played
from support.clocks import NO_PAUSES
from tablelog.errors import (
    InvalidArgumentError,
    LogStoreConfigurationError,
    StorageAccessError,
    StorageError,
    StorageMissingError,
    StorageUnavailableError,
    WriteOutcomeUnknown,
)
from tablelog.logstore import store_for
from tablelog.logstore.common.conditional_put import Verdict
from tablelog.logstore.common.http_clients import READ_SECONDS
from tablelog.logstore.gcs.settings import GCSSettings
from tablelog.logstore.gcs.store import GCSLogStore, Reply, answer_of

ROOT = "gs://bucket/t/_delta_log"
PATH = f"{ROOT}/00000000000000000000.json"
CREATED = Played(200, {"Content-Type": "application/json"}, b'{"kind": "storage#object", "name": "x"}')


def refused(status: int, reason: str = "", message: str = "no") -> Played:
    error = {"error": {"code": status, "message": message, "errors": [{"reason": reason}]}}
    return Played(status, {"Content-Type": "application/json"}, json.dumps(error).encode() if reason else b"")


def listing(*names: str, more: str | None = None) -> Played:
    items = [{"name": name, "size": "7", "updated": "2026-11-21T09:00:00.123456789Z"} for name in names]
    return Played(200, {}, json.dumps({"items": items, **({"nextPageToken": more} if more else {})}).encode())


def store_at(service: Playback, read_seconds: float = READ_SECONDS, **conf: str) -> GCSLogStore:
    keys = {"fs.gs.storage.root.url": f"{service.endpoint}/", "fs.gs.auth.type": "UNAUTHENTICATED", **conf}
    return GCSLogStore(GCSSettings.of("gs", keys, {}), retries=NO_PAUSES, read_seconds=read_seconds)


Play = Callable[..., tuple[GCSLogStore, Playback]]


@pytest.fixture
def play() -> Iterator[Play]:
    open_ones: list[Playback] = []

    def start(*replies: Played) -> tuple[GCSLogStore, Playback]:
        service = Playback(*replies).__enter__()
        open_ones.append(service)
        return store_at(service), service

    yield start
    for service in open_ones:
        service.__exit__()


# ---- the pure rule ----


@pytest.mark.parametrize(
    ("status", "reason", "verdict"),
    [
        (412, "conditionNotMet", Verdict.EXISTS),
        (412, "", Verdict.EXISTS),
        (429, "rateLimitExceeded", Verdict.NOT_APPLIED),
        (429, "", Verdict.NOT_APPLIED),
        (403, "rateLimitExceeded", Verdict.NOT_APPLIED),
        (403, "userRateLimitExceeded", Verdict.NOT_APPLIED),
        (408, "", Verdict.AMBIGUOUS),
        (409, "conflict", Verdict.AMBIGUOUS),
        (500, "backendError", Verdict.AMBIGUOUS),
        (502, "", Verdict.AMBIGUOUS),
        (503, "backendError", Verdict.AMBIGUOUS),
        (504, "", Verdict.AMBIGUOUS),
        (304, "", Verdict.AMBIGUOUS),
        (308, "", Verdict.AMBIGUOUS),
        (400, "invalid", Verdict.FAILED),
        (401, "authError", Verdict.FAILED),
        (403, "forbidden", Verdict.FAILED),
        (404, "notFound", Verdict.FAILED),
        (413, "uploadTooLarge", Verdict.FAILED),
    ],
)
def test_what_an_answer_to_a_create_means(status: int, reason: str, verdict: Verdict) -> None:
    assert answer_of(PATH, Reply(status, reason, b"")).verdict is verdict


@pytest.mark.parametrize(
    ("body", "verdict"),
    [
        (b'{"name": "x"}', Verdict.APPLIED),
        (b"<html>Welcome</html>", Verdict.AMBIGUOUS),
        (b"{}", Verdict.AMBIGUOUS),
        (b"[1]", Verdict.AMBIGUOUS),
    ],
)
def test_a_success_is_the_services_own(body: bytes, verdict: Verdict) -> None:
    """Something else that listens at the endpoint, and likes every request, wins nothing."""
    assert answer_of(PATH, Reply(200, "", body)).verdict is verdict


# ---- a conditional write ----


@pytest.mark.parametrize("size", [4, 0, 20 << 20])
def test_it_is_one_upload_with_the_condition(play: Play, size: int) -> None:
    store, service = play(CREATED)
    store.write(PATH, b"x" * size)
    (asked,) = service.asked
    assert (asked.method, asked.path) == ("POST", "/upload/storage/v1/b/bucket/o")
    assert asked.query == {
        "uploadType": "media",
        "name": "t/_delta_log/00000000000000000000.json",
        "ifGenerationMatch": "0",
    }
    assert asked.body == b"x" * size


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (refused(412, "conditionNotMet"), FileExistsError),
        (refused(412), FileExistsError),
        (refused(409, "conflict"), WriteOutcomeUnknown),
        (refused(500, "internalError"), WriteOutcomeUnknown),
        (refused(503), WriteOutcomeUnknown),
        (NO_REPLY, WriteOutcomeUnknown),
        (Played(200, {}, CREATED.body, cut=5), WriteOutcomeUnknown),
        (refused(403, "forbidden"), StorageAccessError),
        (refused(401, "authError"), StorageAccessError),
        (refused(404, "notFound", "The specified bucket does not exist."), StorageMissingError),
        (refused(404, "notFound"), StorageMissingError),
        (refused(400, "invalid"), StorageError),
    ],
)
def test_each_answer_is_taken_at_once(play: Play, reply: Played, error: type[Exception]) -> None:
    """A second request could be answered by "exists" for the caller's own write."""
    store, service = play(reply, CREATED)
    with pytest.raises(error):
        store.write(PATH, b"data")
    assert len(service.asked) == 1


def test_what_was_turned_away_is_sent_again(play: Play) -> None:
    store, service = play(refused(429), refused(403, "rateLimitExceeded"), CREATED)
    store.write(PATH, b"data")
    assert [(asked.body, asked.query["ifGenerationMatch"]) for asked in service.asked] == [(b"data", "0")] * 3


def test_a_time_out_leaves_it_unknown(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = threading.Event()
    _, service = play(CREATED)
    store = store_at(service, read_seconds=0.05)
    answer = service._answer
    monkeypatch.setattr(service, "_answer", lambda handler: (gate.wait(5), answer(handler)))
    with pytest.raises(WriteOutcomeUnknown, match="Timeout"):
        store.write(PATH, b"data")
    gate.set()


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirection_is_followed_with_method_and_condition(play: Play, status: int) -> None:
    """`requests` would make a GET of it, and take its 200 for a success; or drop the condition with the query."""
    store, service = play(Played(status, {"Location": "/elsewhere?a=b"}), CREATED)
    store.write(PATH, b"data")
    first, second = service.asked
    assert (second.method, second.path, second.body) == ("POST", "/elsewhere", b"data")
    assert second.query == first.query


def test_a_redirection_elsewhere_or_without_end_is_not_followed(play: Play) -> None:
    store, service = play(Played(307, {"Location": "https://example.org/x"}))
    with pytest.raises(StorageError, match=r"redirects to example\.org"):
        store.write(PATH, b"")
    assert len(service.asked) == 1
    store, service = play(Played(307, {"Location": "/again"}))
    with pytest.raises(WriteOutcomeUnknown):
        store.write(PATH, b"")
    assert len(service.asked) == 4


def test_where_nobody_listens_nothing_was_written() -> None:
    with Playback(CREATED) as service:
        store = store_at(service)
    for request in (lambda: store.write(PATH, b""), lambda: store.read(PATH), lambda: store.list_from(PATH)):
        with pytest.raises(StorageUnavailableError, match="can't be reached"):
            request()  # type: ignore[no-untyped-call]


def test_a_clock_that_is_off_is_named(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "http.server.BaseHTTPRequestHandler.date_time_string", lambda *_: formatdate(time.time() + 86400, usegmt=True)
    )
    store, _ = play(refused(401, "authError"))
    with pytest.raises(StorageAccessError, match="1440 minutes behind the service's"):
        store.write(PATH, b"")


def test_a_token_that_cant_be_had_is_an_error_of_access() -> None:
    """Whatever the service of tokens says, the write was not sent."""
    with Playback(Played(400, {"Content-Type": "application/json"}, b'{"error": "invalid_grant"}')) as service:
        user = Credentials(
            None, client_id="c", client_secret="s3cret", refresh_token="r", token_uri=f"{service.endpoint}/"
        )
        store = GCSLogStore.configured("gs", {"fs.gs.storage.root.url": service.endpoint}, {"token": user})
        with pytest.raises(StorageAccessError, match="no token") as caught:
            store.write(PATH, b"")
        assert "s3cret" not in str(caught.value)
        assert [asked.path for asked in service.asked] == ["/"]


def test_an_overwrite_has_no_condition_and_is_sent_again(play: Play) -> None:
    store, service = play(refused(503), NO_REPLY, CREATED)
    store.write(PATH, b"data", overwrite=True)
    assert len(service.asked) == 3
    assert "ifGenerationMatch" not in service.asked[0].query


@pytest.mark.parametrize("data", ["text", None, 5])
def test_what_is_no_bytes_is_not_sent(play: Play, data: object) -> None:
    store, service = play(CREATED)
    with pytest.raises(TypeError):
        store.write(PATH, data)  # type: ignore[arg-type]
    assert not service.asked


# ---- reading, listing, deleting ----


def test_reading_is_one_request_for_exactly_that_key(play: Play) -> None:
    store, service = play(Played(200, {}, b"data"))
    assert store.read("gs://bucket/a b/%2541+?#é") == b"data"
    (asked,) = service.asked
    assert asked.query == {"alt": "media"}
    assert unquote(asked.path.rpartition("/")[2]) == "a b/%41+?#é"


def test_reading_is_repeated_where_that_may_help(play: Play) -> None:
    cut = Played(200, {}, b"data" * 100, cut=10)
    store, service = play(refused(500), NO_REPLY, cut, Played(200, {}, b"data" * 100))
    assert store.read(PATH) == b"data" * 100
    assert len(service.asked) == 4


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (refused(404, "notFound", "No such object: bucket/x"), FileNotFoundError),
        (Played(404, {}, b"Not Found"), FileNotFoundError),
        (refused(404, "notFound", "The specified bucket does not exist."), StorageMissingError),
        (refused(403, "forbidden"), StorageAccessError),
        (refused(500), StorageUnavailableError),
        (refused(400, "invalid"), StorageError),
    ],
)
def test_why_a_file_cant_be_read(play: Play, reply: Played, error: type[Exception]) -> None:
    store, service = play(reply)
    with pytest.raises(error) as caught:
        store.read(PATH)
    assert type(caught.value) is error
    assert len(service.asked) == (4 if error is StorageUnavailableError else 1)


@pytest.mark.parametrize("reply", [refused(429), refused(503), refused(403, "rateLimitExceeded")])
def test_a_busy_service_is_asked_more_often(play: Play, reply: Played) -> None:
    store, service = play(*[reply] * 7, Played(200, {}, b"data"))
    assert store.read(PATH) == b"data"
    assert len(service.asked) == 8
    store, service = play(reply)
    with pytest.raises(StorageUnavailableError):
        store.read(PATH)
    assert len(service.asked) == 8


def test_a_listing_begins_at_the_name_and_is_paged(play: Play) -> None:
    names = [f"t/_delta_log/{n:020}.json" for n in range(3)]
    store, service = play(listing("t/_delta_log/", *names[:2], more="next"), listing(names[2]))
    found = list(store.list_from(PATH))
    assert [status.path for status in found] == [f"{ROOT}/{n:020}.json" for n in range(3)]
    assert found[0][1:] == (7, 1795251600123)
    assert [asked.query.get("pageToken") for asked in service.asked] == [None, "next"]
    for asked in service.asked:
        assert asked.path == "/storage/v1/b/bucket/o"
        assert asked.query["prefix"] == "t/_delta_log/"
        assert asked.query["delimiter"] == "/"
        assert asked.query["startOffset"] == names[0]


def test_a_gap_is_looked_at_twice(play: Play) -> None:
    names = [f"t/_delta_log/{n:020}.json" for n in range(3)]
    store, service = play(listing(names[0], names[2]), listing(*names))
    assert len(list(store.list_from(PATH))) == 3
    assert len(service.asked) == 2


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (refused(404, "notFound"), StorageMissingError),
        (refused(403, "forbidden"), StorageAccessError),
        (Played(200, {}, b"<html>"), StorageError),
    ],
)
def test_why_a_directory_cant_be_listed(play: Play, reply: Played, error: type[Exception]) -> None:
    store, _ = play(reply)
    with pytest.raises(error) as caught:
        store.list_from(PATH)
    assert type(caught.value) is error


def test_deleting_what_is_absent_is_fine(play: Play) -> None:
    store, service = play(refused(404, "notFound"))
    store.delete(PATH)
    assert [asked.method for asked in service.asked] == ["DELETE"]
    store, _ = play(refused(403, "forbidden"))
    with pytest.raises(StorageAccessError):
        store.delete(PATH)


def test_who_pays_is_in_each_request() -> None:
    with Playback(CREATED) as service:
        pays = {"fs.gs.requester.pays.mode": "ENABLED", "fs.gs.requester.pays.project.id": "mine"}
        store = store_at(service, **pays)
        store.write(PATH, b"")
        store.delete(PATH)
        assert [asked.query["userProject"] for asked in service.asked] == ["mine"] * 2


# ---- the rest ----


def test_resolve() -> None:
    store = GCSLogStore.configured("gs", {}, {})
    assert store.resolve("gs://bucket//x/%41 b/") == "gs://bucket/x/A%20b"
    with pytest.raises(InvalidArgumentError):
        store.resolve("gs:///x")


def test_the_registry_has_it_for_its_schemes_and_deltas_name() -> None:
    for scheme in ("gs", "gcs"):
        assert type(store_for(f"{scheme}://bucket/t")) is GCSLogStore
    name = "io.delta.storage.GCSLogStore"
    assert type(store_for(PATH, conf={"spark.delta.logStore.gs.impl": name})) is GCSLogStore
    for name in ("IBMCOSLogStore", "OracleCloudLogStore"):
        with pytest.raises(LogStoreConfigurationError, match=name):
            store_for("cos://bucket/t", conf={"spark.delta.logStore.cos.impl": f"io.delta.storage.{name}"})


def test_a_copy_and_a_child_have_connections_of_their_own(play: Play) -> None:
    store, service = play(CREATED)
    store.write(PATH, b"")
    pickle.loads(pickle.dumps(store)).write(PATH, b"")
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            store.write(PATH, b"")
            assert {pid for pid, _ in store._sessions._opened} == {os.getppid(), os.getpid()}
            os.write(write, b"1")
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    os.close(write)
    assert os.read(read, 1) == b"1"
    os.close(read)
    assert len(service.asked) == 3


def test_many_losers_leave_no_descriptor(play: Play) -> None:
    store, _ = play(refused(412, "conditionNotMet"))

    def lose(times: int) -> None:
        for _ in range(times):
            with pytest.raises(FileExistsError):
                store.write(PATH, b"data")

    lose(5)
    gc.collect()
    before = _descriptors()
    threads = [threading.Thread(target=lose, args=(50,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # A connection that each thread left in the pool, at both of its ends.
    assert _descriptors() <= before + 2 * len(threads)


def _descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_a_listing_without_an_end_is_an_error(play: Play) -> None:
    store, service = play(listing("t/_delta_log/a", more="same"))
    with pytest.raises(StorageError, match="same page again"):
        list(store.list_from(f"{ROOT}/0"))
    assert len(service.asked) == 2


def test_a_token_with_a_line_break_is_not_shown() -> None:
    """The HTTP client quotes it in its error."""
    with Playback(CREATED) as service:
        keys = {"fs.gs.storage.root.url": service.endpoint}
        store = GCSLogStore(GCSSettings.of("gs", keys, {"token": Credentials("S3CRET\n")}), retries=NO_PAUSES)
        for request in (lambda: store.read(PATH), lambda: store.write(PATH, b"data")):
            with pytest.raises(StorageAccessError, match="line break") as raised:
                request()
            assert "S3CRET" not in "".join(traceback.format_exception(raised.value))
        assert not service.asked
