"""The Azure store: what is sent, how often, and what each answer of the service means."""

import base64
import gc
import os
import pickle
import threading
import time
from collections.abc import Callable, Iterator
from email.utils import formatdate
from pathlib import Path
from urllib.parse import unquote

import pytest

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
from tablelog.logstore import LogStore, store_for
from tablelog.logstore.azure.settings import AzureSettings
from tablelog.logstore.azure.store import AzureLogStore, answer_of
from tablelog.logstore.common.conditional_put import Verdict
from tablelog.logstore.common.http_clients import READ_SECONDS

ROOT = "abfs://box@account.dfs.core.windows.net/t/_delta_log"
PATH = f"{ROOT}/00000000000000000000.json"
KEY = base64.b64encode(b"s3cret-s3cret").decode()
CREATED = Played(201, {"ETag": '"1"', "Last-Modified": "Sat, 21 Nov 2026 09:00:00 GMT"})


def refused(status: int, code: str = "", **headers: str) -> Played:
    body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>no</Message></Error>".encode() if code else b""
    named = {"x-ms-error-code": code, "x-ms-request-id": "1"} if code else {}
    return Played(status, {**named, "Content-Type": "application/xml", **headers}, body)


def listing(*names: str, more: str = "") -> Played:
    blobs = "".join(
        f"<Blob><Name>{name}</Name><Properties><Last-Modified>Sat, 21 Nov 2026 09:00:00 GMT</Last-Modified>"
        "<Content-Length>7</Content-Length><BlobType>BlockBlob</BlobType></Properties></Blob>"
        for name in names
    )
    body = (
        "<?xml version='1.0'?><EnumerationResults ServiceEndpoint='http://x/' ContainerName='box'>"
        f"<Prefix>t/_delta_log/</Prefix><Delimiter>/</Delimiter><Blobs>{blobs}<BlobPrefix><Name>t/_delta_log/_sidecars/</Name></BlobPrefix></Blobs>"
        f"<NextMarker>{more}</NextMarker></EnumerationResults>"
    )
    return Played(200, {"Content-Type": "application/xml"}, body.encode())


def content(data: bytes) -> Played:
    headers = {"Content-Range": f"bytes 0-{len(data) - 1}/{len(data)}", "ETag": '"1"', "x-ms-blob-type": "BlockBlob"}
    return Played(206, headers, data)


def store_at(service: Playback, read_seconds: float = READ_SECONDS) -> AzureLogStore:
    conf = {
        "fs.azure.abfs.endpoint": service.address,
        "fs.azure.always.use.https": "false",
        "fs.azure.account.key.account.dfs.core.windows.net": KEY,
    }
    return AzureLogStore(AzureSettings.of("abfs", conf, {}), retries=NO_PAUSES, read_seconds=read_seconds)


@pytest.fixture
def play() -> Iterator[Callable[..., tuple[AzureLogStore, Playback]]]:
    open_ones: list[Playback] = []

    def start(*replies: Played) -> tuple[AzureLogStore, Playback]:
        service = Playback(*replies).__enter__()
        open_ones.append(service)
        return store_at(service), service

    yield start
    for service in open_ones:
        service.__exit__()


Play = Callable[..., tuple[AzureLogStore, Playback]]


# ---- the pure rule ----


