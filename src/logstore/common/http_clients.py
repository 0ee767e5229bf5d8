"""Code for stores that use HTTP: their clients, and the classification of requests without a reply."""

import os
import ssl
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from importlib import import_module
from typing import Any, Generic, TypeVar

from ...clock import SystemClock
from ...errors import UnsupportedEnvironmentError
from ...settings.spark_own import HADOOP

_Key = TypeVar("_Key")
_Client = TypeVar("_Client")
_Result = TypeVar("_Result")

CONNECT_SECONDS = 5.0
READ_SECONDS = 60.0
_SKEW_MINUTES = 5
INVALID_HEADER = "a key or a token of the credentials has a line break or another character that no header may have"


class Clients(Generic[_Key, _Client]):
    """The client for each key, created on first use, once for each process, and shared by its threads.

    A forked child creates its own clients, because two processes must not share a connection; a pickled copy starts
    without clients. There is no lock that could be held during a fork: if two threads create a client at the same time,
    one client isn't used. The clients are closed when this object is deleted together with its store.
    """

    def __init__(self, make: Callable[[_Key], _Client]) -> None:
        self._make = make
        self._opened: dict[tuple[int, _Key], _Client] = {}

    def __getitem__(self, key: _Key) -> _Client:
        process_key = (os.getpid(), key)
        client = self._opened.get(process_key)
        if client is None:
            client = self._opened.setdefault(process_key, self._make(key))
        return client

    def with_renewal(
        self, key: _Key, request: Callable[[_Client], _Result], rejected: Callable[[Exception], bool]
    ) -> _Result:
        """The result of a request by the client for a key.

        If the service rejected the credentials, which means that it did nothing else, the client is created once again,
        with credentials from their source, and the request is sent once more.

        Args:
            key: The key of the client.
            request: Sends the request by a client.
            rejected: Whether an error means that other credentials may help.
        """
        client = self[key]
        try:
            return request(client)
        except Exception as error:
            if not rejected(error):
                raise
        if self[key] is client:  # else another thread was faster
            self._opened[os.getpid(), key] = self._make(key)
        return request(self[key])

    def __reduce__(self) -> tuple[Any, ...]:
        return Clients, (self._make,)

    def __del__(self) -> None:
        close(client for (process, _), client in self._opened.items() if process == os.getpid())


def close(clients: Iterable[Any]) -> None:
    """Close the connections of clients that are no longer used in this process; errors are ignored."""
    for client in clients:
        with suppress(Exception):
            client.close()


def needed(module: str, extra: str) -> Any:
    """The module of an optional package. Raises UnsupportedEnvironmentError with the pip command to install it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise UnsupportedEnvironmentError(
            f"the Python package of the module {module} is missing: pip install 'tablelog[{extra}]'"
        ) from error


def with_and_without_spark(*prefixes: str) -> tuple[str, ...]:
    """Prefixes of Hadoop's keys, without and with Spark's prefix `spark.hadoop.`."""
    return (*prefixes, *(f"{HADOOP.prefix}{prefix}" for prefix in prefixes))


def hadoop_keys(conf: Mapping[str, str]) -> dict[str, str]:
    """Hadoop's keys without Spark's prefix `spark.hadoop.`; if a key is set both ways, the one without it wins."""
    keys = {key.removeprefix(HADOOP.prefix): str(value).strip() for key, value in conf.items()}
    keys.update({key: str(value).strip() for key, value in conf.items() if not key.startswith(HADOOP.prefix)})
    return keys


def never_sent(error: BaseException) -> bool:
    """Whether an error of requests, or of an SDK that uses it, proves that the request wasn't sent.

    This is so if no connection was made: refused, unknown host, connect time-out, invalid certificate, a proxy that
    refuses a tunnel. A `ProxyError` alone proves nothing: urllib3 raises it also if a reply is lost behind a proxy.
    """
    from urllib3.exceptions import ConnectTimeoutError, NewConnectionError

    unsent = (NewConnectionError, ConnectTimeoutError, ssl.SSLCertVerificationError)
    return any(isinstance(inner, unsent) or _refuses_tunnel(inner) for inner in _within(error))


def _refuses_tunnel(error: BaseException) -> bool:
    """Whether it is the error of `http.client` for a proxy that answers CONNECT with a refusal."""
    return isinstance(error, OSError) and str(error).startswith("Tunnel connection failed: ")


def distrusts(error: BaseException) -> bool:
    """Whether no request was sent, because the certificate of the service isn't one of a trusted authority."""
    return any("CERTIFICATE_VERIFY_FAILED" in str(inner) for inner in _within(error))


def has_invalid_header(error: BaseException) -> bool:
    """Whether no request was sent, because a key or a token has a line break, which no header may have.

    The error and those that caused it quote the value: they must not be shown.
    """
    return any(
        isinstance(inner, ValueError) and ("header value" in str(inner) or type(inner).__name__ == "InvalidHeader")
        for inner in _within(error)
    )


def cause_of(error: BaseException) -> BaseException | None:
    """The error as the cause of a typed one; None if its text quotes a secret."""
    return None if has_invalid_header(error) else error


def _within(error: BaseException) -> Iterator[BaseException]:
    """`error` and the errors that caused it."""
    waiting, seen = [error], set[int]()
    while waiting:
        current = waiting.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        yield current
        causes = (
            current.__cause__,
            getattr(current, "reason", None),
            getattr(current, "inner_exception", None),
            getattr(current, "kwargs", {}).get("error"),  # of botocore
        )
        waiting += [cause for cause in (*causes, *current.args) if isinstance(cause, BaseException)]


def skew_note(date: str | None) -> str:
    """A clause about this machine's clock if a reply's `Date` header shows that it is wrong; else an empty string."""
    from email.utils import parsedate_to_datetime

    if not date:
        return ""
    try:
        theirs = parsedate_to_datetime(date).timestamp()
    except ValueError:
        return ""
    minutes = round((SystemClock().now_ms() / 1000 - theirs) / 60)
    if abs(minutes) < _SKEW_MINUTES:
        return ""
    return f"; this machine's clock is {abs(minutes)} minutes {'ahead of' if minutes > 0 else 'behind'} the service's"
