"""Check 5: the result of a write when its reply is lost or late, or its request is."""

import contextlib
import errno
import threading
import time
from collections.abc import Mapping
from functools import partial

from tablelog.logstore import LogStore

from ...failures import require
from ...harness.proxy import Exchange, Proxy, Reply
from ...model import Context, Level
from ..suite import check, commit, enough
from ..trial import Try, tried
from .failing_calls import write_with_failing_calls
from .intercepted_writes import (
    DATA,
    OTHER_DATA,
    Form,
    Interceptor,
    error_body,
    has_service,
    intercepted_write,
    proxied_store,
    require_one_winner,
    require_true_answer,
    saw_answers,
    speaks_http,
)

_GIVING_UP_SECONDS = 10
_PATIENCE_SECONDS = 2.0


def _dropped(exchange: Exchange) -> None:
    exchange.forward()


def _silent(context: Context, exchange: Exchange) -> None:
    """Wait until the client closes the connection."""
    exchange.forward()
    exchange.is_given_up(max(1.0, context.time_left - _GIVING_UP_SECONDS))


def _replaced(status: int, exchange: Exchange) -> Reply:
    exchange.forward()
    return Reply(
        status, {"Content-Type": "application/xml"}, error_body("InternalError" if status == 500 else "Unavailable")
    )


def _write_with_each_form(
    context: Context, store: LogStore, interceptor: Interceptor, requests: int, forms: Mapping[str, Form], data: bytes
) -> int:
    """Write new versions while the proxy changes one request of each; returns the number of versions.

    After the time of the check, only the changes of the last request remain, which is usually the actual write.
    """
    version, until = 0, enough(context)
    for at in range(requests, 0, -1):
        for what, form in forms.items():
            if at < requests and time.monotonic() > until:
                break
            case = f"{what} (changing request {at} of {requests})"
            path = commit(context.root, version)
            version += 1
            interceptor.begin(at, form)
            result = intercepted_write(context, store, interceptor, path, case, data)
            require_true_answer(context, path, result, data, case)
            require(not interceptor.sent_again, f"{case}: the conditional request was sent again")
    return version


@check(5, guarantee=4, lasts=True)
def a_lost_reply_is_never_a_loss(context: Context) -> None:
    """If a write was applied but its reply is lost, the answer is won or unknown, and the write isn't sent again."""
    if not has_service(context):
        write_with_failing_calls(context, "a call takes effect and then fails", (errno.EIO, errno.EEXIST), "after")
        return
    with proxied_store(context) as (store, interceptor, requests):
        forms: dict[str, Form] = {"the reply is lost": _dropped}
        if speaks_http(context):
            forms |= {
                f"the reply is {status} after the write was applied": partial(_replaced, status)
                for status in context.choose((500, 503), (500, 502, 503, 504), (500, 502, 503, 504))
            }
        if context.level is Level.THOROUGH:
            forms["no reply ever comes"] = partial(_silent, context)
        version = _write_with_each_form(context, store, interceptor, requests, forms, DATA)
        case = "the request is lost, and another writer wins"
        path = commit(context.root, version)
        others: list[Try] = []
        other = threading.Thread(
            target=lambda: others.append(tried(1, partial(context.make().write, path, OTHER_DATA))), daemon=True
        )

        def overtaken(_exchange: Exchange) -> None:
            other.start()
            other.join(_PATIENCE_SECONDS)  # if it waits for a lock of the first writer, it ends after that writer

        interceptor.begin(requests, overtaken)
        result = intercepted_write(context, store, interceptor, path, case)
        if other.ident is not None:
            other.join()
        require_one_winner(context, path, result, others[0] if others else None, case)
        saw_answers(context)
        context.evidence["rounds"] = len(context.evidence["answers"])


_LARGE = b"a line of a large file\n" * 420_000
"""More than 9 MB: clients of object stores send it in parts, with more kinds of requests than for a small file."""


@check(5, guarantee=4, lasts=True)
def a_lost_reply_of_a_large_write_is_never_a_loss(context: Context) -> None:
    """If the reply to a write of 9 MB is lost, the answer is won or unknown, and the write isn't sent again."""
    if not has_service(context):
        write_with_failing_calls(context, "a call takes effect and then fails", (errno.EIO,), "after", _LARGE)
        return
    with proxied_store(context, _LARGE) as (store, interceptor, requests):
        forms: dict[str, Form] = {"the reply is lost": _dropped}
        if speaks_http(context):
            forms["the reply is 500 after the write was applied"] = partial(_replaced, 500)
        _write_with_each_form(context, store, interceptor, requests, forms, _LARGE)
    saw_answers(context)
    context.evidence |= {"rounds": len(context.evidence["answers"]), "bytes": len(_LARGE)}


@check(5, guarantee=4, lasts=True)
def a_write_that_comes_late_is_never_denied(context: Context) -> None:
    """If the service applies a request after its writer gave up, the answer was unknown, and no file is replaced."""
    if not has_service(context):
        write_with_failing_calls(context, "a call fails and takes effect later", (errno.EIO,), "late")
        return
    with proxied_store(context) as (store, interceptor, requests):
        until = enough(context)
        for at in range(requests, 0, -1):
            for exists in (False, True):
                if at < requests and time.monotonic() > until:
                    break
                case = f"request {at} of {requests} is applied after its writer gave up" + ", the file exists" * exists
                path = commit(context.root, 2 * at + exists)
                go_on, done = threading.Event(), threading.Event()

                def late(exchange: Exchange, go_on: threading.Event = go_on, done: threading.Event = done) -> None:
                    exchange.cut()
                    go_on.wait(60)
                    with contextlib.suppress(OSError):
                        exchange.forward()
                    done.set()

                interceptor.begin(at, late)
                result = intercepted_write(context, store, interceptor, path, case)
                other = tried(1, partial(context.make().write, path, OTHER_DATA)) if exists else None
                go_on.set()
                if interceptor.came:
                    done.wait(60)
                require_one_winner(context, path, result, other, case)
    saw_answers(context)


_PAGE = b"<html><body>Log in to use the network</body></html>"


@check(5, guarantee=4, lasts=True)
def what_was_never_sent_is_never_won(context: Context) -> None:
    """If a write doesn't reach the service, or fails before it is applied, the answer is neither won nor lost.

    A page that something in between sends in place of the service, such as a proxy that asks for a login, is no reply.
    """
    if not has_service(context):
        write_with_failing_calls(context, "a call fails", (errno.EIO,), "before")
        return
    assert context.target.endpoint is not None
    assert context.target.through is not None
    with proxied_store(context) as (store, interceptor, requests):
        until = enough(context)
        for at in range(requests, 0, -1):
            if at < requests and time.monotonic() > until:
                break
            path, case = commit(context.root, at), f"request {at} of {requests} doesn't reach the service"
            interceptor.begin(at, lambda _exchange: None)
            require_true_answer(context, path, intercepted_write(context, store, interceptor, path, case), DATA, case)
        if speaks_http(context):
            path, case = commit(context.root, requests + 1), "a page of a proxy is the reply to the last request"
            interceptor.begin(requests, lambda _exchange: Reply(200, {"Content-Type": "text/html"}, _PAGE))
            require_true_answer(context, path, intercepted_write(context, store, interceptor, path, case), DATA, case)
    saw_answers(context)
    closed = Proxy(context.target.endpoint)
    closed.close()
    case, path = "the connection is refused", commit(context.root, 0)
    result = tried(0, lambda: context.target.through(closed.url)().write(path, DATA))  # type: ignore[misc]
    context.evidence["answers"][case] = result.said or result.answer
    require_true_answer(context, path, result, DATA, case)
