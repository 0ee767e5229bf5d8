"""The connection settings of Google Cloud Storage: Hadoop's keys, then fsspec's options, then the SDK's own sources."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Self

from ...errors import LogStoreConfigurationError, StorageAccessError
from ..common.http_clients import hadoop_keys, needed, with_and_without_spark
from ..common.uri import checked_endpoint

CONFIGURATION_PREFIXES = with_and_without_spark("fs.gs.", "google.cloud.auth.")

_ENDPOINT = "https://storage.googleapis.com"
_SCOPES = [f"https://www.googleapis.com/auth/devstorage.{name}" for name in ("full_control", "read_write")]
_CONNECTIONS = 32
_LONGEST_PATH = 1_000
_OPTIONS = frozenset({"token", "project", "endpoint_url", "requester_pays"})
_FOR_DATA_FILES = frozenset(
    {"access", "block_size", "consistency", "requests_timeout", "timeout", "default_location", "skip_instance_cache"}
)
# Unsupported settings: without them, the log would be written as another user, or unencrypted.
_REFUSED = {
    "fs.gs.auth.access.token.provider": "a token provider written in Java can't be used",
    "fs.gs.auth.impersonation.": "impersonation isn't supported; configure it in a key file or the environment",
    "fs.gs.auth.service.account.keyfile": "P12 key files aren't supported; use a JSON key file",
    "fs.gs.encryption.": "encryption with a client's own key isn't supported",
    "fs.gs.proxy.": "proxies are configured in the environment (HTTPS_PROXY)",
}

Kind = Literal["anonymous", "keyfile", "info", "token", "credentials", "compute", "default"]


@dataclass(frozen=True)
class Access:
    """The credentials; `secret` is the path of a key file, its content, a token or an object of google-auth."""

    kind: Kind
    secret: Any = field(default=None, repr=False)

    def credentials(self) -> Any:
        """The credentials of google-auth, which fetch their tokens on first use."""
        auth = needed("google.auth", "gcs")
        match self.kind:
            case "anonymous":
                return needed("google.auth.credentials", "gcs").AnonymousCredentials()
            case "keyfile":
                return _of_info(json.loads(Path(self.secret).read_bytes()))
            case "info":
                return _of_info(self.secret)
            case "token":
                return needed("google.oauth2.credentials", "gcs").Credentials(self.secret)
            case "credentials":
                return needed("google.auth.credentials", "gcs").with_scopes_if_required(self.secret, _SCOPES)
            case "compute":
                return needed("google.auth.compute_engine", "gcs").Credentials(scopes=_SCOPES)
        return auth.default(scopes=_SCOPES)[0]

    @property
    def token(self) -> Any:
        """The credentials as gcsfs' option `token`."""
        names = {"anonymous": "anon", "compute": "cloud", "default": "google_default"}
        return names.get(self.kind, self.secret)


def _of_info(info: Mapping[str, Any]) -> Any:
    """The credentials in the content of a key file. Raises ValueError for an unknown kind."""
    match info.get("type"):
        case "service_account":
            kind = needed("google.oauth2.service_account", "gcs").Credentials
            return kind.from_service_account_info(info, scopes=_SCOPES)
        case "authorized_user":
            return needed("google.oauth2.credentials", "gcs").Credentials.from_authorized_user_info(info, _SCOPES)
    raise ValueError("neither a service account nor a user")


