"""How a bucket is reached and paid for, by each request of the log and of the data files of Python workers."""

import datetime
import os
import pickle
import socket
import stat
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from logstore.fake_s3 import FakeS3, Reply
from support.certificates import certificates
from support.clocks import NO_PAUSES
from tablelog.errors import StorageAccessError, StorageError, StorageUnavailableError
from tablelog.logstore.data_files import DataFiles
from tablelog.logstore.s3.conditional_put_store import ProbedBuckets, S3LogStore
from tablelog.logstore.s3.places import place_of
from tablelog.logstore.s3.settings import S3Settings

Conf = Mapping[str, str]
ROOT = "s3a://bucket/t"


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith("AWS_") or name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", os.devnull)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


def log_work(conf: Conf, options: Mapping[str, Any] | None = None, root: str = ROOT) -> None:
    """Every request of a log: write, overwrite, read in both ways, look, list, delete."""
    settings = S3Settings.of("s3a", conf, options or {})
    store, path = S3LogStore(settings, retries=NO_PAUSES, probed=ProbedBuckets()), f"{root}/_delta_log/{0:020}.json"
    store.write(path, b"first")
    store.write(path, b"second", overwrite=True)
    assert [store.read(path) for _ in range(3)] == [b"second"] * 3
    assert store._requests.exists(place_of(path))
    assert [status.path for status in store.list_from(path)] == [path]
    store.delete(path)


def data_work(conf: Conf, options: Mapping[str, Any] | None = None, root: str = ROOT) -> None:
    """Every request of data files: write, read in both ways, list, look, delete one and many."""
    files = DataFiles.of(root, conf, {"skip_instance_cache": True, **(options or {})})
    for name in ("a", "b", "c[1]"):
        files.write(name, b"content")
    assert files.read_range("a", 1, 3) == b"on"
    assert sorted(files.list("")) == ["a", "b", "c[1]"]
    assert [size for _, size, _ in files.statuses()] == [7, 7, 7]
    assert files.exists("a")
    files.delete(["a", "b", "c[1]"])
    assert files.list("") == []


REFUSALS = pytest.mark.parametrize(
    "refusal",
    [Reply(400, "ExpiredToken"), Reply(400, "InvalidToken"), Reply(403, "InvalidAccessKeyId")],
    ids=lambda reply: reply.code,
)
ROUTES = pytest.mark.parametrize("work", [log_work, data_work])
Work = Callable[..., None]


@ROUTES
def test_the_requester_pays_for_each_request(fake: FakeS3, work: Work) -> None:
    work({**fake.conf, "fs.s3a.requester.pays.enabled": "true"})
    assert {asked.headers.get("x-amz-request-payer") for asked in fake.asked} == {"requester"}
    assert len({asked.method for asked in fake.asked}) >= 3


def test_the_requester_pays_for_a_file_that_is_read_in_parts(fake: FakeS3) -> None:
    fake.objects["/bucket/t/a"] = b"content"
    conf = {**fake.conf, "fs.s3a.requester.pays.enabled": "true"}
    with DataFiles.of(ROOT, conf, {"skip_instance_cache": True}).open("a") as stream:
        assert stream.read() == b"content"
    assert {asked.headers.get("x-amz-request-payer") for asked in fake.asked} == {"requester"}


ENCRYPTED = {
    "fs.s3a.encryption.algorithm": "SSE-KMS",
    "fs.s3a.encryption.key": "arn:k",
    "fs.s3a.create.storage.class": "intelligent_tiering",
    "fs.s3a.acl.default": "BucketOwnerFullControl",
}


@ROUTES
def test_each_write_says_how_the_object_is_kept(fake: FakeS3, work: Work) -> None:
    work({**fake.conf, **ENCRYPTED}, {"s3_additional_kwargs": {"BucketKeyEnabled": True}})
    puts = [asked.headers for asked in fake.asked if asked.method == "PUT"]
    assert puts
    for headers in puts:
        assert headers["x-amz-server-side-encryption"] == "aws:kms"
        assert headers["x-amz-server-side-encryption-aws-kms-key-id"] == "arn:k"
        assert headers["x-amz-server-side-encryption-bucket-key-enabled"].lower() == "true"
        assert headers["x-amz-storage-class"] == "INTELLIGENT_TIERING"
        assert headers["x-amz-acl"] == "bucket-owner-full-control"


