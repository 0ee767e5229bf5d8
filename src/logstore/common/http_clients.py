"""What stores that talk HTTP have in common: their clients, and how much is known of a request without a reply."""

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

CONNECT_SECONDS = 5.0
READ_SECONDS = 60.0
_SKEW_MINUTES = 5


class Clients(Generic[_Key, _Client]):
    """The client for each key, made by `make` when it is first asked for, once in each process and for all its threads.

    A forked child gets clients of its own, for two processes must not share a connection; a pickled copy has none
    yet. There is no lock that a fork could copy while it is held: of two threads that come first at once, one makes a
    client in vain. They are closed when this object goes, with the store that has it: nobody uses them then.
    """

    def __init__(self, make: Callable[[_Key], _Client]) -> None:
        self._make = make
        self._made: dict[tuple[int, _Key], _Client] = {}

    def __getitem__(self, key: _Key) -> _Client:
        here = (os.getpid(), key)
        client = self._made.get(here)
        if client is None:
            client = self._made.setdefault(here, self._make(key))
        return client

    def __reduce__(self) -> tuple[Any, ...]:
        return Clients, (self._make,)

    def __del__(self) -> None:
        close(client for (process, _), client in self._made.items() if process == os.getpid())


def close(clients: Iterable[Any]) -> None:
    """Close the connections of clients that nobody uses any more, of this process alone; errors mean nothing then."""
    for client in clients:
        with suppress(Exception):
            client.close()


def needed(module: str, extra: str) -> Any:
    """The module of an optional package. Raises UnsupportedEnvironmentError that says how to install it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise UnsupportedEnvironmentError(
            f"the Python package behind {module} is missing: pip install 'tablelog[{extra}]'"
        ) from error


def with_and_without_spark(*prefixes: str) -> tuple[str, ...]:
    """Prefixes of Hadoop's keys, plain and with the `spark.hadoop.` that Spark's configuration has before them."""
    return (*prefixes, *(f"{HADOOP.prefix}{prefix}" for prefix in prefixes))


def hadoop_keys(conf: Mapping[str, str]) -> dict[str, str]:
    """Hadoop's keys without the `spark.hadoop.` that Spark's configuration has before them; the plain one wins."""
    keys = {key.removeprefix(HADOOP.prefix): str(value).strip() for key, value in conf.items()}
    keys.update({key: str(value).strip() for key, value in conf.items() if not key.startswith(HADOOP.prefix)})
    return keys


def never_sent(error: BaseException) -> bool:
    """Whether the request behind an error of requests, or of an SDK on top of it, has surely not left this machine.

    So it is where no connection came about: refused, no such host, a time-out of the connecting, a certificate.
    """
    from urllib3.exceptions import ConnectTimeoutError, NewConnectionError, ProxyError

    return any(
        isinstance(found, NewConnectionError | ConnectTimeoutError | ProxyError | ssl.SSLCertVerificationError)
        for found in _within(error)
    )


def _within(error: BaseException) -> Iterator[BaseException]:
    """`error` and those that it was made of."""
    waiting, seen = [error], set[int]()
    while waiting:
        found = waiting.pop()
        if id(found) in seen:
            continue
        seen.add(id(found))
        yield found
        inner = (found.__cause__, getattr(found, "reason", None), getattr(found, "inner_exception", None))
        waiting += [one for one in (*inner, *found.args) if isinstance(one, BaseException)]


def skew_note(date: str | None) -> str:
    """A clause on this machine's clock, where a reply's `Date` header says that it is off; else nothing."""
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
