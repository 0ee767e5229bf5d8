"""S3LogStore against a service in this process: what is sent, how often, and what each answer becomes."""

import logging
import multiprocessing
import os
import pickle
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from logstore.fake_s3 import ACCESS_KEY, SECRET_KEY, Asked, FakeS3, Reply
from tablelog.errors import (
    InvalidArgumentError,
    StorageAccessError,
    StorageError,
    StorageMissingError,
    StorageUnavailableError,
    UnsafeStoreError,
    UnsupportedEnvironmentError,
    WriteOutcomeUnknown,
)
from tablelog.logstore.common.conditional_put import Verdict
from tablelog.logstore.registry import new_store_for
from tablelog.logstore.s3 import requests as s3_requests
from tablelog.logstore.s3 import settings as s3_settings
from tablelog.logstore.s3.conditional_put_store import LARGEST, S3LogStore

LOG = "s3a://bucket/t/_delta_log"
KEY = "/bucket/t/_delta_log"


@pytest.fixture
def fake() -> Iterator[FakeS3]:
    with FakeS3() as service:
        yield service


@pytest.fixture
def store(fake: FakeS3) -> S3LogStore:
    """A store whose service has been probed."""
    found = fake.store()
    found.write(f"{LOG}/_probed", b"")
    fake.asked.clear()
    return found


def commit(version: int) -> str:
    return f"{LOG}/{version:020}.json"


# ---- what a reply means ----


@pytest.mark.parametrize(
    ("status", "code", "verdict"),
    [
        (412, "PreconditionFailed", Verdict.EXISTS),
        (412, "", Verdict.EXISTS),
        (304, "304", Verdict.EXISTS),
        (409, "ConditionalRequestConflict", Verdict.NOT_APPLIED),
        (409, "OperationAborted", Verdict.NOT_APPLIED),
        (429, "TooManyRequests", Verdict.NOT_APPLIED),
        (503, "SlowDown", Verdict.NOT_APPLIED),
        (503, "SlowDownWrite", Verdict.AMBIGUOUS),
        (503, "ServiceUnavailable", Verdict.AMBIGUOUS),
        (503, "", Verdict.AMBIGUOUS),
        (500, "InternalError", Verdict.AMBIGUOUS),
        (502, "", Verdict.AMBIGUOUS),
        (504, "", Verdict.AMBIGUOUS),
        (400, "RequestTimeout", Verdict.AMBIGUOUS),
        (400, "EntityTooLarge", Verdict.FAILED),
        (403, "AccessDenied", Verdict.FAILED),
        (404, "NoSuchBucket", Verdict.FAILED),
        (501, "NotImplemented", Verdict.FAILED),
    ],
)
def test_what_a_reply_means(status: int, code: str, verdict: Verdict) -> None:
    assert s3_requests.verdict_of(status, code) is verdict


def test_a_write_is_one_conditional_request(fake: FakeS3, store: S3LogStore) -> None:
    store.write(commit(0), b"data")
    assert fake.methods() == ["PUT?"]
    assert fake.asked[0].headers["if-none-match"] == "*"
    assert "expect" not in fake.asked[0].headers
    assert not [name for name in fake.asked[0].headers if name.startswith("x-amz-checksum")]
    assert fake.objects[f"{KEY}/{0:020}.json"] == b"data"


@pytest.mark.parametrize("reply", [Reply(412, "PreconditionFailed"), Reply(412), Reply(304)])
def test_exists_in_every_form_is_lost(fake: FakeS3, store: S3LogStore, reply: Reply) -> None:
    fake.replies = [reply]
    with pytest.raises(FileExistsError, match=f"{0:020}.json"):
        store.write(commit(0), b"data")
    assert fake.methods() == ["PUT?"]


@pytest.mark.parametrize(
    "reply", [Reply(409, "ConditionalRequestConflict"), Reply(429, "TooManyRequests"), Reply(503, "SlowDown")]
)
def test_what_was_not_applied_is_sent_again_with_its_condition(fake: FakeS3, store: S3LogStore, reply: Reply) -> None:
    fake.replies = [reply] * 3
    store.write(commit(0), b"data")
    assert fake.methods() == ["PUT?"] * 4


def test_a_service_that_turns_away_for_ever_is_given_up(fake: FakeS3, store: S3LogStore) -> None:
    fake.replies = [Reply(503, "SlowDown")] * 1000
    with pytest.raises(StorageUnavailableError, match="503 SlowDown"):
        store.write(commit(0), b"data")
    assert len(fake.asked) < 100


