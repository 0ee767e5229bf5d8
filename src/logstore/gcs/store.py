"""The store on Google Cloud Storage: an upload in one request with `ifGenerationMatch=0`, with the JSON API.

The store doesn't use Google's client, which repeats uploads: it sends each request once, and `answer_of` alone decides
what a reply means.
"""

import errno
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Any, BinaryIO, ClassVar, NamedTuple, Self, TypeAlias
from urllib.parse import quote, urljoin, urlsplit

from ...error_context import error_context
from ...errors import StorageAccessError, StorageError, StorageMissingError, StorageUnavailableError, TablelogError
from ..base import Exclusion, FileStatus, LogStore, too_large
from ..common import object_uri
from ..common.conditional_put import Answer, Verdict, persist, settle
from ..common.http_clients import (
    CONNECT_SECONDS,
    INVALID_HEADER,
    READ_SECONDS,
    Clients,
    cause_of,
    has_invalid_header,
    never_sent,
    skew_note,
)
from ..common.listing import without_false_gaps
from ..common.retry_policy import DEFAULT_RETRIES, RetryPolicy
from ..common.schemes import served_by
from ..common.spool import Content, Upload, received, spooled
from ..common.uri import shown
from .settings import CONFIGURATION_PREFIXES, GCSSettings

SCHEMES = served_by("gcs")

_LIMITED = frozenset({"rateLimitExceeded", "userRateLimitExceeded"})
_REFUSED = frozenset({400, 401, 403, 404, 405, 410, 411, 413, 414, 416})
_REDIRECTED = frozenset({301, 302, 307, 308})
_MOST_REDIRECTIONS = 3
_OF_ONE_FILE = frozenset({"reading", "deleting"})  # 404 means that the file doesn't exist
_CHUNK = 1 << 20


