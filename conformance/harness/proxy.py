"""A proxy in front of a service that decides for each request: forward it, hold it, lose its reply, reject it.

`Proxy(endpoint, decide)` listens on a free port of 127.0.0.1 and calls `decide(exchange)` for each request, in the
thread of its connection. The returned reply is sent to the client; None closes the connection. `exchange.forward()`
forwards the request and returns the service's reply. So a lost reply is `exchange.forward(); return None`, and a
request is held as long as `decide` doesn't return.

For an `http://` or `https://` endpoint the proxy uses HTTP/1.1 (persistent connections, chunked bodies, 100-continue).
For `host:port` an exchange is a turn: the data that the client sends until the service answers, in any protocol.
"""

import contextlib
import select
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import BinaryIO, Self
from urllib.parse import urlsplit

_SERVICE_SECONDS = 60.0
_END_SECONDS = 5.0
_PIECE = 1 << 16
_NO_BODY = frozenset({204, 304})


@dataclass(frozen=True)
class Request:
    """A received request; if the protocol isn't HTTP, `method` and `target` are empty, and the body is everything."""

    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    body: bytes

    @property
    def changes(self) -> bool:
        """Whether it may change something."""
        return self.method not in {"GET", "HEAD", "OPTIONS"}

    @property
    def conditional(self) -> bool:
        """Whether it fails if the object exists, as far as HTTP and the known services show."""
        return (
            any(name.lower() in _CONDITIONS for name, _ in self.headers)
            or "ifGenerationMatch=" in self.target
            or b'"ConditionExpression"' in self.body
        )

    def __str__(self) -> str:
        return f"{self.method} {self.target.partition('?')[0]}" if self.method else f"{len(self.body)} bytes"

    def head(self) -> bytes:
        """The request line and the headers, for a body of known length."""
        kept = [(name, value) for name, value in self.headers if name.lower() not in _FRAMING]
        if self.body or self.method in {"PUT", "POST", "PATCH"}:
            kept.append(("Content-Length", str(len(self.body))))
        lines = [f"{self.method} {self.target} HTTP/1.1", *(f"{name}: {value}" for name, value in kept), "", ""]
        return "\r\n".join(lines).encode("latin-1")


_CONDITIONS = frozenset({"if-none-match", "if-match", "x-goog-if-generation-match"})
_FRAMING = frozenset({"content-length", "transfer-encoding", "expect", "connection"})