@dataclass(frozen=True)
class GCSSettings:
    """The endpoint (a URL without a trailing slash), the credentials, and the project that pays for requests.

    `payer` applies to the buckets in `paid_buckets`, or to all if that is None.
    """

    endpoint: str
    access: Access
    project: str | None = None
    payer: str | None = None
    paid_buckets: frozenset[str] | None = None
    for_data_files: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, scheme: str, conf: Mapping[str, str], storage_options: Mapping[str, Any]) -> Self:
        """The settings for paths of `scheme`. Raises LogStoreConfigurationError for unsupported settings."""
        keys = _plain(hadoop_keys(conf))
        for key in keys:
            for refused, reason in _REFUSED.items():
                if key.startswith(refused):
                    raise LogStoreConfigurationError(f"tablelog doesn't support {key}: {reason}")
        known = {*_OPTIONS, *_FOR_DATA_FILES, "use_listings_cache"}
        unknown = sorted(set(storage_options) - known)
        if unknown:
            raise LogStoreConfigurationError(
                f"tablelog doesn't support the storage options {', '.join(unknown)} for {scheme}; it supports "
                f"{', '.join(sorted(known))}"
            )
        emulator = os.environ.get("STORAGE_EMULATOR_HOST")
        endpoint = keys.get("fs.gs.storage.root.url") or storage_options.get("endpoint_url")
        access = _of_keys(keys) or _of_token(storage_options.get("token"))
        if access is None:
            access = Access("anonymous" if emulator and not endpoint else "default")
        project = keys.get("fs.gs.project.id") or storage_options.get("project")
        payer, buckets = _payer(keys, storage_options, project)
        configured = _with_protocol(endpoint or _ENDPOINT, "https")
        url = (_with_protocol(emulator, "http") if emulator and not endpoint else configured).rstrip("/")
        return cls(
            checked_endpoint("fs.gs.storage.root.url, the endpoint of Google Cloud Storage,", url),
            access,
            project,
            payer,
            buckets,
            {name: value for name, value in storage_options.items() if name in _FOR_DATA_FILES},
        )

    def pays(self, bucket: str) -> str | None:
        """The project that pays for requests to `bucket`, if it isn't the bucket's own."""
        return self.payer if self.paid_buckets is None or bucket in self.paid_buckets else None

    def session(self, endpoint: str) -> Any:
        """A session of `requests` with the credentials; it repeats only a request rejected with 401.

        Raises StorageAccessError if there are no credentials, LogStoreConfigurationError if they are invalid.
        """
        transport = needed("google.auth.transport.requests", "gcs")
        adapters = needed("requests.adapters", "gcs")
        errors = needed("google.auth.exceptions", "gcs")
        try:
            # Anonymous credentials can't be refreshed.
            options = {"refresh_status_codes": ()} if self.access.kind == "anonymous" else {}
            session = transport.AuthorizedSession(self.access.credentials(), **options)
        except errors.DefaultCredentialsError as error:
            raise StorageAccessError(
                f"there are no credentials for {endpoint}: set GOOGLE_APPLICATION_CREDENTIALS, run `gcloud auth "
                "application-default login`, or set fs.gs.auth.service.account.json.keyfile"
            ) from error
        except (ValueError, TypeError, AttributeError, OSError):  # their text may quote a secret
            raise LogStoreConfigurationError(
                f"the credentials for {endpoint} are invalid: {_invalid(self.access)}; for other kinds use "
                "GOOGLE_APPLICATION_CREDENTIALS"
            ) from None
        for protocol in ("https://", "http://"):
            session.mount(protocol, adapters.HTTPAdapter(pool_maxsize=_CONNECTIONS))
        return session

    def fsspec_options(self, bucket: str) -> dict[str, Any]:
        """The options of gcsfs for data files at the same location, without a cache of listings."""
        options: dict[str, Any] = {
            **self.for_data_files,
            "token": self.access.token,
            "endpoint_url": self.endpoint,
            "requester_pays": self.pays(bucket) or False,
            "use_listings_cache": False,
        }
        return {**options, "project": self.project} if self.project else options


def _invalid(access: Access) -> str:
    path = str(access.secret)
    is_path = access.kind == "keyfile" and len(path) < _LONGEST_PATH and "{" not in path and "\n" not in path
    source = f"the file {path}" if is_path else "the configured value"  # which may be the content of a key file
    return f"{source} is neither a service account nor a user"


def _plain(keys: Mapping[str, str]) -> dict[str, str]:
    """The keys with their current names: `fs.gs.auth.*`, formerly `google.cloud.auth.*`; the new ones win."""
    old = {key.replace("google.cloud.auth.", "fs.gs.auth.", 1): value for key, value in keys.items() if value}
    return {**old, **{key: value for key, value in keys.items() if value and key in old}}


