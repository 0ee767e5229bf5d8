"""Each key that is honoured is seen in what is sent or in the client that is made; the others are refused by name."""

import os
from collections.abc import Iterator
from typing import Any

import pytest

from logstore.fake_s3 import FakeS3
from tablelog.errors import LogStoreConfigurationError, StorageAccessError
from tablelog.logstore.s3.conditional_put_store import S3LogStore
from tablelog.logstore.s3.dynamodb_entries import EntrySettings
from tablelog.logstore.s3.settings import S3Access, S3Settings

KEYS = {"fs.s3a.access.key": "AKHADOOP", "fs.s3a.secret.key": "hadoop-s3cret"}


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", os.devnull)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@pytest.fixture
def fake() -> Iterator[FakeS3]:
    with FakeS3() as service:
        yield service


def access(conf: dict[str, str] | None = None, options: dict[str, Any] | None = None, bucket: str = "b") -> S3Access:
    return S3Settings.of("s3a", conf or {}, options or {}).access(bucket)


def refused(conf: dict[str, str] | None = None, options: dict[str, Any] | None = None) -> str:
    with pytest.raises(LogStoreConfigurationError) as caught:
        access(conf, options)
    return str(caught.value)


def sent(fake: FakeS3, conf: dict[str, str] | None = None, options: dict[str, Any] | None = None) -> dict[str, str]:
    """The headers of a conditional write."""
    store = S3LogStore.configured("s3a", {**fake.conf, **(conf or {})}, options or {})
    store.write(f"s3a://bucket/t/_delta_log/{len(fake.asked)}", b"data")
    return fake.asked[-1].headers


def signer(headers: dict[str, str]) -> str:
    return headers["authorization"].partition("Credential=")[2].partition("/")[0]


# ---- Hadoop's keys ----


@pytest.mark.parametrize("prefix", ["fs.s3a.", "spark.hadoop.fs.s3a."])
def test_access_secret_and_session(fake: FakeS3, prefix: str) -> None:
    conf = {key: value for key, value in fake.conf.items() if "key" not in key}
    conf |= {f"{prefix}access.key": "AK1", f"{prefix}secret.key": "s", f"{prefix}session.token": "tok"}
    store = S3LogStore.configured("s3a", conf, {})
    store.write("s3a://bucket/t/x", b"")
    assert signer(fake.asked[-1].headers) == "AK1"
    assert fake.asked[-1].headers["x-amz-security-token"] == "tok"


def test_what_a_session_sets_wins_over_what_spark_was_started_with() -> None:
    conf = {"fs.s3a.endpoint": "http://session", "spark.hadoop.fs.s3a.endpoint": "http://start"}
    assert access(conf).endpoint == "http://session"


@pytest.mark.parametrize("missing", ["access.key", "secret.key"])
def test_half_a_pair_is_refused(missing: str) -> None:
    assert "must both be set" in refused({key: value for key, value in KEYS.items() if not key.endswith(missing)})


def test_own_keys_of_a_bucket(fake: FakeS3) -> None:
    conf = {
        **fake.conf,
        "fs.s3a.bucket.my.bucket.access.key": "AKBUCKET",
        "fs.s3a.bucket.my.bucket.secret.key": "s",
        "fs.s3a.bucket.other.endpoint": "http://127.0.0.1:1",
    }
    store = S3LogStore.configured("s3a", conf, {})
    store.write("s3a://my.bucket/t/x", b"")
    assert signer(fake.asked[-1].headers) == "AKBUCKET"
    store.write("s3a://bucket/t/x", b"")
    assert signer(fake.asked[-1].headers) == "AKIDTEST"
    assert access(conf, bucket="other").endpoint == "http://127.0.0.1:1"


@pytest.mark.parametrize(
    ("conf", "url", "region"),
    [
        ({"endpoint": "http://h:9000"}, "http://h:9000", None),
        ({"endpoint": "h:9000"}, "https://h:9000", None),
        ({"endpoint": "h:9000", "connection.ssl.enabled": "false"}, "http://h:9000", None),
        ({"endpoint": "s3.amazonaws.com"}, None, None),
        ({"endpoint": "s3.eu-west-1.amazonaws.com"}, "https://s3.eu-west-1.amazonaws.com", "eu-west-1"),
        ({"endpoint": "s3-eu-west-1.amazonaws.com", "endpoint.region": "x"}, "https://s3-eu-west-1.amazonaws.com", "x"),
        ({"endpoint.region": "sdk"}, None, None),
    ],
)
def test_endpoint_ssl_and_region(conf: dict[str, str], url: str | None, region: str | None) -> None:
    found = access({f"fs.s3a.{key}": value for key, value in conf.items()})
    assert (found.endpoint, found.region) == (url, region)


