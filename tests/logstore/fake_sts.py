"""AWS's STS in this process: it gives keys for the token of a web identity, each time other ones."""

import datetime
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs

ROLE = "arn:aws:iam::123456789012:role/tablelog"
SECRET = "s3cret-of-sts"
_ANSWER = """<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
<AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>STS{number}</AccessKeyId>
<SecretAccessKey>{secret}</SecretAccessKey><SessionToken>session</SessionToken><Expiration>{end}</Expiration>
</Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>"""
_REFUSAL = "<ErrorResponse><Error><Code>{code}</Code><Message>not so</Message></Error></ErrorResponse>"


class FakeSTS:
    """It gives the keys `STS1`, `STS2`, … for `lifetime` seconds, to who has one of the `tokens`.

    With a `refusal` it answers this code instead, with status 403.
    """

    def __init__(self) -> None:
        self.tokens = {"token-1"}
        self.lifetime = 3600.0
        self.refusal = ""
        self.asked: list[dict[str, str]] = []
        self._lock = threading.Lock()
        fake = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"])).decode()
                status, answer = fake._answer({name: values[0] for name, values in parse_qs(body).items()})
                self.send_response(status)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer.encode())

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"

    def _answer(self, asked: dict[str, str]) -> tuple[int, str]:
        with self._lock:
            self.asked.append(asked)
            number = len(self.asked)
        assert asked["Action"] == "AssumeRoleWithWebIdentity"
        assert asked["RoleArn"] == ROLE
        if self.refusal or asked["WebIdentityToken"] not in self.tokens:
            return 403, _REFUSAL.format(code=self.refusal or "InvalidIdentityToken")
        end = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=self.lifetime)
        return 200, _ANSWER.format(number=number, secret=SECRET, end=end.isoformat())

    @contextmanager
    def serving(self) -> Iterator["FakeSTS"]:
        thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._server.server_close()
            thread.join()
