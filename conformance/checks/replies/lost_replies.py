"""Checks 5 and 6: the result of a write when the reply is lost, late or unusual.

For a store with a service, the checks use a proxy between the client and the service. For a store of files, they let
system calls fail in a separate process.
"""

import contextlib
import errno
import itertools
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

from tablelog.logstore import LogStore
from tablelog.logstore.common.uri import local_path, scheme_of

from ..failures import NotEstablishedError, broken, require
from ..file_faults import When, blind, failing
from ..model import Context, Level
from ..processes import Station, crew
from ..proxy import Exchange, Proxy, Reply, Request
from .suite import below, check, commit, enough, saw_enough
from .trial import LOST, REFUSED, UNKNOWN, WON, Try, tried

_KINDS = {
    **dict.fromkeys(("s3", "s3a", "s3n"), "s3"),
    **dict.fromkeys(("abfs", "abfss", "wasb", "wasbs", "az", "adl"), "azure"),
    **dict.fromkeys(("gs", "gcs"), "gcs"),
}
_DATA, _OTHER = b"ours\n" * 100, b"another's\n"
_GIVING_UP_SECONDS = 10
_PATIENCE_SECONDS = 2.0
Form = Callable[[Exchange], Reply | None]


# ---- the proxy in front of the service ----


@dataclass
class Desk:
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
        again = [(one.method, one.target, one.body) for one in self.changing[self.at :]]
        return decided.conditional and (decided.method, decided.target, decided.body) in again


@contextlib.contextmanager
def _before_the_service(context: Context, data: bytes = _DATA) -> Iterator[tuple[LogStore, Desk, int]]:
    """A client that uses a proxy, its decisions, and the number of changing requests in its write of `data`."""
    target, desk = context.target, Desk()
    assert target.endpoint is not None
    assert target.through is not None
    with Proxy(target.endpoint, desk.decide) as proxy:
        store = target.through(proxy.url)()
        for name in ("warm", "counted"):  # the client does its one-time work in the first write
            desk.begin()
            end = tried(0, partial(store.write, below(context.root, name), data))
            if end.answer != WON:
                raise NotEstablishedError(f"the store can't be used through a proxy: {end.said or end.answer}")
        if not desk.changing:
            raise NotEstablishedError("the proxy got no request: the store doesn't use the configured address")
        yield store, desk, len(desk.changing)


def _has_service(context: Context) -> bool:
    return context.target.endpoint is not None and context.target.through is not None


def _content(context: Context, path: str) -> bytes | None:
    try:
        return context.make().read(path)
    except FileNotFoundError:
        return None


def _write(context: Context, store: LogStore, desk: Desk, path: str, what: str, data: bytes = _DATA) -> Try:
    """Write, and add the answer to the evidence if the request to decide about arrived.

    An error that isn't part of the interface counts as refused here.
    """
    end = tried(0, partial(store.write, path, data))
    answers = context.evidence.setdefault("answers", {})
    if desk.came:
        answers[what] = end.answer if end.answer in {WON, LOST, UNKNOWN} else end.said
    return end


def _honest(context: Context, path: str, end: Try, data: bytes, what: str) -> None:
    """Require, without another writer, that the answer isn't "lost" and that the file agrees with the answer."""
    context.timeline[:] = [f"writer: writes {path.rpartition('/')[2]}", f"network: {what}", f"writer: {end.answer}"]
    content = _content(context, path)
    require(end.answer != LOST, f"{what}: the write lost, but no other writer had written the file")
    if end.answer == WON:
        require(content == data, f"{what}: the write won, but its file doesn't exist")
    elif end.answer != UNKNOWN:
        require(content is None, f"{what}: the answer was {end.said or end.answer!r}, but the file exists")
    context.timeline.clear()


def _beside(context: Context, path: str, end: Try, other: Try | None, what: str, data: bytes = _DATA) -> None:
    """Like `_honest`, but another writer may have won the name in the meantime."""
    if other is None or other.answer != WON:
        _honest(context, path, end, data, what)
        return
    context.timeline[:] = [f"network: {what}", f"writer: {end.answer}", f"another: {other.answer}"]
    require(end.answer != WON, f"{what}: both writers won")
    require(_content(context, path) == _OTHER, f"{what}: the write replaced the other writer's file")
    context.timeline.clear()


# ---- check 5 ----


def _dropped(exchange: Exchange) -> None:
    exchange.forward()


def _silent(context: Context, exchange: Exchange) -> None:
    """Wait until the client closes the connection."""
    exchange.forward()
    exchange.is_given_up(max(1.0, context.time_left - _GIVING_UP_SECONDS))


