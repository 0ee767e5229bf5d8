"""How an account of Azure is reached: one test for each key that is honoured, and what is refused by name."""

import asyncio
import base64
import subprocess
import sys
from typing import Any

import pytest
from pyspark import cloudpickle

from tablelog.errors import LogStoreConfigurationError, UnsupportedEnvironmentError
from tablelog.logstore.azure.settings import Access, AzureSettings, place

HOST = "account.dfs.core.windows.net"
AUTHORITY = f"box@{HOST}"
KEY = base64.b64encode(b"s3cret").decode()
OAUTH = {
    "fs.azure.account.auth.type": "OAuth",
    "fs.azure.account.oauth.provider.type": "org.apache.hadoop.fs.azurebfs.oauth2.ClientCredsTokenProvider",
    "fs.azure.account.oauth2.client.endpoint": "https://login.example/tenant-1/oauth2/token",
    "fs.azure.account.oauth2.client.id": "client-1",
    "fs.azure.account.oauth2.client.secret": "s3cret",
}
CONNECTION = f"DefaultEndpointsProtocol=https;AccountName=account;AccountKey={KEY};EndpointSuffix=core.windows.net"


@pytest.fixture(autouse=True)
def empty_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ACCOUNT_NAME ACCOUNT_KEY SAS_TOKEN CONNECTION_STRING CLIENT_ID CLIENT_SECRET TENANT_ID ANON").split():
        monkeypatch.delenv(f"AZURE_STORAGE_{name}", raising=False)


def access(
    conf: dict[str, str] | None = None,
    options: dict[str, Any] | None = None,
    authority: str = AUTHORITY,
    scheme: str = "abfss",
) -> Access:
    return AzureSettings.of(scheme, conf or {}, options or {}).access(authority)


def error(*arguments: Any, **named: Any) -> str:
    with pytest.raises(LogStoreConfigurationError) as caught:
        access(*arguments, **named)
    assert "s3cret" not in str(caught.value)
    assert KEY not in str(caught.value)
    return str(caught.value)


# ---- Hadoop's keys ----


@pytest.mark.parametrize("prefix", ["", "spark.hadoop."])
@pytest.mark.parametrize("suffix", [f".{HOST}", ".account.blob.core.windows.net", ".account", ""])
@pytest.mark.parametrize("host", [HOST, "account.blob.core.windows.net"])
def test_account_key(prefix: str, suffix: str, host: str) -> None:
    found = access({f"{prefix}fs.azure.account.key{suffix}": KEY}, authority=f"box@{host}")
    assert (found.kind, found.secret) == ("key", {"key": KEY})
    assert found.client().credential.account_key == KEY


def test_the_accounts_own_key_comes_first() -> None:
    conf = {"fs.azure.account.key": "everybody's", f"fs.azure.account.key.{HOST}": KEY, "fs.azure.account.key.b": "b's"}
    assert access(conf).secret == {"key": KEY}


def test_fixed_sas_token() -> None:
    for conf in ({}, {"fs.azure.account.auth.type": "SAS"}):
        found = access({**conf, f"fs.azure.sas.fixed.token.{HOST}": "?sv=1&sig=s3cret"})
        assert found.kind == "sas"
        assert found.client().credential.signature == "sv=1&sig=s3cret"


def test_sas_token_of_a_container_as_wasb_has_it() -> None:
    conf = {"fs.azure.sas.box.account.blob.core.windows.net": "sv=1&sig=s3cret"}
    found = access(conf, authority="box@account.blob.core.windows.net", scheme="wasbs")
    assert found.secret == {"sas": "sv=1&sig=s3cret"}
    assert access(conf, authority="other@account.blob.core.windows.net", scheme="wasbs").kind == "default"


@pytest.mark.parametrize("name", ["fs.azure.account.auth.type", f"fs.azure.account.auth.type.{HOST}"])
def test_auth_type_chooses(name: str) -> None:
    conf = {f"fs.azure.account.key.{HOST}": KEY, **OAUTH}
    del conf["fs.azure.account.auth.type"]
    assert access({**conf, name: "SharedKey"}).kind == "key"
    assert access({**conf, name: "OAuth"}).kind == "client_secret"


def test_oauth_with_client_credentials() -> None:
    found = access(OAUTH)
    assert found.secret == {
        "authority": "https://login.example",
        "tenant_id": "tenant-1",
        "client_id": "client-1",
        "client_secret": "s3cret",
    }
    assert type(found._credential()).__name__ == "ClientSecretCredential"


@pytest.mark.parametrize("missing", sorted(set(OAUTH) - {"fs.azure.account.auth.type"}))
def test_a_missing_key_is_named(missing: str) -> None:
    assert missing in error({key: value for key, value in OAUTH.items() if key != missing})