def test_the_region_is_signed(fake: FakeS3) -> None:
    assert "/eu-south-2/s3/" in sent(fake, {"fs.s3a.endpoint.region": "eu-south-2"})["authorization"]


@pytest.mark.parametrize("value", ["true", "false"])
def test_path_style(fake: FakeS3, monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    import socket

    real = socket.getaddrinfo
    monkeypatch.setattr(socket, "getaddrinfo", lambda host, *rest, **more: real("127.0.0.1", *rest, **more))
    endpoint = fake.endpoint.replace("127.0.0.1", "store.example")
    store = S3LogStore.configured(
        "s3a", {**fake.conf, "fs.s3a.endpoint": endpoint, "fs.s3a.path.style.access": value}, {}
    )
    store.write("s3a://bucket/t/x", b"")
    assert fake.asked[-1].key == "/bucket/t/x"  # of a host with the bucket, the fake puts it into the key
    assert fake.asked[-1].headers["host"].startswith("bucket." if value == "false" else "store.")


@pytest.mark.parametrize(
    "name",
    [
        "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider",
        "software.amazon.awssdk.auth.credentials.AnonymousCredentialsProvider",
        "com.amazonaws.auth.AnonymousAWSCredentials" + "Provider",
    ],
)
def test_anonymous(fake: FakeS3, name: str) -> None:
    assert "authorization" not in sent(fake, {"fs.s3a.aws.credentials.provider": name})


def test_the_simple_provider_sends_no_session(fake: FakeS3) -> None:
    conf = {
        "fs.s3a.session.token": "tok",
        "fs.s3a.aws.credentials.provider": "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider",
    }
    assert "x-amz-security-token" not in sent(fake, conf)


def test_the_temporary_provider_without_a_session_gives_way_to_the_next(fake: FakeS3) -> None:
    package = "org.apache.hadoop.fs.s3a."
    conf = {
        "fs.s3a.aws.credentials.provider": f"{package}TemporaryAWSCredentialsProvider, "
        f"{package}AnonymousAWSCredentialsProvider"
    }
    assert "authorization" not in sent(fake, conf)
    assert sent(fake, {**conf, "fs.s3a.session.token": "tok"})["x-amz-security-token"] == "tok"


@pytest.mark.parametrize(
    "name",
    [
        "com.amazonaws.auth.EnvironmentVariableCredentialsProvider",
        "software.amazon.awssdk.auth.credentials.EnvironmentVariableCredentialsProvider",
        "com.amazonaws.auth.DefaultAWSCredentialsProviderChain",
        "org.apache.hadoop.fs.s3a.auth.IAMInstanceCredentialsProvider",
    ],
)
def test_providers_of_the_sdks_chain(fake: FakeS3, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKENV")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s")
    assert signer(sent(fake, {"fs.s3a.aws.credentials.provider": name})) == "AKENV"


def test_a_provider_that_cant_be_honoured_is_named() -> None:
    for name in ("org.apache.hadoop.fs.s3a.auth.AssumedRoleCredentialProvider", "com.example.Mine"):
        message = refused({**KEYS, "fs.s3a.aws.credentials.provider": name})
        assert name in message
        assert "hadoop-s3cret" not in message


def test_proxy(fake: FakeS3) -> None:
    host, port = fake.endpoint.removeprefix("http://").split(":")
    conf = {
        "fs.s3a.endpoint": "http://store.example",
        "fs.s3a.proxy.host": host,
        "fs.s3a.proxy.port": port,
        "fs.s3a.proxy.username": "us er",
        "fs.s3a.proxy.password": "p@ss",
    }
    headers = sent(fake, conf)
    assert headers["host"] == "store.example"
    assert headers["proxy-authorization"] == "Basic dXMgZXI6cEBzcw=="
    assert "p@ss" not in repr(access(conf))
    assert access({"fs.s3a.proxy.host": "h"}).proxy == "http://h:80"
    assert access({"fs.s3a.proxy.host": "h", "fs.s3a.proxy.ssl.enabled": "true"}).proxy == "https://h:443"
    assert "proxy.host" in refused({"fs.s3a.proxy.port": "1"})
    assert "must both be set" in refused({"fs.s3a.proxy.host": "h", "fs.s3a.proxy.username": "u"})


@pytest.mark.parametrize(
    ("conf", "expected"),
    [
        ({"encryption.algorithm": "AES256"}, {"x-amz-server-side-encryption": "AES256"}),
        (
            {"server-side-encryption-algorithm": "SSE-KMS", "server-side-encryption.key": "arn:k"},
            {"x-amz-server-side-encryption": "aws:kms", "x-amz-server-side-encryption-aws-kms-key-id": "arn:k"},
        ),
        (
            {"encryption.algorithm": "DSSE-KMS", "encryption.key": "arn:k"},
            {"x-amz-server-side-encryption": "aws:kms:dsse", "x-amz-server-side-encryption-aws-kms-key-id": "arn:k"},
        ),
        ({"acl.default": "BucketOwnerFullControl"}, {"x-amz-acl": "bucket-owner-full-control"}),
        ({"requester.pays.enabled": "true"}, {"x-amz-request-payer": "requester"}),
    ],
)
def test_how_objects_are_kept(fake: FakeS3, conf: dict[str, str], expected: dict[str, str]) -> None:
    headers = sent(fake, {f"fs.s3a.{key}": value for key, value in conf.items()})
    assert {key: headers.get(key) for key in expected} == expected


def test_fips() -> None:
    client = access({**KEYS, "fs.s3a.endpoint.fips": "true", "fs.s3a.endpoint.region": "us-east-1"}).client()
    assert "s3-fips" in client.meta.endpoint_url


@pytest.mark.parametrize(
    "key",
    [
        *("security.credential.provider.path", "delegation.token.binding", "signing-algorithm", "custom.signers"),
        *("accesspoint.arn", "encryption.context", "proxy.domain", "bucket.b.s3.signing-algorithm"),
        *("http.signer.class", "s3.client.factory.impl", "object.content.encoding"),
    ],
)
def test_keys_that_cant_be_honoured_are_refused_by_name(key: str) -> None:
    assert f"fs.s3a.{key.removeprefix('bucket.b.')}" in refused({f"fs.s3a.{key}": "x"})


@pytest.mark.parametrize("key", ["accesspoint.required", "access.grants.enabled", "http.signer.enabled"])
def test_keys_that_cant_be_honoured_are_refused_if_they_are_true(key: str) -> None:
    assert f"fs.s3a.{key}" in refused({f"fs.s3a.{key}": "true"})
    access({f"fs.s3a.{key}": "false"})


def test_a_key_without_effect_is_named_once(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tablelog.logstore.s3.settings._warned", set())
    for _ in range(2):
        access({"fs.s3a.list.version": "1", "fs.s3a.bucket.b.create.checksum.algorithm": "SHA256"})
    assert sorted(record.args[0] for record in caplog.records if record.args) == [
        "create.checksum.algorithm",
        "list.version",
    ]


def test_values_that_cant_be_honoured_are_refused_by_name() -> None:
    assert "glacier" in refused({"fs.s3a.create.storage.class": "glacier"})
    assert "SSE-C" in refused({"fs.s3a.encryption.algorithm": "SSE-C"})
    assert "yes" in refused({"fs.s3a.path.style.access": "yes"})
    assert "fs.s3a.endpoint" in refused({"fs.s3a.connection.ssl.enabled": "false"})


# ---- storage_options ----


def with_options(fake: FakeS3, **options: Any) -> S3LogStore:
    options = {"endpoint_url": fake.endpoint, "key": "AKOPTION", "secret": "s", **options}
    return S3LogStore.configured("s3a", {}, {key: value for key, value in options.items() if value != ""})


def asked_with(fake: FakeS3, **options: Any) -> dict[str, str]:
    with_options(fake, **options).write("s3a://bucket/t/x", b"")
    return fake.asked[-1].headers


def test_key_secret_token_endpoint_url(fake: FakeS3) -> None:
    headers = asked_with(fake, token="tok")
    assert signer(headers) == "AKOPTION"
    assert headers["x-amz-security-token"] == "tok"


def test_username_and_password_are_key_and_secret(fake: FakeS3) -> None:
    assert signer(asked_with(fake, key="", secret="", username="AKUSER", password="p")) == "AKUSER"


def test_anon(fake: FakeS3) -> None:
    assert "authorization" not in asked_with(fake, key="", secret="", anon=True)


def test_client_kwargs(fake: FakeS3) -> None:
    kwargs = {
        "endpoint_url": fake.endpoint,
        "region_name": "eu-north-1",
        "aws_access_key_id": "AKKWARGS",
        "aws_secret_access_key": "s",
        "aws_session_token": "tok",
    }
    headers = asked_with(fake, endpoint_url="", key="", secret="", client_kwargs=kwargs)
    assert signer(headers) == "AKKWARGS"
    assert "/eu-north-1/s3/" in headers["authorization"]
    assert headers["x-amz-security-token"] == "tok"


def test_verify() -> None:
    found = access({}, {"client_kwargs": {"verify": "/ca.pem"}})
    assert found.verify == "/ca.pem"
    assert found.client()._endpoint.http_session._verify == "/ca.pem"


def test_config_kwargs(fake: FakeS3) -> None:
    headers = asked_with(fake, config_kwargs={"user_agent_extra": "mine/1"})
    assert "mine/1" in headers["user-agent"]


def test_requester_pays_and_additional_arguments(fake: FakeS3) -> None:
    headers = asked_with(fake, requester_pays=True, s3_additional_kwargs={"ServerSideEncryption": "AES256"})
    assert headers["x-amz-request-payer"] == "requester"
    assert headers["x-amz-server-side-encryption"] == "AES256"


def test_profile(fake: FakeS3, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    credentials = tmp_path / "credentials"
    credentials.write_text("[work]\naws_access_key_id = AKPROFILE\naws_secret_access_key = s\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(credentials))
    assert signer(asked_with(fake, key="", secret="", profile="work")) == "AKPROFILE"
    with pytest.raises(StorageAccessError, match="nowhere"):
        with_options(fake, key="", secret="", profile="nowhere").read("s3a://bucket/t/x")


def test_use_ssl() -> None:
    assert "endpoint_url" in refused({}, {"use_ssl": False})
    assert access({}, {"use_ssl": False, "endpoint_url": "http://h"}).endpoint == "http://h"


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"AWS_ACCESS_KEY_ID": "x"}, "AWS_ACCESS_KEY_ID"),
        ({"client_kwargs": {"api_version": "x"}}, "client_kwargs.api_version"),
        ({"s3_additional_kwargs": {"SSECustomerKey": "s3cret"}}, "s3_additional_kwargs.SSECustomerKey"),
    ],
)
def test_unknown_options_are_refused_by_name(options: dict[str, Any], named: str) -> None:
    message = refused({}, options)
    assert named in message
    assert "s3cret" not in message


