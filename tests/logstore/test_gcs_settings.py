"""How Google Cloud Storage is reached: one test for each key that is honoured, and what is refused by name."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from google.oauth2.credentials import Credentials

from tablelog.errors import LogStoreConfigurationError, StorageAccessError, UnsupportedEnvironmentError
from tablelog.logstore.gcs.settings import GCSSettings

USER = {"fs.gs.auth.client.id": "id", "fs.gs.auth.client.secret": "s3cret", "fs.gs.auth.refresh.token": "s3cret"}
SERVICE = {"fs.gs.auth.service.account.email": "a@b", "fs.gs.auth.service.account.private.key": "s3cret\\nkey"}


@pytest.fixture(autouse=True)
def empty_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("STORAGE_EMULATOR_HOST", "GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_CLOUD_PROJECT"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def key_file(tmp_path: Path) -> str:
    """The credentials of a user, in a file as gcloud writes it."""
    path = tmp_path / "key.json"
    path.write_text(
        json.dumps({"type": "authorized_user", "client_id": "id", "client_secret": "s3cret", "refresh_token": "s3cret"})
    )
    return str(path)


def settings(conf: dict[str, str] | None = None, options: dict[str, Any] | None = None) -> GCSSettings:
    return GCSSettings.of("gs", conf or {}, options or {})


def error(conf: dict[str, str] | None = None, options: dict[str, Any] | None = None) -> str:
    with pytest.raises(LogStoreConfigurationError) as caught:
        settings(conf, options)
    assert "s3cret" not in str(caught.value)
    return str(caught.value)


# ---- Hadoop's keys ----


@pytest.mark.parametrize("prefix", ["", "spark.hadoop."])
@pytest.mark.parametrize("value", ["http://127.0.0.1:1", "http://127.0.0.1:1/"])
def test_root_url(prefix: str, value: str) -> None:
    assert settings({f"{prefix}fs.gs.storage.root.url": value}).endpoint == "http://127.0.0.1:1"


@pytest.mark.parametrize(
    "name", ["fs.gs.auth.service.account.json.keyfile", "google.cloud.auth.service.account.json.keyfile"]
)
@pytest.mark.parametrize("kind", [{}, {"fs.gs.auth.type": "SERVICE_ACCOUNT_JSON_KEYFILE"}])
@pytest.mark.parametrize("prefix", ["", "spark.hadoop."])
def test_key_file(name: str, kind: dict[str, str], prefix: str, key_file: str) -> None:
    access = settings({**kind, prefix + name: key_file}).access
    assert (access.kind, access.secret) == ("keyfile", key_file)
    assert access.credentials().refresh_token == "s3cret"


def test_todays_name_of_a_key_comes_first(key_file: str) -> None:
    conf = {
        "fs.gs.auth.service.account.json.keyfile": key_file,
        "google.cloud.auth.service.account.json.keyfile": "/old",
    }
    assert settings(conf).access.secret == key_file
    assert settings(dict(reversed(conf.items()))).access.secret == key_file


def test_private_key_and_email() -> None:
    access = settings({**SERVICE, "fs.gs.auth.service.account.private.key.id": "k1"}).access
    assert access.kind == "info"
    assert access.secret["client_email"] == "a@b"
    assert access.secret["private_key"] == "s3cret\nkey"
    assert access.secret["private_key_id"] == "k1"


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("UNAUTHENTICATED", "anonymous"),
        ("unauthenticated", "anonymous"),
        ("APPLICATION_DEFAULT", "default"),
        ("COMPUTE_ENGINE", "compute"),
    ],
)
def test_auth_type(value: str, kind: str) -> None:
    assert settings({"fs.gs.auth.type": value, **SERVICE}).access.kind == kind


def test_user_credentials() -> None:
    access = settings({"fs.gs.auth.type": "USER_CREDENTIALS", **USER}).access
    credentials = access.credentials()
    assert (credentials.client_id, credentials.client_secret, credentials.refresh_token) == ("id", "s3cret", "s3cret")
    for missing in USER:
        conf = {"fs.gs.auth.type": "USER_CREDENTIALS", **{key: USER[key] for key in USER if key != missing}}
        assert missing in error(conf)


def test_null_enable_of_the_older_connector() -> None:
    assert settings({"fs.gs.auth.null.enable": "true"}).access.kind == "anonymous"
    assert settings({"fs.gs.auth.null.enable": "false"}).access.kind == "default"


def test_requester_pays() -> None:
    name = "fs.gs.requester.pays."
    conf = {name + "mode": "ENABLED", name + "project.id": "p"}
    assert settings(conf).pays("any") == "p"
    assert settings({**conf, name + "mode": "DISABLED"}).pays("any") is None
    custom = settings({**conf, name + "mode": "CUSTOM", name + "buckets": "one, two"})
    assert [custom.pays(bucket) for bucket in ("one", "two", "three")] == ["p", "p", None]
    assert settings({name + "mode": "ENABLED", "fs.gs.project.id": "q"}).pays("any") == "q"
    assert "AUTO" in error({**conf, name + "mode": "AUTO"})
    assert "project.id" in error({name + "mode": "ENABLED"})


@pytest.mark.parametrize(
    ("conf", "says"),
    [
        ({"fs.gs.auth.type": "ACCESS_TOKEN_PROVIDER"}, "ACCESS_TOKEN_PROVIDER"),
        ({"fs.gs.auth.type": "SERVICE_ACCOUNT_JSON_KEYFILE"}, "json.keyfile isn't set"),
        ({"fs.gs.auth.access.token.provider.impl": "a.B"}, "Java"),
        ({"fs.gs.auth.impersonation.service.account": "a@b"}, "impersonation"),
        ({"fs.gs.auth.service.account.keyfile": "/x.p12"}, "P12"),
        ({"google.cloud.auth.service.account.keyfile": "/x.p12"}, "P12"),
        ({"fs.gs.encryption.key": "s3cret"}, "encryption"),
        ({"fs.gs.proxy.address": "h:1"}, "HTTPS_PROXY"),
    ],
)
def test_what_cant_be_honoured_is_refused_by_name(conf: dict[str, str], says: str) -> None:
    assert says in error(conf)


# ---- fsspec's options ----


def test_endpoint_url_and_project() -> None:
    found = settings(options={"endpoint_url": "http://127.0.0.1:1", "project": "p"})
    assert (found.endpoint, found.project) == ("http://127.0.0.1:1", "p")


@pytest.mark.parametrize(
    ("token", "kind"),
    [
        (None, "default"),
        ("anon", "anonymous"),
        ("cloud", "compute"),
        ("google_default", "default"),
        ("ya29.s3cret", "token"),
        ({"type": "service_account"}, "info"),
        (Credentials("s3cret"), "credentials"),
    ],
)
def test_token(token: Any, kind: str) -> None:
    found = settings(options={"token": token})
    assert found.access.kind == kind
    assert "s3cret" not in repr(found)


def test_what_a_token_becomes(key_file: str) -> None:
    assert settings(options={"token": key_file}).access.credentials().client_secret == "s3cret"
    assert settings(options={"token": "ya29.s3cret"}).access.credentials().token == "ya29.s3cret"
    own = Credentials("s3cret")
    assert settings(options={"token": own}).access.credentials() is own
    user = {"client_id": "id", "client_secret": "s3cret", "refresh_token": "r"}
    assert settings(options={"token": user}).access.credentials().refresh_token == "r"
    for asks in ("browser", "cache"):
        assert asks in error(options={"token": asks})
    assert "int" in error(options={"token": 5})


def test_requester_pays_of_the_options() -> None:
    assert settings(options={"requester_pays": "p"}).pays("any") == "p"
    assert settings(options={"requester_pays": True, "project": "q"}).pays("any") == "q"
    assert settings(options={"requester_pays": False, "project": "q"}).pays("any") is None
    assert "project" in error(options={"requester_pays": True})


def test_unknown_options_are_refused() -> None:
    assert "tokn" in error(options={"tokn": "s3cret"})


# ---- the environment, and the order ----


@pytest.mark.parametrize("value", ["http://127.0.0.1:1", "127.0.0.1:1"])
def test_emulator(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", value)
    found = settings()
    assert (found.endpoint, found.access.kind) == ("http://127.0.0.1:1", "anonymous")
    assert settings({"fs.gs.storage.root.url": "https://x"}).access.kind == "default"


def test_application_credentials(key_file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", key_file)
    assert settings().access.credentials().refresh_token == "s3cret"


def test_hadoops_keys_come_before_the_options_and_those_before_the_environment(
    key_file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", key_file)
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", "http://environment")
    conf = {"fs.gs.auth.type": "COMPUTE_ENGINE", "fs.gs.storage.root.url": "http://keys"}
    options = {"token": "anon", "endpoint_url": "http://options"}
    assert (settings(conf, options).access.kind, settings(conf, options).endpoint) == ("compute", "http://keys")
    assert (settings({}, options).access.kind, settings({}, options).endpoint) == ("anonymous", "http://options")
    assert settings({}, {}).endpoint == "http://environment"


# ---- bad credentials ----


def test_no_credentials_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    from google.auth.exceptions import DefaultCredentialsError

    def none(**_: Any) -> Any:
        raise DefaultCredentialsError("none")

    monkeypatch.setattr("google.auth.default", none)
    with pytest.raises(StorageAccessError, match="GOOGLE_APPLICATION_CREDENTIALS"):
        settings().session("https://storage.googleapis.com")


def test_a_key_file_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text("s3cret")
    for path in (tmp_path / "absent.json", tmp_path / "bad.json"):
        with pytest.raises(LogStoreConfigurationError, match=path.name) as caught:
            settings({"fs.gs.auth.service.account.json.keyfile": str(path)}).session("https://x")
        assert "s3cret" not in str(caught.value)


def test_the_content_of_a_key_file_in_place_of_its_path_isnt_quoted() -> None:
    for content in (json.dumps({"private_key": "s3cret"}), "s3cret" * 1000):
        with pytest.raises(LogStoreConfigurationError, match="configured value") as caught:
            settings({"fs.gs.auth.service.account.json.keyfile": content}).session("https://x")
        assert "s3cret" not in str(caught.value)


def test_an_endpoint_without_a_protocol_is_encrypted() -> None:
    assert settings({"fs.gs.storage.root.url": "storage.example"}).endpoint == "https://storage.example"


def test_a_private_key_that_is_none_isnt_quoted() -> None:
    with pytest.raises(LogStoreConfigurationError, match="credentials") as caught:
        settings(SERVICE).session("https://x")
    assert "s3cret" not in str(caught.value)


# ---- data files ----


def test_gcsfs_gets_the_same(key_file: str) -> None:
    conf = {"fs.gs.auth.service.account.json.keyfile": key_file, "fs.gs.project.id": "p"}
    assert settings(conf, {"block_size": 5}).fsspec_options("bucket") == {
        "token": key_file,
        "project": "p",
        "endpoint_url": "https://storage.googleapis.com",
        "requester_pays": False,
        "use_listings_cache": False,
        "block_size": 5,
    }
    assert settings({"fs.gs.auth.type": "UNAUTHENTICATED"}).fsspec_options("b")["token"] == "anon"
    assert settings({"fs.gs.auth.type": "COMPUTE_ENGINE"}).fsspec_options("b")["token"] == "cloud"
    assert settings().fsspec_options("b")["token"] == "google_default"


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "google.auth.transport.requests", None)
    with pytest.raises(UnsupportedEnvironmentError, match=r"pip install 'tablelog\[gcs\]'"):
        settings({"fs.gs.auth.type": "UNAUTHENTICATED"}).session("https://x")


def test_a_sessions_keys_reach_the_store() -> None:
    """Those of today and those of older connectors: a handle has all that the store reads."""
    from tablelog.logstore.gcs.store import GCSLogStore
    from tablelog.spark.conf import delta_log

    keys = {f"{prefix}x": "1" for prefix in GCSLogStore.configuration_prefixes}
    assert delta_log("gs://bucket/t", {**keys, "spark.app.name": "a"}).conf == keys