def _replaced(status: int, exchange: Exchange) -> Reply:
    exchange.forward()
    return Reply(
        status, {"Content-Type": "application/xml"}, _error("InternalError" if status == 500 else "Unavailable")
    )


def _error(code: str, more: str = "") -> bytes:
    return (
        f'<?xml version="1.0" encoding="UTF-8"?><Error><Code>{code}</Code><Message>-</Message>{more}</Error>'.encode()
    )


@check(5, guarantee=4, lasts=True)
def a_lost_reply_is_never_a_loss(context: Context) -> None:
    """If a write was applied but its reply is lost, the answer is won or unknown, and the write isn't sent again."""
    if not _has_service(context):
        _in_files(context, "a call takes effect and then fails", (errno.EIO, errno.EEXIST), "after")
        return
    with _before_the_service(context) as (store, desk, requests):
        forms: dict[str, Form] = {"the reply is lost": _dropped}
        if _speaks_http(context):
            forms |= {
                f"the reply is {status} after the write was applied": partial(_replaced, status)
                for status in context.choose((500, 503), (500, 502, 503, 504), (500, 502, 503, 504))
            }
        if context.level is Level.THOROUGH:
            forms["no reply ever comes"] = partial(_silent, context)
        version, until = 0, enough(context)
        for at in range(requests, 0, -1):  # the last one is usually the actual write
            for what, form in forms.items():
                if at < requests and time.monotonic() > until:
                    break
                case = f"{what} (changing request {at} of {requests})"
                path = commit(context.root, version)
                version += 1
                desk.begin(at, form)
                end = _write(context, store, desk, path, case)
                _honest(context, path, end, _DATA, case)
                require(not desk.sent_again, f"{case}: the conditional request was sent again")
        case = "the request is lost, and another writer wins"
        path = commit(context.root, version)
        others: list[Try] = []
        other = threading.Thread(
            target=lambda: others.append(tried(1, partial(context.make().write, path, _OTHER))), daemon=True
        )

        def overtaken(_exchange: Exchange) -> None:
            other.start()
            other.join(_PATIENCE_SECONDS)  # if it waits for a lock of the first writer, it ends after that writer

        desk.begin(requests, overtaken)
        end = _write(context, store, desk, path, case)
        if other.ident is not None:
            other.join()
        _beside(context, path, end, others[0] if others else None, case)
        _saw_answers(context)
        context.evidence["rounds"] = len(context.evidence["answers"])


def _saw_answers(context: Context) -> None:
    """Raise `NotEstablishedError` if no write sent the request to decide about."""
    saw_enough(len(context.evidence.get("answers", ())), 1, "writes lost a request or a reply")


_LARGE = b"a line of a large file\n" * 420_000
"""More than 9 MB: clients of object stores send it in parts, with more kinds of requests than for a small file."""


@check(5, guarantee=4, lasts=True)
def a_lost_reply_of_a_large_write_is_never_a_loss(context: Context) -> None:
    """If the reply to a write of 9 MB is lost, the answer is won or unknown, and the write isn't sent again."""
    if not _has_service(context):
        _in_files(context, "a call takes effect and then fails", (errno.EIO,), "after", _LARGE)
        return
    with _before_the_service(context, _LARGE) as (store, desk, requests):
        forms: dict[str, Form] = {"the reply is lost": _dropped}
        if _speaks_http(context):
            forms["the reply is 500 after the write was applied"] = partial(_replaced, 500)
        version, until = 0, enough(context)
        for at in range(requests, 0, -1):
            for what, form in forms.items():
                if at < requests and time.monotonic() > until:
                    break
                case = f"{what} (changing request {at} of {requests})"
                path = commit(context.root, version)
                version += 1
                desk.begin(at, form)
                end = _write(context, store, desk, path, case, _LARGE)
                _honest(context, path, end, _LARGE, case)
                require(not desk.sent_again, f"{case}: the conditional request was sent again")
    _saw_answers(context)
    context.evidence |= {"rounds": len(context.evidence["answers"]), "bytes": len(_LARGE)}


@check(5, guarantee=4, lasts=True)
def a_write_that_comes_late_is_never_denied(context: Context) -> None:
    """If the service applies a request after its writer gave up, the answer was unknown, and no file is replaced."""
    if not _has_service(context):
        _in_files(context, "a call fails and takes effect later", (errno.EIO,), "late")
        return
    with _before_the_service(context) as (store, desk, requests):
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

                desk.begin(at, late)
                end = _write(context, store, desk, path, case)
                other = tried(1, partial(context.make().write, path, _OTHER)) if exists else None
                go_on.set()
                if desk.came:
                    done.wait(60)
                _beside(context, path, end, other, case)
    _saw_answers(context)