@pytest.mark.parametrize(
    ("status", "code", "verdict"),
    [
        (201, "", Verdict.APPLIED),
        (409, "BlobAlreadyExists", Verdict.EXISTS),
        (412, "ConditionNotMet", Verdict.EXISTS),
        (412, "", Verdict.EXISTS),
        (412, "LeaseIdMissing", Verdict.EXISTS),
        (403, "UnauthorizedBlobOverwrite", Verdict.EXISTS),
        (409, "BlobImmutableDueToPolicy", Verdict.EXISTS),
        (429, "TooManyRequests", Verdict.NOT_APPLIED),
        (409, "", Verdict.AMBIGUOUS),
        (409, "SomethingNew", Verdict.AMBIGUOUS),
        (408, "", Verdict.AMBIGUOUS),
        (500, "OperationTimedOut", Verdict.AMBIGUOUS),
        (500, "InternalError", Verdict.AMBIGUOUS),
        (503, "ServerBusy", Verdict.AMBIGUOUS),
        (502, "", Verdict.AMBIGUOUS),
        (504, "", Verdict.AMBIGUOUS),
        (304, "", Verdict.AMBIGUOUS),
        (200, "", Verdict.AMBIGUOUS),
        (400, "InvalidHeaderValue", Verdict.FAILED),
        (403, "AuthenticationFailed", Verdict.FAILED),
        (404, "ContainerNotFound", Verdict.FAILED),
        (409, "ContainerBeingDeleted", Verdict.FAILED),
        (413, "RequestBodyTooLarge", Verdict.FAILED),
    ],
)
def test_what_an_answer_to_a_create_means(status: int, code: str, verdict: Verdict) -> None:
    assert answer_of(PATH, status, code).verdict is verdict


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (403, "AuthenticationFailed", StorageAccessError),
        (401, "NoAuthenticationInformation", StorageAccessError),
        (403, "AccountIsDisabled", StorageAccessError),
        (404, "ContainerNotFound", StorageMissingError),
        (409, "ContainerBeingDeleted", StorageMissingError),
        (400, "InvalidResourceName", StorageError),
    ],
)
def test_the_error_that_a_refusal_stands_for(status: int, code: str, kind: type[StorageError]) -> None:
    error = answer_of(PATH, status, code).error
    assert type(error) is kind
    assert f"writing {PATH}" in str(error)
    assert f"{status} {code}" in str(error)


# ---- a conditional write ----


def test_it_is_one_put_with_the_condition(play: Play) -> None:
    store, service = play(CREATED)
    store.write(PATH, b"data")
    (asked,) = service.asked
    assert (asked.method, asked.path, asked.body) == (
        "PUT",
        "/account/box/t/_delta_log/00000000000000000000.json",
        b"data",
    )
    assert asked.headers["if-none-match"] == "*"
    assert asked.headers["x-ms-blob-type"] == "BlockBlob"
    assert "comp" not in asked.query


def test_a_large_one_is_one_put_too(play: Play) -> None:
    """In blocks it would be another request that has the condition, and blocks that stay."""
    store, service = play(CREATED)
    store.write(PATH, bytes(70 << 20))
    (asked,) = service.asked
    assert len(asked.body) == 70 << 20
    assert asked.headers["if-none-match"] == "*"
    assert "comp" not in asked.query


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (refused(409, "BlobAlreadyExists"), FileExistsError),
        (refused(412, "ConditionNotMet"), FileExistsError),
        (refused(412), FileExistsError),
        (refused(409), WriteOutcomeUnknown),
        (refused(500, "InternalError"), WriteOutcomeUnknown),
        (refused(503, "ServerBusy"), WriteOutcomeUnknown),
        (refused(503), WriteOutcomeUnknown),
        (NO_REPLY, WriteOutcomeUnknown),
        (refused(403, "AuthenticationFailed"), StorageAccessError),
        (refused(401), StorageAccessError),
        (refused(404, "ContainerNotFound"), StorageMissingError),
        (refused(404), StorageMissingError),
        (refused(400, "InvalidUri"), StorageError),
    ],
)
def test_each_answer_is_taken_at_once(play: Play, reply: Played, error: type[Exception]) -> None:
    """A second request could be answered by "exists" for the caller's own write."""
    store, service = play(reply, CREATED)
    with pytest.raises(error):
        store.write(PATH, b"data")
    assert len(service.asked) == 1


def test_only_too_many_requests_is_sent_again(play: Play) -> None:
    store, service = play(refused(429, "TooManyRequests"), refused(429), CREATED)
    store.write(PATH, b"data")
    assert [(asked.body, asked.headers["if-none-match"]) for asked in service.asked] == [(b"data", "*")] * 3


