"""Reads after the first one are copies of the SDK's request: the same to the service, and the same to the caller."""

from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

import pytest

from logstore.fake_s3 import ACCESS_KEY, FakeS3, Reply
from tablelog.errors import CorruptLogError, StorageAccessError
from tablelog.logstore.s3 import object_reader as s3_reading
from tablelog.logstore.s3.object_reader import Reader
from tablelog.logstore.s3.settings import S3Access, sdk

LOG = "s3a://bucket/t/_delta_log"
NAMES = ("0.json", "a b%20+é~c#d?e&f=g.json", "1.json")


@pytest.fixture
def fake() -> Iterator[FakeS3]:
    with FakeS3() as service:
        service.objects |= {f"/bucket/t/_delta_log/{name}": name.encode() for name in NAMES}
        service.scripted = lambda asked: asked.method == "GET"
        yield service


def path(name: str) -> str:
    return f"{LOG}/{quote(name)}"


@pytest.fixture
def copies(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The keys that were read by a copy."""
    keys: list[str] = []
    original = Reader.read

    def read(reader: Reader, key: str, most: int | None = None) -> bytes | None:
        found = original(reader, key, most)
        if found is not None:
            keys.append(key)
        return found

    monkeypatch.setattr(Reader, "read", read)
    return keys


@pytest.mark.parametrize("more", [{}, {"fs.s3a.requester.pays.enabled": "true", "fs.s3a.session.token": "t"}])
def test_a_copy_asks_as_the_sdk_does(fake: FakeS3, copies: list[str], more: dict[str, str]) -> None:
    store = fake.store(**more)
    assert [store.read(path(name)) for name in NAMES] == [name.encode() for name in NAMES]
    assert len(copies) == 2
    first, second, third = ({**asked.headers} for asked in fake.asked)
    assert set(first) - set(second) <= {"amz-sdk-invocation-id", "amz-sdk-request"}
    assert set(second) == set(third)
    for headers in (second, third):
        assert ACCESS_KEY in headers["authorization"]
        changing = {"authorization", "x-amz-date"}
        assert {**headers, **dict.fromkeys(changing)}.items() <= {**first, **dict.fromkeys(changing)}.items()
    assert len({headers["authorization"] for headers in (first, second, third)}) == 3


def test_a_file_is_read_up_to_a_size(fake: FakeS3, copies: list[str]) -> None:
    """The first request is the SDK's, and the later ones are copies, whichever kind came first."""
    fake.objects["/bucket/t/_delta_log/empty.json"] = b""
    store = fake.store()
    assert store.read_at_most(path("0.json"), 6) == b"0.json"
    assert store.read(path("0.json")) == b"0.json"
    assert store.read_at_most(path("1.json"), 6) == b"1.json"
    with pytest.raises(CorruptLogError, match=r"0\.json has more than 5 bytes, but should have 5 at most"):
        store.read_at_most(path("0.json"), 5)
    assert [asked.headers.get("range") for asked in fake.asked] == ["bytes=0-6", None, "bytes=0-6", "bytes=0-5"]
    assert len(copies) == 3
    assert store.read_at_most(path("empty.json"), 5) == b""
    assert fake.store().read_at_most(path("empty.json"), 5) == b""
    with pytest.raises(FileNotFoundError, match=r"2\.json"):
        store.read_at_most(path("2.json"), 5)


def test_nobody_signs_for_the_anonymous(fake: FakeS3, copies: list[str]) -> None:
    store = fake.store(**{"fs.s3a.aws.credentials.provider": "org.x.AnonymousAWSCredentialsProvider"})
    assert [store.read(path(name)) for name in NAMES] == [name.encode() for name in NAMES]
    assert len(copies) == 2
    assert not [asked for asked in fake.asked if "authorization" in asked.headers]


def test_a_checksum_that_was_asked_for_is_left_to_the_sdk(fake: FakeS3, copies: list[str]) -> None:
    store = fake.store({"config_kwargs": {"response_checksum_validation": "when_supported"}})
    assert [store.read(path(name)) for name in NAMES] == [name.encode() for name in NAMES]
    assert not copies
    assert all("x-amz-checksum-mode" in asked.headers for asked in fake.asked)


def test_what_is_absent_is_asked_for_once(fake: FakeS3) -> None:
    store = fake.store()
    store.read(path("0.json"))
    with pytest.raises(FileNotFoundError, match=r"2\.json"):
        store.read(path("2.json"))
    assert fake.methods() == ["GET", "GET"]


@pytest.mark.parametrize(
    "reply",
    [Reply(503, "SlowDown"), Reply(500, "InternalError"), Reply(0), Reply(200, body=b"half of it", cut=True)],
    ids=["503", "500", "no reply", "cut"],
)
def test_what_passes_is_asked_for_again(fake: FakeS3, reply: Reply) -> None:
    store = fake.store()
    store.read(path("0.json"))
    fake.replies = [reply] * 2
    assert store.read(path("1.json")) == b"1.json"
    assert len(fake.asked) == 4


def test_a_redirection_is_followed_by_the_sdk(fake: FakeS3) -> None:
    store = fake.store()
    store.read(path("0.json"))
    there = f"{fake.endpoint}/bucket/t/_delta_log/1.json?there"
    fake.replies = [Reply(307, "TemporaryRedirect", {"Location": there})] * 2
    assert store.read(path("1.json")) == b"1.json"
    assert "there" in fake.asked[-1].query
    assert store.read(path("0.json")) == b"0.json"
    assert not fake.asked[-1].query


def test_a_refusal_is_told_as_the_sdk_tells_it(fake: FakeS3) -> None:
    store = fake.store()
    store.read(path("0.json"))
    fake.replies = [Reply(403, "ExpiredToken")] * 2
    with pytest.raises(StorageAccessError, match="expired"):
        store.read(path("1.json"))


# --- what the SDK doesn't promise to keep -----------------------------------------------------------------------------


def fail(*_: Any, **__: Any) -> Any:
    raise TypeError("its arguments are others now")


def without_endpoint(patch: pytest.MonkeyPatch) -> None:
    made = S3Access.client

    def client(self: S3Access) -> Any:
        class Changed:
            """A client whose private attribute has another name."""

            def __getattr__(self, name: str) -> Any:
                if name == "_endpoint":
                    raise AttributeError(name)
                return getattr(found, name)

        found = made(self)
        return Changed()

    patch.setattr(S3Access, "client", client)


def without_requests() -> Any:
    class Changed:
        exceptions = sdk().exceptions

    return Changed


def with_another_signer(before_key: str, headers: Any, context: Any, signer: Any) -> Any:
    class Signer:
        sign = fail

    return Model(before_key, headers, context, Signer())


def with_another_session(patch: pytest.MonkeyPatch) -> None:
    """Only copies fail: what the SDK itself prepares has its body as a stream."""
    request = sdk().awsrequest.AWSRequest
    prepare = request.prepare
    patch.setattr(request, "prepare", lambda self: prepare(self) if self.stream_output else fail())


Model = s3_reading._Model
BROKEN: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "no endpoint": without_endpoint,
    "another request": lambda patch: patch.setattr(s3_reading, "sdk", without_requests),
    "another signer": lambda patch: patch.setattr(s3_reading, "_Model", with_another_signer),
    "another session": with_another_session,
}


