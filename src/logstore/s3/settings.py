"""The connection settings for S3 and DynamoDB: Hadoop's keys, then fsspec's options, then the SDK's own sources.

Credentials, endpoint and region are each taken as a whole from the first of the three that has them. A setting that
changes where or how data is stored, but isn't supported, raises an error. A key that asks for a different form of a
request is named in one warning. Keys that only tune Hadoop's client (threads, buffers, retries) are ignored.
`fs.s3a.bucket.<bucket>.<key>` overrides `fs.s3a.<key>`.
"""

import logging
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Self
from urllib.parse import quote, urlsplit

from ...errors import LogStoreConfigurationError, StorageAccessError, UnsupportedEnvironmentError
from ...settings.spark_own import HADOOP
from ..common.http_clients import CONNECT_SECONDS, READ_SECONDS
from ..common.uri import checked_endpoint

PREFIXES = ("fs.s3a.", f"{HADOOP.prefix}fs.s3a.")
EXPIRED = frozenset(
    {
        *("ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired", "InvalidToken"),
        *("InvalidTokenId", "InvalidAccessKeyId"),  # MinIO's for keys that it has forgotten since they expired
    }
)
"""Codes of replies for credentials that may have expired; the service did nothing else."""
DISTRUST = (
    "the certificate of the S3 service isn't one of a trusted authority. If the authority is private, set the "
    "environment variable AWS_CA_BUNDLE, or verify in client_kwargs, to the file with its certificate"
)
CONNECTIONS = 32

_STATIC = {"SimpleAWSCredentialsProvider", "TemporaryAWSCredentialsProvider"}
_ANONYMOUS = {"AnonymousAWSCredentialsProvider", "AnonymousCredentialsProvider"}
# Parts of the SDK's own chain of sources, which the SDK tries in its own order.
_CHAIN = {
    *("DefaultAWSCredentialsProviderChain", "DefaultCredentialsProvider", "IAMInstanceCredentialsProvider"),
    *("EnvironmentVariableCredentialsProvider", "EnvironmentVariableCredentialsProviderV2"),
    *("InstanceProfileCredentialsProvider", "ContainerCredentialsProvider", "EC2ContainerCredentialsProviderWrapper"),
    *("ProfileCredentialsProvider", "WebIdentityTokenCredentialsProvider", "WebIdentityTokenFileCredentialsProvider"),
}
_REFUSED = {
    "security.credential.provider.path": "a Java keystore can't be read; set the keys themselves, or a profile",
    "delegation.token.binding": "delegation tokens need Hadoop's client",
    "signing-algorithm": "requests are signed with Signature Version 4",
    "s3.signing-algorithm": "requests are signed with Signature Version 4",
    "custom.signers": "requests are signed with Signature Version 4",
    "accesspoint.arn": "access points aren't supported",
    "encryption.context": "an encryption context isn't supported",
    "proxy.domain": "a proxy login has only a name and a password",
    "proxy.workstation": "a proxy login has only a name and a password",
    "http.signer.class": "requests are signed with Signature Version 4",
    "s3.client.factory.impl": "a Java class can't make the client",
    "object.content.encoding": "objects are stored without a content encoding",
}
_REFUSED_IF_TRUE = {
    "accesspoint.required": "access points aren't supported",
    "access.grants.enabled": "credentials by S3 Access Grants aren't supported",
    "http.signer.enabled": "requests are signed with Signature Version 4",
}
_WITHOUT_EFFECT = {
    "create.checksum.algorithm": "tablelog's own requests have no additional checksum",
    "list.version": "tablelog lists with ListObjectsV2",
    "multiobjectdelete.enable": "the Python workers' files are deleted with DeleteObjects",
}
_STORAGE_CLASSES = {"STANDARD", "STANDARD_IA", "ONEZONE_IA", "INTELLIGENT_TIERING", "REDUCED_REDUNDANCY", "GLACIER_IR"}
"""The classes whose objects can be read at once."""
_ENCRYPTION = {"AES256": "AES256", "SSE-S3": "AES256", "SSE-KMS": "aws:kms", "DSSE-KMS": "aws:kms:dsse"}
_OPTIONS = {
    *("key", "secret", "token", "username", "password", "anon", "profile", "endpoint_url", "use_ssl"),
    *("client_kwargs", "config_kwargs", "requester_pays", "s3_additional_kwargs"),
}
_FOR_DATA_FILES = {
    *("default_block_size", "default_fill_cache", "default_cache_type", "max_concurrency", "fixed_upload_size"),
    *("cache_regions", "use_listings_cache", "listings_expiry_time", "max_paths", "skip_instance_cache"),
}
_CLIENT_KWARGS = {
    *("endpoint_url", "region_name", "verify", "use_ssl"),
    *("aws_access_key_id", "aws_secret_access_key", "aws_session_token"),
}
_WRITE_ARGUMENTS = {"ServerSideEncryption", "SSEKMSKeyId", "BucketKeyEnabled", "ACL", "StorageClass"}
_warned: set[str] = set()
logger = logging.getLogger(__name__)

