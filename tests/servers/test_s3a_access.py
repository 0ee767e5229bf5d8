"""Tables on S3 reached in each way, with the log by tablelog's client and the data files by s3a or Python workers.

One session does the work of all tables, because a bucket has its own keys, `fs.s3a.bucket.BUCKET.*`.
"""

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from support.certificates import SERVICE_NAME, TRUST_STORE_PASSWORD, certificates

from . import CannotInstallError, MinIO, install
from .forward_proxy import Asked, ForwardProxy
from .programs import run_program
from .s3a_access_work import Plan, Step

KEY, REGION, OTHER_REGION = "a-key", "eu-central-1", "us-west-2"
ROUTES = ("native", "arrow")
_BY_NAME = {"endpoint": f"http://{SERVICE_NAME}"}
"""Only the proxy knows the name."""
KEYS: dict[str, dict[str, str]] = {
    "plain": {},
    "private": {"attempts.maximum": "1", "retry.limit": "1"},
    "proxied": _BY_NAME,
    "tunnelled": {"endpoint": f"https://{SERVICE_NAME}"},
    "sealed": {"encryption.algorithm": "SSE-KMS", "encryption.key": KEY},
    "elsewhere": {"endpoint.region": OTHER_REGION},
    "hosted": {**_BY_NAME, "path.style.access": "false"},
    "paid": {**_BY_NAME, "requester.pays.enabled": "true"},
}
"""The keys of each bucket."""
BY_PROXY = ("proxied", "tunnelled", "hosted", "paid")
BY_TLS = ("private", "tunnelled")


@dataclass(frozen=True)
class RegionalMinIO(MinIO):
    """MinIO in a region, with a key of a KMS and a host name. It speaks TLS if `certs` has a certificate."""

    certs: str = ""

    def command(self) -> list[str]:
        return [*super().command()[:-1], "--certs-dir", self.certs, str(self.data)] if self.certs else super().command()

    def settings(self) -> dict[str, str]:
        region = {"MINIO_SITE_REGION": REGION, "MINIO_DOMAIN": SERVICE_NAME}
        return {**super().settings(), **region, "MINIO_KMS_SECRET_KEY": f"{KEY}:{'A' * 43}="}

    @property
    def endpoint(self) -> str:
        return f"http{'s' if self.certs else ''}://127.0.0.1:{self.port}"

    def answers(self) -> bool:
        if not self.certs:
            return super().answers()
        import urllib3

        with urllib3.HTTPSConnectionPool(
            "127.0.0.1", self.port, ca_certs=f"{self.certs}/ca.pem", retries=False
        ) as pool:
            try:
                return pool.request("GET", "/minio/health/ready").status == 200
            except urllib3.exceptions.HTTPError:
                return False

    @cached_property
    def s3(self) -> Any:
        """A client of the SDK."""
        import botocore.session

        return botocore.session.Session().create_client(
            "s3",
            region_name=REGION,
            endpoint_url=self.endpoint,
            aws_access_key_id=self.access_key,
            aws_secret_access_key=self.secret_key,
            verify=f"{self.certs}/ca.pem" if self.certs else None,
        )

    def prepare(self) -> None:
        for bucket in KEYS:
            self.s3.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": REGION})


@dataclass(frozen=True)
class Service:
    """Both services, the proxy to them, and the directory with the certificates. A session does the steps of a plan."""

    directory: Path
    jars: str
    regional: RegionalMinIO
    private: RegionalMinIO
    proxy: ForwardProxy

    @property
    def hadoop(self) -> dict[str, str]:
        """Hadoop's keys for all buckets."""
        keys = {**self.regional.conf, "fs.s3a.endpoint.region": REGION}
        for bucket, own in KEYS.items():
            keys |= {f"fs.s3a.bucket.{bucket}.{key}": value for key, value in own.items()}
            keys |= self.proxy.keys(bucket, login=bucket in BY_TLS) if bucket in BY_PROXY else {}
        return keys | {"fs.s3a.bucket.private.endpoint": self.private.endpoint}

    def outcomes(self, steps: list[Step], java: str = "") -> list[Any]:
        plan = self.directory / "plan.json"
        plan.write_text(json.dumps(asdict(Plan(self.jars, java, self.hadoop, steps))))
        return list(json.loads(run_program(self.regional, self.directory, "servers.s3a_access_work", str(plan))))

    def objects(self, bucket: str) -> list[str]:
        """The keys of all objects."""
        pages = self._of(bucket).get_paginator("list_objects_v2").paginate(Bucket=bucket)
        return [found["Key"] for page in pages for found in page.get("Contents", [])]

    def head(self, bucket: str, key: str) -> dict[str, Any]:
        return dict(self._of(bucket).head_object(Bucket=bucket, Key=key))

    def s3_region(self) -> str:
        """The region that the service says it is in."""
        return str(self.regional.s3.get_bucket_location(Bucket="elsewhere")["LocationConstraint"])

    def _of(self, bucket: str) -> Any:
        return (self.private if bucket in BY_TLS else self.regional).s3