class GCSLogStore(LogStore):
    """Objects in any bucket: `gs://bucket/path`."""

    exclusion: Exclusion = "global"
    partial_writes_visible = False
    atomic_overwrite = True

    schemes: ClassVar[frozenset[str] | None] = SCHEMES
    configuration_prefixes: ClassVar[tuple[str, ...]] = CONFIGURATION_PREFIXES

    def __init__(
        self, settings: GCSSettings, *, retries: RetryPolicy = DEFAULT_RETRIES, read_seconds: float = READ_SECONDS
    ) -> None:
        self.settings = settings
        self._retries = retries
        self._read_seconds = read_seconds
        self._sessions: Clients[str, Any] = Clients(settings.session)

    @classmethod
    def configured(cls, scheme: str, conf: Mapping[str, str], storage_options: Mapping[str, Any]) -> Self:
        return cls(GCSSettings.of(scheme, conf, storage_options))

    def read(self, path: str) -> bytes:
        return self._read(path, Reply.of).body

    def read_at_most(self, path: str, most: int) -> bytes:
        return self._read(path, partial(Reply.of_at_most, path, most)).body

    def open_file(self, path: str) -> BinaryIO:
        file = self._read(path, partial(Reply.opened, path)).file
        assert file is not None
        return file

    def _read(self, path: str, receive: "_Receive") -> "Reply":
        _, bucket, key = object_uri.split(path)
        return self._asked("reading", path, "GET", _object(bucket, key), {"alt": "media"}, receive=receive)

    def write(self, path: str, data: bytes, *, overwrite: bool = False) -> None:
        self._write(path, bytes(memoryview(data)), overwrite)  # rejects text, which requests would accept

    def write_pieces(self, path: str, pieces: Iterable[bytes], *, overwrite: bool = False) -> None:
        with spooled(path, pieces) as content:
            self._write(path, content, overwrite)

    def _write(self, path: str, content: Content, overwrite: bool) -> None:
        _, bucket, key = object_uri.split(path)
        data = content if isinstance(content, bytes) else Upload(content)
        uploads = f"/upload{_objects(bucket)}"
        parameters = {"uploadType": "media", "name": key}
        if overwrite:
            self._asked("overwriting", path, "POST", uploads, parameters, data)
        else:
            once = {**parameters, "ifGenerationMatch": "0"}
            settle(path, lambda: self._created(path, uploads, once, data), self._retries)

    def list_from(self, path: str) -> Iterator[FileStatus]:
        scheme, bucket, key = object_uri.split(path)
        directory = object_uri.parent(key)
        start = key[len(directory) :].encode()
        statuses: dict[bytes, FileStatus] = {}

        def scan() -> list[bytes]:
            parameters = {
                "prefix": directory,
                "delimiter": "/",
                "startOffset": key,
                "fields": "nextPageToken,items(name,size,updated)",
            }
            tokens: set[str] = set()
            names = set()  # an object that is replaced during the listing may be listed twice
            while True:
                with error_context(path=shown(path)):
                    page = self._asked("listing", path, "GET", _objects(bucket), parameters).json()
                for item in page.get("items", ()):
                    name = item["name"][len(directory) :].encode()
                    if name >= start and name and not name.endswith(b"/"):
                        modified = round(datetime.fromisoformat(item["updated"]).timestamp() * 1000)
                        uri = object_uri.join(scheme, bucket, item["name"])
                        statuses[name] = FileStatus(uri, int(item["size"]), modified)
                        names.add(name)
                token = page.get("nextPageToken")
                if not token:
                    return list(names)
                if token in tokens:
                    raise StorageError(
                        f"listing {shown(path)}: the service answered with the same page again; check it and the proxy",
                        path=shown(path),
                    )
                tokens.add(token)
                parameters["pageToken"] = token

        return iter([statuses[name] for name in without_false_gaps(scan, start)])

    def delete(self, path: str) -> None:
        _, bucket, key = object_uri.split(path)
        with suppress(FileNotFoundError):
            self._asked("deleting", path, "DELETE", _object(bucket, key), {})

    def resolve(self, path: str) -> str:
        """`scheme://bucket/key`; see `object_uri.resolve`."""
        return object_uri.resolve(path)

    def _asked(
        self,
        operation: str,
        path: str,
        method: str,
        at: str,
        parameters: Mapping[str, str],
        data: "_Body" = None,
        receive: "_Receive | None" = None,
    ) -> "Reply":
        """The reply to a request that may be repeated, or a typed error. `receive` reads a response."""

        busy = False

        def attempt() -> Reply:
            nonlocal busy
            busy = False
            try:
                reply = self._sent(path, method, at, parameters, data, receive or Reply.of)
            except TablelogError:
                raise
            except Exception as error:
                raise _without_reply(operation, path, error) from cause_of(error)
            if reply.status in (200, 204):
                return reply
            if operation in _OF_ONE_FILE and reply.status == 404 and not _no_bucket(reply):
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), shown(path))
            busy = reply.status in (429, 503) or reply.code in _LIMITED
            raise refusal(operation, path, reply)

        with error_context(path=shown(path)):
            return persist(
                attempt, lambda error: isinstance(error, StorageUnavailableError), lambda _: busy, self._retries
            )

    def _created(self, path: str, at: str, parameters: Mapping[str, str], data: "_Body") -> Answer:
        """Send a conditional write once and return the answer."""
        try:
            return answer_of(path, self._sent(path, "POST", at, parameters, data, Reply.of))
        except TablelogError:  # a wrong setting or a redirection: nothing was written
            raise
        except Exception as error:
            failed = _without_reply("writing", path, error)
            if isinstance(failed, _NoReplyError):
                return Answer(Verdict.AMBIGUOUS, f"no reply came: {type(error).__name__}")
            return Answer.failed(failed)

    def _sent(
        self, path: str, method: str, at: str, query: Mapping[str, str], data: "_Body", receive: "_Receive"
    ) -> "Reply":
        """Send a request once; follow redirections of the service with the same method and condition."""
        endpoint = self.settings.endpoint
        session = self._sessions[endpoint]
        payer = self.settings.pays(object_uri.split(path)[1])
        parameters = {**query, "userProject": payer} if payer else dict(query)
        headers = {"Accept-Encoding": "identity"}
        if data is not None:
            headers["Content-Type"] = "application/octet-stream"
        url = endpoint + at
        for _ in range(_MOST_REDIRECTIONS + 1):
            response = session.request(
                method,
                url,
                params=parameters,
                data=data,
                headers=headers,
                timeout=(CONNECT_SECONDS, self._read_seconds),
                allow_redirects=False,
                stream=True,
            )
            target = response.headers.get("Location")
            if response.status_code not in _REDIRECTED or not target:
                break
            url = urljoin(url, target).partition("?")[0]
            if not _same_service(endpoint, url):  # another service must not get the token
                raise _RedirectedError(
                    f"{shown(path)}: {urlsplit(endpoint).hostname} redirects to {urlsplit(url).hostname}; if this "
                    "host is correct, set it as fs.gs.storage.root.url"
                )
        with response:
            return receive(response)


_Body: TypeAlias = bytes | Upload | None