def _of_keys(keys: Mapping[str, str]) -> Access | None:
    def must(name: str) -> str:
        value = keys.get(name)
        if not value:
            raise LogStoreConfigurationError(f"fs.gs.auth.type is {kind}, but {name} isn't set")
        return value

    kind = keys.get("fs.gs.auth.type")
    match kind.upper() if kind else None:
        case "UNAUTHENTICATED":
            return Access("anonymous")
        case "APPLICATION_DEFAULT":
            return Access("default")
        case "COMPUTE_ENGINE":
            return Access("compute")
        case "SERVICE_ACCOUNT_JSON_KEYFILE":
            return _of_service_account(keys) or Access("keyfile", must("fs.gs.auth.service.account.json.keyfile"))
        case "USER_CREDENTIALS":
            info = {
                "type": "authorized_user",
                "client_id": must("fs.gs.auth.client.id"),
                "client_secret": must("fs.gs.auth.client.secret"),
                "refresh_token": must("fs.gs.auth.refresh.token"),
            }
            return Access("info", info)
        case None:
            if keys.get("fs.gs.auth.null.enable", "").lower() == "true":
                return Access("anonymous")
            return _of_service_account(keys)
    raise LogStoreConfigurationError(
        f"fs.gs.auth.type = {kind}: tablelog supports APPLICATION_DEFAULT, COMPUTE_ENGINE, "
        "SERVICE_ACCOUNT_JSON_KEYFILE, USER_CREDENTIALS and UNAUTHENTICATED"
    )


def _of_service_account(keys: Mapping[str, str]) -> Access | None:
    name = "fs.gs.auth.service.account."
    if keys.get(name + "json.keyfile"):
        return Access("keyfile", keys[name + "json.keyfile"])
    if keys.get(name + "private.key") and keys.get(name + "email"):
        info = {
            "type": "service_account",
            "client_email": keys[name + "email"],
            "private_key": keys[name + "private.key"].replace("\\n", "\n"),
            "private_key_id": keys.get(name + "private.key.id", ""),
            "token_uri": "https://oauth2.googleapis.com/token",
        }
        return Access("info", info)
    return None


def _of_token(token: Any) -> Access | None:
    """Access by gcsfs' option `token`."""
    match token:
        case None | "":
            return None
        case "anon":
            return Access("anonymous")
        case "cloud":
            return Access("compute")
        case "google_default":
            return Access("default")
        case "browser" | "cache":
            raise LogStoreConfigurationError(
                f"the storage option token = {token!r} needs a person's input; give a key file"
            )
        case str():
            return Access("keyfile" if os.path.exists(token) else "token", token)
        case Mapping():
            return Access("info", {"type": "authorized_user", **token})
    if not hasattr(token, "before_request"):
        raise LogStoreConfigurationError(
            f"the storage option token is a {type(token).__name__}, but must be credentials of google-auth, a token or "
            "a key file"
        )
    return Access("credentials", token)


def _payer(
    keys: Mapping[str, str], options: Mapping[str, Any], project: str | None
) -> tuple[str | None, frozenset[str] | None]:
    """The project that pays, and its buckets (None: all)."""
    mode = keys.get("fs.gs.requester.pays.mode", "").upper()
    payer = keys.get("fs.gs.requester.pays.project.id") or project
    if mode in ("ENABLED", "CUSTOM"):
        if not payer:
            raise LogStoreConfigurationError(
                f"fs.gs.requester.pays.mode is {mode}, but neither fs.gs.requester.pays.project.id nor a project is set"
            )
        named = keys.get("fs.gs.requester.pays.buckets", "").split(",")
        return payer, frozenset(name.strip() for name in named) if mode == "CUSTOM" else None
    if mode == "AUTO":
        raise LogStoreConfigurationError(
            "fs.gs.requester.pays.mode = AUTO isn't supported: set ENABLED, or CUSTOM with the buckets"
        )
    requester_pays = options.get("requester_pays") if not mode else None
    if requester_pays is True and not project:
        raise LogStoreConfigurationError("the storage option requester_pays is set, but no project is set")
    return (requester_pays if isinstance(requester_pays, str) else project if requester_pays else None), None


def _with_protocol(endpoint: str, protocol: str) -> str:
    return endpoint if "://" in endpoint else f"{protocol}://{endpoint}"