@pytest.mark.parametrize("applied", [True, False])
@pytest.mark.parametrize("status", [500, 502, 503, 504, 0])
def test_an_ambiguous_answer_is_unknown_and_sent_once(
    fake: FakeS3, store: S3LogStore, status: int, applied: bool
) -> None:
    fake.replies = [Reply(status, "InternalError" if status == 500 else "", applied=applied)]
    with pytest.raises(WriteOutcomeUnknown):
        store.write(commit(0), b"data")
    assert fake.methods() == ["PUT?"]


def test_a_reply_that_comes_too_late_is_unknown(fake: FakeS3) -> None:
    store = fake.store({"config_kwargs": {"read_timeout": 0.2}})
    store.write(f"{LOG}/_probed", b"")
    go = threading.Event()

    def wait(asked: Asked) -> bool:
        go.wait(10)
        return False

    fake.replies, fake.scripted = [Reply(200)], wait
    with pytest.raises(WriteOutcomeUnknown, match="ReadTimeoutError"):
        store.write(commit(0), b"data")
    go.set()


def test_a_refused_connection_is_no_unknown_write(fake: FakeS3) -> None:
    store = fake.store(**{"fs.s3a.endpoint": "http://127.0.0.1:1"})
    with pytest.raises(StorageUnavailableError, match="can't be reached"):
        store.write(commit(0), b"data")


@pytest.mark.parametrize(
    ("reply", "error", "says"),
    [
        (Reply(403, "AccessDenied"), StorageAccessError, "s3:PutObject"),
        (Reply(403, "InvalidAccessKeyId"), StorageAccessError, "fs.s3a.access.key"),
        (Reply(403, "SignatureDoesNotMatch"), StorageAccessError, "fs.s3a.secret.key"),
        (Reply(400, "ExpiredToken"), StorageAccessError, "expired"),
        (Reply(403, "RequestTimeTooSkewed"), StorageAccessError, "clock"),
        (Reply(401, ""), StorageAccessError, "fs.s3a.access.key"),
        (Reply(404, "NoSuchBucket"), StorageMissingError, "NoSuchBucket"),
        (Reply(400, "KeyTooLongError"), StorageError, "KeyTooLongError"),
        (Reply(501, "NotImplemented"), UnsafeStoreError, "S3DynamoDBLogStore"),
    ],
)
def test_a_refusal_has_its_error_and_what_to_do(
    fake: FakeS3, store: S3LogStore, reply: Reply, error: type[Exception], says: str
) -> None:
    fake.replies = [reply]
    with pytest.raises(error, match=says) as caught:
        store.write(commit(0), b"data")
    assert type(caught.value) is error
    assert f"{0:020}.json" in str(caught.value)
    assert SECRET_KEY not in str(caught.value)
    assert ACCESS_KEY not in str(caught.value)
    assert fake.methods() == ["PUT?"]


# ---- redirections ----


def test_a_redirection_is_followed_with_its_condition(fake: FakeS3, store: S3LogStore) -> None:
    with FakeS3() as other:
        for status in (307, 301):
            location = f"{other.endpoint}{KEY}/{status:020}.json"
            fake.replies = [Reply(status, "TemporaryRedirect", {"Location": location})]
            store.write(commit(status), b"data")
            fake.replies = [Reply(status, "TemporaryRedirect", {"Location": location})]
            with pytest.raises(FileExistsError):
                store.write(commit(status), b"other")
        puts = [asked for asked in other.asked if asked.method == "PUT"]
        assert len(puts) == 4
        assert all(asked.headers["if-none-match"] == "*" and "authorization" in asked.headers for asked in puts)
        assert all("host" in asked.headers["authorization"] for asked in puts)
        assert set(other.objects.values()) == {b"data"}


def test_redirections_without_end_are_given_up(fake: FakeS3, store: S3LogStore) -> None:
    location = {"Location": f"{fake.endpoint}{KEY}/x"}
    fake.replies = [Reply(307, "TemporaryRedirect", location)] * 50
    with pytest.raises(StorageError, match="307"):
        store.write(commit(0), b"data")
    assert fake.methods().count("PUT?") == 4


# ---- the probe ----