@ROUTES
def test_all_of_it_can_be_set_for_one_bucket(fake: FakeS3, work: Work) -> None:
    own = {**ENCRYPTED, "fs.s3a.requester.pays.enabled": "true", "fs.s3a.endpoint.region": "eu-west-9"}
    own = {key.replace("fs.s3a.", "fs.s3a.bucket.paid.", 1): value for key, value in own.items()}
    work({**fake.conf, **own}, root="s3a://paid/t")
    assert {asked.headers["x-amz-request-payer"] for asked in fake.asked} == {"requester"}
    assert {asked.region for asked in fake.asked} == {"eu-west-9"}
    assert all("x-amz-storage-class" in asked.headers for asked in fake.asked if asked.method == "PUT")
    fake.asked.clear()
    work({**fake.conf, **own})
    assert not any("x-amz-request-payer" in asked.headers or "x-amz-acl" in asked.headers for asked in fake.asked)
    assert {asked.region for asked in fake.asked} == {"us-east-1"}


# ---- the way to the service ----


@ROUTES
def test_every_request_goes_through_the_proxy_of_hadoops_keys(fake: FakeS3, work: Work) -> None:
    host, port = fake.endpoint.removeprefix("http://").split(":")
    proxy = {"host": host, "port": port, "username": "us er", "password": "p@ss"}
    conf = {**fake.conf, **{f"fs.s3a.proxy.{key}": value for key, value in proxy.items()}}
    work({**conf, "fs.s3a.endpoint": "http://store.example"})
    assert {asked.headers["host"] for asked in fake.asked} == {"store.example"}
    assert {asked.headers["proxy-authorization"] for asked in fake.asked} == {"Basic dXMgZXI6cEBzcw=="}