_AMAZON = re.compile(r"s3[.-](?:dualstack\.)?([a-z]{2}(?:-[a-z]+)+-\d)\.amazonaws\.com(?:\.cn)?").fullmatch


@dataclass(frozen=True)
class S3Access:
    """The connection settings of one bucket. Fields that may contain a secret aren't in its `repr`."""

    access_key: str | None = field(default=None, repr=False)
    secret_key: str | None = field(default=None, repr=False)
    session_token: str | None = field(default=None, repr=False)
    anonymous: bool = False
    profile: str | None = None
    endpoint: str | None = None
    region: str | None = None
    path_style: bool | None = None
    fips: bool = False
    verify: bool | str | None = None
    requester_pays: bool = False
    write_arguments: Mapping[str, Any] = field(default_factory=dict, repr=False)
    proxy: str | None = field(default=None, repr=False)
    config: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """Arguments of `botocore.config.Config`, as `config_kwargs` has them."""
    for_data_files: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def client(self, service: str = "s3", *, region: str | None = None) -> Any:
        """A botocore client that sends each request once. For services other than S3 it uses the SDK's endpoint.

        Raises UnsupportedEnvironmentError if botocore isn't installed, LogStoreConfigurationError for settings that it
        rejects, StorageAccessError for a missing profile.
        """
        botocore = sdk()
        arguments: dict[str, Any] = {**self.config, **self._config(service)}
        arguments["retries"] = {"total_max_attempts": 1, "mode": "standard"}
        arguments.setdefault("connect_timeout", CONNECT_SECONDS)
        arguments.setdefault("read_timeout", READ_SECONDS)
        arguments.setdefault("max_pool_connections", CONNECTIONS)
        try:
            if self.anonymous:
                arguments["signature_version"] = botocore.UNSIGNED
            session = botocore.session.Session(profile=self.profile)
            session.register_component("data_loader", _loader(botocore))
            parse_times_fast(session)
            return session.create_client(
                service,
                region_name=region or self.region or session.get_config_variable("region") or "us-east-1",
                endpoint_url=self.endpoint if service == "s3" else None,
                verify=self.verify,
                aws_access_key_id=self.access_key,
                aws_secret_access_key=self.secret_key,
                aws_session_token=self.session_token,
                config=botocore.config.Config(**arguments),
            )
        except (botocore.exceptions.ProfileNotFound, botocore.exceptions.PartialCredentialsError) as error:
            raise StorageAccessError(f"the client for {service} can't be created: {error}") from None
        except botocore.exceptions.CredentialRetrievalError:
            # The text of the error is left out: it has what a program of the user printed.
            raise StorageAccessError(
                f"the client for {service} can't be created: the source of its credentials (a profile, or its "
                "credential_process) gave none; run it by hand to see why"
            ) from None
        except (botocore.exceptions.BotoCoreError, TypeError, ValueError) as error:
            # The text of `error` is left out: it may quote an option.
            raise LogStoreConfigurationError(
                f"the settings for {service} are invalid ({type(error).__name__}): check fs.s3a.endpoint, "
                "fs.s3a.proxy.*, client_kwargs and config_kwargs"
            ) from None

    @property
    def renews(self) -> bool:
        """Whether the credentials come from a source that may have newer ones: the SDK's, not fixed keys."""
        return not self.anonymous and self.access_key is None

    def fsspec_options(self) -> dict[str, Any]:
        """The options of `s3fs.S3FileSystem` for data files."""
        client_kwargs = {"region_name": self.region, "verify": self.verify}
        additional = {**self.write_arguments}
        options = {
            "key": self.access_key,
            "secret": self.secret_key,
            "token": self.session_token,
            "anon": self.anonymous or None,
            "profile": self.profile,
            "endpoint_url": self.endpoint,
            "requester_pays": self.requester_pays or None,
            "client_kwargs": {key: value for key, value in client_kwargs.items() if value is not None} or None,
            "config_kwargs": {**self.config, **self._config("s3")} or None,
            "s3_additional_kwargs": additional or None,
        }
        return {**self.for_data_files, **{key: value for key, value in options.items() if value is not None}}

    def _config(self, service: str) -> dict[str, Any]:
        """The arguments of `Config` that are fields of this class."""
        arguments: dict[str, Any] = {}
        if service == "s3":
            # Otherwise the SDK adds checksums in a form that older and many compatible services reject.
            arguments = {
                "request_checksum_calculation": "when_required",
                "response_checksum_validation": "when_required",
            }
            arguments = {key: self.config.get(key, value) for key, value in arguments.items()}
            if self.path_style is not None:
                style = "path" if self.path_style else "virtual"
                arguments["s3"] = {**self.config.get("s3", {}), "addressing_style": style}
        if self.proxy is not None:
            arguments["proxies"] = {"http": self.proxy, "https": self.proxy}
        if self.fips:
            arguments["use_fips_endpoint"] = True
        return arguments


