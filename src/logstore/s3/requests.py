"""Requests to S3: the meaning of each answer, which requests may be repeated, and the typed errors."""

import contextlib
import errno
import os
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from datetime import UTC
from email.utils import parsedate_to_datetime
from functools import partial
from io import BufferedRandom
from typing import Any, BinaryIO, NamedTuple, TypeVar
from urllib.parse import urljoin, urlsplit

from ...errors import (
    InvalidArgumentError,
    StorageAccessError,
    StorageError,
    StorageMissingError,
    StorageUnavailableError,
    TablelogError,
    UnsafeStoreError,
    WriteOutcomeUnknown,
)
from ...settings.declarations import LOG_STORE
from ..common import http_clients
from ..common.conditional_put import Answer, Verdict, persist
from ..common.http_clients import INVALID_HEADER, Clients, cause_of, distrusts, has_invalid_header
from ..common.retry_policy import DEFAULT_RETRIES, RetryPolicy
from ..common.spool import Content, received
from ..common.uri import shown
from .credential_sources import error_of_source
from .object_reader import Reader, part
from .places import S3Location
from .settings import DISTRUST, EXPIRED, S3Access, S3Settings, sdk

_Result = TypeVar("_Result")

_REDIRECTIONS = frozenset({301, 302, 307, 308})
_MOST_REDIRECTIONS = 3
_CHUNK = 8 << 20
_CLOCK = frozenset({"RequestTimeTooSkewed", "RequestExpired"})
_CREDENTIALS = frozenset(
    {
        *("InvalidAccessKeyId", "SignatureDoesNotMatch", "AuthorizationHeaderMalformed", "InvalidSecurity"),
        *("InvalidClientTokenId", "UnrecognizedClientException", "InvalidSignatureException", "NotSignedUp"),
        *("MissingAuthenticationToken", "IncompleteSignature"),
    }
)
_ABSENT = frozenset({"NoSuchKey", "NotFound", "404", ""})
"""Codes of a 404 for a missing object; the answer to a HEAD has no code. Some services reject credentials with 404."""
_FORBIDDEN = frozenset({"AccessDenied", "AccessDeniedException", "AllAccessDisabled", "AccountProblem"})
_IN_HANDSHAKE = "CERTIFICATE_VERIFY_FAILED", "WRONG_VERSION_NUMBER", "UNKNOWN_PROTOCOL"
"""OpenSSL's reasons for a failed handshake, before any request is sent."""

_location: ContextVar[str | None] = ContextVar("location", default=None)
_asked_region: ContextVar[bool] = ContextVar("asked_region", default=False)


class Listed(NamedTuple):
    """One object of a listing."""

    key: str
    size: int
    modification_time_ms: int


def verdict_of(status: int, code: str) -> Verdict:
    """The verdict for the reply to a conditional PutObject. `code` is the error code in the body, if any.

    Of the 5xx replies only SlowDown means that nothing was done; MinIO's SlowDownWrite is a write that too few of its
    drives confirmed. MinIO before 2024-04 replied 304 instead of 412.
    """
    if status in {412, 304}:
        return Verdict.EXISTS
    if status in {409, 429} or (status == 503 and code == "SlowDown"):
        return Verdict.NOT_APPLIED
    if (status >= 500 and status != 501) or status == 408 or code == "RequestTimeout":
        return Verdict.AMBIGUOUS
    return Verdict.FAILED


def reply_of(error: Exception) -> tuple[int, str] | None:
    """(status, code) of the service's reply in `error`; None: there was no reply."""
    response = getattr(error, "response", None)
    if not isinstance(response, dict):
        return None
    code = str(response.get("Error", {}).get("Code", ""))
    return int(response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)), code


def never_sent(error: Exception) -> bool:
    """Whether `error`, without a reply, was raised before the request was sent."""
    exceptions = sdk().exceptions
    if isinstance(error, exceptions.SSLError):
        return any(reason in str(error) for reason in _IN_HANDSHAKE)
    if has_invalid_header(error):
        return True
    if isinstance(error, exceptions.ProxyConnectionError):
        return http_clients.never_sent(error)
    if isinstance(error, exceptions.HTTPClientError):  # any error after the connection was made
        return False
    return isinstance(error, exceptions.BotoCoreError)