@ROUTES
def test_every_request_goes_through_the_proxy_of_the_environment(
    fake: FakeS3, work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", fake.endpoint)
    monkeypatch.setenv("http_proxy", fake.endpoint)
    work({**fake.conf, "fs.s3a.endpoint": "http://store.example"})
    assert {asked.headers["host"] for asked in fake.asked} == {"store.example"}


@ROUTES
@pytest.mark.parametrize("path_style", [True, False])
def test_the_bucket_is_in_the_path_or_in_the_host(
    fake: FakeS3, work: Work, monkeypatch: pytest.MonkeyPatch, path_style: bool
) -> None:
    real = socket.getaddrinfo
    monkeypatch.setattr(socket, "getaddrinfo", lambda host, *rest, **more: real("127.0.0.1", *rest, **more))
    endpoint = fake.endpoint.replace("127.0.0.1", "store.example")
    conf = {**fake.conf, "fs.s3a.endpoint": endpoint, "fs.s3a.path.style.access": str(path_style).lower()}
    work(conf)
    hosts = {asked.headers["host"].partition(":")[0] for asked in fake.asked}
    assert hosts == {"store.example" if path_style else "bucket.store.example"}


# ---- TLS ----


@pytest.fixture
def private(tmp_path: Path) -> Iterator[tuple[FakeS3, Path]]:
    """A service by HTTPS with a certificate of a private authority, and where that one's certificate is."""
    context, authority = certificates(tmp_path)
    with FakeS3(context) as fake:
        yield fake, authority


@ROUTES
def test_a_private_authority_is_trusted_if_an_option_names_it(private: tuple[FakeS3, Path], work: Work) -> None:
    fake, authority = private
    work(fake.conf, {"client_kwargs": {"verify": str(authority)}})
    assert fake.asked


@ROUTES
def test_a_private_authority_is_trusted_if_the_environment_names_it(
    private: tuple[FakeS3, Path], work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake, authority = private
    monkeypatch.setenv("AWS_CA_BUNDLE", str(authority))
    work(fake.conf)
    assert fake.asked


@pytest.mark.parametrize("work", [log_work, pytest.param(data_work, marks=pytest.mark.slow)])  # s3fs tries it often
def test_a_certificate_of_an_unknown_authority_is_an_error_that_says_what_to_set(
    private: tuple[FakeS3, Path], work: Work
) -> None:
    fake, _ = private
    with pytest.raises(StorageAccessError, match=r"certificate.*AWS_CA_BUNDLE") as caught:
        work(fake.conf)
    assert "s3cret" not in str(caught.value)
    assert not fake.asked


# ---- credentials that expire ----


def a_profile(directory: Path, *, expiration: str = "") -> dict[str, Any]:
    """The option for a profile whose process gives another key each time. `AWS_CONFIG_FILE` names its file already."""
    program = directory / "credentials.py"
    program.write_text(
        f"import json, os, pathlib\n"
        f"count = pathlib.Path({str(directory / 'count')!r})\n"
        f"number = int(count.read_text()) + 1 if count.exists() else 1\n"
        f"part = count.with_name(str(os.getpid())); part.write_text(str(number)); part.replace(count)\n"
        f"found = {{'Version': 1, 'AccessKeyId': f'AK{{number}}', 'SecretAccessKey': 's3cret', 'SessionToken': 't'}}\n"
        f"{expiration}\n"
        f"print(json.dumps(found))\n"
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    Path(os.environ["AWS_CONFIG_FILE"]).write_text(
        f"[profile renewing]\ncredential_process = {sys.executable} {program}\n"
    )
    return {"profile": "renewing"}


def without_keys(fake: FakeS3) -> dict[str, str]:
    return {key: value for key, value in fake.conf.items() if not key.endswith(".key")}


@REFUSALS
@ROUTES
def test_credentials_that_the_service_calls_expired_are_taken_again_and_nothing_is_done_twice(
    fake: FakeS3, work: Work, tmp_path: Path, refusal: Reply
) -> None:
    options = a_profile(tmp_path)
    served: dict[str, int] = {}

    def refused(asked: Any) -> Reply | None:  # each key is good for five requests
        served[asked.signer] = served.get(asked.signer, 0) + 1
        kept = asked.method == "HEAD" and work is data_work  # s3fs can't tell what a HEAD was rejected for
        return refusal if served[asked.signer] > 5 and not kept else None

    fake.refused = refused
    work(without_keys(fake), options)
    assert len(served) >= 2
    assert max(served.values()) <= 8


@pytest.mark.parametrize("status", [400, 403])
def test_expired_credentials_of_a_request_without_a_body_are_taken_again(
    fake: FakeS3, tmp_path: Path, status: int
) -> None:
    fake.objects["/bucket/t/x"] = b""
    fake.refused = lambda asked: Reply(status) if asked.signer == "AK1" else None
    options = a_profile(tmp_path)
    store = S3LogStore(S3Settings.of("s3a", without_keys(fake), options), retries=NO_PAUSES, probed=fake.probed)
    assert store._requests.exists(place_of(f"{ROOT}/x"))
    # After 400 the SDK first asks for the region of the bucket, which a rejected HEAD may be about too.
    between = [("AK1", "/bucket")] if status == 400 else []
    expected = [("AK1", "/bucket/t/x"), *between, ("AK2", "/bucket/t/x")]
    assert [(asked.signer, asked.key) for asked in fake.asked] == expected


@ROUTES
def test_credentials_near_their_end_are_renewed_before_the_service_complains(
    fake: FakeS3, work: Work, tmp_path: Path
) -> None:
    soon = (
        "import datetime\n"
        "end = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=30)\n"
        "found['Expiration'] = end.isoformat()"
    )
    work(without_keys(fake), a_profile(tmp_path, expiration=soon))
    assert len({asked.signer for asked in fake.asked}) > 1


@REFUSALS
@ROUTES
def test_credentials_that_stay_expired_are_an_error(fake: FakeS3, work: Work, tmp_path: Path, refusal: Reply) -> None:
    options = a_profile(tmp_path)
    fake.refused = lambda asked: refusal
    with pytest.raises(StorageAccessError) as caught:
        work(without_keys(fake), options)
    assert "s3cret" not in str(caught.value)
    assert len({asked.signer for asked in fake.asked}) == 2


def test_credentials_that_expire_while_a_data_file_is_open_are_taken_again(fake: FakeS3, tmp_path: Path) -> None:
    content = bytes(range(256)) * 4096
    fake.objects["/bucket/t/large"] = content
    files = DataFiles.of(ROOT, without_keys(fake), {**a_profile(tmp_path), "default_block_size": 1 << 16})
    with files.open("large") as file:
        assert file.read(10) == content[:10]
        signer = fake.asked[-1].signer
        fake.refused = lambda asked: Reply(400, "ExpiredToken") if asked.signer == signer else None
        file.seek(700_000)
        assert file.read(300_000) == content[700_000:1_000_000]
        assert fake.asked[-1].signer != signer
        fake.refused = lambda asked: Reply(400, "ExpiredToken")
        file.seek(300_000)
        with pytest.raises(StorageAccessError, match=r"reading s3a://bucket/t/large: .*ExpiredToken"):
            file.read(200_000)


def test_a_source_of_credentials_that_fails_is_an_error_without_what_it_printed(fake: FakeS3, tmp_path: Path) -> None:
    options = a_profile(tmp_path, expiration="raise SystemExit('the s3cret is s3cret')")
    for work in (log_work, data_work):
        with pytest.raises(StorageError) as caught:
            work(without_keys(fake), options)
        assert "s3cret" not in str(caught.value)
    assert not fake.asked


def test_fixed_keys_that_have_expired_are_an_error_at_once(fake: FakeS3) -> None:
    fake.refused = lambda asked: Reply(400, "ExpiredToken")
    with pytest.raises(StorageAccessError, match="renews them"):
        fake.store().read(f"{ROOT}/x")
    assert len(fake.asked) == 1


def test_threads_with_expired_credentials_all_go_on(fake: FakeS3, tmp_path: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    options = a_profile(tmp_path)
    settings = S3Settings.of("s3a", without_keys(fake), options)
    store = S3LogStore(settings, retries=NO_PAUSES, probed=fake.probed)
    for number in range(16):
        fake.objects[f"/bucket/t/{number}"] = b"data"
    assert store.read(f"{ROOT}/0") == store.read(f"{ROOT}/1") == b"data"
    fake.refused = lambda asked: Reply(400, "ExpiredToken") if asked.signer == "AK1" else None
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda n: store.read(f"{ROOT}/{n}"), range(16))) == [b"data"] * 16
    assert {asked.signer for asked in fake.asked} > {"AK1"}
    assert pickle.loads(pickle.dumps(store)).read(f"{ROOT}/3") == b"data"


# ---- a bucket in another region ----


REGIONAL = [
    Reply(301, "PermanentRedirect", {"x-amz-bucket-region": "eu-west-3"}),
    Reply(400, "AuthorizationHeaderMalformed", {"x-amz-bucket-region": "eu-west-3"}),
    Reply(400, "IllegalLocationConstraintException", {"x-amz-bucket-region": "eu-west-3"}),
]


@ROUTES
@pytest.mark.parametrize("reply", REGIONAL, ids=lambda reply: reply.code)
def test_a_bucket_of_another_region_is_found_with_the_condition_of_each_write(
    fake: FakeS3, work: Work, reply: Reply
) -> None:
    fake.refused = lambda asked: reply if asked.region == "us-east-1" else None
    body = f"<Error><Code>{reply.code}</Code><Region>eu-west-3</Region></Error>".encode()
    reply = Reply(reply.status, reply.code, reply.headers, body)
    work(fake.conf)
    served = [asked for asked in fake.asked if asked.region == "eu-west-3"]
    assert served
    if work is log_work:
        conditional = [asked for asked in served if asked.method == "PUT" and asked.key.endswith(".json")]
        assert [("if-none-match" in asked.headers) for asked in conditional] == [True, False]


def test_a_bucket_whose_region_isnt_told_is_an_error_that_names_the_key(fake: FakeS3) -> None:
    fake.refused = lambda asked: Reply(301, "PermanentRedirect")
    with pytest.raises(StorageError, match=r"fs\.s3a\.endpoint\.region"):
        fake.store().write(f"{ROOT}/_delta_log/{0:020}.json", b"data")
    assert not fake.objects


def test_a_service_that_cant_be_reached_is_no_certificate_error(fake: FakeS3) -> None:
    with pytest.raises(StorageUnavailableError) as caught:
        fake.store(**{"fs.s3a.endpoint": "https://127.0.0.1:1"}).read(f"{ROOT}/x")
    assert "AWS_CA_BUNDLE" not in str(caught.value)


@ROUTES
def test_the_times_of_a_listing_arent_parsed_by_the_slow_parser_of_the_sdk(
    fake: FakeS3, work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    import botocore.parsers

    slow = botocore.parsers.DEFAULT_TIMESTAMP_PARSER

    def parse(value: Any) -> Any:
        assert not str(value).startswith("2026-")  # the fake's form of the times in a listing
        return slow(value)

    monkeypatch.setattr(botocore.parsers, "DEFAULT_TIMESTAMP_PARSER", parse)
    work(fake.conf)


def test_the_times_of_a_listing_are_the_services(fake: FakeS3) -> None:
    fake.objects["/bucket/t/_delta_log/a"] = b""
    fake.objects["/bucket/t/b"] = b""
    expected = int(datetime.datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=datetime.UTC).timestamp() * 1000)
    (status,) = fake.store().list_from(f"{ROOT}/_delta_log/a")
    assert status.modification_time_ms == expected
    files = DataFiles.of(ROOT, fake.conf, {"skip_instance_cache": True})
    assert {name: modified for name, _, modified in files.statuses()} == {"_delta_log/a": expected, "b": expected}