def test_the_probe_costs_three_requests_before_the_first_commit_only(fake: FakeS3) -> None:
    store = fake.store()
    list(store.list_from(f"{LOG}/"))
    with pytest.raises(FileNotFoundError):
        store.read(commit(0))
    store.write(f"{LOG}/_last_checkpoint", b"", overwrite=True)
    store.delete(f"{LOG}/_last_checkpoint")
    assert fake.methods() == ["list", "GET", "PUT", "DELETE"]
    fake.asked.clear()
    store.write(commit(0), b"data")
    assert fake.methods() == ["PUT?", "PUT?", "DELETE", "PUT?"]
    assert len({asked.key for asked in fake.asked[:3]}) == 1
    assert fake.asked[0].key.startswith(f"{KEY}/.")
    store.write(commit(1), b"data")
    fake.store().write("s3://bucket/another/_delta_log/x", b"data")
    assert fake.methods()[4:] == ["PUT?", "PUT?"]
    store.write("s3a://second/t/_delta_log/x", b"data")
    assert fake.methods()[6:] == ["PUT?", "PUT?", "DELETE", "PUT?"]
    assert list(fake.objects) == [
        f"{KEY}/{0:020}.json",
        f"{KEY}/{1:020}.json",
        "/bucket/another/_delta_log/x",
        "/second/t/_delta_log/x",
    ]


def test_a_service_that_ignores_the_condition_is_refused(fake: FakeS3) -> None:
    fake.enforces = False
    store = fake.store()
    for _ in range(2):
        with pytest.raises(UnsafeStoreError) as caught:
            store.write(commit(0), b"data")
    assert fake.objects == {}
    for word in ("S3DynamoDBLogStore", "S3SingleDriverLogStore", "newer version", "spark.delta.logStore"):
        assert word in str(caught.value)


@pytest.mark.parametrize("applied", [True, False])
def test_a_probe_with_ambiguous_answers_goes_on(fake: FakeS3, applied: bool) -> None:
    fake.replies = [Reply(500, "InternalError", applied=applied)]
    fake.store().write(commit(0), b"data")
    assert list(fake.objects) == [f"{KEY}/{0:020}.json"]


def test_a_probe_without_a_certain_answer_refuses_with_nothing_written(fake: FakeS3) -> None:
    fake.replies = [Reply(500, "InternalError")] * 100
    with pytest.raises(StorageUnavailableError, match="condition of a write failed"):
        fake.store().write(commit(0), b"data")


def test_a_probe_that_never_arrived_isnt_removed(fake: FakeS3) -> None:
    fake.replies, fake.scripted = [Reply(403, "AccessDenied")] * 10, lambda _asked: True
    with pytest.raises(StorageAccessError):
        fake.store().write(commit(0), b"data")
    assert fake.methods() == ["PUT?"]


def test_a_probe_that_cant_be_removed_warns(fake: FakeS3, caplog: pytest.LogCaptureFixture) -> None:
    fake.replies, fake.scripted = [Reply(403, "AccessDenied")], lambda asked: asked.method == "DELETE"
    with caplog.at_level(logging.WARNING):
        fake.store().write(commit(0), b"data")
    assert "couldn't be removed" in caplog.text
    assert [status.path for status in fake.store().list_from(f"{LOG}/")] == [commit(0)]


def test_threads_probe_once(fake: FakeS3) -> None:
    stores = [fake.store() for _ in range(4)]
    barrier = threading.Barrier(4)

    def write(number: int) -> None:
        barrier.wait()
        stores[number].write(commit(number), b"data")

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert fake.methods().count("PUT?") == 6


# ---- reads, listings, overwrites ----


@pytest.mark.parametrize("reply", [Reply(500, "InternalError"), Reply(503, "SlowDown"), Reply(0), Reply(429)])
def test_reads_listings_overwrites_and_deletes_are_tried_again(fake: FakeS3, store: S3LogStore, reply: Reply) -> None:
    fake.scripted = lambda _asked: True
    for operation in (
        lambda: store.write(commit(0), b"data", overwrite=True),
        lambda: store.read(commit(0)),
        lambda: list(store.list_from(f"{LOG}/")),
        lambda: store.delete(commit(0)),
    ):
        fake.asked.clear()
        fake.replies = [reply] * 2
        operation()
        assert len(fake.asked) == 3