class Reply(NamedTuple):
    """A service's answer: `code` is the reason in an error's body, `message` its text, `date` the service's time.

    `file` is the content instead of `body`, if it was asked for as a file.
    """

    status: int
    code: str
    body: bytes
    message: str = ""
    date: str | None = None
    file: BinaryIO | None = None

    @classmethod
    def of(cls, response: Any) -> "Reply":
        """The reply in a response of `requests`."""
        _check_length(response, len(response.content))
        code, message = "", ""
        if response.status_code >= 400:
            with suppress(ValueError, KeyError, IndexError, TypeError):
                error = response.json()["error"]
                message = str(error.get("message", ""))
                code = str(error["errors"][0]["reason"])
        return cls(response.status_code, code, response.content, message, response.headers.get("Date"))

    @classmethod
    def of_at_most(cls, path: str, most: int, response: Any) -> "Reply":
        """The same for a file; raises CorruptLogError, and doesn't read it, if it has more than `most` bytes."""
        size = _length(response)
        if response.status_code == 200 and size is not None and size > most:
            raise too_large(path, size, most)
        return cls.of(response)

    @classmethod
    def opened(cls, path: str, response: Any) -> "Reply":
        """The same with the content of a file as `file`."""
        if response.status_code != 200:
            return cls.of(response)
        file = received(path, response.iter_content(_CHUNK))
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        try:
            _check_length(response, size)
        except OSError:
            file.close()
            raise
        return cls(200, "", b"", file=file)

    def json(self) -> Any:
        """The body. Raises StorageError if it isn't a reply of the API."""
        try:
            body = json.loads(self.body)
        except ValueError:
            body = None
        if not isinstance(body, dict):
            raise StorageError("the reply isn't from Google Cloud Storage: check fs.gs.storage.root.url")
        return body


_Receive: TypeAlias = Callable[[Any], Reply]


def _length(response: Any) -> int | None:
    """The number of bytes of a file in a response, if it is known."""
    length = None if "Content-Encoding" in response.headers else response.headers.get("Content-Length")
    return int(length) if length is not None and response.request.method == "GET" else None


def _check_length(response: Any, received_bytes: int) -> None:
    length = _length(response)
    if length is not None and length != received_bytes:
        raise OSError(f"only {received_bytes} of {length} bytes were received")


class _NoReplyError(StorageUnavailableError):
    """It is unknown whether the request was served."""


class _RedirectedError(StorageError):
    """The service redirects to another service, for which the credentials aren't meant."""


def answer_of(path: str, reply: Reply) -> Answer:
    """The answer for the reply to an upload with `ifGenerationMatch=0`."""
    status, code = reply.status, reply.code
    if status == 200:
        with suppress(StorageError):
            if "name" in reply.json():
                return Answer(Verdict.APPLIED)
        return Answer(Verdict.AMBIGUOUS, "the reply isn't from Google Cloud Storage")
    if status == 412:
        return Answer(Verdict.EXISTS)
    if status == 429 or code in _LIMITED:
        return Answer(Verdict.NOT_APPLIED, _said(reply))
    if status in _REFUSED:
        return Answer.failed(refusal("writing", path, reply))
    return Answer(Verdict.AMBIGUOUS, f"the service answered {_said(reply)}")


def refusal(operation: str, path: str, reply: Reply) -> StorageError:
    """The error for a reply that isn't a success."""
    status, code = reply.status, reply.code
    context = f"{operation} {shown(path)}: Google Cloud Storage answered {_said(reply)}"
    if status in (408, 429) or status >= 500 or code in _LIMITED:
        return StorageUnavailableError(f"{context}; try again later")
    if status in (401, 403):
        return StorageAccessError(
            f"{context}{skew_note(reply.date)}; check the credentials, their role on the bucket, and this machine's "
            "clock"
        )
    if status == 404:
        return StorageMissingError(f"{context}; the bucket doesn't exist: create it first")
    return StorageError(f"{context}; the service rejects this request, and retrying doesn't help")


def _no_bucket(reply: Reply) -> bool:
    return "bucket does not exist" in reply.message


def _said(reply: Reply) -> str:
    return f"{reply.status} {reply.code}".rstrip()


def _without_reply(operation: str, path: str, error: Exception) -> StorageError:
    """The error for a request without a reply; `_NoReplyError` if it is unknown whether it was served."""
    from google.auth.exceptions import GoogleAuthError, TransportError

    context = f"{operation} {shown(path)}"
    if has_invalid_header(error):
        return StorageAccessError(f"{context}: {INVALID_HEADER}")
    if isinstance(error, GoogleAuthError) and not isinstance(error, TransportError):
        return StorageAccessError(
            f"{context}: no token could be fetched for the credentials ({type(error).__name__}); check them and their "
            "expiry"
        )
    if isinstance(error, GoogleAuthError):
        return StorageUnavailableError(f"{context}: the token service can't be reached; check the network")
    if never_sent(error):
        return StorageUnavailableError(f"{context}: the service can't be reached; check the endpoint and the network")
    return _NoReplyError(f"{context}: no whole reply came ({type(error).__name__}); try again later")


def _same_service(endpoint: str, url: str) -> bool:
    ours, theirs = urlsplit(endpoint), urlsplit(url)
    if ours.scheme == "https" != theirs.scheme:
        return False
    google = str(theirs.hostname).endswith(".googleapis.com") and str(ours.hostname).endswith(".googleapis.com")
    return google or ours.hostname == theirs.hostname


def _objects(bucket: str) -> str:
    return f"/storage/v1/b/{quote(bucket, safe='')}/o"


def _object(bucket: str, key: str) -> str:
    return f"{_objects(bucket)}/{quote(key, safe='')}"