def test_settings_that_make_no_client_are_named_without_their_values() -> None:
    with pytest.raises(LogStoreConfigurationError, match="config_kwargs") as caught:
        access(KEYS, {"config_kwargs": {"no_such_argument": "s3cret"}}).client()
    assert "s3cret" not in str(caught.value)


# ---- the order ----


def test_hadoops_keys_then_options_then_the_sdk(fake: FakeS3, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKENV")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s")
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", fake.endpoint)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "ap-east-1")
    S3LogStore.configured("s3a", {}, {}).write("s3a://bucket/t/1", b"")
    assert signer(fake.asked[-1].headers) == "AKENV"
    assert "/ap-east-1/" in fake.asked[-1].headers["authorization"]
    options = {"key": "AKOPTION", "secret": "s", "token": "tok", "client_kwargs": {"region_name": "eu-west-2"}}
    S3LogStore.configured("s3a", {}, options).write("s3a://bucket/t/2", b"")
    assert signer(fake.asked[-1].headers) == "AKOPTION"
    assert "/eu-west-2/" in fake.asked[-1].headers["authorization"]
    S3LogStore.configured("s3a", {**KEYS, "fs.s3a.endpoint.region": "us-west-1"}, options).write("s3a://b/t/3", b"")
    assert signer(fake.asked[-1].headers) == "AKHADOOP"
    assert "/us-west-1/" in fake.asked[-1].headers["authorization"]
    assert "x-amz-security-token" not in fake.asked[-1].headers  # no part of another source's credentials


