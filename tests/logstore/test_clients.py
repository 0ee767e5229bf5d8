"""What the stores that talk HTTP share: clients for each process, and what is known of a request without a reply."""

import os
import pickle
import socket
import ssl
import threading
import time
from email.utils import formatdate

import pytest
import requests
from requests.adapters import HTTPAdapter
from urllib3.exceptions import MaxRetryError, NewConnectionError, ProtocolError

from logstore.playback import NO_REPLY, Playback, Played
from tablelog.errors import UnsupportedEnvironmentError
from tablelog.logstore.common.http_clients import Clients, hadoop_keys, needed, never_sent, skew_note


def made(key: str) -> list[str]:
    return [key]


def test_a_client_is_made_once_for_each_key_and_shared_by_threads() -> None:
    clients: Clients[str, list[str]] = Clients(made)
    found = [clients["a"], clients["a"]]
    thread = threading.Thread(target=lambda: found.append(clients["a"]))
    thread.start()
    thread.join()
    assert found[0] is found[1] is found[2]
    assert clients["b"] == ["b"]
    assert pickle.loads(pickle.dumps(clients))["a"] is not found[0]


def test_another_process_gets_another(monkeypatch: pytest.MonkeyPatch) -> None:
    clients: Clients[str, list[str]] = Clients(made)
    first = clients["a"]
    monkeypatch.setattr(os, "getpid", lambda: -1)
    assert clients["a"] is not first


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def failure(url: str, proxy: str | None = None) -> Exception:
    session = requests.Session()
    for protocol in ("http://", "https://"):
        session.mount(protocol, HTTPAdapter(max_retries=0))
    with pytest.raises(requests.RequestException) as caught:
        session.post(url, b"data", timeout=5, proxies={"http": proxy, "https": proxy} if proxy else None)
    return caught.value


def test_a_connection_that_never_came_about_sent_nothing() -> None:
    assert never_sent(failure(f"http://127.0.0.1:{free_port()}/"))
    assert never_sent(failure("http://no-such-host.invalid/"))
    assert never_sent(ssl.SSLCertVerificationError("expired"))
    refused = NewConnectionError(None, "refused")  # type: ignore[arg-type]
    assert never_sent(requests.ConnectionError(MaxRetryError(None, "/", refused)))  # type: ignore[arg-type]


def test_a_proxy_that_can_not_be_reached_or_refuses_has_sent_nothing() -> None:
    assert never_sent(failure("http://127.0.0.1:9/", f"http://127.0.0.1:{free_port()}"))
    assert never_sent(failure("https://127.0.0.1:9/", f"http://127.0.0.1:{free_port()}"))
    with Playback(Played(403)) as proxy:
        assert never_sent(failure("https://127.0.0.1:9/", proxy.endpoint))


def test_a_reply_that_is_lost_behind_a_proxy_may_be_that_of_a_request_that_was_served() -> None:
    """urllib3 has the same class of error for both."""
    with Playback(NO_REPLY) as proxy:
        error = failure("http://127.0.0.1:9/", proxy.endpoint)
    assert isinstance(error, requests.exceptions.ProxyError)
    assert not never_sent(error)


def test_a_connection_that_broke_may_have_sent_it() -> None:
    with Playback(NO_REPLY) as service:
        assert not never_sent(failure(service.endpoint))
    assert not never_sent(requests.ReadTimeout())
    assert not never_sent(requests.ConnectionError(ProtocolError("reset", ConnectionResetError())))
    # An earlier failure that was being handled is no cause.
    error = requests.ReadTimeout()
    error.__context__ = NewConnectionError(None, "refused")  # type: ignore[arg-type]
    assert not never_sent(error)


def test_the_plain_key_comes_before_that_with_sparks_prefix() -> None:
    conf = {"spark.hadoop.fs.a": "1", "fs.a": " 2 ", "spark.hadoop.fs.b": "3"}
    assert hadoop_keys(conf) == hadoop_keys(dict(reversed(conf.items()))) == {"fs.a": "2", "fs.b": "3"}


@pytest.mark.parametrize(
    ("seconds", "says"),
    [(0, ""), (-200, ""), (86400, "1440 minutes behind"), (-7200, "120 minutes ahead of")],
)
def test_a_clock_that_is_off(seconds: int, says: str) -> None:
    note = skew_note(formatdate(time.time() + seconds, usegmt=True))
    assert says in note
    assert bool(note) == bool(says)


@pytest.mark.parametrize("date", [None, "", "yesterday"])
def test_no_clock_no_note(date: str | None) -> None:
    assert skew_note(date) == ""


def test_a_missing_package_names_its_extra() -> None:
    assert needed("json", "s3").loads("1") == 1
    with pytest.raises(UnsupportedEnvironmentError, match=r"pip install 'tablelog\[s3\]'"):
        needed("no_such_package.at_all", "s3")


class Client:
    def __init__(self, key: str) -> None:
        self.key = key
        self.closed = 0

    def close(self) -> None:
        self.closed += 1
        if self.key == "broken":
            raise OSError("it was closed by the service")


def test_clients_are_closed_with_what_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    clients: Clients[str, Client] = Clients(Client)
    own = [clients["broken"], clients["a"]]
    with monkeypatch.context() as patch:
        patch.setattr(os, "getpid", lambda: -1)
        foreign = clients["a"]
    del clients
    assert [client.closed for client in own] == [1, 1]
    assert foreign.closed == 0, "two processes share its connection"
