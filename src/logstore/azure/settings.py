"""How a storage account of Azure is reached: Hadoop's keys, then fsspec's options, then the SDK's own chain.

A path names its container and mostly its account: `abfss://container@account.dfs.core.windows.net/path`, as Hadoop has
it, or `az://container/path`, as fsspec has it, where the options or the environment name the account. Both kinds of
host (`dfs`, `blob`) mean the account's blob endpoint.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, Self
from urllib.parse import urlsplit

from ...errors import LogStoreConfigurationError
from ..common.http_clients import CONNECT_SECONDS, READ_SECONDS, hadoop_keys, needed, with_and_without_spark
from ..common.uri import checked_endpoint

CONFIGURATION_PREFIXES = with_and_without_spark("fs.azure.")

_SECURE_SCHEMES = frozenset({"abfss", "wasbs"})
_SUFFIX = "blob.core.windows.net"
_OPTIONS = ("account_name", "account_key", "sas_token", "connection_string", "client_id", "client_secret", "tenant_id")
_OTHER_OPTIONS = frozenset({"credential", "account_host", "anon"})
_FOR_DATA_FILES = frozenset(
    {"blocksize", "default_fill_cache", "default_cache_type", "max_concurrency", "skip_instance_cache"}
    | {"timeout", "connection_timeout", "read_timeout", "assume_container_exists"}
)
_LARGEST_PUT = 5000 * 1024 * 1024  # what the service takes in one Put Blob
_LARGEST_GET = 1 << 40

Kind = Literal[
    "key",
    "sas",
    "connection_string",
    "credential",
    "client_secret",
    "managed_identity",
    "workload_identity",
    "anonymous",
    "default",
]


class AzureLocation(NamedTuple):
    """What an authority says: the container, and the host of the account where it names one."""

    container: str
    host: str | None


def place(authority: str) -> AzureLocation:
    """The container and the host of the authority of a path."""
    container, at, host = authority.partition("@")
    if not container or (at and not host):
        raise LogStoreConfigurationError(
            f"{authority!r} names no container and account; a path is abfss://container@account.dfs.core.windows.net/…"
        )
    return AzureLocation(container, host.lower() or None)


@dataclass(frozen=True)
class Access:
    """One account's blob endpoint, and by what one gets in; `secret` has what the kind needs, by its name."""

    account: str
    url: str
    kind: Kind
    secret: Mapping[str, Any] = field(default_factory=dict, repr=False)
    for_data_files: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def client(self) -> Any:
        """The SDK's client of the account. It sends each request once: `answers` decides what is sent again."""
        blob = needed("azure.storage.blob", "azure")
        settings = {
            "retry_total": 0,
            "connection_timeout": CONNECT_SECONDS,
            "read_timeout": READ_SECONDS,
            "max_single_put_size": _LARGEST_PUT,
            "max_single_get_size": _LARGEST_GET,
        }
        try:
            if self.kind == "connection_string":
                return blob.BlobServiceClient.from_connection_string(self.secret["connection_string"], **settings)
            return blob.BlobServiceClient(self.url, credential=self._credential(), **settings)
        except ValueError:  # its text may quote what was given
            raise LogStoreConfigurationError(
                f"the Azure SDK can't use what is configured for the account {self.account} ({self.kind} at "
                f"{self.url}): check its form; a token needs https"
            ) from None

    def _credential(self) -> Any:
        secret = self.secret
        match self.kind:
            case "key":
                return {"account_name": self.account, "account_key": secret["key"]}
            case "sas":
                return needed("azure.core.credentials", "azure").AzureSasCredential(secret["sas"].lstrip("?"))
            case "credential":
                return secret["credential"]
            case "anonymous":
                return None
        identity = needed("azure.identity", "azure")
        match self.kind:
            case "client_secret":
                return identity.ClientSecretCredential(
                    secret["tenant_id"], secret["client_id"], secret["client_secret"], authority=secret["authority"]
                )
            case "managed_identity":
                return identity.ManagedIdentityCredential(client_id=secret["client_id"])
            case "workload_identity":
                return identity.WorkloadIdentityCredential(**secret)
        return identity.DefaultAzureCredential()

    def fsspec_options(self) -> dict[str, Any]:
        """The options with which adlfs reads data files at the same place, with no listing cached."""
        options: dict[str, Any] = {**self.for_data_files, "account_name": self.account, "use_listings_cache": False}
        at = urlsplit(self.url)
        if self.kind == "connection_string":
            return {**options, "connection_string": self.secret["connection_string"]}
        if at.scheme != "https" or at.path.strip("/"):  # adlfs can say this in a connection string only
            access = {"key": f"AccountKey={self.secret.get('key')}", "sas": f"SharedAccessSignature={self._sas()}"}
            credential = f"{access[self.kind]};" if self.kind in access else ""
            text = (
                f"DefaultEndpointsProtocol={at.scheme};AccountName={self.account};{credential}BlobEndpoint={self.url};"
            )
            return {**options, "connection_string": text}
        options["account_host"] = at.netloc
        match self.kind:
            case "key":
                options["account_key"] = self.secret["key"]
            case "sas":
                options["sas_token"] = self._sas()
            case "client_secret" if self.secret["authority"] == _AUTHORITY:
                options |= {name: self.secret[name] for name in ("tenant_id", "client_id", "client_secret")}
            case "anonymous":
                options["anon"] = True
            case "default":
                options["anon"] = False
            case _:
                credential = self._credential()
                options["credential"] = _Awaited(credential) if hasattr(credential, "get_token") else credential
        return options

    def _sas(self) -> str:
        return str(self.secret.get("sas", "")).lstrip("?")


