"""S3LogStore: a large file is one conditional request from a temporary file, with the outcomes of a small one."""

import tempfile
from collections.abc import Iterator
from typing import Any

import pytest

from logstore.fake_s3 import Asked, FakeS3, Reply
from logstore.large_files import PIECES, WHOLE
from logstore.s3_paths import KEY, commit
from support.clocks import ManualClock
from tablelog.core.txn.commit import Lost, Unknown, Won, attempt
from tablelog.errors import InvalidArgumentError, StorageError, UnsafeStoreError, WriteOutcomeUnknown
from tablelog.logstore.s3 import conditional_put_store, requests
from tablelog.logstore.s3.conditional_put_store import S3LogStore

NAME = f"{KEY}/{0:020}.json"


def test_one_request_with_the_whole_content(fake: FakeS3, store: S3LogStore, files: list[Any]) -> None:
    store.write_pieces(commit(0), iter(PIECES))
    assert fake.methods() == ["PUT?"]
    assert fake.objects[NAME] == WHOLE
    with pytest.raises(FileExistsError):
        store.write_pieces(commit(0), [b"other", b"content"])
    store.write_pieces(commit(1), [b"abcd"])
    store.write_pieces(commit(1), PIECES, overwrite=True)
    assert fake.methods() == ["PUT?", "PUT?", "PUT?", "PUT"]
    assert fake.objects[NAME] == fake.objects[f"{KEY}/{1:020}.json"] == WHOLE
    assert len(files) == 3  # four bytes need none
    assert all(file.closed for file in files)


def test_a_large_file_is_read_through_a_temporary_file(
    fake: FakeS3, store: S3LogStore, files: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "_CHUNK", 3)
    store.write(commit(0), WHOLE)
    store.write(commit(1), b"abcd")
    fake.replies = [Reply(503, "SlowDown")]
    with store.open_file(commit(0)) as large, store.open_file(commit(1)) as small:
        assert (large.readlines(), small.read()) == ([WHOLE], b"abcd")
        assert len(files) == 1
    assert files[0].closed
    with pytest.raises(FileNotFoundError):
        store.open_file(commit(7))


def test_a_full_disk_is_an_error_of_reading_too(
    fake: FakeS3, store: S3LogStore, monkeypatch: pytest.MonkeyPatch, files: list[Any]
) -> None:
    def full(**arguments: Any) -> Any:
        return open("/dev/full", "w+b", buffering=16)

    store.write(commit(0), WHOLE)
    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    with pytest.raises(StorageError, match=r"reading .*0\.json: .*No space left on device.*TMPDIR"):
        store.open_file(commit(0))


@pytest.mark.parametrize("reply", [Reply(409, "ConditionalRequestConflict"), Reply(503, "SlowDown")])
def test_the_whole_content_is_sent_again(fake: FakeS3, store: S3LogStore, files: list[Any], reply: Reply) -> None:
    fake.replies = [reply] * 2
    store.write_pieces(commit(0), PIECES)
    assert fake.methods() == ["PUT?"] * 3
    assert fake.objects[NAME] == WHOLE
    fake.replies = [Reply(500, "InternalError")]
    store.write_pieces(commit(0), [*PIECES, b"!"], overwrite=True)
    assert fake.objects[NAME] == WHOLE + b"!"
    assert len(files) == 2


def test_a_redirection_gets_the_whole_content(fake: FakeS3, files: list[Any]) -> None:
    with FakeS3() as other:
        store = fake.store()
        fake.probed.once(fake.endpoint, "bucket", lambda: None)
        fake.replies = [Reply(307, "TemporaryRedirect", {"Location": f"{other.endpoint}{NAME}"})]
        store.write_pieces(commit(0), PIECES)
        assert other.objects[NAME] == WHOLE
        assert other.methods() == ["PUT?"]