def test_oauth_with_a_managed_identity() -> None:
    conf = {**OAUTH, "fs.azure.account.oauth.provider.type": "a.b.MsiTokenProvider"}
    found = access(conf)
    assert (found.kind, found.secret) == ("managed_identity", {"client_id": "client-1"})
    assert type(found._credential()).__name__ == "ManagedIdentityCredential"


def test_oauth_with_a_workload_identity() -> None:
    conf = {
        **OAUTH,
        "fs.azure.account.oauth.provider.type": "a.b.WorkloadIdentityTokenProvider",
        "fs.azure.account.oauth2.msi.tenant": "tenant-1",
        "fs.azure.account.oauth2.token.file": "/token",
    }
    found = access(conf)
    assert found.secret == {"tenant_id": "tenant-1", "client_id": "client-1", "token_file_path": "/token"}
    assert type(found._credential()).__name__ == "WorkloadIdentityCredential"


def test_endpoint() -> None:
    conf = {"fs.azure.abfs.endpoint": "127.0.0.1:10000"}
    assert access(conf).url == "https://127.0.0.1:10000/account"
    assert "host:port" in error({"fs.azure.abfs.endpoint": "http://127.0.0.1/x"})


def test_always_use_https() -> None:
    conf = {"fs.azure.always.use.https": "false"}
    assert access(conf, scheme="abfs").url == "http://account.blob.core.windows.net"
    assert access(conf, scheme="wasb").url.startswith("http://")
    assert access(conf, scheme="abfss").url.startswith("https://")
    assert access(scheme="abfs").url.startswith("https://")


@pytest.mark.parametrize(
    ("conf", "says"),
    [
        ({"fs.azure.account.auth.type": "Custom"}, "Custom"),
        ({"fs.azure.account.auth.type": "SharedKey"}, "fs.azure.account.key isn't set"),
        ({"fs.azure.account.auth.type": "SAS"}, "fs.azure.sas.fixed.token isn't set"),
        ({**OAUTH, "fs.azure.account.oauth.provider.type": "a.RefreshTokenBasedTokenProvider"}, "RefreshTokenBased"),
        ({f"fs.azure.client-provided-encryption-key.{HOST}": "s3cret"}, "encryption"),
    ],
)
def test_what_cant_be_honoured_is_refused_by_name(conf: dict[str, str], says: str) -> None:
    assert says in error(conf)


# ---- fsspec's options ----


def test_account_name_and_key_of_the_options() -> None:
    found = access(options={"account_name": "account", "account_key": KEY}, authority="box", scheme="az")
    assert (found.account, found.url, found.secret) == (
        "account",
        "https://account.blob.core.windows.net",
        {"key": KEY},
    )


def test_sas_token_of_the_options() -> None:
    assert access(options={"sas_token": "?sv=1&sig=s3cret"}).secret == {"sas": "?sv=1&sig=s3cret"}


def test_connection_string() -> None:
    found = access(options={"connection_string": CONNECTION}, authority="box", scheme="az")
    assert (found.account, found.kind) == ("account", "connection_string")
    assert found.client().url == "https://account.blob.core.windows.net/"


@pytest.mark.parametrize(("text", "kind"), [(KEY, "key"), ("sv=1&sig=s3cret", "sas")])
def test_a_credential_that_is_text(text: str, kind: str) -> None:
    assert access(options={"credential": text}).kind == kind


class Token:
    def get_token(self, *scopes: str, **_: Any) -> Any:
        return f"token for {scopes}"


class AwaitedToken:
    async def get_token(self, *scopes: str, **_: Any) -> Any:
        return scopes


def test_a_credential_object() -> None:
    credential = Token()
    found = access(options={"credential": credential})
    assert found.client().credential is credential
    awaited = found.fsspec_options()["credential"]
    assert asyncio.run(awaited.get_token("a")) == "token for ('a',)"
    assert "azure.identity.aio" in error(options={"credential": AwaitedToken()})


def test_executors_need_no_tablelog_for_a_credential_object() -> None:
    """Spark sends the options of data files to them by cloudpickle."""
    conf = {**OAUTH, "fs.azure.account.oauth.provider.type": "a.b.MsiTokenProvider"}
    options = access(conf).fsspec_options()
    without = "import sys, pickle, asyncio; sys.modules['tablelog'] = None; "
    asked = "print(hasattr(pickle.load(sys.stdin.buffer)['credential'], 'get_token'))"
    sent = cloudpickle.dumps({"credential": options["credential"]})
    ran = subprocess.run([sys.executable, "-c", without + asked], input=sent, capture_output=True, check=False)
    assert (ran.stdout, ran.stderr) == (b"True\n", b"")


def test_account_host() -> None:
    assert access(options={"account_host": "account.blob.core.usgovcloudapi.net"}, authority=AUTHORITY).url == (
        "https://account.blob.core.usgovcloudapi.net"
    )


def test_anon() -> None:
    found = access(options={"anon": True})
    assert found.kind == "anonymous"
    assert found.client().credential is None