def is_transport(error: Exception) -> bool:
    """Whether `error` is a network error, or a reply that isn't the service's. Errors of our own are neither."""
    if isinstance(error, TablelogError):
        return False
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
    """Whether a request that may be repeated should be repeated after `error`."""
    reply = reply_of(error)
    if reply is None:
        return is_transport(error) and not distrusts(error) and not has_invalid_header(error)
    return verdict_of(*reply) in {Verdict.AMBIGUOUS, Verdict.NOT_APPLIED}


def busy(error: Exception) -> bool:
    """Whether the service replied that it has too much to do; its answer to a HEAD has no code."""
    reply = reply_of(error)
    return reply is not None and (reply[0] == 503 or verdict_of(*reply) is Verdict.NOT_APPLIED)


def described(error: Exception) -> str:
    """A description of `error` without any text of the service or the SDK."""
    reply = reply_of(error)
    return f"{reply[0]} {reply[1]}".strip() if reply else type(error).__name__


def error_of(error: Exception, doing: str, path: str, service: str = "S3") -> Exception:
    """The typed error for `error`, after which nothing was written; an unknown error is returned unchanged."""
    typed = _typed(error, doing, path, service)
    return typed.with_context(path=shown(path)) if isinstance(typed, TablelogError) else typed


def _typed(error: Exception, doing: str, path: str, service: str) -> Exception:
    if isinstance(error, TablelogError):
        return error
    of_source = error_of_source(error, f"{doing} {shown(path)}")
    if of_source is not None:
        return of_source
    reply, head = reply_of(error), f"{doing} {shown(path)}: {service}"
    if reply is not None:
        return _refusal(reply[0], reply[1], f"{head} answered {described(error)}")
    exceptions = sdk().exceptions
    if isinstance(error, exceptions.ParamValidationError):
        return InvalidArgumentError(f"{doing} {shown(path)}: this bucket or key isn't valid on {service}")
    if distrusts(error):
        return StorageAccessError(f"{doing} {shown(path)}: {DISTRUST}")
    if has_invalid_header(error):
        return StorageAccessError(f"{doing} {shown(path)}: {INVALID_HEADER}")
    if is_transport(error):
        return StorageUnavailableError(
            f"{head} can't be reached ({described(error)}); check the endpoint (fs.s3a.endpoint, or endpoint_url), the "
            "proxy and the network, or try again later"
        )
    if isinstance(error, exceptions.BotoCoreError):
        return StorageAccessError(
            f"{doing} {shown(path)}: no usable credentials ({described(error)}); set fs.s3a.access.key and "
            "fs.s3a.secret.key, or key and secret in storage_options, or use the SDK's own sources (environment, "
            "profile, instance role)"
        )
    return error


def _refusal(status: int, code: str, answer: str) -> TablelogError:
    if code in _CLOCK:
        return StorageAccessError(
            f"{answer}: the clock of this machine differs too much from the service's; correct this machine's clock"
        )
    if code in EXPIRED - _CREDENTIALS:
        return StorageAccessError(
            f"{answer}: the session token has expired or isn't valid; set a new one, or leave out the keys and use a "
            "source of the SDK that renews them (a profile, a web identity, an instance role)"
        )
    if code in _CREDENTIALS or status == 401:
        return StorageAccessError(
            f"{answer}: the access key, its secret or the region is wrong; check fs.s3a.access.key, "
            "fs.s3a.secret.key and fs.s3a.endpoint.region, or the same in storage_options"
        )
    if code in _FORBIDDEN or status == 403:
        return StorageAccessError(
            f"{answer}: these credentials don't allow it. A table needs s3:ListBucket (without it a missing object is "
            "reported as forbidden), s3:GetObject, s3:PutObject and s3:DeleteObject"
        )
    if code == "NoSuchBucket" or status == 404:
        return StorageMissingError(f"{answer}: create the bucket, or correct the path or the endpoint")
    if status in _REDIRECTIONS:
        return StorageError(
            f"{answer}, and it can't be followed; set fs.s3a.endpoint and fs.s3a.endpoint.region to the bucket's"
        )
    if verdict_of(status, code) in {Verdict.AMBIGUOUS, Verdict.NOT_APPLIED}:
        return StorageUnavailableError(f"{answer}, also after retries; try again later")
    return StorageError(f"{answer}: the request was rejected")


