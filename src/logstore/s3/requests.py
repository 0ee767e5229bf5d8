"""Requests to S3: what each answer means, which may be repeated, and the error that each failure is."""

import contextlib
import errno
import os
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urljoin, urlsplit

from ...errors import (
    InvalidArgumentError,
    StorageAccessError,
    StorageError,
    StorageMissingError,
    StorageUnavailableError,
    TablelogError,
    UnsafeStoreError,
)
from ...settings.honoured import LOG_STORE
from ..common import object_uri
from ..common.conditional_put import Answer, Verdict, persist
from ..common.http_clients import close
from ..common.uri import shown
from .object_reader import Reader
from .settings import S3Access, S3Settings, sdk

_Result = TypeVar("_Result")

_REDIRECTIONS = frozenset({301, 302, 307, 308})
_MOST_REDIRECTIONS = 3
_EXPIRED = frozenset({"ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired", "InvalidToken"})
_CLOCK = frozenset({"RequestTimeTooSkewed", "RequestExpired"})
_CREDENTIALS = frozenset(
    {
        *("InvalidAccessKeyId", "SignatureDoesNotMatch", "AuthorizationHeaderMalformed", "InvalidSecurity"),
        *("InvalidClientTokenId", "UnrecognizedClientException", "InvalidSignatureException", "NotSignedUp"),
        *("MissingAuthenticationToken", "IncompleteSignature"),
    }
)
_ABSENT = frozenset({"NoSuchKey", "NotFound", "404", ""})
"""What a 404 says of an object that isn't there; the answer to a HEAD has no code. Some refuse credentials by a 404."""
_FORBIDDEN = frozenset({"AccessDenied", "AccessDeniedException", "AllAccessDisabled", "AccountProblem"})
_IN_HANDSHAKE = "CERTIFICATE_VERIFY_FAILED", "WRONG_VERSION_NUMBER", "UNKNOWN_PROTOCOL"
"""Reasons of OpenSSL that end a handshake, before any request."""

_location: ContextVar[str | None] = ContextVar("location", default=None)


class S3Location(NamedTuple):
    """A path taken apart."""

    scheme: str
    bucket: str
    key: str

    @property
    def uri(self) -> str:
        """The canonical URI."""
        return object_uri.join(self.scheme, self.bucket, self.key)

    @property
    def directory(self) -> str:
        """The key up to its last slash, with it."""
        return object_uri.parent(self.key)

    def beside(self, name: str) -> "S3Location":
        """Another key in the same directory."""
        return S3Location(self.scheme, self.bucket, self.directory + name)


class Listed(NamedTuple):
    """One object of a listing."""

    key: str
    size: int
    modification_time_ms: int


def place_of(path: str) -> S3Location:
    """`path` taken apart. Raises InvalidArgumentError."""
    scheme, bucket, key = object_uri.split(path)
    if "@" in bucket or ":" in bucket:
        raise InvalidArgumentError(
            f"{shown(path)!r} carries more than a bucket before its first slash: credentials belong into "
            "fs.s3a.access.key and fs.s3a.secret.key (or storage_options), the endpoint into fs.s3a.endpoint"
        )
    return S3Location(scheme, bucket, key)


def verdict_of(status: int, code: str) -> Verdict:
    """What the reply to a conditional PutObject means. `code` is that of the reply's body, where it had one.

    Of the 5xx only SlowDown says that nothing was done; MinIO's SlowDownWrite is a write that too few of its drives
    confirmed. 304 is what MinIO said in place of 412 before 2024-04.
    """
    if status in {412, 304}:
        return Verdict.EXISTS
    if status in {409, 429} or (status == 503 and code == "SlowDown"):
        return Verdict.NOT_APPLIED
    if (status >= 500 and status != 501) or status == 408 or code == "RequestTimeout":
        return Verdict.AMBIGUOUS
    return Verdict.FAILED


def reply_of(error: Exception) -> tuple[int, str] | None:
    """(status, code) of the service's reply that `error` stands for; None: there was none."""
    response = getattr(error, "response", None)
    if not isinstance(response, dict):
        return None
    code = str(response.get("Error", {}).get("Code", ""))
    return int(response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)), code