@dataclass(frozen=True)
class S3Settings:
    """All settings of S3; `access` selects those of one bucket."""

    hadoop: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Hadoop's keys without `fs.s3a.`."""
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, scheme: str, conf: Mapping[str, str], storage_options: Mapping[str, Any]) -> Self:
        """The settings for s3, s3a or s3n, which are all Hadoop's s3a here. Raises LogStoreConfigurationError."""
        hadoop: dict[str, str] = {}
        for prefix in reversed(PREFIXES):  # a setting of the session wins over one from Spark's start
            hadoop |= {key[len(prefix) :]: str(conf[key]).strip() for key in conf if key.startswith(prefix)}
        settings = cls(hadoop, dict(storage_options))
        settings.access("")
        return settings

    def access(self, bucket: str) -> S3Access:
        """The connection settings of `bucket`, including its own keys. Raises LogStoreConfigurationError."""
        bucket_prefix = f"bucket.{bucket}."
        keys = {key: value for key, value in self.hadoop.items() if value and not key.startswith("bucket.")}
        if bucket:
            keys |= {
                key[len(bucket_prefix) :]: value
                for key, value in self.hadoop.items()
                if value and key.startswith(bucket_prefix)
            }
        for key, reason in _REFUSED.items():
            if key in keys:
                raise LogStoreConfigurationError(f"fs.s3a.{key} isn't supported: {reason}. Remove the key")
        for key, reason in _REFUSED_IF_TRUE.items():
            if _flag(key, keys.get(key, "false")):
                raise LogStoreConfigurationError(f"fs.s3a.{key} = true isn't supported: {reason}. Remove the key")
        for key in (_WITHOUT_EFFECT.keys() & keys.keys()) - _warned:
            _warned.add(key)
            logger.warning("fs.s3a.%s has no effect on tablelog's own requests: %s", key, _WITHOUT_EFFECT[key])
        options = _checked(self.options)
        client_kwargs = options["client_kwargs"]
        endpoint, region = _endpoint(keys)
        if not endpoint:
            secure = options.get("use_ssl", client_kwargs.get("use_ssl", True))
            endpoint = options.get("endpoint_url") or client_kwargs.get("endpoint_url")
            if not secure and not endpoint:
                raise LogStoreConfigurationError(
                    "the option use_ssl=False needs an endpoint_url that starts with http://"
                )
        if endpoint:
            endpoint = checked_endpoint("the endpoint of S3", endpoint)
        path_style = keys.get("path.style.access")
        return S3Access(
            **_credentials(keys, options),
            endpoint=endpoint,
            region=region or client_kwargs.get("region_name"),
            path_style=None if path_style is None else _flag("path.style.access", path_style),
            fips=_flag("endpoint.fips", keys.get("endpoint.fips", "false")),
            verify=client_kwargs.get("verify"),
            requester_pays=_flag("requester.pays.enabled", keys.get("requester.pays.enabled", "false"))
            or bool(options.get("requester_pays")),
            write_arguments={**options["s3_additional_kwargs"], **_write_arguments(keys)},
            proxy=_proxy(keys),
            config=options["config_kwargs"],
            for_data_files={key: value for key, value in options.items() if key in _FOR_DATA_FILES},
        )

    def fsspec_options(self, bucket: str) -> dict[str, Any]:
        """The options of `s3fs.S3FileSystem` for `bucket`, for data files."""
        return self.access(bucket).fsspec_options()