class _Awaited:
    """A credential that makes its client wait, for adlfs, which awaits its credentials."""

    def __init__(self, credential: Any) -> None:
        self._credential = credential

    async def get_token(self, *scopes: str, **options: Any) -> Any:
        return self._credential.get_token(*scopes, **options)

    async def close(self) -> None:
        self._credential.close()


@dataclass(frozen=True)
class AzureSettings:
    """All that is configured, for every account; `access` is what it comes to for one path."""

    secure: bool
    keys: Mapping[str, str] = field(repr=False)
    options: Mapping[str, Any] = field(repr=False)

    @classmethod
    def of(cls, scheme: str, conf: Mapping[str, str], storage_options: Mapping[str, Any]) -> Self:
        """The settings for paths of `scheme`. Raises LogStoreConfigurationError for what can't be honoured."""
        keys = hadoop_keys(conf)
        encrypted = [key for key in keys if key.startswith("fs.azure.client-provided-encryption-key")]
        if encrypted:
            raise LogStoreConfigurationError(
                f"{encrypted[0]}: tablelog has no encryption with a key of the client's own, and would write the log "
                "without it; use the account's encryption scopes"
            )
        known = {*_OPTIONS, *_OTHER_OPTIONS, *_FOR_DATA_FILES, "use_listings_cache"}
        unknown = sorted(set(storage_options) - known)
        if unknown:
            raise LogStoreConfigurationError(
                f"tablelog can't honour the storage options {', '.join(unknown)} for {scheme}; it has "
                f"{', '.join(sorted(known))}"
            )
        always = keys.get("fs.azure.always.use.https", "true").lower() != "false"
        return cls(scheme in _SECURE_SCHEMES or always, keys, dict(storage_options))

    def access(self, authority: str) -> Access:
        """How the account of a path with this authority is reached.

        Raises LogStoreConfigurationError where nothing names an account, or the settings contradict each other.
        """
        container, host = place(authority)
        given, environment = _given(self.options), _given(_environment())
        account = host.partition(".")[0] if host else given.get("account_name") or environment.get("account_name")
        if not account:
            raise LogStoreConfigurationError(
                f"nothing names the storage account of the container {container}: write "
                "abfss://container@account.dfs.core.windows.net/…, or set the storage option account_name"
            )
        if given.get("account_name", account) != account:
            raise LogStoreConfigurationError(
                f"the storage options are for the account {given['account_name']}, and the path is in {account}"
            )
        url = self._url(account, host)
        access = (
            self._of_keys(account, container, host, url)
            or _of_options(account, url, given)
            or (_of_options(account, url, environment) if environment.get("account_name", account) == account else None)
            or Access(account, url, "default")
        )
        return replace(access, for_data_files={k: v for k, v in self.options.items() if k in _FOR_DATA_FILES})

    def client(self, authority: str) -> Any:
        """The SDK's client for paths with this authority; see `Access.client`."""
        return self.access(authority).client()

    def _url(self, account: str, host: str | None) -> str:
        protocol = "https" if self.secure else "http"
        endpoint = self.keys.get("fs.azure.abfs.endpoint")
        if endpoint:  # Hadoop's own form: an address with a port, and the account in the path
            if not re.fullmatch(r"[^/:@]+:[0-9]+", endpoint):
                raise LogStoreConfigurationError("fs.azure.abfs.endpoint is not of the form host:port")
            return f"{protocol}://{endpoint}/{account}"
        if self.options.get("account_host"):
            return checked_endpoint("account_host", f"{protocol}://{self.options['account_host']}")
        return f"{protocol}://{account}.{re.sub(r'^dfs[.]', 'blob.', _domain(host))}"

    def _key(self, name: str, account: str, host: str | None) -> str | None:
        """Hadoop's key for the account, by any of its names, else for all accounts."""
        tail = _domain(host).partition(".")[2]
        for suffix in (f".{host}", f".{account}.dfs.{tail}", f".{account}.blob.{tail}", f".{account}", ""):
            value = self.keys.get(name + suffix)
            if value:
                return value
        return None

    def _of_keys(self, account: str, container: str, host: str | None, url: str) -> Access | None:
        def key(name: str) -> str | None:
            return self._key(name, account, host)

        def must(name: str) -> str:
            value = key(name)
            if not value:
                raise LogStoreConfigurationError(
                    f"fs.azure.account.auth.type of the account {account} is {kind}, and {name} isn't set"
                )
            return value

        kind = key("fs.azure.account.auth.type")
        shared = key("fs.azure.account.key")
        fixed = key("fs.azure.sas.fixed.token") or self._key(f"fs.azure.sas.{container}", account, host)
        match kind.lower() if kind else None:
            case "sharedkey":
                return Access(account, url, "key", {"key": must("fs.azure.account.key")})
            case "sas":
                return Access(account, url, "sas", {"sas": fixed or must("fs.azure.sas.fixed.token")})
            case "oauth":
                provider = must("fs.azure.account.oauth.provider.type").rpartition(".")[2]
                return _of_provider(account, url, provider, key, must)
            case None:
                if shared:
                    return Access(account, url, "key", {"key": shared})
                return Access(account, url, "sas", {"sas": fixed}) if fixed else None
        raise LogStoreConfigurationError(
            f"fs.azure.account.auth.type = {kind}: tablelog has SharedKey, SAS and OAuth; a provider written in Java "
            "can't be used"
        )