class ForeignReplyError(OSError):
    """A reply that isn't the service's: a proxy or a portal between this machine and the service has sent it."""


class _Client(NamedTuple):
    """The client of one bucket."""

    client: Any
    access: S3Access
    reader: Reader

    def close(self) -> None:
        self.client.close()


class S3Requests:
    """Requests to one S3 service. Threads may share it; other processes and forked children create own connections."""

    def __init__(self, settings: S3Settings, retries: RetryPolicy = DEFAULT_RETRIES) -> None:
        self._settings = settings
        self._retries = retries
        self._clients: Clients[str, _Client] = Clients(partial(_new_client, settings))

    def endpoint(self, bucket: str) -> str:
        """The URL of the service for `bucket`."""
        return str(self._clients[bucket].client.meta.endpoint_url)

    def put_if_absent(self, place: S3Location, content: Content) -> Answer:
        """Send `content` once, on condition that the object doesn't exist."""
        try:
            self._put(place, content, IfNoneMatch="*")
        except Exception as error:
            return _answer_to_condition(error, place.uri)
        return Answer(Verdict.APPLIED)

    def put_once(self, place: S3Location, content: Content) -> Answer:
        """Send `content` once, without a condition."""
        try:
            self._put(place, content)
        except Exception as error:
            return answer_of(error, place.uri)
        return Answer(Verdict.APPLIED)

    def put(self, place: S3Location, content: Content) -> None:
        """Write `content`, replacing an existing object."""
        self.repeated("writing", place, lambda: self._put(place, content))

    def _put(self, place: S3Location, content: Content, **condition: str) -> None:
        """Send `content` once. Raises ForeignReplyError for a success without an ETag, which each service sends."""
        arguments = {**self._clients[place.bucket].access.write_arguments, **condition}
        if not self.send("put_object", place, Body=content, **arguments).get("ETag"):
            raise ForeignReplyError("the reply to a write has no ETag")

    def get(self, place: S3Location, most: int | None = None) -> bytes:
        """The whole object, or with `most` one more than that many bytes of it. Raises FileNotFoundError."""
        reader = self._clients[place.bucket].reader

        def request() -> bytes:
            data = reader.read(place.key, most)
            return self._whole(place, reader, most)[0] if data is None else data

        return self.repeated("reading", place, request)

    def open(self, place: S3Location) -> BinaryIO:
        """The whole object as an open file: in memory, or in a temporary file. Raises FileNotFoundError."""

        def request() -> BinaryIO:
            body = self.send("get_object", place)["Body"]
            try:
                return received(place.uri, iter(partial(body.read, _CHUNK), b""))
            finally:
                body.close()

        return self.repeated("reading", place, request)

    def get_with_age(self, place: S3Location) -> tuple[bytes, float]:
        """The whole object, and the seconds since it was written; both times are the service's."""

        def request() -> tuple[bytes, float]:
            data, reply = self._whole(place, self._clients[place.bucket].reader)
            now = reply["ResponseMetadata"]["HTTPHeaders"].get("date")
            if not now:
                return data, 0.0
            return data, (parsedate_to_datetime(now).replace(tzinfo=UTC) - reply["LastModified"]).total_seconds()

        return self.repeated("reading", place, request)

    def _whole(self, place: S3Location, reader: Reader, most: int | None = None) -> tuple[bytes, Any]:
        """(the object as `get` returns it, the reply), by the SDK."""
        arguments = {} if most is None else {"Range": part(most)}
        try:
            reply = reader.watched(place.key, lambda: self.send("get_object", place, **arguments))
        except Exception as error:
            answered = reply_of(error)
            if not arguments or answered is None or answered[0] != 416:
                raise
            reply = self.send("get_object", place)  # an empty object has no part
        body = reply["Body"]
        try:
            return bytes(body.read()), reply
        finally:
            body.close()

    def exists(self, place: S3Location) -> bool:
        """Whether the object exists."""
        try:
            self.repeated("looking for", place, lambda: self.send("head_object", place))
        except FileNotFoundError:
            return False
        return True

    def delete(self, place: S3Location) -> None:
        """Remove the object if it exists."""
        with contextlib.suppress(FileNotFoundError):  # S3 never raises it, but some compatible services do
            self.repeated("deleting", place, lambda: self.send("delete_object", place))

    def list(self, place: S3Location, after: str | None) -> Iterator[Listed]:
        """The objects directly in the directory of `place` with keys greater than `after`."""
        arguments: dict[str, Any] = {"Prefix": place.directory, "Delimiter": "/"}
        tokens: set[str] = set()
        if after is not None:
            arguments["StartAfter"] = after
        while True:
            page = self.repeated("listing", place, lambda a=dict(arguments): self._list_page(place, a))  # type: ignore[misc]
            for item in page.get("Contents", ()):
                yield Listed(item["Key"], item["Size"], round(item["LastModified"].timestamp() * 1000))
            if not page.get("IsTruncated"):
                return
            token = page.get("NextContinuationToken")
            if not token or token in tokens:
                raise StorageError(
                    f"listing {shown(place.uri)}: S3 answered that there are more objects, but not where they begin; "
                    "check the service and the proxy",
                    path=shown(place.uri),
                )
            tokens.add(token)
            arguments["ContinuationToken"] = token

    def _list_page(self, place: S3Location, arguments: dict[str, Any]) -> dict[str, Any]:
        page: dict[str, Any] = self.send("list_objects_v2", S3Location(place.scheme, place.bucket, ""), **arguments)
        if not page.keys() - {"ResponseMetadata", "RequestCharged"}:
            raise ForeignReplyError("the reply to a listing has nothing of a listing")
        return page

    def repeated(self, doing: str, place: S3Location, request: Callable[[], _Result]) -> _Result:
        """The result of a request that may be repeated; raises FileNotFoundError or one of our own errors."""
        try:
            return persist(request, passing, busy, self._retries)
        except Exception as error:
            reply = reply_of(error)
            if reply is not None and reply[0] == 404 and reply[1] in _ABSENT and doing != "listing":
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), shown(place.uri)) from None
            raise error_of(error, doing, place.uri) from cause_of(error)

    def send(self, operation: str, place: S3Location, **arguments: Any) -> Any:
        """Send one request; after a redirection, send it with the same condition to the new location.

        It is sent once more with new credentials if the service rejects those as expired, or if there were none.
        """
        return self._clients.with_renewal(
            place.bucket,
            lambda client: self._send(client, operation, place, arguments),
            lambda error: _may_have_newer(error, operation) and self._settings.access(place.bucket).renews,
        )

    def _send(self, used: _Client, operation: str, place: S3Location, arguments: dict[str, Any]) -> Any:
        client, access, _ = used
        if place.key:
            arguments["Key"] = place.key
        if access.requester_pays:
            arguments["RequestPayer"] = "requester"
        token, asked = _location.set(None), _asked_region.set(False)
        try:
            for _ in range(_MOST_REDIRECTIONS):
                try:
                    return _request(client, operation, place.bucket, arguments)
                except sdk().exceptions.ClientError as error:
                    location = _redirection(error, _location.get() or client.meta.endpoint_url)
                    if location is None:
                        raise
                    _location.set(location)
            return _request(client, operation, place.bucket, arguments)
        finally:
            _location.reset(token)
            _asked_region.reset(asked)


