"""Credentials by the token of a web identity, as Kubernetes on AWS gives it to a process: STS exchanges it for keys."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from logstore.fake_s3 import FakeS3, Reply
from logstore.fake_sts import ROLE, SECRET, FakeSTS
from tablelog.errors import StorageAccessError, StorageUnavailableError

from .test_access import data_work, log_work, without_keys

Work = Callable[..., None]
ROUTES = pytest.mark.parametrize("work", [log_work, data_work])


@pytest.fixture
def token(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The file of the token, in an environment like that of a pod."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    file = tmp_path / "token"
    file.write_text("token-1")
    for name, value in {
        "AWS_WEB_IDENTITY_TOKEN_FILE": str(file),
        "AWS_ROLE_ARN": ROLE,
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
    }.items():
        monkeypatch.setenv(name, value)
    return file


@pytest.fixture
def sts(token: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeSTS]:
    with FakeSTS().serving() as service:
        monkeypatch.setenv("AWS_ENDPOINT_URL_STS", service.endpoint)
        yield service


def signers(fake: FakeS3) -> list[str]:
    """The access keys of the requests, without repetition, in the order of their first use."""
    return list(dict.fromkeys(asked.signer for asked in fake.asked))


@ROUTES
def test_keys_of_sts_sign_each_request(fake: FakeS3, sts: FakeSTS, work: Work) -> None:
    work(without_keys(fake))
    assert signers(fake) == ["STS1"]
    assert len(sts.asked) == 1
    assert {asked.headers["x-amz-security-token"] for asked in fake.asked} == {"session"}


@ROUTES
def test_keys_near_their_end_are_renewed_with_the_token_that_the_file_has_then(
    fake: FakeS3, sts: FakeSTS, token: Path, work: Work
) -> None:
    sts.lifetime = 30

    def replaced(_: object) -> None:  # by Kubernetes; STS no longer takes the first
        if len(sts.asked) == 1:
            token.write_text("token-2")
            sts.tokens = {"token-2"}

    fake.refused = replaced
    work(without_keys(fake))
    assert len(signers(fake)) > 1
    assert {asked["WebIdentityToken"] for asked in sts.asked[1:]} == {"token-2"}


@ROUTES
def test_keys_that_the_service_calls_expired_are_taken_again(fake: FakeS3, sts: FakeSTS, work: Work) -> None:
    """By the clock, they are good for an hour."""
    served: dict[str, int] = {}

    def refused(asked: object) -> Reply | None:
        signer, method = asked.signer, asked.method  # type: ignore[attr-defined]
        served[signer] = served.get(signer, 0) + 1
        kept = method == "HEAD" and work is data_work  # s3fs can't tell what a HEAD was rejected for
        return Reply(400, "ExpiredToken") if served[signer] > 5 and not kept else None

    fake.refused = refused
    work(without_keys(fake))
    assert len(served) >= 2
    assert max(served.values()) <= 8


@ROUTES
@pytest.mark.parametrize("refusal", ["AccessDenied", "InvalidIdentityToken", "ExpiredTokenException"])
def test_a_refusal_of_sts_is_an_error_that_names_it(fake: FakeS3, sts: FakeSTS, work: Work, refusal: str) -> None:
    sts.refusal = refusal
    with pytest.raises(StorageAccessError, match=r"AWS_WEB_IDENTITY_TOKEN_FILE") as caught:
        work(without_keys(fake))
    told = str(caught.value)
    assert "STS" in told
    assert "AWS_ROLE_ARN" in told
    assert refusal in told
    assert "\n" not in told
    assert not any(secret in told for secret in ("token-1", SECRET))
    assert not fake.asked


@ROUTES
def test_a_token_that_is_missing_is_an_error_that_names_its_file(
    fake: FakeS3, sts: FakeSTS, token: Path, work: Work
) -> None:
    token.unlink()
    with pytest.raises(StorageAccessError, match="AWS_WEB_IDENTITY_TOKEN_FILE"):
        work(without_keys(fake))
    assert not fake.asked
    assert not sts.asked


@pytest.mark.parametrize("work", [log_work, pytest.param(data_work, marks=pytest.mark.slow)])  # s3fs tries it often
def test_an_sts_that_does_not_answer_is_an_error_that_names_it(
    fake: FakeS3, token: Path, work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", "http://127.0.0.1:9")
    with pytest.raises(StorageUnavailableError, match=r"STS.*AWS_ENDPOINT_URL_STS"):
        work(without_keys(fake))
    assert not fake.asked