def test_a_time_out_leaves_it_unknown(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = threading.Event()
    _, service = play(CREATED)
    store = store_at(service, read_seconds=0.05)
    answer = service._answer
    monkeypatch.setattr(service, "_answer", lambda handler: (gate.wait(5), answer(handler)))
    with pytest.raises(WriteOutcomeUnknown, match="Timeout"):
        store.write(PATH, b"data")
    gate.set()


def test_a_redirection_is_followed_with_the_condition(play: Play) -> None:
    store, service = play(CREATED)
    service.replies = [Played(307, {"Location": f"{service.endpoint}/elsewhere"}), CREATED]
    store.write(PATH, b"data")
    assert [asked.method for asked in service.asked] == ["PUT", "PUT"]
    assert service.asked[1].path == "/elsewhere"
    assert service.asked[1].headers["if-none-match"] == "*"
    assert service.asked[1].body == b"data"


def test_where_nobody_listens_nothing_was_written() -> None:
    with Playback(CREATED) as service:
        store = store_at(service)
    for request in (lambda: store.write(PATH, b""), lambda: store.read(PATH), lambda: store.list_from(PATH)):
        with pytest.raises(StorageUnavailableError, match="can't be reached"):
            request()  # type: ignore[no-untyped-call]


def test_a_clock_that_is_off_is_named(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "http.server.BaseHTTPRequestHandler.date_time_string", lambda *_: formatdate(time.time() - 86400, usegmt=True)
    )
    store, _ = play(refused(403, "AuthenticationFailed"))
    with pytest.raises(StorageAccessError, match="1440 minutes ahead of the service's"):
        store.write(PATH, b"")


def test_an_overwrite_has_no_condition_and_is_sent_again(play: Play) -> None:
    store, service = play(refused(503, "ServerBusy"), NO_REPLY, CREATED)
    store.write(PATH, b"data", overwrite=True)
    assert len(service.asked) == 3
    assert "if-none-match" not in service.asked[0].headers


@pytest.mark.parametrize("data", ["text", None, 5])
def test_what_is_no_bytes_is_not_sent(play: Play, data: object) -> None:
    store, service = play(CREATED)
    with pytest.raises(TypeError):
        store.write(PATH, data)  # type: ignore[arg-type]
    assert not service.asked


# ---- reading, listing, deleting ----


def test_reading_is_one_request(play: Play) -> None:
    store, service = play(content(b"data" * 10000))
    assert store.read(PATH) == b"data" * 10000
    assert len(service.asked) == 1


def test_reading_is_repeated_where_that_may_help(play: Play) -> None:
    data = content(b"data")
    store, service = play(refused(500, "InternalError"), NO_REPLY, data)
    assert store.read(PATH) == b"data"
    assert len(service.asked) == 3


def test_a_body_that_is_cut_off_is_not_taken(play: Play) -> None:
    whole = content(b"data" * 100)
    store, _ = play(Played(whole.status, whole.headers, whole.body, cut=10), whole)
    assert store.read(PATH) == b"data" * 100


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (refused(404, "BlobNotFound"), FileNotFoundError),
        (refused(404), FileNotFoundError),
        (refused(404, "ContainerNotFound"), StorageMissingError),
        (refused(403, "AuthorizationPermissionMismatch"), StorageAccessError),
        (refused(500, "InternalError"), StorageUnavailableError),
        (refused(400, "InvalidHeaderValue"), StorageError),
    ],
)
def test_why_a_file_cant_be_read(play: Play, reply: Played, error: type[Exception]) -> None:
    store, service = play(reply)
    with pytest.raises(error) as caught:
        store.read(PATH)
    assert type(caught.value) is error
    assert len(service.asked) == (4 if error is StorageUnavailableError else 1)


@pytest.mark.parametrize("reply", [refused(429), refused(503, "ServerBusy")])
def test_a_busy_service_is_asked_more_often(play: Play, reply: Played) -> None:
    store, service = play(*[reply] * 7, listing())
    assert list(store.list_from(PATH)) == []
    assert len(service.asked) == 8
    store, service = play(reply)
    with pytest.raises(StorageUnavailableError):
        store.read(PATH)
    assert len(service.asked) == 8


def test_a_listing_is_of_the_directory_alone_and_paged(play: Play) -> None:
    names = [f"t/_delta_log/{n:020}.json" for n in range(4)]
    store, service = play(listing("t/_delta_log/", *names[:2], more="2!next"), listing(*names[2:]))
    found = list(store.list_from(f"{ROOT}/{1:020}.json"))
    assert [status.path for status in found] == [f"{ROOT}/{n:020}.json" for n in (1, 2, 3)]
    assert found[0].size == 7
    assert found[0].modification_time_ms == 1795251600000
    assert [asked.query.get("marker") for asked in service.asked] == [None, "2!next"]
    assert {(asked.query["prefix"], asked.query["delimiter"]) for asked in service.asked} == {("t/_delta_log/", "/")}


def test_a_listing_is_in_the_order_of_bytes(play: Play) -> None:
    names = ["\U0001f600", "\uff5e", "a"]
    store, _ = play(listing(*[f"t/_delta_log/{name}" for name in names]))
    found = [unquote(status.path.rpartition("/")[2]) for status in store.list_from(f"{ROOT}/")]
    assert found == ["a", "\uff5e", "\U0001f600"]


