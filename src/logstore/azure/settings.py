"""The connection settings of an Azure storage account: Hadoop's keys, then fsspec's options, then the SDK's sources.

A path has its container and mostly its account: `abfss://container@account.dfs.core.windows.net/path`, Hadoop's form,
or `az://container/path`, fsspec's form, with the account from the options or the environment. Both kinds of host
(`dfs`, `blob`) stand for the account's blob endpoint.
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
LARGEST_PUT = 5000 * 1024 * 1024  # the service's limit for one Put Blob
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
    """The parts of an authority: the container, and the host of the account if there is one."""

    container: str
    host: str | None


def place(authority: str) -> AzureLocation:
    """The container and the host of the authority of a path."""
    container, at, host = authority.partition("@")
    if not container or (at and not host):
        raise LogStoreConfigurationError(
            f"{authority!r} has no container and account; write abfss://container@account.dfs.core.windows.net/…"
        )
    return AzureLocation(container, host.lower() or None)


@dataclass(frozen=True)
class Access:
    """The blob endpoint and the credentials of one account; `secret` has the values for `kind`, by name."""

    account: str
    url: str
    kind: Kind
    secret: Mapping[str, Any] = field(default_factory=dict, repr=False)
    for_data_files: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def client(self, *, read_seconds: float = READ_SECONDS) -> Any:
        """The SDK's client of the account. It sends each request once: `answer_of` decides which are repeated."""
        blob = needed("azure.storage.blob", "azure")
        settings = {
            "retry_total": 0,
            "connection_timeout": CONNECT_SECONDS,
            "read_timeout": read_seconds,
            "max_single_put_size": LARGEST_PUT,
            "max_single_get_size": _LARGEST_GET,
        }
        try:
            if self.kind == "connection_string":
                return blob.BlobServiceClient.from_connection_string(self.secret["connection_string"], **settings)
            return blob.BlobServiceClient(self.url, credential=self._credential(), **settings)
        except ValueError:  # its text may quote a secret
            raise LogStoreConfigurationError(
                f"the Azure SDK rejects the settings of the account {self.account} ({self.kind} at {self.url}): check "
                "their format; a token needs https"
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
        """The options of adlfs for data files at the same location, without a cache of listings."""
        options: dict[str, Any] = {**self.for_data_files, "account_name": self.account, "use_listings_cache": False}
        endpoint = urlsplit(self.url)
        if self.kind == "connection_string":
            return {**options, "connection_string": self.secret["connection_string"]}
        if endpoint.scheme != "https" or endpoint.path.strip("/"):  # adlfs accepts this only in a connection string
            access = {"key": f"AccountKey={self.secret.get('key')}", "sas": f"SharedAccessSignature={self._sas()}"}
            credential = f"{access[self.kind]};" if self.kind in access else ""
            text = (
                f"DefaultEndpointsProtocol={endpoint.scheme};AccountName={self.account};{credential}"
                f"BlobEndpoint={self.url};"
            )
            return {**options, "connection_string": text}
        options["account_host"] = endpoint.netloc
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
                options["credential"] = _awaited(credential) if hasattr(credential, "get_token") else credential
        return options

    def _sas(self) -> str:
        return str(self.secret.get("sas", "")).lstrip("?")


def _awaited(credential: Any) -> Any:
    """An asynchronous wrapper of a synchronous credential, for adlfs, which awaits its credentials."""

    # Spark's cloudpickle sends a local class itself. One of this module would need tablelog on the executors.
    class Awaited:
        async def get_token(self, *scopes: str, **options: Any) -> Any:
            return credential.get_token(*scopes, **options)

        async def close(self) -> None:
            credential.close()

    return Awaited()


@dataclass(frozen=True)
class AzureSettings:
    """All settings, for all accounts; `access` selects those of one path."""

    secure: bool
    keys: Mapping[str, str] = field(repr=False)
    options: Mapping[str, Any] = field(repr=False)

    @classmethod
    def of(cls, scheme: str, conf: Mapping[str, str], storage_options: Mapping[str, Any]) -> Self:
        """The settings for paths of `scheme`. Raises LogStoreConfigurationError for unsupported settings."""
        keys = hadoop_keys(conf)
        encrypted = [key for key in keys if key.startswith("fs.azure.client-provided-encryption-key")]
        if encrypted:
            raise LogStoreConfigurationError(
                f"{encrypted[0]}: tablelog doesn't support encryption with a client's own key, and would write the log "
                "without it; use the account's encryption scopes"
            )
        known = {*_OPTIONS, *_OTHER_OPTIONS, *_FOR_DATA_FILES, "use_listings_cache"}
        unknown = sorted(set(storage_options) - known)
        if unknown:
            raise LogStoreConfigurationError(
                f"tablelog doesn't support the storage options {', '.join(unknown)} for {scheme}; it supports "
                f"{', '.join(sorted(known))}"
            )
        always = keys.get("fs.azure.always.use.https", "true").lower() != "false"
        return cls(scheme in _SECURE_SCHEMES or always, keys, dict(storage_options))

    def access(self, authority: str) -> Access:
        """The connection settings of the account for a path with this authority.

        Raises LogStoreConfigurationError if no account is set, or if the settings contradict each other.
        """
        container, host = place(authority)
        options, environment = _with_account_name(self.options), _with_account_name(_environment())
        account = host.partition(".")[0] if host else options.get("account_name") or environment.get("account_name")
        if not account:
            raise LogStoreConfigurationError(
                f"the storage account of the container {container} isn't set: write "
                "abfss://container@account.dfs.core.windows.net/…, or set the storage option account_name"
            )
        if options.get("account_name", account) != account:
            raise LogStoreConfigurationError(
                f"the storage options are for the account {options['account_name']}, but the path is in {account}"
            )
        url = self._url(account, host)
        access = (
            self._of_keys(account, container, host, url)
            or _of_options(account, url, options)
            or (_of_options(account, url, environment) if environment.get("account_name", account) == account else None)
            or Access(account, url, "default")
        )
        return replace(access, for_data_files={k: v for k, v in self.options.items() if k in _FOR_DATA_FILES})

    def client(self, authority: str, *, read_seconds: float = READ_SECONDS) -> Any:
        """The SDK's client for paths with this authority; see `Access.client`."""
        return self.access(authority).client(read_seconds=read_seconds)

    def _url(self, account: str, host: str | None) -> str:
        protocol = "https" if self.secure else "http"
        endpoint = self.keys.get("fs.azure.abfs.endpoint")
        if endpoint:  # Hadoop's form: host and port, and the account in the path
            if not re.fullmatch(r"[^/:@]+:[0-9]+", endpoint):
                raise LogStoreConfigurationError("fs.azure.abfs.endpoint must have the form host:port")
            return f"{protocol}://{endpoint}/{account}"
        if self.options.get("account_host"):
            return checked_endpoint("account_host", f"{protocol}://{self.options['account_host']}")
        return f"{protocol}://{account}.{re.sub(r'^dfs[.]', 'blob.', _domain(host))}"

    def _key(self, name: str, account: str, host: str | None) -> str | None:
        """Hadoop's key for the account, in any of its forms, or the one for all accounts."""
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
                    f"fs.azure.account.auth.type of the account {account} is {kind}, but {name} isn't set"
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
            f"fs.azure.account.auth.type = {kind}: tablelog supports SharedKey, SAS and OAuth; a provider written in "
            "Java can't be used"
        )


