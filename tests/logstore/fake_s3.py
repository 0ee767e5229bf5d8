"""An S3 service in this process: it keeps objects, remembers what it was asked, and answers as it is told to."""

import re
import ssl
import threading
import xml.sax.saxutils
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qs, quote, unquote, urlsplit

from support.clocks import NO_PAUSES
from tablelog.logstore.common.retry_policy import RetryPolicy
from tablelog.logstore.s3.conditional_put_store import ProbedBuckets, S3LogStore
from tablelog.logstore.s3.settings import S3Settings

BUCKET = "bucket"
"""The bucket that may be in the name of the host."""
ACCESS_KEY, SECRET_KEY = "AKIDTEST", "s3cret-of-the-test"
_TIME = "2026-01-02T03:04:05.678Z"


@dataclass(frozen=True)
class Reply:
    """What is answered in place of the truth; `applied`: after the request has been done. Status 0: no reply at all.

    `cut`: the connection ends in the middle of the body.
    """

    status: int
    code: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    applied: bool = False
    cut: bool = False


class Asked(NamedTuple):
    """A request as it came in."""

    method: str
    key: str
    query: dict[str, str]
    headers: dict[str, str]

    @property
    def signer(self) -> str:
        """The access key that signed it."""
        return self.headers["authorization"].partition("Credential=")[2].partition("/")[0]

    @property
    def region(self) -> str:
        """The region that it was signed for."""
        return self.headers["authorization"].partition("Credential=")[2].split("/")[2]