@pytest.mark.parametrize("broken", BROKEN)
def test_another_version_of_the_sdk_reads_by_itself(
    fake: FakeS3, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, broken: str
) -> None:
    BROKEN[broken](monkeypatch)
    store = fake.store()
    assert [store.read(path(name)) for name in (*NAMES, *NAMES)] == [name.encode() for name in (*NAMES, *NAMES)]
    with pytest.raises(FileNotFoundError):
        store.read(path("2.json"))
    said = [record for record in caplog.records if "botocore" in record.getMessage()]
    assert len(said) == 1, "once for a client"


def test_a_hook_with_other_arguments_is_no_error(fake: FakeS3, monkeypatch: pytest.MonkeyPatch) -> None:
    note = s3_reading._note
    monkeypatch.setattr(s3_reading, "_note", lambda **_: note(something="else"))
    store = fake.store()
    assert [store.read(path(name)) for name in NAMES] == [name.encode() for name in NAMES]


def test_what_the_credentials_lack_is_told_and_changes_nothing(
    fake: FakeS3, copies: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error of the SDK's own is one of the request, and not of the way that it is made."""
    store = fake.store()
    store.read(path("0.json"))
    with monkeypatch.context() as patch:
        patch.setattr("botocore.signers.RequestSigner.sign", lambda *_: (_ for _ in ()).throw(no_credentials()))
        with pytest.raises(StorageAccessError):
            store.read(path("1.json"))
    assert store.read(path("1.json")) == b"1.json"
    assert len(copies) == 1


def no_credentials() -> Exception:
    return sdk().exceptions.NoCredentialsError()  # type: ignore[no-any-return]
