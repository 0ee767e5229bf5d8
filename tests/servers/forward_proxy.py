"""A forward proxy, as a network with one way out has it. It records what it was asked. A tunnel needs a login.

Whatever host a client names, a plain request goes to one service and a tunnel (CONNECT) to another: so the hosts need
no names that resolve, and a request that doesn't use the proxy fails.
"""

import base64
import http.client
import select
import socket
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import urlsplit

USER, PASSWORD = "a user", "p@ss:word"
_PIECE = 1 << 16


@dataclass(frozen=True)
class Asked:
    """One request. The headers' names are in small letters."""

    method: str
    host: str
    target: str
    headers: dict[str, str]

    @property
    def by_spark(self) -> bool:
        """Whether Spark's own client sent it, and not Python."""
        return "java" in self.headers.get("user-agent", "").lower()


class ForwardProxy(ThreadingHTTPServer):
    """It listens on a free port of 127.0.0.1. `service` and `tunnelled` are ports there."""

    daemon_threads = True

    def __init__(self, service: int, tunnelled: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.service, self.tunnelled = service, tunnelled
        self.asked: list[Asked] = []
        self.refused = 0
        """The number of tunnels without the right login."""
        self._thread = threading.Thread(target=self.serve_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()
        self._thread.join()

    def keys(self, bucket: str, *, login: bool) -> dict[str, str]:
        """Hadoop's keys with which one bucket is reached through this proxy."""
        values = {"host": "127.0.0.1", "port": str(self.server_port)}
        values |= {"username": USER, "password": PASSWORD} if login else {}
        return {f"fs.s3a.bucket.{bucket}.proxy.{key}": value for key, value in values.items()}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: ForwardProxy

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        self._record()
        connection = http.client.HTTPConnection("127.0.0.1", self.server.service)
        try:
            parts = urlsplit(self.path)
            target = parts._replace(scheme="", netloc="").geturl()
            connection.putrequest(self.command, target, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                if name.lower() not in {"connection", "proxy-authorization", "proxy-connection", "expect"}:
                    connection.putheader(name, value)
            connection.endheaders(body)
            reply = connection.getresponse()
            self._answer(reply.status, dict(reply.getheaders()), reply.read())
        finally:
            connection.close()

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _serve  # noqa: N815 - the names of the base class

    def do_CONNECT(self) -> None:
        """Connect to the service, and pass on what either side sends until one of them ends."""
        login = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        if self.headers.get("proxy-authorization") != f"Basic {login}":
            self.server.refused += 1
            self._answer(407, {"Proxy-Authenticate": 'Basic realm="proxy"'}, b"")
            return
        self._record()
        with socket.create_connection(("127.0.0.1", self.server.tunnelled)) as service:
            self.send_response(200)
            self.end_headers()
            other = {service: self.connection, self.connection: service}
            while True:
                for ready in select.select(list(other), [], [])[0]:
                    data = ready.recv(_PIECE)
                    if not data:
                        self.close_connection = True
                        return
                    other[ready].sendall(data)

    def _record(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        host = urlsplit(self.path if "//" in self.path else f"//{self.path}").hostname or ""
        self.server.asked.append(Asked(self.command, host, self.path, headers))

    def _answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response_only(status)
        kept = {
            name: value for name, value in headers.items() if name.lower() not in {"connection", "transfer-encoding"}
        }
        for name, value in {"Content-Length": str(len(body)), **kept}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Write nothing: the requests are recorded."""