class FakeS3:
    """`replies` are given in their order, each to one request that `scripted` picks; then the truth is told.

    `refused` may answer a request first, which then does nothing. With `tls` it is served by HTTPS.
    """

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.refused: Callable[[Asked], Reply | None] = lambda asked: None
        self.objects: dict[str, bytes] = {}
        self.asked: list[Asked] = []
        self.replies: list[Reply] = []
        self.scripted: Callable[[Asked], bool] = lambda asked: asked.method == "PUT"
        self.enforces = True
        self.page_size = 1000
        self.connections = 0
        self.probed = ProbedBuckets()  # not the process's, which may know an earlier service at the same port
        self._lock = threading.Lock()
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def setup(self) -> None:
                fake.connections += 1
                super().setup()

            def handle_any(self) -> None:
                fake._handle(self)

            do_GET = do_PUT = do_HEAD = do_DELETE = do_POST = handle_any  # noqa: N815

            def log_message(self, *_: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            def handle_error(self, *_: object) -> None:  # a client that doesn't trust the certificate
                pass

        self._server = Server(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self.endpoint = f"http{'s' if tls else ''}://127.0.0.1:{self._server.server_port}"

    @property
    def conf(self) -> dict[str, str]:
        return {
            "fs.s3a.endpoint": self.endpoint,
            "fs.s3a.access.key": ACCESS_KEY,
            "fs.s3a.secret.key": SECRET_KEY,
            "fs.s3a.path.style.access": "true",
            "fs.s3a.endpoint.region": "us-east-1",
        }

    def store(
        self, options: Mapping[str, Any] | None = None, *, retries: RetryPolicy = NO_PAUSES, **conf: str
    ) -> S3LogStore:
        """A store for this service that doesn't wait before it repeats a request."""
        settings = S3Settings.of("s3a", {**self.conf, **conf}, options or {})
        return S3LogStore(settings, retries=retries, probed=self.probed)

    def methods(self) -> list[str]:
        """What was asked: the method, with `?` for a condition and `list` for a listing."""
        return [
            "list" if "list-type" in asked.query else asked.method + "?" * ("if-none-match" in asked.headers)
            for asked in self.asked
        ]

    def _handle(self, handler: BaseHTTPRequestHandler) -> None:
        parts = urlsplit(handler.path)
        query = {name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
        headers = {name.lower(): value for name, value in handler.headers.items()}
        body = handler.rfile.read(int(headers.get("content-length", 0)))
        in_host = f"/{BUCKET}" if headers["host"].startswith(f"{BUCKET}.") else ""
        asked = Asked(handler.command, in_host + unquote(parts.path), query, headers)
        with self._lock:
            self.asked.append(asked)
            reply = self.refused(asked)
            if reply is None and self.replies and self.scripted(asked):
                reply = self.replies.pop(0)
            told = self._truth(asked, body) if reply is None or reply.applied else None
        reply = reply or told
        assert reply is not None
        if reply.status == 0:
            handler.close_connection = True
            return
        content = reply.body
        if content is None:
            content = f"<Error><Code>{reply.code}</Code></Error>".encode() if reply.code else b""
        handler.send_response_only(reply.status)
        handler.send_header("Date", reply.headers.get("Date", formatdate(usegmt=True)))
        for name, value in reply.headers.items():
            if name != "Date":
                handler.send_header(name, value)
        if reply.status not in {204, 304}:
            handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        if handler.command != "HEAD" and reply.status not in {204, 304}:
            handler.wfile.write(content[: len(content) // 2] if reply.cut else content)
        handler.close_connection |= reply.cut

    def _truth(self, asked: Asked, body: bytes) -> Reply:
        dated = {"Last-Modified": formatdate(usegmt=True), "ETag": '"e"'}
        match asked.method:
            case "PUT":
                if "if-none-match" in asked.headers and self.enforces and asked.key in self.objects:
                    return Reply(412, "PreconditionFailed")
                self.objects[asked.key] = body
                return Reply(200, headers={"ETag": '"e"'})
            case "DELETE":
                self.objects.pop(asked.key, None)
                return Reply(204)
            case "GET" if "list-type" in asked.query:
                return Reply(200, body=self._listing(asked).encode())
            case "POST":
                for key in re.findall("<Key>(.*?)</Key>", body.decode()):
                    self.objects.pop(f"{asked.key.rstrip('/')}/{xml.sax.saxutils.unescape(key)}", None)
                return Reply(200, body=b"<DeleteResult></DeleteResult>")
        if asked.key not in self.objects:
            return Reply(404, "NoSuchKey")
        data = self.objects[asked.key]
        if wanted := re.fullmatch(r"bytes=(\d+)-(\d*)", asked.headers.get("range", "")):
            if not data:
                return Reply(416, "InvalidRange")
            start, end = int(wanted[1]), int(wanted[2] or len(data) - 1) + 1
            dated["Content-Range"] = f"bytes {start}-{min(end, len(data)) - 1}/{len(data)}"
            return Reply(206, headers=dated, body=data[start:end])
        return Reply(200, headers=dated, body=data)

    def _listing(self, asked: Asked) -> str:
        bucket, prefix = asked.key.strip("/"), asked.query["prefix"]
        start = max(asked.query.get("start-after", ""), asked.query.get("continuation-token", ""))
        keys = [key.removeprefix(f"/{bucket}/") for key in self.objects if key.startswith(f"/{bucket}/{prefix}")]
        if asked.query.get("delimiter"):
            keys = [prefix + first + slash for first, slash, _ in (key[len(prefix) :].partition("/") for key in keys)]
        names = sorted({key for key in keys if key > start})
        page = names[: self.page_size]
        more = len(names) > len(page)
        items = "".join(self._item(bucket, key) for key in page)
        token = f"<NextContinuationToken>{xml.sax.saxutils.escape(page[-1])}</NextContinuationToken>" if more else ""
        return (
            f"<ListBucketResult><EncodingType>url</EncodingType><IsTruncated>{str(more).lower()}</IsTruncated>"
            f"{token}{items}</ListBucketResult>"
        )

    def _item(self, bucket: str, key: str) -> str:
        if f"/{bucket}/{key}" not in self.objects:
            return f"<CommonPrefixes><Prefix>{quote(key)}</Prefix></CommonPrefixes>"
        size = len(self.objects[f"/{bucket}/{key}"])
        return (
            f"<Contents><Key>{quote(key)}</Key><Size>{size}</Size>"
            f"<LastModified>{_TIME}</LastModified><ETag>e</ETag></Contents>"
        )

    def __enter__(self) -> "FakeS3":
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@contextmanager
def running() -> Iterator[FakeS3]:
    """A service that ends with the block."""
    with FakeS3() as fake:
        yield fake
