"""Callbacks from the JVM into Python: keep their exceptions, and close their idle connections.

An exception raised in a callback reaches the caller as text inside a Java exception. `carried` adds a token to the
text, and `raised_for` finds the original exception by the token.

Each JVM thread that calls back opens a connection, which a Python thread serves. Spark's thread pools start a new
thread for almost every query; a thread ends after at least a minute without work, and Py4J never closes its
connection. `Connections.sweep` closes idle connections. Python can't close them safely on its own: a time-out on the
socket could hit a call that is about to arrive, and would interrupt the long calls of foreachBatch. So `sweep` holds
the lock of Py4J's client in the JVM, and closes only connections that the client lists as free.
"""

import functools
import logging
import re
import sys
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, ParamSpec, TypeVar

from .gateway import Gateway, JavaObject
from .jvm_values import JvmValues

logger = logging.getLogger(__name__)

P = ParamSpec("P")
R = TypeVar("R")

_TOKEN = re.compile(r"tablelog-callback-(\d+)!")
_KEPT = 64  # the number of exceptions kept to be raised again; an older one is only available as text


class CallbackError(Exception):
    """The exception that a callback raises to the JVM: the token of the original exception, and its message."""


class _Errors:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last = 0
        self._kept: OrderedDict[int, BaseException] = OrderedDict()

    def keep(self, error: BaseException) -> str:
        with self._lock:
            self._last += 1
            self._kept[self._last] = error
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
            return f"tablelog-callback-{self._last}!"

    def find(self, text: str) -> BaseException | None:
        with self._lock:
            for match in reversed(_TOKEN.findall(text)):
                error = self._kept.get(int(match))
                if error is not None:
                    return error
        return None


_errors = _Errors()
_results = threading.local()


def raised_for(text: str) -> BaseException | None:
    """The exception that a callback raised, found by the token in the text of a Java exception."""
    return _errors.find(text) if "tablelog-callback-" in text else None


def kept(error: BaseException) -> str:
    """Keep an exception for `raised_for`. Returns the token for the text of a Java exception."""
    return _errors.keep(error)


def carried(method: Callable[P, R]) -> Callable[P, R]:
    """Wrap a method that the JVM calls: its exception is kept for `raised_for`, and its result until it has arrived.

    Py4J sends only the id of a Java object. When Python releases its last reference, another thread of Py4J tells the
    JVM to forget the id: if that message came first, the JVM would get null.
    """

    @functools.wraps(method)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            result = method(*args, **kwargs)
        except Exception as error:
            logger.debug("a callback from Spark failed", exc_info=True)
            raise CallbackError(f"{_errors.keep(error)} {type(error).__name__}: {error}") from None
        _results.newest = result  # until the next call in this thread: by then the JVM has this one
        return result

    return call


class _Watch:
    """Counts the nested calls in progress on a connection; replaces its `_call_proxy`."""

    def __init__(self, connection: Any, depth: int) -> None:
        self._call = type(connection)._call_proxy
        self._connection = weakref.ref(connection)
        self.depth = depth
        self.since = time.monotonic()
        self.port = connection.socket.getpeername()[1]

    def __call__(self, obj_id: str, stream: Any) -> Any:
        self.depth += 1
        try:
            return self._call(self._connection(), obj_id, stream)
        finally:
            self.depth -= 1
            self.since = time.monotonic()


class Connections:
    """The connections of one JVM's callbacks; closes idle ones."""

    _lock = threading.Lock()
    _of_jvms: ClassVar = JvmValues["Connections"]()

    def __init__(self, gateway: Gateway, *, spare: int = 6, idle_seconds: float = 0.25) -> None:
        self._gateway = gateway
        self._spare = spare
        self._idle_seconds = idle_seconds
        self._watched: weakref.WeakKeyDictionary[Any, _Watch] = weakref.WeakKeyDictionary()
        self._sweeping = threading.Lock()

    @classmethod
    def of(cls, gateway: Gateway) -> "Connections":
        return cls._of_jvms.get(gateway.py4j, lambda: cls(gateway))

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Wraps each callback: starts to watch its connection, and closes idle connections if there are many."""
        watch = self._watch()
        try:
            yield
        finally:
            if watch is not None:
                watch.depth -= 1  # this call was already in progress when the watch started
                watch.since = time.monotonic()

    def _watch(self) -> _Watch | None:
        connection = self._gateway.py4j._gateway_client.get_thread_connection()
        if connection is None or connection.initiated_from_client or connection in self._watched:
            return None
        # An outer call of another library on this connection counts too. Its end isn't observed, so this connection
        # is never closed.
        depth, frame = 0, sys._getframe()
        while frame.f_back is not None:
            frame = frame.f_back
            if frame.f_code is type(connection)._call_proxy.__code__ and frame.f_locals.get("self") is connection:
                depth += 1
        watch = _Watch(connection, depth)
        with self._lock:
            self._watched[connection] = watch
        connection._call_proxy = watch
        self.sweep()
        return watch

    def _idle(self) -> set[int]:
        now = time.monotonic()
        with self._lock:
            return {
                watch.port
                for connection, watch in self._watched.items()
                if watch.depth == 0 and now - watch.since >= self._idle_seconds and connection.socket is not None
            }

    def sweep(self) -> None:
        """Close the idle connections if there are more than `spare`. Doesn't wait for another sweep."""
        # Not on the main thread, where Ctrl-C could interrupt between the lock and its release.
        if len(self._idle()) <= self._spare or threading.current_thread() is threading.main_thread():
            return
        if not self._sweeping.acquire(blocking=False):
            return
        try:
            self._close(self._idle())
        finally:
            self._sweeping.release()

    def _close(self, ports: set[int]) -> None:
        client = self._gateway.py4j.java_gateway_server.getCallbackClient()
        lock, free = self._field(client, "lock"), self._field(client, "connections")
        lock.lock()
        try:
            for connection in list(free.toArray()):
                socket = connection.getSocket()
                if socket is None:
                    free.remove(connection)
                elif connection.isInitiatedFromClient() and socket.getLocalPort() in ports:
                    free.remove(connection)
                    connection.shutdown()
        finally:
            lock.unlock()

    def _field(self, client: JavaObject, name: str) -> JavaObject:
        field = self._gateway.type("py4j.CallbackClient").getDeclaredField(name)
        field.setAccessible(True)
        return field.get(client)