def _new_client(settings: S3Settings, bucket: str) -> _Client:
    access = settings.access(bucket)
    client = access.client()
    client.meta.events.register_last("before-call.s3", _send_at_once)
    client.meta.events.register_first("before-sign.s3", _follow)
    client.meta.events.register_first("before-call.s3.HeadBucket", _ask_region_once)
    return _Client(client, access, Reader(client))


def _request(client: Any, operation: str, bucket: str, arguments: dict[str, Any]) -> Any:
    body = arguments.get("Body")
    if isinstance(body, BufferedRandom):
        body.seek(0)  # an earlier request has read the file
    return getattr(client, operation)(Bucket=bucket, **arguments)


def answer_of(error: Exception, path: str, *, verdict: Verdict | None = None, service: str = "S3") -> Answer:
    """The answer for an error of a write; `verdict` if the reply was classified before."""
    reply = reply_of(error)
    if verdict is None:
        if error_of_source(error, path) is not None:  # no request without credentials
            verdict = Verdict.FAILED
        elif reply is not None:
            verdict = verdict_of(*reply)
        elif isinstance(error, WriteOutcomeUnknown):
            verdict = Verdict.AMBIGUOUS
        elif never_sent(error) or not is_transport(error):
            verdict = Verdict.FAILED
        else:
            verdict = Verdict.AMBIGUOUS
    if verdict is not Verdict.FAILED:
        return Answer(verdict, f"{service} answered {described(error)}" if reply else described(error))
    typed = error_of(error, "writing", path, service)
    if not isinstance(typed, TablelogError):
        raise typed
    return Answer.failed(typed)


