"""S3LogStore: the meaning of each reply to a conditional write, and redirections."""

import threading
import traceback

import pytest

from logstore.fake_s3 import ACCESS_KEY, SECRET_KEY, Asked, FakeS3, Reply
from logstore.s3_paths import KEY, LOG, commit
from tablelog.errors import (
    StorageAccessError,
    StorageError,
    StorageMissingError,
    StorageUnavailableError,
    UnsafeStoreError,
    WriteOutcomeUnknown,
)
from tablelog.logstore.common.conditional_put import Verdict
from tablelog.logstore.s3 import replies
from tablelog.logstore.s3.conditional_put_store import S3LogStore


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
    assert replies.verdict_of(status, code) is verdict


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


def by_proxy(fake: FakeS3) -> dict[str, str]:
    """Settings by which the fake service is the proxy of a service that nobody can reach."""
    port = fake.endpoint.rpartition(":")[2]
    endpoint = "http://127.0.0.1:9"
    return {"fs.s3a.endpoint": endpoint, "fs.s3a.proxy.host": "127.0.0.1", "fs.s3a.proxy.port": port}


@pytest.mark.parametrize("applied", [True, False])
def test_a_reply_that_is_lost_behind_a_proxy_is_unknown(fake: FakeS3, applied: bool) -> None:
    """urllib3 has the same error for it as for a proxy that can't be reached."""
    store = fake.store(**by_proxy(fake))
    store.write(f"{LOG}/_probed", b"")
    fake.replies = [Reply(0, applied=applied)]
    with pytest.raises(WriteOutcomeUnknown):
        store.write(commit(0), b"data")
    assert ("/bucket/t/_delta_log/" + commit(0).rpartition("/")[2] in fake.objects) == applied


def test_a_proxy_that_can_not_be_reached_is_no_unknown_write(fake: FakeS3) -> None:
    store = fake.store(**{**by_proxy(fake), "fs.s3a.proxy.port": "1"})
    with pytest.raises(StorageUnavailableError, match="can't be reached"):
        store.write(commit(0), b"data")


PAGE = b"<html><body>Please log in</body></html>"


@pytest.mark.parametrize("reply", [Reply(204), Reply(202), Reply(200), Reply(200, body=PAGE)])
def test_a_success_of_another_service_is_no_success(fake: FakeS3, store: S3LogStore, reply: Reply) -> None:
    """A proxy or a portal may answer with any page. S3 sends an ETag with each write, and something with a listing."""
    fake.replies = [reply]
    with pytest.raises(WriteOutcomeUnknown):
        store.write(commit(0), b"data")
    fake.replies = [reply] * 1000
    with pytest.raises(StorageUnavailableError, match="ForeignReplyError"):
        store.write(f"{LOG}/_last_checkpoint", b"data", overwrite=True)
    fake.replies, fake.scripted = [reply] * 1000, lambda asked: True
    with pytest.raises(StorageUnavailableError):
        list(store.list_from(f"{LOG}/0"))


@pytest.mark.parametrize("token", [b"", b"<NextContinuationToken>same</NextContinuationToken>"])
def test_a_listing_without_an_end_is_an_error(fake: FakeS3, store: S3LogStore, token: bytes) -> None:
    page = b"<ListBucketResult><Name>bucket</Name><IsTruncated>true</IsTruncated>" + token + b"</ListBucketResult>"
    fake.replies, fake.scripted = [Reply(200, body=page)] * 1000, lambda asked: True
    with pytest.raises(StorageError, match="not where they begin"):
        list(store.list_from(f"{LOG}/0"))
    assert len(fake.asked) <= 2


def test_a_token_with_a_line_break_is_not_shown(fake: FakeS3) -> None:
    """Python's HTTP client quotes it in its error."""
    secret = "S3CRET-TOKEN"
    options = {"key": "k", "secret": "s", "token": f"{secret}\n"}
    store = fake.store(options, **{"fs.s3a.access.key": "", "fs.s3a.secret.key": ""})
    for request in (lambda: store.read(commit(0)), lambda: store.write(commit(0), b"data")):
        with pytest.raises(StorageAccessError, match="line break") as raised:
            request()
        assert secret not in "".join(traceback.format_exception(raised.value))
    assert not fake.asked


def test_credentials_that_come_later_are_used(fake: FakeS3, monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK looks for them when a client is made, and the message of the error says where to put them."""
    store = fake.store(**{"fs.s3a.access.key": "", "fs.s3a.secret.key": ""})
    with pytest.raises(StorageAccessError, match="no usable credentials"):
        store.read(commit(0))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDTEST")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s3cret")
    store.write(commit(0), b"data")
    assert store.read(commit(0)) == b"data"


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
