"""A simple, correct store on an object service. The broken stores each change one part of it."""

import http.client
from collections.abc import Iterator
from datetime import datetime
from typing import ClassVar
from urllib.parse import parse_qs, quote, urlencode, urlsplit
from xml.etree import ElementTree

from tablelog.errors import InvalidArgumentError, StorageUnavailableError
from tablelog.logstore import FileStatus, LogStore
from tablelog.logstore.base import Exclusion
from tablelog.logstore.common import object_uri
from tablelog.logstore.common.conditional_put import Answer, Verdict, settle
from tablelog.logstore.common.retry_policy import DEFAULT_RETRIES

_SECONDS = 5.0
MULTIPART_FROM = 5 << 20
Query = dict[str, str]


class ObjectStore(LogStore):
    """`If-None-Match: *` on PUT and, for large files, on the completion of a multipart upload.

    Each request has its own connection, so that threads, forks and pickled copies share nothing.
    """

    exclusion: Exclusion = "global"
    partial_writes_visible = False
    atomic_overwrite = True
    schemes: ClassVar[frozenset[str]] = frozenset({"s3"})

    def __init__(self, endpoint: str) -> None:
        parts = urlsplit(endpoint)
        self._host, self._port = parts.hostname or "", parts.port or 80

    def read(self, path: str) -> bytes:
        status, body = self.ask("GET", path)
        if status == 404:
            raise FileNotFoundError(path)
        self.check(status, path)
        return body

    def write(self, path: str, data: bytes, *, overwrite: bool = False) -> None:
        data = bytes(memoryview(data))
        if overwrite:
            self.check(self.send(path, data, {})[0], path)
        else:
            settle(path, lambda: self.attempt(path, data), DEFAULT_RETRIES)

    def attempt(self, path: str, data: bytes) -> Answer:
        """One conditional write."""
        try:
            status, body = self.send(path, data, {"If-None-Match": "*"})
        except ConnectionRefusedError as error:
            return Answer.failed(StorageUnavailableError(f"writing {path}: {error}"))
        except (OSError, http.client.HTTPException) as error:
            return Answer(Verdict.AMBIGUOUS, repr(error))
        return self.meaning(status, body)

    def meaning(self, status: int, body: bytes) -> Answer:
        """The result of a conditional write by the service's reply, which has no body if it is a success."""
        if status < 300:
            return Answer(Verdict.AMBIGUOUS if body else Verdict.APPLIED, str(status))
        if status == 412:
            return Answer(Verdict.EXISTS)
        if status in {409, 429} or (status == 503 and b"SlowDown" in body):
            return Answer(Verdict.NOT_APPLIED, str(status))
        if status in {304, 408} or status >= 500:
            return Answer(Verdict.AMBIGUOUS, str(status))
        return Answer.failed(StorageUnavailableError(f"the service replied {status}"))

    def list_from(self, path: str) -> Iterator[FileStatus]:
        scheme, bucket, start = object_uri.split(path)
        prefix = object_uri.parent(start)
        after = start[:-1] if start != prefix else ""  # the service starts after this name
        statuses: list[FileStatus] = []
        while True:
            query = {"list-type": "2", "prefix": prefix, "delimiter": "/", "start-after": after}
            status, body = self.ask("GET", f"{scheme}://{bucket}/", query)
            self.check(status, path)
            page = ElementTree.fromstring(body)
            for element in page.iter():
                element.tag = element.tag.rpartition("}")[2]
            for entry in page.iter("Contents"):
                after = entry.findtext("Key", "")
                if after.encode() >= start.encode():
                    when = datetime.fromisoformat(entry.findtext("LastModified", "")).timestamp()
                    size = int(entry.findtext("Size", ""))
                    statuses.append(FileStatus(object_uri.join(scheme, bucket, after), size, int(when * 1000)))
            if page.findtext("IsTruncated") != "true":
                return iter(statuses)

    def delete(self, path: str) -> None:
        self.check(self.ask("DELETE", path)[0], path)

    def resolve(self, path: str) -> str:
        return object_uri.resolve(path)

    def send(self, path: str, data: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
        """Put `data` at `path`, in one request or in parts; returns the reply to the last request."""
        if not object_uri.split(path)[2]:
            raise InvalidArgumentError(f"{path} has no key")
        if len(data) < MULTIPART_FROM:
            return self.ask("PUT", path, {}, data, headers)
        status, body = self.ask("POST", path, {"uploads": ""})
        self.check(status, path)
        upload = ElementTree.fromstring(body).findtext(".//{*}UploadId", "")
        for number in range(0, len(data), MULTIPART_FROM):
            part = {"uploadId": upload, "partNumber": str(number // MULTIPART_FROM + 1)}
            self.check(self.ask("PUT", path, part, data[number : number + MULTIPART_FROM])[0], path)
        return self.ask("POST", path, {"uploadId": upload}, b"", headers)

    def ask(
        self,
        method: str,
        path: str,
        query: Query | None = None,
        data: bytes | None = None,
        headers: Query | None = None,
    ) -> tuple[int, bytes]:
        """Send one request, and another one for each redirect, with the same headers."""
        _, bucket, key = object_uri.split(path)
        host, port, target = self._host, self._port, f"/{bucket}/{quote(key)}"
        query = query or {}
        while True:
            connection = http.client.HTTPConnection(host, port, timeout=_SECONDS)
            try:
                connection.request(method, f"{target}?{urlencode(query)}" if query else target, data, headers or {})
                reply = connection.getresponse()
                body = reply.read()
            finally:
                connection.close()
            if reply.status not in {307, 308}:
                return reply.status, body
            moved = urlsplit(reply.headers["Location"])
            host, port, target = moved.hostname or host, moved.port or port, moved.path
            query = {name: values[0] for name, values in parse_qs(moved.query, keep_blank_values=True).items()}
            headers = self.redirected(headers)

    def redirected(self, headers: Query | None) -> Query | None:
        """The headers of a redirected request: all headers."""
        return headers

    @staticmethod
    def check(status: int, path: str) -> None:
        """Raise for a reply that isn't a success."""
        if status >= 300 and status != 404:
            raise StorageUnavailableError(f"{path}: the service replied {status}")
