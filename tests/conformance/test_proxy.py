"""The proxy passes on what it isn't told to change, byte for byte, and does what it is told."""

import http.client
import socket
import threading
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tablelog.conformance.harness.proxy import Exchange, Proxy, Reply, pass_on


class _Echo(BaseHTTPRequestHandler):
    """Answers with the request line, the headers and the body that it got, in chunks if it is asked to."""

    protocol_version = "HTTP/1.1"
    seen: list[str]

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_PUT(self) -> None:
        type(self).seen.append(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        said = f"{self.requestline}|{self.headers.get('If-None-Match')}|".encode() + body
        self.send_response(200)
        if "chunked" in self.path:
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for piece in (said[:5], said[5:], b""):
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        else:
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(said)

    do_GET = do_HEAD = do_PUT  # noqa: N815


@pytest.fixture
def service() -> Iterator[str]:
    _Echo.seen = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Echo)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


def connected(proxy: Proxy) -> http.client.HTTPConnection:
    return http.client.HTTPConnection(proxy.url.removeprefix("http://").partition("/")[0], timeout=10)


def test_many_requests_of_one_connection_come_through(service: str) -> None:
    with Proxy(service) as proxy, closing(connected(proxy)) as connection:
        for number, (method, target, body) in enumerate(
            [
                ("PUT", "/a%20b?x=1", b"\0\xff" * 70000),
                ("GET", "/g", None),
                ("HEAD", "/h", None),
                ("PUT", "/empty", b""),
            ]
        ):
            connection.request(method, target, body, {"If-None-Match": f"{number}"})
            reply = connection.getresponse()
            said = reply.read()
            expected = f"{method} {target} HTTP/1.1|{number}|".encode() + (body or b"")
            assert reply.status == 200
            assert said == (b"" if method == "HEAD" else expected)
            assert int(reply.headers["Content-Length"]) == len(expected)


def test_chunks_and_an_expectation_are_understood_on_both_sides(service: str) -> None:
    with Proxy(service) as proxy, closing(connected(proxy)) as connection:
        connection.request(
            "PUT", "/chunked", iter([b"ab", b"c" * 10]), {"Transfer-Encoding": "chunked"}, encode_chunked=True
        )
        assert connection.getresponse().read() == b"PUT /chunked HTTP/1.1|None|ab" + b"c" * 10
        host, _, port = proxy.url.removeprefix("http://").partition(":")
        with socket.create_connection((host, int(port)), timeout=10) as raw:
            raw.sendall(b"PUT /e HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n")
            assert raw.recv(100).startswith(b"HTTP/1.1 100")
            raw.sendall(b"ok")
            said = b""
            while not said.endswith(b"|ok"):
                said += raw.recv(1000)


def test_a_reply_is_lost_after_the_request_arrived(service: str) -> None:
    def lose(exchange: Exchange) -> None:
        exchange.forward()

    with Proxy(service, lose) as proxy, closing(connected(proxy)) as connection:
        connection.request("PUT", "/lost", b"x")
        with pytest.raises(http.client.RemoteDisconnected):
            connection.getresponse()
    assert _Echo.seen == ["/lost"]


def test_a_reply_is_made_up_and_the_request_stays_away(service: str) -> None:
    with (
        Proxy(service, lambda _: Reply(409, {"X-Code": "1"}, b"busy")) as proxy,
        closing(connected(proxy)) as connection,
    ):
        connection.request("PUT", "/away", b"x")
        reply = connection.getresponse()
        assert (reply.status, reply.headers["X-Code"], reply.read()) == (409, "1", b"busy")
    assert _Echo.seen == []


def test_a_request_arrives_after_its_client_has_gone(service: str) -> None:
    go_on, arrived = threading.Event(), threading.Event()

    def late(exchange: Exchange) -> None:
        exchange.cut()
        go_on.wait(10)
        exchange.forward()
        arrived.set()

    with Proxy(service, late) as proxy:
        with closing(connected(proxy)) as connection:
            connection.request("PUT", "/late", b"x")
            with pytest.raises((http.client.RemoteDisconnected, ConnectionResetError)):
                connection.getresponse()
            assert _Echo.seen == []
        go_on.set()
        assert arrived.wait(10)
    assert _Echo.seen == ["/late"]


def test_conditions_are_seen(service: str) -> None:
    seen: list[tuple[bool, bool]] = []

    def look(exchange: Exchange) -> Reply | None:
        seen.append((exchange.request.changes, exchange.request.conditional))
        return pass_on(exchange)

    with Proxy(service, look) as proxy, closing(connected(proxy)) as connection:
        for method, target, headers in [
            ("PUT", "/a", {"If-None-Match": "*"}),
            ("PUT", "/a", {}),
            ("GET", "/a", {}),
            ("PUT", "/o?ifGenerationMatch=0", {}),
        ]:
            connection.request(method, target, b"", headers)
            connection.getresponse().read()
    assert seen == [(True, True), (True, False), (False, False), (True, True)]


def test_turns_of_any_protocol_are_passed_on_held_and_cut() -> None:
    """A service that answers each line with its length."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection, connection.makefile("rb") as stream:
                for line in stream:
                    connection.sendall(b"%d\n" % len(line))

    thread = threading.Thread(target=serve)
    thread.start()
    turns: list[bytes] = []

    def decide(exchange: Exchange) -> Reply | None:
        turns.append(exchange.request.body)
        reply = exchange.forward()
        return reply if len(turns) < 3 else None

    with Proxy(f"127.0.0.1:{listener.getsockname()[1]}", decide) as proxy:
        host, _, port = proxy.url.partition(":")
        with socket.create_connection((host, int(port)), timeout=10) as client:
            for line, said in ((b"abc\n", b"4\n"), (b"\n", b"1\n"), (b"cut\n", b"")):
                client.sendall(line)
                assert client.recv(100) == said
    assert turns == [b"abc\n", b"\n", b"cut\n"]
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join()


def test_nothing_of_it_stays(service: str) -> None:
    before = set(threading.enumerate())
    proxy = Proxy(service)
    connections = [connected(proxy) for _ in range(5)]
    for connection in connections:
        connection.request("GET", "/")
        connection.getresponse().read()
    proxy.close()
    for connection in connections:
        connection.close()
    with pytest.raises(ConnectionRefusedError):
        connected(proxy).connect()
    services = {thread for thread in threading.enumerate() if "process_request" in thread.name}
    assert set(threading.enumerate()) - before <= services