def sdk() -> Any:
    """The package botocore with the modules that are used. Raises UnsupportedEnvironmentError."""
    try:
        import botocore
        import botocore.awsrequest
        import botocore.config
        import botocore.exceptions
        import botocore.loaders
        import botocore.parsers
        import botocore.session
        import botocore.utils
    except ImportError as error:
        raise UnsupportedEnvironmentError(
            "a path on S3 needs the packages s3fs and botocore: pip install 'tablelog[s3]'"
        ) from error
    return botocore


def parse_times_fast(session: Any) -> None:
    """Let the SDK parse the times of a listing by the standard library: its own parser takes 80 % of a page's time.

    `session` is one of botocore or aiobotocore, also after it made a client.
    """
    session.get_component("response_parser_factory").set_parser_defaults(timestamp_parser=_time)


def _time(value: Any) -> datetime:
    with suppress(TypeError, ValueError):
        parsed = datetime.fromisoformat(value)
        if parsed.tzinfo is not None:
            return parsed
    other: datetime = sdk().utils.parse_timestamp(value)
    return other


_loaders: list[Any] = []


def _loader(botocore: Any) -> Any:
    """The SDK's descriptions of services, loaded once in a process: 90 % of the cost of a client."""
    if not _loaders:
        _loaders.append(botocore.session.Session().get_component("data_loader"))
    return _loaders[0]


def _flag(key: str, value: str) -> bool:
    if value.lower() not in {"true", "false"}:
        raise LogStoreConfigurationError(f"fs.s3a.{key} = {value}: it must be true or false")
    return value.lower() == "true"