@pytest.fixture(scope="module")
def service(jars: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    directory = tmp_path_factory.mktemp("access")
    _, authority = certificates(directory)
    try:
        RegionalMinIO.install()
    except CannotInstallError as error:
        pytest.fail(str(error)) if install.all_required() else pytest.skip(str(error))
    with ExitStack() as stack:
        regional, private = RegionalMinIO.start(), RegionalMinIO.start(certs=str(directory))
        stack.callback(regional.stop)
        stack.callback(private.stop)
        proxy = stack.enter_context(ForwardProxy(regional.port, private.port))
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        for name in [name for name in os.environ if name.startswith("AWS_") or name.lower().endswith("_proxy")]:
            patch.delenv(name)
        patch.setenv("AWS_CA_BUNDLE", str(authority))
        patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        yield Service(directory, jars, regional, private, proxy)


@pytest.fixture(scope="module")
def done(service: Service) -> Service:
    """The service after the work of a table in each bucket by each route, none of which failed."""
    trust = {"trustStore": service.directory / "ca.p12", "trustStorePassword": TRUST_STORE_PASSWORD}
    java = " ".join(f"-Djavax.net.ssl.{name}={value}" for name, value in trust.items())
    steps = [Step(f"s3a://{bucket}/{route}", route) for bucket in KEYS for route in ROUTES]
    outcomes = service.outcomes(steps, java)
    failed = [(step.url, outcome) for step, outcome in zip(steps, outcomes, strict=True) if outcome]
    assert not failed, "\n".join(f"{url}: {outcome['message']}" for url, outcome in failed)
    return service


def by_client(service: Service, host: str, bucket: str = "") -> list[list[Asked]]:
    """The requests through the proxy to a host, for a bucket, of Spark's client and of Python's."""
    asked = [one for one in service.proxy.asked if one.host == host and bucket in one.target]
    return [[one for one in asked if one.by_spark is by_spark] for by_spark in (True, False)]


def is_complete(asked: list[Asked]) -> bool:
    """Whether a client wrote, read and listed, so that each kind of its requests was seen."""
    return {"PUT", "GET", "HEAD"} <= {one.method for one in asked}


@pytest.mark.timeout(600)
def test_requests_go_through_the_proxy(done: Service) -> None:
    """No name of the service resolves here: a request beside the proxy would have failed."""
    for asked in by_client(done, SERVICE_NAME, "/proxied"):
        assert is_complete(asked)
    tunnels = [one for one in done.proxy.asked if one.method == "CONNECT"]
    assert {one.host for one in tunnels} == {SERVICE_NAME}
    assert {key.partition("/")[0] for key in done.objects("tunnelled")} == set(ROUTES)


@pytest.mark.timeout(600)
def test_each_object_is_encrypted_by_the_key_of_its_bucket(done: Service) -> None:
    # Markers of directories, which end in a slash, have no content.
    sealed, plain = (
        [done.head(bucket, key) for key in done.objects(bucket) if not key.endswith("/")]
        for bucket in ("sealed", "plain")
    )
    assert len(sealed) > 20
    assert {found.get("ServerSideEncryption") for found in sealed} == {"aws:kms"}
    assert all(str(found["SSEKMSKeyId"]).endswith(KEY) for found in sealed)
    assert {found.get("ServerSideEncryption") for found in plain} == {None}


@pytest.mark.timeout(600)
def test_a_bucket_is_found_with_the_name_of_another_region(done: Service) -> None:
    assert done.s3_region() == REGION
    assert done.hadoop["fs.s3a.bucket.elsewhere.endpoint.region"] == OTHER_REGION
    assert done.objects("elsewhere")


@pytest.mark.timeout(600)
def test_the_bucket_is_in_the_name_of_the_host(done: Service) -> None:
    for asked in by_client(done, f"hosted.{SERVICE_NAME}"):
        assert is_complete(asked)
    assert not any("/hosted" in one.target for one in done.proxy.asked if one.host == SERVICE_NAME)


@pytest.mark.timeout(600)
def test_the_requester_pays_for_each_request(done: Service) -> None:
    for asked in by_client(done, SERVICE_NAME, "/paid"):
        assert is_complete(asked)
        assert {one.headers.get("x-amz-request-payer") for one in asked} == {"requester"}
    assert not any("x-amz-request-payer" in one.headers for one in done.proxy.asked if "/proxied" in one.target)


@pytest.mark.timeout(600)
def test_a_certificate_that_is_not_trusted_is_an_error_and_nothing_is_written(service: Service) -> None:
    """Python trusts the authority or not by AWS_CA_BUNDLE, the JVM by its trust store: both are needed."""
    # Each has a process of its own, because a client is kept.
    (of_java,) = service.outcomes([Step("s3a://private/java", "native")])
    (of_python,) = service.outcomes([Step("s3a://private/python", "native", without=("AWS_CA_BUNDLE",))])
    assert of_python["kind"] == "StorageAccessError"
    assert "AWS_CA_BUNDLE" in of_python["message"]
    assert of_java["kind"] == "StorageAccessError"
    assert "javax.net.ssl.trustStore" in of_java["message"]
    assert not [key for key in service.objects("private") if key.startswith(("python/", "java/"))]