def never_sent(error: Exception) -> bool:
    """Whether `error`, one with no reply, came before the request left this machine."""
    exceptions = sdk().exceptions
    if isinstance(error, exceptions.SSLError):
        return any(reason in str(error) for reason in _IN_HANDSHAKE)
    if isinstance(error, exceptions.HTTPClientError):  # all that befalls a connection once it is made
        return False
    return isinstance(error, exceptions.BotoCoreError)


def is_transport(error: Exception) -> bool:
    """Whether `error` is one of the network, or a reply that isn't the service's."""
    botocore = sdk()
    network = (
        botocore.exceptions.ConnectionError,
        botocore.exceptions.HTTPClientError,
        botocore.exceptions.IncompleteReadError,
        botocore.parsers.ResponseParserError,
        OSError,
    )
    return isinstance(error, network)


def passing(error: Exception) -> bool:
    """Whether a request that may be repeated is worth repeating."""
    reply = reply_of(error)
    if reply is None:
        return is_transport(error)
    return verdict_of(*reply) in {Verdict.AMBIGUOUS, Verdict.NOT_APPLIED}


def described(error: Exception) -> str:
    """What happened, with nothing in it that the service or the SDK quoted."""
    reply = reply_of(error)
    return f"{reply[0]} {reply[1]}".strip() if reply else type(error).__name__


def error_of(error: Exception, doing: str, path: str, service: str = "S3") -> Exception:
    """The typed error for `error`, after which nothing was written; an error of another kind is given back."""
    if isinstance(error, TablelogError):
        return error
    reply, head = reply_of(error), f"{doing} {shown(path)}: {service}"
    if reply is not None:
        return _refusal(reply[0], reply[1], f"{head} said {described(error)}")
    exceptions = sdk().exceptions
    if isinstance(error, exceptions.ParamValidationError):
        return InvalidArgumentError(f"{doing} {shown(path)}: no such bucket or key can exist on {service}")
    if is_transport(error):
        return StorageUnavailableError(
            f"{head} can't be reached ({described(error)}); check the endpoint (fs.s3a.endpoint, or endpoint_url), the "
            "proxy and the network, or try again later"
        )
    if isinstance(error, exceptions.BotoCoreError):
        return StorageAccessError(
            f"{doing} {shown(path)}: no usable credentials ({described(error)}); set fs.s3a.access.key and "
            "fs.s3a.secret.key, or storage_options key and secret, or what the SDK's chain reads (environment, "
            "profile, instance role)"
        )
    return error


def _refusal(status: int, code: str, said: str) -> TablelogError:
    if code in _CLOCK:
        return StorageAccessError(
            f"{said}: the clock of this machine and that of the service are too far apart; set this machine's right"
        )
    if code in _EXPIRED:
        return StorageAccessError(f"{said}: the session token is expired or not valid; get a new one")
    if code in _CREDENTIALS or status == 401:
        return StorageAccessError(
            f"{said}: the access key, its secret or the region isn't right; check fs.s3a.access.key, "
            "fs.s3a.secret.key and fs.s3a.endpoint.region, or their like in storage_options"
        )
    if code in _FORBIDDEN or status == 403:
        return StorageAccessError(
            f"{said}: these credentials may not do this. A table needs s3:ListBucket (without which what is absent is "
            "forbidden too), s3:GetObject, s3:PutObject and s3:DeleteObject"
        )
    if code == "NoSuchBucket" or status == 404:
        return StorageMissingError(f"{said}: make it, or correct the path or the endpoint")
    if status in _REDIRECTIONS:
        return StorageError(f"{said} and not where to go; set fs.s3a.endpoint and fs.s3a.endpoint.region to its own")
    if verdict_of(status, code) in {Verdict.AMBIGUOUS, Verdict.NOT_APPLIED}:
        return StorageUnavailableError(f"{said}, each time that it was asked; try again later")
    return StorageError(f"{said}: the request was refused")


class _Client(NamedTuple):
    """How one bucket is asked."""

    client: Any
    access: S3Access
    reader: Reader