@pytest.mark.parametrize("applied", [False, True])
@pytest.mark.parametrize("reply", [Reply(500, "InternalError"), Reply(0)])
def test_an_unclear_answer_is_settled_by_the_commit(
    fake: FakeS3, store: S3LogStore, files: list[Any], reply: Reply, applied: bool
) -> None:
    token = b'{"commitInfo":{"txnId":"t-1"}}\n'
    scripted = [Reply(reply.status, reply.code, applied=applied)]

    def more() -> Iterator[bytes]:
        return iter([b'{"remove":{"path":"t-1"}}\n', b"{}\n"])

    fake.replies = list(scripted)
    with pytest.raises(WriteOutcomeUnknown):
        store.write_pieces(commit(5), more())
    fake.objects.clear()
    fake.replies = list(scripted)
    arguments: dict[str, Any] = {"clock": ManualClock(), "dice": lambda: 0.5, "more": more}
    outcome = attempt(store, commit(0), token, "t-1", **arguments)
    assert outcome == Won(read_back=applied)
    assert fake.objects[NAME] == token + b"".join(more())
    fake.objects[NAME] = b'{"remove":{"path":"t-1"}}\n{"add":"t-1\n{"commitInfo":{"txnId":"t-2"}}'
    lost = attempt(store, commit(0), token, "t-1", **arguments)
    assert lost == Lost(fake.objects[NAME])
    del fake.objects[NAME]
    fake.replies = [Reply(500, "InternalError")] * 100
    assert isinstance(attempt(store, commit(0), token, "t-1", **arguments), Unknown)
    assert all(file.closed for file in files)


def test_an_error_of_the_pieces_writes_nothing(fake: FakeS3, store: S3LogStore, files: list[Any]) -> None:
    error = ZeroDivisionError("of the caller")

    def broken() -> Iterator[bytes]:
        yield from PIECES
        raise error

    with pytest.raises(ZeroDivisionError) as caught:
        store.write_pieces(commit(0), broken())
    assert caught.value is error
    assert not fake.asked
    assert [file.closed for file in files] == [True]


@pytest.mark.parametrize("full", ["create", "write"])
def test_a_full_disk_writes_nothing(
    fake: FakeS3, store: S3LogStore, monkeypatch: pytest.MonkeyPatch, files: list[Any], full: str
) -> None:
    new = tempfile.TemporaryFile

    def refused(**arguments: Any) -> Any:
        if full == "create":
            raise OSError(28, "No space left on device")
        new(**arguments)
        return open("/dev/full", "w+b", buffering=16)

    monkeypatch.setattr(tempfile, "TemporaryFile", refused)
    with pytest.raises(StorageError, match=r"No space left on device.*TMPDIR"):
        store.write_pieces(commit(0), PIECES)
    assert not fake.asked


def test_what_one_request_doesnt_take_is_refused(
    fake: FakeS3, store: S3LogStore, files: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conditional_put_store, "LARGEST", len(WHOLE))
    store.write_pieces(commit(0), PIECES)
    with pytest.raises(InvalidArgumentError, match=f"{len(WHOLE) + 1} bytes"):
        store.write_pieces(commit(1), [*PIECES, b"!"])
    assert fake.methods() == ["PUT?"]


def test_a_service_without_conditions_is_found_out(fake: FakeS3, files: list[Any]) -> None:
    fake.enforces = False
    with pytest.raises(UnsafeStoreError):
        fake.store().write_pieces(commit(0), PIECES)
    assert NAME not in fake.objects


def test_expired_credentials_are_renewed(fake: FakeS3, files: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """The second request has the whole content too, although the first one has read the file."""
    store = fake.store()
    fake.probed.once(fake.endpoint, "bucket", lambda: None)
    requests = store._requests
    client = requests._clients["bucket"]
    monkeypatch.setattr(type(client.access), "renews", True)
    refusals = [Reply(400, "ExpiredToken")]

    def refused(asked: Asked) -> Reply | None:
        return refusals.pop() if refusals else None

    fake.refused = refused
    store.write_pieces(commit(0), PIECES)
    assert fake.methods() == ["PUT?", "PUT?"]
    assert fake.objects[NAME] == WHOLE