def test_without_any_credentials(fake: FakeS3) -> None:
    with pytest.raises(StorageAccessError, match=r"fs\.s3a\.access\.key"):
        S3LogStore.configured("s3a", {"fs.s3a.endpoint": fake.endpoint}, {}).read("s3a://bucket/t/x")
    assert fake.asked == []


# ---- what fsspec gets ----


def test_fsspec_gets_the_same() -> None:
    conf = {
        **KEYS,
        "fs.s3a.session.token": "tok",
        "fs.s3a.endpoint": "http://h:9000",
        "fs.s3a.endpoint.region": "eu-west-1",
        "fs.s3a.path.style.access": "true",
        "fs.s3a.bucket.b.endpoint": "http://b:9000",
        "fs.s3a.encryption.algorithm": "AES256",
    }
    options = S3Settings.of("s3a", conf, {"default_block_size": 1, "requester_pays": True}).fsspec_options("b")
    assert options == {
        "default_block_size": 1,
        "key": "AKHADOOP",
        "secret": "hadoop-s3cret",
        "token": "tok",
        "endpoint_url": "http://b:9000",
        "requester_pays": True,
        "client_kwargs": {"region_name": "eu-west-1"},
        "config_kwargs": {
            "request_checksum_calculation": "when_required",
            "response_checksum_validation": "when_required",
            "s3": {"addressing_style": "path"},
        },
        "s3_additional_kwargs": {"ServerSideEncryption": "AES256"},
    }