class S3Requests:
    """One S3 service. Shared by threads; a copy in another process, and a forked child, has connections of its own."""

    def __init__(self, settings: S3Settings) -> None:
        self._settings = settings
        self._clients: dict[tuple[int, str], _Client] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {"_settings": self._settings, "_clients": {}}

    def __del__(self) -> None:
        close(one.client for (process, _), one in self._clients.items() if process == os.getpid())

    def endpoint(self, bucket: str) -> str:
        """The URL that serves `bucket`."""
        return str(self._client(bucket).client.meta.endpoint_url)

    def put_if_absent(self, place: S3Location, data: bytes) -> Answer:
        """Send `data` once, on condition that there is no such object."""
        try:
            self.send(
                "put_object", place, Body=data, IfNoneMatch="*", **self._client(place.bucket).access.write_arguments
            )
        except Exception as error:
            return _answer_to_condition(error, place.uri)
        return Answer(Verdict.APPLIED)

    def put_once(self, place: S3Location, data: bytes) -> Answer:
        """Send `data` once, with no condition."""
        try:
            self.send("put_object", place, Body=data, **self._client(place.bucket).access.write_arguments)
        except Exception as error:
            return answer_of(error, place.uri)
        return Answer(Verdict.APPLIED)

    def put(self, place: S3Location, data: bytes) -> None:
        """Put `data` in place of whatever is there."""
        arguments = self._client(place.bucket).access.write_arguments
        self.repeated("writing", place, lambda: self.send("put_object", place, Body=data, **arguments))

    def get(self, place: S3Location) -> bytes:
        """The whole object. Raises FileNotFoundError."""
        reader = self._client(place.bucket).reader

        def request() -> bytes:
            found = reader.read(place.key)
            return self._whole(place, reader)[0] if found is None else found

        return self.repeated("reading", place, request)

    def get_with_age(self, place: S3Location) -> tuple[bytes, float]:
        """The whole object, and the seconds since it was written, both times by the service's clock."""

        def request() -> tuple[bytes, float]:
            data, reply = self._whole(place, self._client(place.bucket).reader)
            now = reply["ResponseMetadata"]["HTTPHeaders"].get("date")
            if not now:
                return data, 0.0
            return data, (parsedate_to_datetime(now).replace(tzinfo=UTC) - reply["LastModified"]).total_seconds()

        return self.repeated("reading", place, request)

    def _whole(self, place: S3Location, reader: Reader) -> tuple[bytes, Any]:
        """(the whole object, the reply), asked for once by the SDK."""
        reply = reader.watched(place.key, lambda: self.send("get_object", place))
        body = reply["Body"]
        try:
            return bytes(body.read()), reply
        finally:
            body.close()

    def exists(self, place: S3Location) -> bool:
        """Whether there is such an object."""
        try:
            self.repeated("looking for", place, lambda: self.send("head_object", place))
        except FileNotFoundError:
            return False
        return True

    def delete(self, place: S3Location) -> None:
        """Remove the object, if it is there."""
        with contextlib.suppress(FileNotFoundError):  # which S3 never says, and some of its like do
            self.repeated("deleting", place, lambda: self.send("delete_object", place))

    def list(self, place: S3Location, after: str | None) -> Iterator[Listed]:
        """The objects right in `place`'s directory, from the first key that is greater than `after` on."""
        arguments: dict[str, Any] = {"Prefix": place.directory, "Delimiter": "/"}
        if after is not None:
            arguments["StartAfter"] = after
        while True:
            page = self.repeated("listing", place, lambda a=dict(arguments): self._list_page(place, a))  # type: ignore[misc]
            for item in page.get("Contents", ()):
                yield Listed(item["Key"], item["Size"], round(item["LastModified"].timestamp() * 1000))
            if not page.get("IsTruncated"):
                return
            arguments["ContinuationToken"] = page["NextContinuationToken"]

    def _list_page(self, place: S3Location, arguments: dict[str, Any]) -> dict[str, Any]:
        page: dict[str, Any] = self.send("list_objects_v2", S3Location(place.scheme, place.bucket, ""), **arguments)
        return page

    def repeated(self, doing: str, place: S3Location, request: Callable[[], _Result]) -> _Result:
        """The result of a request that may be repeated; what fails is FileNotFoundError or one of our own errors."""
        try:
            return persist(request, passing)
        except Exception as error:
            reply = reply_of(error)
            if reply is not None and reply[0] == 404 and reply[1] in _ABSENT and doing != "listing":
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), shown(place.uri)) from None
            raise error_of(error, doing, place.uri) from error

    def send(self, operation: str, place: S3Location, **arguments: Any) -> Any:
        """Send one request, and after a redirection the same, with its condition, to where it points."""
        client, access, _ = self._client(place.bucket)
        if place.key:
            arguments["Key"] = place.key
        if access.requester_pays:
            arguments["RequestPayer"] = "requester"
        token = _location.set(None)
        try:
            for _ in range(_MOST_REDIRECTIONS):
                try:
                    return getattr(client, operation)(Bucket=place.bucket, **arguments)
                except sdk().exceptions.ClientError as error:
                    location = _redirection(error, _location.get() or client.meta.endpoint_url)
                    if location is None:
                        raise
                    _location.set(location)
            return getattr(client, operation)(Bucket=place.bucket, **arguments)
        finally:
            _location.reset(token)

    def _client(self, bucket: str) -> _Client:
        key = os.getpid(), bucket
        found = self._clients.get(key)
        if found is None:
            access = self._settings.access(bucket)
            client = access.client()
            client.meta.events.register_last("before-call.s3", _send_at_once)
            client.meta.events.register_first("before-sign.s3", _follow)
            found = self._clients.setdefault(key, _Client(client, access, Reader(client)))
        return found