@dataclass(frozen=True)
class Reply:
    """A reply to a client; `raw` is the whole reply if the protocol isn't HTTP."""

    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    raw: bytes | None = None

    def bytes_for(self, method: str) -> bytes:
        """The bytes to send; a reply to HEAD has no body."""
        if self.raw is not None:
            return self.raw
        headers = {name: value for name, value in self.headers.items() if name.lower() not in _FRAMING}
        if self.status not in _NO_BODY:
            length = next((self.headers[name] for name in self.headers if name.lower() == "content-length"), None)
            headers["Content-Length"] = length if method == "HEAD" and length else str(len(self.body))
        lines = [f"HTTP/1.1 {self.status} -", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
        return "\r\n".join(lines).encode("latin-1") + (b"" if method == "HEAD" else self.body)


@dataclass
class Exchange:
    """One request, and the function to forward it; `number` counts the proxy's requests from 1."""

    number: int
    request: Request
    forward: Callable[[], Reply]
    """Forward the request; OSError if the service doesn't answer. It may be called after the client has closed."""
    client: socket.socket

    def cut(self) -> None:
        """Close the client's connection now; the request can still be forwarded."""
        with contextlib.suppress(OSError):
            self.client.shutdown(socket.SHUT_RDWR)

    def is_given_up(self, seconds: float) -> bool:
        """Wait until the client closes the connection, with a time limit."""
        ready, _, _ = select.select([self.client], [], [], seconds)
        return bool(ready)


Decide = Callable[[Exchange], Reply | None]


def pass_on(exchange: Exchange) -> Reply | None:
    """Forward the request unchanged, like a plain proxy."""
    return exchange.forward()


class Proxy:
    """See the docstring of the module. `decide` may be changed at any time; `url` is the address for clients."""

    def __init__(self, endpoint: str, decide: Decide = pass_on) -> None:
        self.decide = decide
        parts = urlsplit(endpoint if "//" in endpoint else f"//{endpoint}")
        self._http = parts.scheme in {"http", "https"}
        self._tls = parts.scheme == "https"
        self._host = parts.hostname or ""
        self._port = parts.port or (443 if self._tls else 80)
        self._listener = socket.create_server(("127.0.0.1", 0))
        address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self.url = f"http://{address}{parts.path}" if self._http else address
        self._lock = threading.Lock()
        self._count = 0
        self._open: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._closed = False
        self._acceptor = threading.Thread(target=self._accept, daemon=True)
        self._acceptor.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop listening, close every connection and wait for the threads."""
        with self._lock:
            self._closed = True
            connections = list(self._open)
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes accept
        self._listener.close()
        for connection in connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in [self._acceptor, *self._threads]:
            thread.join(_END_SECONDS)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
            with self._lock:
                self._threads = [*(other for other in self._threads if other.is_alive()), thread]
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        with self._held_open(connection), contextlib.suppress(OSError, ValueError):
            (self._serve_http if self._http else self._serve_turns)(connection)

    @contextlib.contextmanager
    def _held_open(self, connection: socket.socket) -> Iterator[None]:
        with self._lock:
            self._open.add(connection)
            closed = self._closed
        try:
            if not closed:
                yield
            else:
                raise ConnectionAbortedError
        except ConnectionAbortedError:
            pass
        finally:
            with self._lock:
                self._open.discard(connection)
            connection.close()

    def _next(self) -> int:
        with self._lock:
            self._count += 1
            return self._count

    def _service(self) -> socket.socket:
        service = socket.create_connection((self._host, self._port), timeout=_SERVICE_SECONDS)
        service.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._tls:
            return ssl.create_default_context().wrap_socket(service, server_hostname=self._host)
        return service

    # ---- HTTP ----

    def _serve_http(self, connection: socket.socket) -> None:
        with connection.makefile("rb") as stream:
            while (request := _read_request(stream, connection)) is not None:
                reply = self.decide(Exchange(self._next(), request, partial(self._forward, request), connection))
                if reply is None:
                    return
                connection.sendall(reply.bytes_for(request.method))

    def _forward(self, request: Request) -> Reply:
        """Use a new connection to the service for each request: it is never stale, and nothing is sent twice."""
        with contextlib.closing(self._service()) as service:
            service.sendall(request.head() + request.body)
            with service.makefile("rb") as stream:
                return _read_reply(stream, request.method)

    # ---- turns ----

    def _serve_turns(self, connection: socket.socket) -> None:
        with contextlib.closing(self._service()) as service, self._held_open(service):
            while True:
                ready, _, _ = select.select([connection, service], [], [])
                if service in ready:
                    data = service.recv(_PIECE)
                    if not data:
                        return
                    connection.sendall(data)
                    continue
                data = connection.recv(_PIECE)
                if not data:
                    return
                request = Request("", "", (), data)
                reply = self.decide(
                    Exchange(self._next(), request, partial(_turn, connection, service, data), connection)
                )
                if reply is None:
                    return
                connection.sendall(reply.bytes_for(""))


def _turn(client: socket.socket, service: socket.socket, data: bytes) -> Reply:
    """Forward the client's data until the service answers."""
    service.sendall(data)
    listening = [service, client]
    while True:
        ready, _, _ = select.select(listening, [], [], _SERVICE_SECONDS)
        if service in ready or not ready:
            answer = service.recv(_PIECE) if ready else b""
            if not answer:
                raise ConnectionAbortedError("the service doesn't answer")
            return Reply(raw=answer)
        more = b""
        with contextlib.suppress(OSError):
            more = client.recv(_PIECE)
        if more:
            service.sendall(more)
        else:
            listening = [service]


def _read_request(stream: BinaryIO, connection: socket.socket) -> Request | None:
    line = stream.readline()
    if not line.strip():
        return None
    method, target, _ = line.decode("latin-1").split()
    headers = _read_headers(stream)
    values = {name.lower(): value for name, value in headers}
    if values.get("expect", "").lower() == "100-continue":
        connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
    return Request(method, target, tuple(headers), _read_body(stream, values, until_end=False))


def _read_reply(stream: BinaryIO, method: str) -> Reply:
    while True:
        line = stream.readline()
        if not line:
            raise ConnectionAbortedError("the service doesn't answer")
        status = int(line.split()[1])
        headers = _read_headers(stream)
        if status >= 200:
            break
    values = {name.lower(): value for name, value in headers}
    no_body = method == "HEAD" or status in _NO_BODY
    return Reply(status, dict(headers), b"" if no_body else _read_body(stream, values, until_end=True))


def _read_headers(stream: BinaryIO) -> list[tuple[str, str]]:
    headers = []
    while line := stream.readline().strip():
        name, _, value = line.decode("latin-1").partition(":")
        headers.append((name, value.strip()))
    return headers


def _read_body(stream: BinaryIO, headers: Mapping[str, str], *, until_end: bool) -> bytes:
    if "chunked" in headers.get("transfer-encoding", "").lower():
        pieces = []
        while size := int(stream.readline().partition(b";")[0], 16):
            pieces.append(stream.read(size))
            stream.readline()
        while stream.readline().strip():  # trailers
            pass
        return b"".join(pieces)
    if "content-length" in headers:
        size = int(headers["content-length"])
        body = stream.read(size)
        if len(body) < size:
            raise ConnectionAbortedError("the connection ended within a body")
        return body
    return stream.read() if until_end else b""
