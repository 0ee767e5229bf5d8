"""S3LogStore: reads, listings, overwrites and the names of objects."""

from collections.abc import Iterator
from typing import Any

import pytest

from logstore.fake_s3 import Asked, FakeS3, Reply
from logstore.s3_paths import KEY, LOG, commit
from tablelog.errors import InvalidArgumentError, StorageAccessError, StorageMissingError, StorageUnavailableError
from tablelog.logstore.s3 import requests as s3_requests
from tablelog.logstore.s3.conditional_put_store import LARGEST, S3LogStore
from tablelog.logstore.s3.places import place_of


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


@pytest.mark.parametrize(
    ("replies", "times"),
    [
        ([Reply(503, "SlowDown")] * 10, 8),
        ([Reply(503)] * 10, 8),
        ([Reply(429)] * 10, 8),
        ([Reply(500, "InternalError")] * 10, 4),
        ([Reply(0)] * 10, 4),
        ([Reply(503, "SlowDown")] * 3 + [Reply(0)] * 10, 7),
        ([Reply(500), Reply(503, "SlowDown")] * 10, 7),
    ],
)
def test_a_busy_service_is_asked_more_often_than_one_that_fails(
    fake: FakeS3, store: S3LogStore, replies: list[Reply], times: int
) -> None:
    fake.scripted = lambda _asked: True
    for operation in (lambda: store.list_from(f"{LOG}/"), lambda: store._requests.exists(place_of(commit(0)))):
        fake.asked.clear()
        fake.replies = list(replies)
        with pytest.raises(StorageUnavailableError):
            operation()
        assert len(fake.asked) == times


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
