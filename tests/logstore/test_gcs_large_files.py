"""The store on Google Cloud Storage with large files: one request from a temporary file, and replies read in pieces."""

import json
from typing import Any

import pytest
from google.oauth2.credentials import Credentials

from logstore.large_files import PIECES, WHOLE, broken_pieces
from logstore.playback import NO_REPLY, Playback, Played
from logstore.test_gcs import CREATED, PATH, refused, store_at
from tablelog.errors import CorruptLogError, StorageError, StorageUnavailableError, WriteOutcomeUnknown
from tablelog.logstore.common import spool
from tablelog.logstore.gcs import store as gcs_store
from tablelog.logstore.gcs.store import GCSLogStore


@pytest.fixture(autouse=True)
def small_chunks(files: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "_CHUNK", 7)
    monkeypatch.setattr(gcs_store, "_CHUNK", 7)


def test_it_is_one_upload_from_a_file(files: list[Any]) -> None:
    with Playback(CREATED) as service:
        store = store_at(service)
        store.write_pieces(PATH, iter(PIECES))
        store.write_pieces(PATH, PIECES, overwrite=True)
        store.write_pieces(PATH, [b"ab", b"cd"])
        assert [asked.body for asked in service.asked] == [WHOLE, WHOLE, b"abcd"]
        assert [asked.query.get("ifGenerationMatch") for asked in service.asked] == ["0", None, "0"]
        assert service.asked[0].headers["content-length"] == str(len(WHOLE))
    assert [file.closed for file in files] == [True, True]


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (refused(412, "conditionNotMet"), FileExistsError),
        (refused(503), WriteOutcomeUnknown),
        (NO_REPLY, WriteOutcomeUnknown),
        (refused(400, "invalid"), StorageError),
    ],
)
def test_each_answer_is_taken_at_once(files: list[Any], reply: Played, error: type[Exception]) -> None:
    with Playback(reply, CREATED) as service:
        with pytest.raises(error):
            store_at(service).write_pieces(PATH, PIECES)
        assert len(service.asked) == 1
    assert [file.closed for file in files] == [True]


def test_each_further_request_has_the_whole_content() -> None:
    with Playback(refused(429), refused(403, "rateLimitExceeded"), CREATED) as service:
        store_at(service).write_pieces(PATH, PIECES)
        assert [asked.body for asked in service.asked] == [WHOLE] * 3
    with Playback(refused(503), NO_REPLY, CREATED) as service:
        store_at(service).write_pieces(PATH, PIECES, overwrite=True)
        assert [asked.body for asked in service.asked] == [WHOLE] * 3
    with Playback(CREATED) as target:
        with Playback(Played(307, {"Location": f"{target.endpoint}/upload/storage/v1/b/bucket/o"})) as service:
            store_at(service).write_pieces(PATH, PIECES)
        assert [asked.body for asked in target.asked] == [WHOLE]


def test_a_token_that_expired_is_renewed() -> None:
    """Google's session sends the request again by itself, after it has read the file."""
    token = Played(200, {"Content-Type": "application/json"}, json.dumps({"access_token": "t2"}).encode())
    with Playback(refused(401, "authError"), token, CREATED) as service:
        user = Credentials(
            "t1", client_id="c", client_secret="s3cret", refresh_token="r", token_uri=f"{service.endpoint}/"
        )
        store = GCSLogStore.configured("gs", {"fs.gs.storage.root.url": service.endpoint}, {"token": user})
        store.write_pieces(PATH, PIECES)
        assert [asked.body for asked in service.asked if asked.path != "/"] == [WHOLE] * 2


def test_an_error_of_the_pieces_sends_nothing() -> None:
    with Playback(CREATED) as service:
        with pytest.raises(ZeroDivisionError):
            store_at(service).write_pieces(PATH, broken_pieces())
        assert not service.asked


def test_a_large_file_is_read_through_a_temporary_file(files: list[Any]) -> None:
    cut = Played(200, {}, WHOLE, cut=20)
    with Playback(cut, Played(200, {}, WHOLE)) as service:
        with store_at(service).open_file(PATH) as file:
            assert file.read() == WHOLE
        assert len(service.asked) == 2
    assert [file.closed for file in files] == [True, True]
    with Playback(Played(200, {}, b"ab")) as service, store_at(service).open_file(PATH) as file:
        assert file.read() == b"ab"
    with Playback(cut) as service, pytest.raises(StorageUnavailableError):
        store_at(service).open_file(PATH)
    with Playback(refused(404, "notFound")) as service, pytest.raises(FileNotFoundError):
        store_at(service).open_file(PATH)
    assert all(file.closed for file in files)


def test_a_file_is_read_up_to_a_size() -> None:
    with Playback(Played(200, {}, WHOLE)) as service:
        store = store_at(service)
        assert store.read_at_most(PATH, len(WHOLE)) == WHOLE
        with pytest.raises(CorruptLogError, match="has 108 bytes, but should have 107 at most"):
            store.read_at_most(PATH, 107)


def test_what_is_too_large_is_not_received(monkeypatch: pytest.MonkeyPatch) -> None:
    """The length in the reply decides: the rest of the body isn't waited for."""
    endless = Played(200, {}, b"x" * 1000, cut=10)
    with Playback(endless) as service:
        with pytest.raises(CorruptLogError):
            store_at(service).read_at_most(PATH, 107)
        assert len(service.asked) == 1
