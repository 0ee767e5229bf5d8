"""Writes through a proxy that changes one of their requests or replies, and what must hold after each of them."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

from tablelog.logstore import LogStore

from ...failures import NotEstablishedError, require
from ...harness.proxy import Exchange, Proxy, Reply, Request
from ...model import Context
from ..suite import below, saw_enough
from ..trial import LOST, UNKNOWN, WON, Try, tried

DATA, OTHER_DATA = b"ours\n" * 100, b"another's\n"
Form = Callable[[Exchange], Reply | None]
"""What the proxy does with a request: returns the reply, or `None` to close the connection without one."""


@dataclass
class Interceptor:
    """The proxy's decisions for one write: `form` decides about its changing request number `at`, from 1."""

    at: int = 0
    form: Form | None = None
    changing: list[Request] = field(default_factory=list)
    """The changing requests of this write."""

    def decide(self, exchange: Exchange) -> Reply | None:
        """See `Proxy`."""
        if not exchange.request.changes:
            return exchange.forward()
        self.changing.append(exchange.request)
        if self.form is not None and len(self.changing) == self.at:
            return self.form(exchange)
        return exchange.forward()

    def begin(self, at: int = 0, form: Form | None = None) -> None:
        """Another write."""
        self.at, self.form, self.changing = at, form, []

    @property
    def came(self) -> bool:
        """Whether the request to decide about arrived: a write may have fewer requests this time."""
        return len(self.changing) >= self.at

    @property
    def sent_again(self) -> bool:
        """Whether the conditional request that was decided about was sent again."""
        if not self.came:
            return False
        decided = self.changing[self.at - 1]
        again = [(later.method, later.target, later.body) for later in self.changing[self.at :]]
        return decided.conditional and (decided.method, decided.target, decided.body) in again


@contextlib.contextmanager
def proxied_store(context: Context, data: bytes = DATA) -> Iterator[tuple[LogStore, Interceptor, int]]:
    """Yields a client that uses a proxy, its decisions, and the number of changing requests in its write of `data`."""
    target, interceptor = context.target, Interceptor()
    assert target.endpoint is not None
    assert target.through is not None
    with Proxy(target.endpoint, interceptor.decide) as proxy:
        store = target.through(proxy.url)()
        for name in ("warm", "counted"):  # the client does its one-time work in the first write
            interceptor.begin()
            result = tried(0, partial(store.write, below(context.root, name), data))
            if result.answer != WON:
                raise NotEstablishedError(f"the store can't be used through a proxy: {result.said or result.answer}")
        if not interceptor.changing:
            raise NotEstablishedError("the proxy got no request: the store doesn't use the configured address")
        yield store, interceptor, len(interceptor.changing)


def has_service(context: Context) -> bool:
    """Whether the store uses a service, and can use a proxy in front of it."""
    return context.target.endpoint is not None and context.target.through is not None


def speaks_http(context: Context) -> bool:
    """Whether the service uses HTTP, so that its replies can be replaced."""
    return (context.target.endpoint or "").startswith("http")


def needs_http(context: Context) -> None:
    """Raise `NotEstablishedError` if the service doesn't use HTTP."""
    if not speaks_http(context):
        raise NotEstablishedError("the store's service doesn't use HTTP, so its replies can't be replaced")


def error_body(code: str, more: str = "") -> bytes:
    """An error in XML, as S3 and Azure send it."""
    return (
        f'<?xml version="1.0" encoding="UTF-8"?><Error><Code>{code}</Code><Message>-</Message>{more}</Error>'.encode()
    )


def content_of(context: Context, path: str) -> bytes | None:
    """What a new client reads; `None` if the file doesn't exist."""
    try:
        return context.make().read(path)
    except FileNotFoundError:
        return None


def intercepted_write(
    context: Context, store: LogStore, interceptor: Interceptor, path: str, what: str, data: bytes = DATA
) -> Try:
    """Write, and add the answer to the evidence if the request to decide about arrived.

    An error that isn't part of the interface counts as refused here.
    """
    result = tried(0, partial(store.write, path, data))
    answers = context.evidence.setdefault("answers", {})
    if interceptor.came:
        answers[what] = result.answer if result.answer in {WON, LOST, UNKNOWN} else result.said
    return result


def require_true_answer(context: Context, path: str, result: Try, data: bytes, what: str) -> None:
    """Require, without another writer, that the answer isn't "lost" and that the file agrees with the answer."""
    context.timeline[:] = [f"writer: writes {path.rpartition('/')[2]}", f"network: {what}", f"writer: {result.answer}"]
    content = content_of(context, path)
    require(result.answer != LOST, f"{what}: the write lost, but no other writer had written the file")
    if result.answer == WON:
        require(content == data, f"{what}: the write won, but its file doesn't exist")
    elif result.answer != UNKNOWN:
        require(content is None, f"{what}: the answer was {result.said or result.answer!r}, but the file exists")
    context.timeline.clear()


def require_one_winner(
    context: Context, path: str, result: Try, other: Try | None, what: str, data: bytes = DATA
) -> None:
    """Like `require_true_answer`, but another writer may have won the name in the meantime."""
    if other is None or other.answer != WON:
        require_true_answer(context, path, result, data, what)
        return
    context.timeline[:] = [f"network: {what}", f"writer: {result.answer}", f"another: {other.answer}"]
    require(result.answer != WON, f"{what}: both writers won")
    require(content_of(context, path) == OTHER_DATA, f"{what}: the write replaced the other writer's file")
    context.timeline.clear()


def saw_answers(context: Context) -> None:
    """Raise `NotEstablishedError` if no write sent the request to decide about."""
    saw_enough(len(context.evidence.get("answers", ())), 1, "writes lost a request or a reply")