_AUTHORITY = "https://login.microsoftonline.com"


def _of_provider(account: str, url: str, provider: str, key: Any, must: Any) -> Access:
    """OAuth by one of Hadoop's token providers that needs no Java."""
    name = "fs.azure.account.oauth2."
    match provider:
        case "ClientCredsTokenProvider":
            endpoint = urlsplit(checked_endpoint(name + "client.endpoint", must(name + "client.endpoint")))
            secret = {
                "authority": f"{endpoint.scheme}://{endpoint.netloc}",
                "tenant_id": endpoint.path.strip("/").partition("/")[0],
                "client_id": must(name + "client.id"),
                "client_secret": must(name + "client.secret"),
            }
            return Access(account, url, "client_secret", secret)
        case "MsiTokenProvider":
            return Access(account, url, "managed_identity", {"client_id": key(name + "client.id")})
        case "WorkloadIdentityTokenProvider":
            secret = {
                "tenant_id": must(name + "msi.tenant"),
                "client_id": must(name + "client.id"),
                "token_file_path": must(name + "token.file"),
            }
            return Access(account, url, "workload_identity", secret)
    raise LogStoreConfigurationError(
        f"fs.azure.account.oauth.provider.type = {provider}: tablelog has ClientCredsTokenProvider, MsiTokenProvider "
        "and WorkloadIdentityTokenProvider"
    )


def _of_options(account: str, url: str, given: Mapping[str, Any]) -> Access | None:
    """Access by options under adlfs' names; None where they hold none."""
    if given.get("connection_string"):
        parts = _parts(given["connection_string"])
        at = checked_endpoint("the BlobEndpoint of connection_string", parts.get("blobendpoint") or url)
        return Access(account, at, "connection_string", {"connection_string": given["connection_string"]})
    credential = given.get("credential")
    if isinstance(credential, str):
        given = {**given, ("sas_token" if "sig=" in credential else "account_key"): credential}
    elif credential is not None:
        from inspect import iscoroutinefunction

        if iscoroutinefunction(getattr(credential, "get_token", None)):
            raise LogStoreConfigurationError(
                "the storage option credential is one of azure.identity.aio; give the one of azure.identity, or "
                "tenant_id, client_id and client_secret"
            )
        return Access(account, url, "credential", {"credential": credential})
    if given.get("account_key"):
        return Access(account, url, "key", {"key": given["account_key"]})
    if given.get("sas_token"):
        return Access(account, url, "sas", {"sas": given["sas_token"]})
    if given.get("client_id"):
        missing = [name for name in ("tenant_id", "client_secret") if not given.get(name)]
        if missing:
            raise LogStoreConfigurationError(f"client_id is given for Azure, and {' and '.join(missing)} isn't")
        names = ("tenant_id", "client_id", "client_secret")
        return Access(account, url, "client_secret", {"authority": _AUTHORITY, **{name: given[name] for name in names}})
    return Access(account, url, "anonymous") if given.get("anon") else None


def _domain(host: str | None) -> str:
    """What stands behind the account in its host."""
    return (host or "").partition(".")[2] or _SUFFIX


def _given(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options, with the account that a connection string names among them."""
    given = {name: value for name, value in options.items() if value not in (None, "")}
    if "connection_string" in given:
        named = _parts(given["connection_string"]).get("accountname")
        if named:
            given["account_name"] = named
    return given


def _environment() -> dict[str, Any]:
    """The variables that adlfs and the SDK's samples read, under adlfs' names of options."""
    found: dict[str, Any] = {name: os.environ.get(f"AZURE_STORAGE_{name.upper()}") for name in _OPTIONS}
    found["anon"] = os.environ.get("AZURE_STORAGE_ANON", "false").lower() not in ("false", "0", "f", "")
    return found


def _parts(connection_string: str) -> dict[str, str]:
    pairs = (part.partition("=") for part in connection_string.split(";"))
    return {name.strip().lower(): value.strip() for name, _, value in pairs}
