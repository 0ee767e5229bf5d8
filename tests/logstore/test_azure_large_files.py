"""The Azure store with large files: blocks with names of their own, which one conditional request makes the content."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from logstore.large_files import PIECES, WHOLE, broken_pieces
from logstore.playback import NO_REPLY, Asked, Playback, Played
from logstore.test_azure import CREATED, PATH, refused, store_at
from tablelog.errors import (
    CorruptLogError,
    StorageAccessError,
    StorageError,
    StorageUnavailableError,
    WriteOutcomeUnknown,
)
from tablelog.logstore.azure import store as azure_store
from tablelog.logstore.common import spool

GONE = refused(400, "InvalidBlockList")
FOUND = Played(200, {"ETag": '"1"', "x-ms-blob-type": "BlockBlob"})


@pytest.fixture(autouse=True)
def small_limits(files: list[Any], monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(spool, "_CHUNK", 50)
    monkeypatch.setattr(azure_store, "_PIECE", 50)
    yield
    assert all(file.closed for file in files)


def kinds(service: Playback) -> list[str]:
    """What was asked: `block`, `list`, `list?` with the condition, or the method."""
    return [
        {"block": "block", "blocklist": "list"}.get(asked.query.get("comp", ""), asked.method)
        + "?" * (asked.headers.get("if-none-match") == "*")
        for asked in service.asked
    ]


def blocks(service: Playback) -> list[Asked]:
    return [asked for asked in service.asked if asked.query.get("comp") == "block"]


def test_blocks_become_the_content_by_one_request_with_the_condition() -> None:
    with Playback(CREATED) as service:
        store_at(service).write_pieces(PATH, iter(PIECES))
        assert kinds(service) == ["block", "block", "block", "list?"]
        assert b"".join(asked.body for asked in blocks(service)) == WHOLE
        named = re.findall(r"<Latest>(.*?)</Latest>", service.asked[-1].body.decode())
        assert named == [asked.query["blockid"] for asked in blocks(service)]


def test_two_writers_never_use_the_same_names() -> None:
    """A service keeps the last block of each name: with the same names, one writer's content would get into the
    other's."""
    with Playback(CREATED) as service:
        store_at(service).write_pieces(PATH, PIECES)
        store_at(service).write_pieces(PATH, PIECES)
        assert len({asked.query["blockid"] for asked in blocks(service)}) == 6


def test_a_small_file_in_pieces_is_one_put() -> None:
    with Playback(CREATED) as service:
        store_at(service).write_pieces(PATH, [b"ab", b"cd"])
        assert kinds(service) == ["PUT?"]


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (refused(409, "BlobAlreadyExists"), FileExistsError),
        (refused(412, "ConditionNotMet"), FileExistsError),
        (refused(500, "InternalError"), WriteOutcomeUnknown),
        (refused(503, "ServerBusy"), WriteOutcomeUnknown),
        (NO_REPLY, WriteOutcomeUnknown),
        (refused(403, "AuthorizationFailure"), StorageAccessError),
    ],
)
def test_the_answer_to_the_list_is_the_outcome(reply: Played, error: type[Exception]) -> None:
    with Playback(CREATED, CREATED, CREATED, reply) as service:
        with pytest.raises(error):
            store_at(service).write_pieces(PATH, PIECES)
        assert kinds(service) == ["block", "block", "block", "list?"]


def test_who_lost_may_be_told_that_the_blocks_are_gone() -> None:
    with Playback(CREATED, CREATED, CREATED, GONE, FOUND) as service:
        with pytest.raises(FileExistsError):
            store_at(service).write_pieces(PATH, PIECES)
        assert kinds(service) == ["block", "block", "block", "list?", "HEAD"]
    absent = Played(404, {"x-ms-error-code": "BlobNotFound"})
    with (
        Playback(CREATED, CREATED, CREATED, GONE, absent) as service,
        pytest.raises(StorageError, match=r"InvalidBlockList.*nothing was written"),
    ):
        store_at(service).write_pieces(PATH, PIECES)


def test_a_block_is_sent_again_alone() -> None:
    with Playback(CREATED, refused(503, "ServerBusy"), NO_REPLY, CREATED) as service:
        store_at(service).write_pieces(PATH, PIECES)
        assert kinds(service) == ["block"] * 5 + ["list?"]
        assert len({asked.query["blockid"] for asked in blocks(service)}) == 3


def test_a_block_that_is_refused_writes_nothing() -> None:
    with Playback(CREATED, refused(403, "AuthorizationFailure")) as service:
        with pytest.raises(StorageAccessError):
            store_at(service).write_pieces(PATH, PIECES)
        assert kinds(service) == ["block", "block"]


def test_an_overwrite_sends_its_blocks_again_when_they_are_gone() -> None:
    with Playback(CREATED, CREATED, CREATED, GONE, CREATED, CREATED, CREATED, CREATED) as service:
        store_at(service).write_pieces(PATH, PIECES, overwrite=True)
        assert kinds(service) == ["block", "block", "block", "list"] * 2
    with Playback(GONE) as service, pytest.raises(StorageError, match="InvalidBlockList"):
        store_at(service).write_pieces(PATH, PIECES, overwrite=True)


def test_an_error_of_the_pieces_sends_nothing() -> None:
    with Playback(CREATED) as service:
        with pytest.raises(ZeroDivisionError):
            store_at(service).write_pieces(PATH, broken_pieces())
        assert not service.asked


def part(start: int, end: int, data: bytes = WHOLE, etag: str = '"1"') -> Played:
    headers = {"Content-Range": f"bytes {start}-{end - 1}/{len(data)}", "ETag": etag, "x-ms-blob-type": "BlockBlob"}
    return Played(206, headers, data[start:end])


HEAD = Played(200, {"ETag": '"1"', "x-ms-blob-type": "BlockBlob", "Content-Length": "108"})


def test_a_large_file_is_read_in_parts_of_one_version() -> None:
    with Playback(HEAD, part(0, 50), part(50, 100), part(100, 108)) as service:
        with store_at(service).open_file(PATH) as file:
            assert file.read() == WHOLE
        ranges = [asked.headers.get("x-ms-range") for asked in service.asked]
        assert ranges == [None, "bytes=0-49", "bytes=50-99", "bytes=100-149"]
        assert [asked.headers.get("if-match") for asked in service.asked] == [None, '"1"', '"1"', '"1"']


def test_a_file_that_is_replaced_meanwhile_is_read_again() -> None:
    changed = refused(412, "ConditionNotMet")
    replies = [HEAD, part(0, 50), changed, HEAD, part(0, 50), part(50, 100), part(100, 108)]
    with Playback(*replies) as service, store_at(service).open_file(PATH) as file:
        assert file.read() == WHOLE
    with Playback(*[HEAD, part(0, 50), changed] * 9) as service, pytest.raises(StorageUnavailableError, match="412"):
        store_at(service).open_file(PATH)


def test_a_file_is_read_up_to_a_size() -> None:
    with Playback(part(0, 108), part(0, 51), Played(404, {"x-ms-error-code": "BlobNotFound"})) as service:
        store = store_at(service)
        assert store.read_at_most(PATH, 108) == WHOLE
        with pytest.raises(CorruptLogError, match="has more than 50 bytes, but should have 50 at most"):
            store.read_at_most(PATH, 50)
        with pytest.raises(FileNotFoundError):
            store.read_at_most(PATH, 50)
        assert [asked.headers["x-ms-range"] for asked in service.asked[:2]] == ["bytes=0-108", "bytes=0-50"]
