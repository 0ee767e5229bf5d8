"""Requests to S3: each is sent, repeated if it may be, and sent on to where the service redirects it."""

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

from ...errors import StorageError
from ..common.conditional_put import Answer, Verdict, persist
from ..common.http_clients import Clients, cause_of
from ..common.retry_policy import DEFAULT_RETRIES, RetryPolicy
from ..common.spool import Content, received
from ..common.uri import shown
from .object_reader import Reader, part
from .places import S3Location
from .replies import (
    REDIRECTIONS,
    ForeignReplyError,
    answer_of,
    answer_to_condition,
    busy,
    error_of,
    is_absent,
    passing,
    reply_of,
)
from .settings import EXPIRED, S3Access, S3Settings, sdk

_Result = TypeVar("_Result")

_MOST_REDIRECTIONS = 3
_CHUNK = 8 << 20

_location: ContextVar[str | None] = ContextVar("location", default=None)
_asked_region: ContextVar[bool] = ContextVar("asked_region", default=False)


class Listed(NamedTuple):
    """One object of a listing."""

    key: str
    size: int
    modification_time_ms: int


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
            return answer_to_condition(error, place.uri)
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
            if is_absent(error) and doing != "listing":
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
    if reply_of(error)[0] not in REDIRECTIONS:  # type: ignore[index]
        return None
    headers = error.response["ResponseMetadata"].get("HTTPHeaders", {})
    if not headers.get("location"):
        return None
    location = urljoin(asked, headers["location"])
    schemes = urlsplit(asked).scheme, urlsplit(location).scheme
    return location if schemes[1] == "https" or schemes == ("http", "http") else None