def test_s3fs_reads_and_writes_with_it(fake: FakeS3) -> None:
    s3fs = pytest.importorskip("s3fs")
    files = s3fs.S3FileSystem(
        **S3Settings.of("s3a", fake.conf, {}).fsspec_options("bucket"),
        skip_instance_cache=True,
        use_listings_cache=False,
    )
    files.pipe_file("bucket/t/data.parquet", b"rows")
    assert fake.objects == {"/bucket/t/data.parquet": b"rows"}
    assert files.cat_file("bucket/t/data.parquet") == b"rows"


# ---- DynamoDB's ----

_DDB = "io.delta.storage.S3DynamoDBLogStore."


@pytest.mark.parametrize("prefix", ["spark.", "", "spark.hadoop.", "spark.hadoop.spark."])
def test_deltas_keys_for_dynamodb(prefix: str) -> None:
    conf = {
        "ddb.tableName": "mine",
        "ddb.region": "eu-west-3",
        "ddb.ttl": "60",
        "provisionedThroughput.rcu": "7",
        "provisionedThroughput.wcu": "8",
        "read.retries": "3",
    }
    found = EntrySettings.of({f"{prefix}{_DDB}{key}": value for key, value in conf.items()}, S3Settings())
    assert (found.table, found.region, found.ttl_seconds) == ("mine", "eu-west-3", 60)
    assert (found.read_units, found.write_units) == (7, 8)


def test_defaults_for_dynamodb_are_deltas() -> None:
    found = EntrySettings.of({}, S3Settings())
    assert (found.table, found.region, found.ttl_seconds) == ("delta_log", "us-east-1", 86400)
    assert (found.read_units, found.write_units) == (5, 5)


def test_credentials_for_dynamodb_are_those_for_s3_unless_a_provider_is_named() -> None:
    settings = S3Settings.of("s3a", KEYS, {})
    assert EntrySettings.of({}, settings).access.access("").access_key == "AKHADOOP"
    chain = {f"{_DDB}credentials.provider": "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider"}
    assert EntrySettings.of(chain, settings).access.access("").access_key is None


@pytest.mark.parametrize(
    "conf",
    [
        {f"{_DDB}ddb.ttl": "-1"},
        {f"{_DDB}ddb.ttl": "soon"},
        {f"{_DDB}provisionedThroughput.rcu": "0"},
        {f"{_DDB}ddb.tabelName": "x"},
        {f"{_DDB}ddb.tableName": "x", f"spark.{_DDB}ddb.tableName": "y"},
        {f"{_DDB}credentials.provider": "com.example.Mine"},
    ],
)
def test_what_makes_no_sense_for_dynamodb_is_refused(conf: dict[str, str]) -> None:
    with pytest.raises(LogStoreConfigurationError):
        EntrySettings.of(conf, S3Settings())
