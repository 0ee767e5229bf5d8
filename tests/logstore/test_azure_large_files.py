"""The Azure store with large files: one conditional request from a temporary file, and replies read in parts."""

from collections.abc import Iterator
from typing import Any

import pytest

from logstore.large_files import PIECES, WHOLE, broken_pieces
from logstore.playback import NO_REPLY, Playback, Played
from logstore.test_azure import CREATED, PATH, refused, store_at
from tablelog.errors import (
    CorruptLogError,
    InvalidArgumentError,
    StorageAccessError,
    StorageError,
    StorageMissingError,
    StorageUnavailableError,
    WriteOutcomeUnknown,
)
from tablelog.logstore.azure import store as azure_store
from tablelog.logstore.azure.store import AzureLogStore
from tablelog.logstore.common import spool


@pytest.fixture(autouse=True)
def small_limits(files: list[Any], monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(spool, "_CHUNK", 50)
    monkeypatch.setattr(azure_store, "_PIECE", 50)
    yield
    assert all(file.closed for file in files)


def conditions(service: Playback) -> list[str | None]:
    return [asked.headers.get("if-none-match") for asked in service.asked]


def test_it_is_one_put_from_a_file(files: list[Any]) -> None:
    with Playback(CREATED) as service:
        store = store_at(service)
        store.write_pieces(PATH, iter(PIECES))
        store.write_pieces(PATH, PIECES, overwrite=True)
        store.write_pieces(PATH, [b"ab", b"cd"])
        assert [asked.body for asked in service.asked] == [WHOLE, WHOLE, b"abcd"]
        assert [(asked.method, asked.query) for asked in service.asked] == [("PUT", {})] * 3
        assert conditions(service) == ["*", None, "*"]
        large, _, small = (asked.headers for asked in service.asked)
        assert large["content-length"] == str(len(WHOLE))
        assert "transfer-encoding" not in large
        assert large["x-ms-blob-type"] == small["x-ms-blob-type"] == "BlockBlob"
        assert large["authorization"].partition(":")[0] == small["authorization"].partition(":")[0]
    assert len(files) == 2


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (refused(409, "BlobAlreadyExists"), FileExistsError),
        (refused(412, "ConditionNotMet"), FileExistsError),
        (refused(500, "InternalError"), WriteOutcomeUnknown),
        (refused(503, "ServerBusy"), WriteOutcomeUnknown),
        (NO_REPLY, WriteOutcomeUnknown),
        (refused(403, "AuthorizationFailure"), StorageAccessError),
        (refused(404, "ContainerNotFound"), StorageMissingError),
        (refused(413, "RequestBodyTooLarge"), StorageError),
    ],
)
def test_each_answer_is_taken_at_once(reply: Played, error: type[Exception]) -> None:
    with Playback(reply, CREATED) as service:
        with pytest.raises(error):
            store_at(service).write_pieces(PATH, PIECES)
        assert len(service.asked) == 1


def test_each_further_request_has_the_whole_content() -> None:
    with Playback(refused(429), CREATED) as service:
        store_at(service).write_pieces(PATH, PIECES)
        assert [asked.body for asked in service.asked] == [WHOLE] * 2
        assert conditions(service) == ["*", "*"]
    with Playback(refused(503, "ServerBusy"), NO_REPLY, CREATED) as service:
        store_at(service).write_pieces(PATH, PIECES, overwrite=True)
        assert [asked.body for asked in service.asked] == [WHOLE] * 3
    with Playback(CREATED) as target:
        with Playback(Played(307, {"Location": f"{target.endpoint}/account/box/other"})) as service:
            store_at(service).write_pieces(PATH, PIECES)
        assert [asked.body for asked in target.asked] == [WHOLE]
        assert conditions(target) == ["*"]


def test_what_one_request_doesnt_take_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(azure_store, "LARGEST_PUT", len(WHOLE))
    with Playback(CREATED) as service:
        store_at(service).write_pieces(PATH, PIECES)
        with pytest.raises(InvalidArgumentError, match=f"{len(WHOLE) + 1} bytes"):
            store_at(service).write_pieces(PATH, [*PIECES, b"!"])
        assert len(service.asked) == 1


def test_an_sdk_without_its_generated_client_gets_all_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = AzureLogStore._blob

    class Blob:
        def __init__(self, blob: Any) -> None:
            self.upload_blob = blob.upload_blob

    monkeypatch.setattr(AzureLogStore, "_blob", lambda store, path: Blob(whole(store, path)))
    with Playback(CREATED) as service:
        store_at(service).write_pieces(PATH, PIECES)
        assert [asked.body for asked in service.asked] == [WHOLE]
        assert conditions(service) == ["*"]


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
