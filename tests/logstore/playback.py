"""An HTTP server in this process that plays given replies and remembers what it was asked."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple, Self
from urllib.parse import parse_qs, urlsplit


@dataclass(frozen=True)
class Played:
    """A reply. With `cut` the connection ends after that many bytes of the body; `cut=-1`: without any reply."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    cut: int | None = None


NO_REPLY = Played(cut=-1)


class Asked(NamedTuple):
    """A request as it came in."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes


class Playback:
    """Plays `replies` in their order, the last one again and again; `asked` has the requests.

    Use it as a context manager; `endpoint` is its URL.
    """

    def __init__(self, *replies: Played) -> None:
        self.replies = list(replies)
        self.asked: list[Asked] = []
        self._lock = threading.Lock()
        playback = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self) -> None:
                playback._answer(self)

            do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = handle_any  # noqa: N815

            def log_message(self, *_: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            def handle_error(self, *_: object) -> None:  # a client that went away is what some tests are about
                pass

        self._server = Server(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})

    @property
    def endpoint(self) -> str:
        return f"http://{self.address}"

    @property
    def address(self) -> str:
        """`host:port`."""
        return f"127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _answer(self, handler: BaseHTTPRequestHandler) -> None:
        length = int(handler.headers.get("Content-Length") or 0)
        body = handler.rfile.read(length)
        parts = urlsplit(handler.path)
        query = {name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
        headers = {name.lower(): value for name, value in handler.headers.items()}
        with self._lock:
            self.asked.append(Asked(handler.command, parts.path, query, headers, body))
            reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        if reply.cut == -1:
            handler.close_connection = True
            return
        handler.send_response(reply.status)
        for name, value in reply.headers.items():
            handler.send_header(name, value)
        if "Content-Length" not in reply.headers:
            handler.send_header("Content-Length", str(len(reply.body)))
        handler.end_headers()
        if reply.cut is not None:
            handler.wfile.write(reply.body[: reply.cut])
            handler.close_connection = True
        elif handler.command != "HEAD":
            handler.wfile.write(reply.body)