def test_a_gap_is_looked_at_twice(play: Play) -> None:
    names = [f"t/_delta_log/{n:020}.json" for n in range(3)]
    store, service = play(listing(names[0], names[2]), listing(*names))
    assert len(list(store.list_from(f"{ROOT}/{0:020}.json"))) == 3
    assert len(service.asked) == 2


@pytest.mark.parametrize("reply", [refused(404, "ContainerNotFound"), refused(404)])
def test_a_listing_of_no_container(play: Play, reply: Played) -> None:
    store, _ = play(reply)
    with pytest.raises(StorageMissingError):
        store.list_from(PATH)


def test_a_listing_is_repeated(play: Play) -> None:
    store, service = play(refused(500, "OperationTimedOut"), listing())
    assert list(store.list_from(PATH)) == []
    assert len(service.asked) == 2


def test_deleting_what_is_absent_is_fine(play: Play) -> None:
    store, service = play(refused(404, "BlobNotFound"))
    store.delete(PATH)
    assert [asked.method for asked in service.asked] == ["DELETE"]
    store, _ = play(refused(403, "AuthorizationPermissionMismatch"))
    with pytest.raises(StorageAccessError):
        store.delete(PATH)


# ---- the rest ----


def test_resolve() -> None:
    store = AzureLogStore.configured("abfss", {}, {})
    assert store.resolve("abfss://c@a.dfs.core.windows.net//x/%41 b/") == "abfss://c@a.dfs.core.windows.net/x/A%20b"
    with pytest.raises(InvalidArgumentError):
        store.resolve("abfss:///x")


@pytest.mark.parametrize("name", ["a%5Cb", "a%01b", "a%7F", "a.", "a./b"])
def test_names_that_azure_would_change_are_refused(play: Play, name: str) -> None:
    store, service = play(CREATED)
    path = f"{ROOT}/{name}"
    for request in (store.read, store.delete, store.resolve, lambda path: store.write(path, b"")):
        with pytest.raises(InvalidArgumentError):
            request(path)
    with pytest.raises(InvalidArgumentError):
        store.list_from(f"{path}/")
    assert not service.asked


def test_a_listing_may_begin_at_a_name_that_no_blob_can_have(play: Play) -> None:
    store, _ = play(listing(*(f"t/_delta_log/{n}.json" for n in range(3))))
    assert [status.path.rpartition("/")[2] for status in store.list_from(f"{ROOT}/1.")] == ["1.json", "2.json"]


def test_the_registry_has_it_for_its_schemes_and_deltas_name() -> None:
    for scheme in ("abfs", "abfss", "az", "wasb", "wasbs"):
        assert type(store_for(f"{scheme}://c@a.dfs.core.windows.net/t")) is AzureLogStore
    name = "org.apache.spark.sql.delta.storage.AzureLogStore"
    assert type(store_for(PATH, conf={"spark.delta.logStore.abfs.impl": name})) is AzureLogStore
    with pytest.raises(LogStoreConfigurationError, match="Gen1"):
        store_for("adl://account.azuredatalakestore.net/t")


def test_a_copy_and_a_child_have_connections_of_their_own(play: Play) -> None:
    store, service = play(CREATED)
    store.write(PATH, b"")
    pickle.loads(pickle.dumps(store)).write(PATH, b"")
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            store.write(PATH, b"")
            assert {pid for pid, _ in store._clients._opened} == {os.getppid(), os.getpid()}
            os.write(write, b"1")
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    os.close(write)
    assert os.read(read, 1) == b"1"
    os.close(read)
    assert len(service.asked) == 3


def test_many_losers_leave_no_descriptor(play: Play) -> None:
    store, _ = play(refused(409, "BlobAlreadyExists"))

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


def test_nothing_shows_a_secret(play: Play) -> None:
    store: LogStore
    store, _ = play(refused(403, "AuthenticationFailed"))
    with pytest.raises(StorageAccessError) as caught:
        store.write(PATH, b"")
    sas = AzureLogStore.configured("abfss", {"fs.azure.sas.fixed.token": "sv=1&sig=s3cret"}, {})
    access = sas.settings.access("box@account.dfs.core.windows.net")
    shown = f"{caught.value!r} {store!r} {store.__dict__} {sas.__dict__} {access!r}"  # type: ignore[attr-defined]
    assert "s3cret" not in shown
    assert KEY not in shown