def test_a_service_principal_of_the_options() -> None:
    options = {"tenant_id": "tenant-1", "client_id": "client-1", "client_secret": "s3cret"}
    assert access(options=options).kind == "client_secret"
    assert "client_secret" in error(options={"tenant_id": "t", "client_id": "c"})


def test_options_for_another_account_and_unknown_ones_are_refused() -> None:
    assert "other" in error(options={"account_name": "other", "account_key": KEY})
    assert "acount_key" in error(options={"acount_key": KEY})
    assert "location_mode" in error(options={"location_mode": "secondary"})


# ---- the environment, and the order ----


@pytest.mark.parametrize(
    ("environment", "kind"),
    [
        ({"ACCOUNT_KEY": KEY}, "key"),
        ({"SAS_TOKEN": "sv=1&sig=s3cret"}, "sas"),
        ({"CONNECTION_STRING": CONNECTION}, "connection_string"),
        ({"CLIENT_ID": "c", "CLIENT_SECRET": "s3cret", "TENANT_ID": "t"}, "client_secret"),
        ({"ANON": "true"}, "anonymous"),
        ({"ANON": "false"}, "default"),
        ({}, "default"),
        ({"ACCOUNT_NAME": "other", "ACCOUNT_KEY": KEY}, "default"),
    ],
)
def test_the_environment(environment: dict[str, str], kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(f"AZURE_STORAGE_{name}", value)
    assert access().kind == kind


def test_the_environment_names_the_account(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "account")
    assert access(authority="box", scheme="az").account == "account"


def test_hadoops_keys_come_before_the_options_and_those_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_STORAGE_SAS_TOKEN", "sv=env&sig=x")
    conf, options = {f"fs.azure.account.key.{HOST}": KEY}, {"sas_token": "sv=options&sig=x"}
    assert access(conf, options).secret == {"key": KEY}
    assert access({}, options).secret == {"sas": "sv=options&sig=x"}
    assert access().secret == {"sas": "sv=env&sig=x"}


def test_with_nothing_at_all_it_is_the_sdks_chain() -> None:
    assert type(access()._credential()).__name__ == "DefaultAzureCredential"


# ---- places ----


@pytest.mark.parametrize(
    ("authority", "url"),
    [
        ("box@account.dfs.core.windows.net", "https://account.blob.core.windows.net"),
        ("box@Account.blob.core.windows.net", "https://account.blob.core.windows.net"),
        ("box@account.dfs.core.chinacloudapi.cn", "https://account.blob.core.chinacloudapi.cn"),
        ("box@account", "https://account.blob.core.windows.net"),
    ],
)
def test_both_kinds_of_host_are_the_blob_endpoint(authority: str, url: str) -> None:
    assert access(authority=authority).url == url


def test_what_names_no_place() -> None:
    assert place("box") == ("box", None)
    for authority in ("@host", "box@"):
        with pytest.raises(LogStoreConfigurationError):
            place(authority)
    assert "account_name" in error(authority="box", scheme="az")


def test_what_the_sdk_cant_use_is_said_without_quoting_it() -> None:
    for options in ({"connection_string": "AccountName=account;AccountKey"}, {"credential": Token()}):
        found = access({"fs.azure.always.use.https": "false"}, options, scheme="abfs")
        with pytest.raises(LogStoreConfigurationError, match="account account"):
            found.client()


# ---- data files ----


def test_adlfs_gets_the_same() -> None:
    pytest.importorskip("adlfs")
    conf = {f"fs.azure.account.key.{HOST}": KEY}
    options = access(conf).fsspec_options()
    assert options == {
        "account_name": "account",
        "account_key": KEY,
        "account_host": "account.blob.core.windows.net",
        "use_listings_cache": False,
    }
    emulated = {**conf, "fs.azure.abfs.endpoint": "127.0.0.1:1", "fs.azure.always.use.https": "false"}
    string = access(emulated, {"blocksize": 5}, scheme="abfs").fsspec_options()
    assert string["blocksize"] == 5
    assert f"AccountKey={KEY};BlobEndpoint=http://127.0.0.1:1/account;" in string["connection_string"]
    assert access({f"fs.azure.sas.fixed.token.{HOST}": "?sig=x"}).fsspec_options()["sas_token"] == "sig=x"
    assert access(options={"anon": True}).fsspec_options()["anon"] is True
    assert access().fsspec_options()["anon"] is False
    principal = {"tenant_id": "t", "client_id": "c", "client_secret": "s"}
    assert principal.items() <= access(options=principal).fsspec_options().items()
    assert access(options={"connection_string": CONNECTION}).fsspec_options()["connection_string"] == CONNECTION


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "azure.storage.blob", None)
    with pytest.raises(UnsupportedEnvironmentError, match=r"pip install 'tablelog\[azure\]'"):
        access().client()