def answer_of(error: Exception, path: str, *, verdict: Verdict | None = None, service: str = "S3") -> Answer:
    """The answer that an error of a write is; `verdict` where its reply has been read already."""
    reply = reply_of(error)
    if verdict is None:
        if reply is not None:
            verdict = verdict_of(*reply)
        elif never_sent(error) or not is_transport(error):
            verdict = Verdict.FAILED
        else:
            verdict = Verdict.AMBIGUOUS
    if verdict is not Verdict.FAILED:
        return Answer(verdict, f"{service} said {described(error)}" if reply else described(error))
    typed = error_of(error, "writing", path, service)
    if not isinstance(typed, TablelogError):
        raise typed
    return Answer.failed(typed)


def _answer_to_condition(error: Exception, path: str) -> Answer:
    reply = reply_of(error)
    if reply is not None and reply[0] == 501:
        return Answer.failed(no_condition(path, f"it says {described(error)} to one"))
    return answer_of(error, path)


def no_condition(path: str, seen: str) -> UnsafeStoreError:
    """The refusal of a service without conditional writes."""
    return UnsafeStoreError(
        f"{shown(path)} was not written: its S3 service doesn't enforce the condition of a write (If-None-Match: *): "
        f"{seen}, so two writers could take one another's commit away. Use a newer version of the service (MinIO from "
        f"2024-05-07 on), or set {LOG_STORE.prefix}<scheme>.impl to io.delta.storage.S3DynamoDBLogStore (several "
        "drivers), or to io.delta.storage.S3SingleDriverLogStore (never more than one)"
    )


def _send_at_once(params: dict[str, Any], **_: Any) -> None:
    """Take away `Expect: 100-continue`, for which the SDK waits up to a second, on each write."""
    params["headers"].pop("Expect", None)


def _follow(request: Any, operation_name: str, **_: Any) -> None:
    """Before it is signed, turn a request to where the last redirection pointed."""
    location = _location.get()
    if location is not None and operation_name != "HeadBucket":  # which the SDK sends by itself to find a region
        request.url = location


def _redirection(error: Any, asked: str) -> str | None:
    """Where a redirection leads to; None: it is none, or none that may be followed."""
    if reply_of(error)[0] not in _REDIRECTIONS:  # type: ignore[index]
        return None
    headers = error.response["ResponseMetadata"].get("HTTPHeaders", {})
    if not headers.get("location"):
        return None
    location = urljoin(asked, headers["location"])
    schemes = urlsplit(asked).scheme, urlsplit(location).scheme
    return location if schemes[1] == "https" or schemes == ("http", "http") else None