def test_a_read_that_fails_for_good_has_its_error(fake: FakeS3, store: S3LogStore) -> None:
    fake.scripted = lambda _asked: True
    for reply, error in (
        (Reply(500, "InternalError"), StorageUnavailableError),
        (Reply(403, "AccessDenied"), StorageAccessError),
        (Reply(404, "NoSuchBucket"), StorageMissingError),
    ):
        for operation in (lambda: store.read(commit(0)), lambda: store.list_from(f"{LOG}/")):
            fake.replies = [reply] * 10
            with pytest.raises(error):
                operation()


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (Reply(404, "InvalidAccessKeyId"), StorageAccessError),
        (Reply(404, "SignatureDoesNotMatch"), StorageAccessError),
        (Reply(404, "AccessDenied"), StorageAccessError),
        (Reply(404, "NoSuchUpload"), StorageMissingError),
        (Reply(404, "NoSuchTenant"), StorageMissingError),
    ],
)
def test_a_404_that_is_not_of_the_key_is_not_an_absent_file(
    fake: FakeS3, store: S3LogStore, reply: Reply, error: type[Exception]
) -> None:
    """One server answers so to a wrong access key: that there is no table would be untrue."""
    fake.scripted = lambda _asked: True
    for operation in (
        lambda: store.read(commit(0)),
        lambda: store.list_from(f"{LOG}/"),
        lambda: store.delete(commit(0)),
    ):
        fake.replies = [reply] * 10
        with pytest.raises(error, match=reply.code) as caught:
            operation()
        assert not isinstance(caught.value, FileNotFoundError)


def test_a_listing_is_never_told_that_a_key_is_absent(fake: FakeS3, store: S3LogStore) -> None:
    fake.scripted = lambda _asked: True
    fake.replies = [Reply(404, "NoSuchKey")] * 10
    with pytest.raises(StorageMissingError, match="NoSuchKey"):
        store.list_from(f"{LOG}/")


def test_a_body_that_breaks_off_is_read_again(fake: FakeS3, store: S3LogStore) -> None:
    store.write(commit(0), b"whole")
    fake.asked.clear()
    whole = {"ETag": '"e"', "Last-Modified": "Fri, 02 Jan 2026 03:04:05 GMT"}
    fake.scripted = lambda asked: asked.method == "GET"
    fake.replies = [Reply(200, headers=whole, body=b"whole", cut=True)]
    assert store.read(commit(0)) == b"whole"
    assert fake.methods() == ["GET", "GET"]


def test_a_listing_starts_at_its_name_and_goes_over_pages(fake: FakeS3, store: S3LogStore) -> None:
    fake.page_size = 10
    for version in range(25):
        fake.objects[f"{KEY}/{version:020}.json"] = b"x" * version
    fake.objects[f"{KEY}/.{0:020}.json.00000000-0000-0000-0000-000000000000.tmp"] = b""
    fake.objects[f"{KEY}/below/x"] = b""
    listed = list(store.list_from(commit(3)))
    assert [status.path for status in listed] == [*(commit(version) for version in range(3, 25)), f"{LOG}/_probed"]
    assert [status.size for status in listed] == [*range(3, 25), 0]
    assert {status.modification_time_ms for status in listed} == {1767323045678}
    assert fake.asked[0].query["start-after"] == f"t/_delta_log/{3:020}.jso"
    assert fake.asked[0].query["delimiter"] == "/"
    assert fake.methods() == ["list"] * 3


def test_a_hole_in_a_listing_over_pages_is_looked_at_again(fake: FakeS3, store: S3LogStore) -> None:
    """Version 1 is written after the page that it would be on was read, and version 2 before the next page is."""
    fake.page_size = 1
    fake.objects[f"{KEY}/{0:020}.json"] = b""
    fake.objects[f"{KEY}/{0:020}.zzz"] = b""

    def write_late(asked: Asked) -> bool:
        if asked.query.get("continuation-token", "").endswith(".zzz"):
            fake.objects[f"{KEY}/{2:020}.json"] = b""
        if asked.query.get("continuation-token", "").endswith(f"{2:020}.json"):
            fake.objects[f"{KEY}/{1:020}.json"] = b""
        return False

    fake.replies, fake.scripted = [Reply(200)], write_late
    names = [status.path.rpartition("/")[2] for status in store.list_from(commit(0))]
    assert names[:4] == [f"{0:020}.json", f"{0:020}.zzz", f"{1:020}.json", f"{2:020}.json"]


def test_a_directory_bucket_is_listed_whole_and_sorted(fake: FakeS3, monkeypatch: pytest.MonkeyPatch) -> None:
    from tablelog.logstore.s3.requests import Listed

    asked: list[str | None] = []

    def unordered(_self: Any, place: Any, after: str | None) -> Iterator[Listed]:
        asked.append(after)
        for version in (2, 0, 1):
            yield Listed(f"{place.directory}{version:020}.json", 1, 0)

    monkeypatch.setattr(s3_requests.S3Requests, "list", unordered)
    listed = fake.store().list_from(f"s3a://b--use1-az4--x-s3/t/_delta_log/{1:020}.json")
    assert [status.path[-6:] for status in listed] == ["1.json", "2.json"]
    assert asked == [None]