def _answer_to_condition(error: Exception, path: str) -> Answer:
    reply = reply_of(error)
    if reply is not None and reply[0] == 501:
        return Answer.failed(no_condition(path, f"it answers a conditional write with {described(error)}"))
    return answer_of(error, path)


def no_condition(path: str, observation: str) -> UnsafeStoreError:
    """The error for a service without conditional writes."""
    return UnsafeStoreError(
        f"{shown(path)} was not written: its S3 service doesn't enforce the condition of a write (If-None-Match: *): "
        f"{observation}, so two writers could overwrite each other's commits. Use a newer version of the service "
        f"(MinIO from 2024-05-07 on), or set {LOG_STORE.prefix}<scheme>.impl to io.delta.storage.S3DynamoDBLogStore "
        "(several drivers), or to io.delta.storage.S3SingleDriverLogStore (only one driver)",
        path=shown(path),
    )


def _send_at_once(params: dict[str, Any], **_: Any) -> None:
    """Remove `Expect: 100-continue`: the SDK would wait up to a second for its reply on each write."""
    params["headers"].pop("Expect", None)


def _ask_region_once(**_: Any) -> None:
    """Let the SDK ask once for the region of a bucket: it asks again about each redirection, also of this request."""
    if _asked_region.get():
        unknown = {"Error": {"Code": "301"}, "ResponseMetadata": {"HTTPStatusCode": 301, "HTTPHeaders": {}}}
        raise sdk().exceptions.ClientError(unknown, "HeadBucket")
    _asked_region.set(True)


def _may_have_newer(error: Exception, operation: str) -> bool:
    """Whether the service rejected the credentials as expired, or there were none when the client was made.

    An answer to a HEAD has no code. So any rejection of a HEAD counts: if it was about permissions, that costs one
    request more.
    """
    status, code = reply_of(error) or (0, "")
    if isinstance(error, sdk().exceptions.NoCredentialsError):
        return True
    return code in EXPIRED or (operation == "head_object" and status in (400, 403))


def _follow(request: Any, operation_name: str, **_: Any) -> None:
    """Before signing, send a request to the location of the last redirection."""
    location = _location.get()
    if location is not None and operation_name != "HeadBucket":  # the SDK itself sends HeadBucket to find a region
        request.url = location


def _redirection(error: Any, asked: str) -> str | None:
    """The target of a redirection; None: it isn't a redirection, or must not be followed."""
    if reply_of(error)[0] not in _REDIRECTIONS:  # type: ignore[index]
        return None
    headers = error.response["ResponseMetadata"].get("HTTPHeaders", {})
    if not headers.get("location"):
        return None
    location = urljoin(asked, headers["location"])
    schemes = urlsplit(asked).scheme, urlsplit(location).scheme
    return location if schemes[1] == "https" or schemes == ("http", "http") else None