_AUTHORITY = "https://login.microsoftonline.com"


def _of_provider(account: str, url: str, provider: str, key: Any, must: Any) -> Access:
    """OAuth for the token providers of Hadoop that don't need Java."""
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
        f"fs.azure.account.oauth.provider.type = {provider}: tablelog supports ClientCredsTokenProvider, "
        "MsiTokenProvider and WorkloadIdentityTokenProvider"
    )


def _of_options(account: str, url: str, options: Mapping[str, Any]) -> Access | None:
    """Access by options with adlfs' names; None if there are none."""
    if options.get("connection_string"):
        parts = _parts(options["connection_string"])
        at = checked_endpoint("the BlobEndpoint of connection_string", parts.get("blobendpoint") or url)
        return Access(account, at, "connection_string", {"connection_string": options["connection_string"]})
    credential = options.get("credential")
    if isinstance(credential, str):
        options = {**options, ("sas_token" if "sig=" in credential else "account_key"): credential}
    elif credential is not None:
        from inspect import iscoroutinefunction

        if iscoroutinefunction(getattr(credential, "get_token", None)):
            raise LogStoreConfigurationError(
                "the storage option credential is from azure.identity.aio; use one from azure.identity, or "
                "tenant_id, client_id and client_secret"
            )
        return Access(account, url, "credential", {"credential": credential})
    if options.get("account_key"):
        return Access(account, url, "key", {"key": options["account_key"]})
    if options.get("sas_token"):
        return Access(account, url, "sas", {"sas": options["sas_token"]})
    if options.get("client_id"):
        missing = [name for name in ("tenant_id", "client_secret") if not options.get(name)]
        if missing:
            raise LogStoreConfigurationError(f"client_id is set for Azure, but {' and '.join(missing)} isn't")
        names = ("tenant_id", "client_id", "client_secret")
        return Access(
            account, url, "client_secret", {"authority": _AUTHORITY, **{name: options[name] for name in names}}
        )
    return Access(account, url, "anonymous") if options.get("anon") else None


def _domain(host: str | None) -> str:
    """The part of a host after the account name."""
    return (host or "").partition(".")[2] or _SUFFIX


def _with_account_name(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options, including the account name from a connection string."""
    result = {name: value for name, value in options.items() if value not in (None, "")}
    if "connection_string" in result:
        named = _parts(result["connection_string"]).get("accountname")
        if named:
            result["account_name"] = named
    return result


def _environment() -> dict[str, Any]:
    """The environment variables of adlfs and the SDK's samples, as options with adlfs' names."""
    options: dict[str, Any] = {name: os.environ.get(f"AZURE_STORAGE_{name.upper()}") for name in _OPTIONS}
    options["anon"] = os.environ.get("AZURE_STORAGE_ANON", "false").lower() not in ("false", "0", "f", "")
    return options


def _parts(connection_string: str) -> dict[str, str]:
    pairs = (part.partition("=") for part in connection_string.split(";"))
    return {name.strip().lower(): value.strip() for name, _, value in pairs}