def test_names_that_a_uri_must_escape(fake: FakeS3, store: S3LogStore) -> None:
    for name in ("a b", "a%20b", "a+b", "é", "a#1x", "q?x"):
        path = store.resolve(
            f"{LOG}/{name.replace('%', '%25').replace('#', '%23').replace('?', '%3F').replace(' ', '%20')}"
        )
        store.write(path, name.encode())
        assert store.read(path) == name.encode()
        assert path in [status.path for status in store.list_from(f"{LOG}/")]
    assert f"{KEY}/a%20b" in fake.objects
    assert f"{KEY}/a b" in fake.objects


@pytest.mark.parametrize("name", ["", f".x.{'0' * 8}-0000-0000-0000-{'0' * 12}.tmp", ".x.json.crc", "x%231"])
def test_names_that_a_listing_would_hide_cant_be_written(store: S3LogStore, name: str) -> None:
    with pytest.raises(InvalidArgumentError):
        store.write(f"{LOG}/{name}", b"")


@pytest.mark.parametrize("path", ["s3a://AKIA123:s3cret@bucket/t/x", "s3a://AKIA123@bucket/t/x", "s3a://host:9000/t/x"])
def test_more_than_a_bucket_in_a_path_is_refused_with_no_secret(store: S3LogStore, path: str) -> None:
    for call in (store.resolve, store.read, store.list_from, store.delete):
        with pytest.raises(InvalidArgumentError, match=r"fs\.s3a\.access\.key") as caught:
            call(path)
        assert "s3cret" not in str(caught.value)
        assert "AKIA" not in str(caught.value)


def test_a_bucket_that_cant_exist_is_refused(store: S3LogStore) -> None:
    with pytest.raises(InvalidArgumentError, match="bucket"):
        store.read("s3a://no bucket/t/x")


def test_what_one_request_doesnt_take_is_refused(fake: FakeS3, store: S3LogStore) -> None:
    class Large(bytes):
        """Says that it has `LARGEST` bytes and some more."""

        def __len__(self) -> int:
            return LARGEST + super().__len__()

    store.write(commit(0), Large(b""))
    with pytest.raises(InvalidArgumentError, match=f"{LARGEST + 1} bytes"):
        store.write(commit(1), Large(b"a"))
    assert fake.methods() == ["PUT?"]


# ---- processes, threads, descriptors, packages ----


def test_a_copy_and_a_forked_child_have_connections_of_their_own(fake: FakeS3, store: S3LogStore) -> None:
    store.write(commit(0), b"data")
    copy = pickle.loads(pickle.dumps(store))
    assert copy.read(commit(0)) == b"data"
    with pytest.raises(FileExistsError):
        copy.write(commit(0), b"other")
    before = fake.connections
    child = multiprocessing.get_context("fork").Process(target=store.write, args=(commit(1), b"child"))
    child.start()
    child.join(30)
    assert child.exitcode == 0
    assert fake.connections == before + 1
    assert store.read(commit(1)) == b"child"


def test_a_thousand_losers_leave_no_descriptor(fake: FakeS3, store: S3LogStore) -> None:
    store.write(commit(0), b"data")
    before = len(os.listdir("/proc/self/fd"))

    def lose() -> None:
        for _ in range(250):
            with pytest.raises(FileExistsError):
                store.write(commit(0), b"data")

    threads = [threading.Thread(target=lose) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # Both ends of each kept connection are in this process.
    assert len(os.listdir("/proc/self/fd")) - before <= 2 * 4
    assert fake.methods().count("PUT?") == 1001


def test_a_missing_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "botocore"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "botocore", None)
    store = new_store_for("s3a://bucket/t")
    with pytest.raises(UnsupportedEnvironmentError, match=r"pip install 'tablelog\[s3\]'"):
        store.read("s3a://bucket/t/x")


def test_nothing_shows_a_secret(fake: FakeS3) -> None:
    settings = s3_settings.S3Settings.of(
        "s3a", {**fake.conf, "fs.s3a.session.token": "t0ken"}, {"secret": "other-s3cret"}
    )
    for shown in (repr(settings), str(settings), repr(settings.access("b")), repr(replace(settings.access("b")))):
        assert SECRET_KEY not in shown
        assert ACCESS_KEY not in shown
        assert "t0ken" not in shown
        assert "other-s3cret" not in shown


def test_a_time_that_is_off_by_a_day_in_the_answers_changes_nothing(fake: FakeS3, store: S3LogStore) -> None:
    fake.replies = [
        Reply(200, headers={"Date": time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(0))}, applied=True)
    ]
    store.write(commit(0), b"data")
    assert store.read(commit(0)) == b"data"