@check(5, guarantee=4, lasts=True)
def what_was_never_sent_is_never_won(context: Context) -> None:
    """If a write doesn't reach the service, or fails before it is applied, the answer is neither won nor lost."""
    if not _has_service(context):
        _in_files(context, "a call fails", (errno.EIO,), "before")
        return
    assert context.target.endpoint is not None
    assert context.target.through is not None
    with _before_the_service(context) as (store, desk, requests):
        until = enough(context)
        for at in range(requests, 0, -1):
            if at < requests and time.monotonic() > until:
                break
            path, case = commit(context.root, at), f"request {at} of {requests} doesn't reach the service"
            desk.begin(at, lambda _exchange: None)
            _honest(context, path, _write(context, store, desk, path, case), _DATA, case)
    _saw_answers(context)
    closed = Proxy(context.target.endpoint)
    closed.close()
    case, path = "the connection is refused", commit(context.root, 0)
    end = tried(0, lambda: context.target.through(closed.url)().write(path, _DATA))  # type: ignore[misc]
    context.evidence["answers"][case] = end.said or end.answer
    _honest(context, path, end, _DATA, case)


# ---- check 6 ----

_TURNED_AWAY: dict[str | None, dict[str, tuple[int, bytes]]] = {
    "s3": {
        "409 ConditionalRequestConflict": (409, _error("ConditionalRequestConflict")),
        "503 SlowDown": (503, _error("SlowDown")),
        "429": (429, _error("TooManyRequests")),
    },
    "azure": {
        "503 ServerBusy": (503, _error("ServerBusy")),
        "429": (429, _error("TooManyRequests")),
        "409 LeaseAlreadyPresent": (409, _error("LeaseAlreadyPresent")),
    },
    "gcs": {
        "429": (429, b'{"error": {"code": 429, "message": "rateLimitExceeded"}}'),
        "503": (503, b'{"error": {"code": 503, "message": "backendError"}}'),
    },
    None: {"429": (429, b""), "503": (503, b"")},
}

_EXISTS: dict[str | None, dict[str, tuple[int, bytes]]] = {
    "s3": {
        "412 with its condition": (412, _error("PreconditionFailed", "<Condition>If-None-Match</Condition>")),
        "412 without its condition": (412, _error("PreconditionFailed")),
        "412 without a body": (412, b""),
    },
    "azure": {
        "409 BlobAlreadyExists": (409, _error("BlobAlreadyExists")),
        "412 ConditionNotMet": (412, _error("ConditionNotMet")),
    },
    "gcs": {
        "412": (412, b'{"error": {"code": 412, "message": "conditionNotMet"}}'),
        "412 without a body": (412, b""),
    },
    None: {},
}


def _kind(context: Context) -> str | None:
    return _KINDS.get(scheme_of(context.root))


def _speaks_http(context: Context) -> bool:
    return (context.target.endpoint or "").startswith("http")


def _needs_http(context: Context) -> None:
    if not _speaks_http(context):
        raise NotEstablishedError("the store's service doesn't use HTTP, so its replies can't be replaced")


def _reply(status: int, body: bytes, exchange: Exchange) -> Reply:
    code = body.partition(b"<Code>")[2].partition(b"</Code>")[0].decode()
    kind = "application/json" if body.startswith(b"{") else "application/xml"
    azure_code = {"x-ms-error-code": code} if code else {}
    return Reply(status, {"Content-Type": kind, "Retry-After": "0", **azure_code}, body)


@check(6, guarantee=4)
def what_was_turned_away_is_never_a_loss(context: Context) -> None:
    """If the service or the file system rejects a write because it is busy or full, the answer is never lost."""
    if not _has_service(context):
        _in_files(context, "a call is refused", (errno.ENOSPC, errno.EMFILE), "before")
        return
    _needs_http(context)
    with _before_the_service(context) as (store, desk, requests):
        version = 0
        for reply, (status, body) in _TURNED_AWAY[_kind(context)].items():
            for at in range(1, requests + 1):
                path = commit(context.root, version)
                version += 1
                desk.begin(at, partial(_reply, status, body))
                what = f"{reply} (changing request {at} of {requests})"
                _honest(context, path, _write(context, store, desk, path, what), _DATA, what)
    _saw_answers(context)


