"""A small S3-like object service in this process: one bucket is correct, the others each have a defect.

It supports conditional PUT, multipart uploads and paged listings, without authentication, and keeps the objects in
memory. `shared()` returns one server for the whole process.
"""

import functools
import itertools
import sys
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

PAGE = 1000


@dataclass(frozen=True)
class Behaviour:
    """The behaviour of a bucket; the defaults are correct."""

    heeds_the_condition: bool = True
    heeds_it_on_multipart: bool = True
    looks_then_acts: bool = False
    """Checks whether the object exists, waits a short time, and then writes."""
    takes_what_came: bool = False
    """If a request body ends early, the received part is written."""
    answers_first: bool = False
    """Replies before a write is applied: the object exists from the second request after it on."""


SOUND = "sound"
BEHAVIOURS = {
    SOUND: Behaviour(),
    "ignores-the-condition": Behaviour(heeds_the_condition=False, heeds_it_on_multipart=False),
    "ignores-it-on-multipart": Behaviour(heeds_it_on_multipart=False),
    "looks-then-acts": Behaviour(looks_then_acts=True),
    "takes-what-came": Behaviour(takes_what_came=True),
    "answers-first": Behaviour(answers_first=True),
}
"""The behaviour of each bucket by its name."""


@dataclass
class _Bucket:
    behaviour: Behaviour
    lock: threading.Lock = field(default_factory=threading.Lock)
    objects: dict[str, tuple[bytes, float]] = field(default_factory=dict)
    late: list[tuple[int, str, bytes]] = field(default_factory=list)

    def put(self, key: str, data: bytes, *, condition: bool, multipart: bool) -> bool:
        heeds = self.behaviour.heeds_it_on_multipart if multipart else self.behaviour.heeds_the_condition
        if self.behaviour.looks_then_acts:
            if condition and key in self.objects:
                return False
            time.sleep(0.002)
        with self.lock:
            if condition and heeds and not self.behaviour.looks_then_acts and key in self.objects:
                return False
            if self.behaviour.answers_first:
                self.late.append((2, key, data))
            else:
                self.objects[key] = data, time.time()
        return True

    def settle(self) -> None:
        """Apply late writes, when another request arrives."""
        with self.lock:
            waiting, self.late = self.late, []
            for requests, key, data in waiting:
                if requests > 1:
                    self.late.append((requests - 1, key, data))
                else:
                    self.objects[key] = data, time.time()


class ObjectServer(ThreadingHTTPServer):
    """Listens on a free port of 127.0.0.1 until `close`; its threads are daemons."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.buckets = {name: _Bucket(behaviour) for name, behaviour in BEHAVIOURS.items()}
        self.uploads: dict[str, dict[int, bytes]] = {}
        self.upload_ids = itertools.count(1)
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self._thread.start()

    @property
    def endpoint(self) -> str:
        """The URL of the service."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Nothing is written about a client that closed its connection, as one does whose process is killed."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)

    def close(self) -> None:
        """Stop listening."""
        self.shutdown()
        self.server_close()
        self._thread.join()


@functools.cache
def shared() -> ObjectServer:
    """One server for the whole process."""
    return ObjectServer()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: ObjectServer

    def log_message(self, *_: object) -> None:
        """Log nothing."""

    def do_GET(self) -> None:
        bucket, key, query = self._place()
        if not key:
            self._list(bucket, query)
            return
        stored = bucket.objects.get(key)
        if stored is None:
            self._answer_error(404, "NoSuchKey")
        else:
            self._answer(200, stored[0])

    do_HEAD = do_GET  # noqa: N815

    def do_DELETE(self) -> None:
        bucket, key, _ = self._place()
        with bucket.lock:
            bucket.objects.pop(key, None)
        self._answer(204, b"")

    def do_PUT(self) -> None:
        bucket, key, query = self._place()
        size = int(self.headers["Content-Length"])
        data = self.rfile.read(size)
        if len(data) < size and not bucket.behaviour.takes_what_came:
            self.close_connection = True
            return
        if "uploadId" in query:
            self.server.uploads[query["uploadId"]][int(query["partNumber"])] = data
            self._answer(200, b"")
        else:
            self._put(bucket, key, data, multipart=False)

    def do_POST(self) -> None:
        bucket, key, query = self._place()
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if "uploads" in query:
            number = str(next(self.server.upload_ids))
            self.server.uploads[number] = {}
            self._answer(200, f"<R><UploadId>{number}</UploadId></R>".encode())
            return
        parts = self.server.uploads.pop(query["uploadId"])
        self._put(bucket, key, b"".join(parts[number] for number in sorted(parts)), multipart=True)

    def _put(self, bucket: _Bucket, key: str, data: bytes, *, multipart: bool) -> None:
        condition = self.headers.get("If-None-Match") == "*"
        if bucket.put(key, data, condition=condition, multipart=multipart):
            self._answer(200, b"")
        else:
            self._answer_error(412, "PreconditionFailed", "<Condition>If-None-Match</Condition>")

    def _list(self, bucket: _Bucket, query: dict[str, str]) -> None:
        prefix, after = query.get("prefix", ""), query.get("start-after", "")
        with bucket.lock:
            keys = sorted((key for key in bucket.objects if key.startswith(prefix)), key=str.encode)
            keys = [key for key in keys if key.encode() > after.encode() and "/" not in key.removeprefix(prefix)]
            entries = [
                f"<Contents><Key>{escape(key)}</Key><Size>{len(bucket.objects[key][0])}</Size>"
                f"<LastModified>{_iso(bucket.objects[key][1])}</LastModified></Contents>"
                for key in keys[:PAGE]
            ]
        more = "true" if len(keys) > PAGE else "false"
        self._answer(200, f"<R><IsTruncated>{more}</IsTruncated>{''.join(entries)}</R>".encode())

    def _place(self) -> tuple[_Bucket, str, dict[str, str]]:
        parts = urlsplit(self.path)
        name, _, key = parts.path.lstrip("/").partition("/")
        bucket = self.server.buckets[name]
        bucket.settle()
        query = {name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
        return bucket, unquote(key), query

    def _answer_error(self, status: int, code: str, more: str = "") -> None:
        self._answer(status, f"<Error><Code>{code}</Code>{more}</Error>".encode())

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def _iso(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