def _checked(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options, checked to be known, with default dictionaries."""
    checked: dict[str, Any] = {"client_kwargs": {}, "config_kwargs": {}, "s3_additional_kwargs": {}}
    checked |= {key: value for key, value in options.items() if value is not None}
    _known("", checked, _OPTIONS | _FOR_DATA_FILES)
    _known("client_kwargs.", checked["client_kwargs"], _CLIENT_KWARGS)
    _known("s3_additional_kwargs.", checked["s3_additional_kwargs"], _WRITE_ARGUMENTS)
    return checked


def _known(prefix: str, options: Mapping[str, Any], known: Iterable[str]) -> None:
    unknown = sorted(str(key) for key in set(options) - set(known))
    if unknown:
        raise LogStoreConfigurationError(
            f"storage_options {', '.join(prefix + key for key in unknown)} aren't supported for S3; supported are "
            f"{', '.join(prefix + key for key in sorted(known))} (s3fs' names)"
        )


def _credentials(keys: Mapping[str, str], options: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of S3Access about credentials."""
    names = [name.strip() for name in keys.get("aws.credentials.provider", "").split(",") if name.strip()]
    for name in names or ["TemporaryAWSCredentialsProvider", "SimpleAWSCredentialsProvider"]:
        kind = name.rpartition(".")[2]
        if kind in _ANONYMOUS:
            return {"anonymous": True}
        if kind in _STATIC:
            token = keys.get("session.token") if kind.startswith("Temporary") else None
            if kind.startswith("Temporary") and names and not token:
                continue
            if "access.key" in keys or "secret.key" in keys:
                return _static("fs.s3a.access.key", keys.get("access.key"), keys.get("secret.key"), token)
        elif kind in _CHAIN:
            break
        else:
            raise LogStoreConfigurationError(
                f"fs.s3a.aws.credentials.provider names {name}, which isn't supported; the supported ones: "
                f"{', '.join(sorted(_STATIC | _ANONYMOUS | _CHAIN))}. For a role, set the option profile to a profile "
                "with role_arn"
            )
    client_kwargs = options["client_kwargs"]
    key = options.get("key") or options.get("username") or client_kwargs.get("aws_access_key_id")
    secret = options.get("secret") or options.get("password") or client_kwargs.get("aws_secret_access_key")
    if key or secret:
        token = options.get("token") or client_kwargs.get("aws_session_token")
        return _static("key", key, secret, token)
    return {"anonymous": bool(options.get("anon")), "profile": options.get("profile")}


def _static(name: str, key: str | None, secret: str | None, token: str | None) -> dict[str, Any]:
    if not key or not secret:
        raise LogStoreConfigurationError(f"{name} and its secret must both be set, but one of them is missing")
    return {"access_key": key, "secret_key": secret, "session_token": token}


def _endpoint(keys: Mapping[str, str]) -> tuple[str | None, str | None]:
    """(URL, region) as Hadoop reads them: an endpoint may lack its scheme, and Amazon's contain the region."""
    endpoint = keys.get("endpoint")
    region = keys.get("endpoint.region")
    if region == "sdk":  # Hadoop's value for the SDK's own region
        region = None
    secure = _flag("connection.ssl.enabled", keys.get("connection.ssl.enabled", "true"))
    if not endpoint:
        if secure:
            return None, region
        raise LogStoreConfigurationError("fs.s3a.connection.ssl.enabled = false needs a fs.s3a.endpoint")
    url = endpoint if "://" in endpoint else f"{'https' if secure else 'http'}://{endpoint}"
    host = urlsplit(checked_endpoint("fs.s3a.endpoint", url)).hostname or ""
    if host == "s3.amazonaws.com" and secure:
        return None, region
    amazon = _AMAZON(host)
    return url, region or (amazon[1] if amazon else None)


def _proxy(keys: Mapping[str, str]) -> str | None:
    host = keys.get("proxy.host")
    if not host:
        if "proxy.port" in keys:
            raise LogStoreConfigurationError("fs.s3a.proxy.port is set without fs.s3a.proxy.host")
        return None
    secure = _flag("proxy.ssl.enabled", keys.get("proxy.ssl.enabled", "false"))
    port = keys.get("proxy.port") or ("443" if secure else "80")
    user, password = keys.get("proxy.username"), keys.get("proxy.password")
    if (user is None) != (password is None):
        raise LogStoreConfigurationError("fs.s3a.proxy.username and fs.s3a.proxy.password must both be set, or neither")
    login = f"{quote(user, safe='')}:{quote(password or '', safe='')}@" if user else ""
    return f"{'https' if secure else 'http'}://{login}{host}:{port}"


def _write_arguments(keys: Mapping[str, str]) -> dict[str, str]:
    """Hadoop's keys for the encryption, the ACL and the storage class of objects, as arguments of PutObject."""
    arguments = {}
    algorithm = keys.get("encryption.algorithm") or keys.get("server-side-encryption-algorithm")
    if algorithm:
        if algorithm not in _ENCRYPTION:
            raise LogStoreConfigurationError(
                f"fs.s3a.encryption.algorithm = {algorithm} isn't supported; the supported ones: "
                f"{', '.join(sorted(_ENCRYPTION))}"
            )
        arguments["ServerSideEncryption"] = _ENCRYPTION[algorithm]
        key = keys.get("encryption.key") or keys.get("server-side-encryption.key")
        if key and algorithm.endswith("KMS"):
            arguments["SSEKMSKeyId"] = key
    if "acl.default" in keys:
        arguments["ACL"] = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", keys["acl.default"]).lower()
    storage_class = keys.get("create.storage.class", "").upper()
    if storage_class:
        if storage_class not in _STORAGE_CLASSES:
            raise LogStoreConfigurationError(
                f"fs.s3a.create.storage.class = {keys['create.storage.class']} isn't supported: a table's files must "
                f"be readable at once. The supported ones: {', '.join(sorted(_STORAGE_CLASSES))}"
            )
        arguments["StorageClass"] = storage_class
    return arguments