@check(6, guarantee=2)
def exists_is_seen_in_every_form(context: Context) -> None:
    """Each form of reply for an existing file makes the write lose; redirects and stale caches never make it win."""
    if not _has_service(context):
        _unseen_in_files(context)
        return
    _needs_http(context)
    with _before_the_service(context) as (store, desk, requests):
        assert context.target.endpoint is not None
        with Proxy(context.target.endpoint) as elsewhere:

            def moved(exchange: Exchange) -> Reply:
                address = elsewhere.url.split("/", 3)
                return Reply(307, {"Location": f"{'/'.join(address[:3])}{exchange.request.target}"}, _error("Moved"))

            forms: dict[str, tuple[Form, set[str]]] = {
                reply: (partial(_reply, status, body), {LOST})
                for reply, (status, body) in _EXISTS[_kind(context)].items()
            }
            not_won = {LOST, UNKNOWN, REFUSED}
            forms["304"] = (partial(_reply, 304, b""), not_won)
            forms["307 to another address"] = (moved, not_won)
            for version, (reply, (form, allowed)) in enumerate(forms.items()):
                path = commit(context.root, version)
                context.make().write(path, _OTHER)
                desk.begin(requests, form)
                end = _write(context, store, desk, path, reply)
                context.timeline[:] = [
                    "writer: writes a file that exists",
                    f"service: {reply}",
                    f"writer: {end.answer}",
                ]
                require(_content(context, path) == _OTHER, f"{reply}: the write replaced a file that exists")
                require(end.answer != WON, f"{reply}: the write of a file that exists won")
                if end.answer not in allowed and allowed == {LOST}:
                    broken(
                        f"{reply}: the write of a file that exists ended with {end.said or end.answer!r}, not with lost"
                    )
            context.timeline.clear()
    _saw_answers(context)


# ---- a file system that fails ----


def _in_files(context: Context, what: str, codes: tuple[int, ...], when: When, data: bytes = _DATA) -> None:
    """Let each changing system call of a write fail, one call per round."""
    _needs_files(context)
    context.make().write(below(context.root, "_first"), b"")
    rounds = itertools.count()
    with crew(context, 1) as [worker]:
        for code in codes:
            for number in itertools.count(1):
                version = next(rounds)
                path = commit(context.root, version)
                with_other = when == "late" and version % 2 == 1
                end, other, calls = worker.call(write_failing, path, data, number, code, when, with_other)
                if len(calls) < number:
                    break
                if code == errno.EEXIST and calls[-1] != "link":
                    continue  # only a link may be sent twice and fail because of its own first effect
                case = f"{what}: {number}. os.{calls[-1]} ({errno.errorcode[code]})"
                context.evidence.setdefault("answers", {})[case] = end.answer
                _beside(context, path, end, other, case, data)
    if not context.evidence.get("answers"):
        raise NotEstablishedError("the store has no service, and does no file operation that Python can observe")
    context.evidence["rounds"] = len(context.evidence["answers"])


def write_failing(
    here: Station, path: str, data: bytes, number: int, code: int, when: When, with_other: bool
) -> tuple[Try, Try | None, list[str]]:
    """Write while one system call fails, then let another writer write if `with_other`; also returns the calls."""
    with failing(number, code, when) as calls:
        end = tried(0, partial(here.store.write, path, data))
        calls_of_write = list(calls)
        other = tried(1, partial(here.make().write, path, _OTHER)) if with_other else None
    return end, other, calls_of_write


def _unseen_in_files(context: Context) -> None:
    _needs_files(context)
    path = commit(context.root, 0)
    context.make().write(path, _OTHER)
    with crew(context, 1) as [worker]:
        end, looks = worker.call(write_blind, path)
    context.evidence |= {"looks that saw nothing": len(looks)}
    require(_content(context, path) == _OTHER, "the write replaced a file that exists but isn't visible")
    require(
        end.answer in {LOST, UNKNOWN},
        f"the write of a file that exists but isn't visible ended with {end.said or end.answer!r}",
    )


def write_blind(here: Station, path: str) -> tuple[Try, list[str]]:
    """Write while no file of the directory is visible, as with a stale attribute cache."""
    with blind(local_path(path)) as looks:
        end = tried(0, partial(here.store.write, path, _DATA))
    return end, list(looks)


def _needs_files(context: Context) -> None:
    if scheme_of(context.root) != "file":
        raise NotEstablishedError("the store has no service address for a proxy, and isn't a store of local files")
