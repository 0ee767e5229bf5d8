"""Checks 5 and 6: a writer's answer when the reply was lost, came late, or was unusual.

There is a proxy in front of a service. A store of files runs in a process in which calls of the operating system fail.
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
        for name in ("warm", "counted"):  # work that a client does only once is done in the first write
            desk.begin()
            end = tried(0, partial(store.write, below(context.root, name), data))
            if end.answer != WON:
                raise NotEstablishedError(f"the store can't be used through a proxy: {end.said or end.answer}")
        if not desk.changing:
            raise NotEstablishedError(
                "no request came through the proxy: the store doesn't use the address it is given"
            )
        yield store, desk, len(desk.changing)


def _has_service(context: Context) -> bool:
    return context.target.endpoint is not None and context.target.through is not None


def _found(context: Context, path: str) -> bytes | None:
    try:
        return context.make().read(path)
    except FileNotFoundError:
        return None


def _write(context: Context, store: LogStore, desk: Desk, path: str, what: str, data: bytes = _DATA) -> Try:
    """A write; its answer is added to the evidence if there was something to decide. An error that isn't part of the
    interface counts as refused here.
    """
    end = tried(0, partial(store.write, path, data))
    answers = context.evidence.setdefault("answers", {})
    if desk.came:
        answers[what] = end.answer if end.answer in {WON, LOST, UNKNOWN} else end.said
    return end


def _honest(context: Context, path: str, end: Try, data: bytes, what: str) -> None:
    """No other writer exists: the answer is never "lost", and the file agrees with the answer."""
    context.timeline[:] = [f"writer: writes {path.rpartition('/')[2]}", f"network: {what}", f"writer: {end.answer}"]
    found = _found(context, path)
    require(end.answer != LOST, f"{what}: the writer was told that it lost, and nobody else had written")
    if end.answer == WON:
        require(found == data, f"{what}: the writer was told that it won, and its file isn't there")
    elif end.answer != UNKNOWN:
        require(found is None, f"{what}: the writer was told {end.said or end.answer!r}, and its file is there")
    context.timeline.clear()


def _beside(context: Context, path: str, end: Try, other: Try | None, what: str, data: bytes = _DATA) -> None:
    """As `_honest`, but another writer may have won the name in the meantime."""
    if other is None or other.answer != WON:
        _honest(context, path, end, data, what)
        return
    context.timeline[:] = [f"network: {what}", f"writer: {end.answer}", f"another: {other.answer}"]
    require(end.answer != WON, f"{what}: both writers were told that they won")
    require(_found(context, path) == _OTHER, f"{what}: it took the place of another's file")
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
    """A writer whose reply was lost after the write was done says won or unknown, and doesn't write again."""
    if not _has_service(context):
        _in_files(context, "a call fails after it did its work", (errno.EIO, errno.EEXIST), "after")
        return
    with _before_the_service(context) as (store, desk, requests):
        forms: dict[str, Form] = {"the reply is lost": _dropped}
        if _speaks_http(context):
            forms |= {
                f"the reply is {status} after the write was done": partial(_replaced, status)
                for status in context.choose((500, 503), (500, 502, 503, 504), (500, 502, 503, 504))
            }
        if context.level is Level.THOROUGH:
            forms["no reply ever comes"] = partial(_silent, context)
        version, until = 0, enough(context)
        for at in range(requests, 0, -1):  # the last one is usually the actual write
            for what, form in forms.items():
                if at < requests and time.monotonic() > until:
                    break
                said = f"{what} (changing request {at} of {requests})"
                path = commit(context.root, version)
                version += 1
                desk.begin(at, form)
                end = _write(context, store, desk, path, said)
                _honest(context, path, end, _DATA, said)
                require(not desk.sent_again, f"{said}: the conditional request was sent again")
        said = "the request is lost, and another wins meanwhile"
        path = commit(context.root, version)
        others: list[Try] = []
        other = threading.Thread(
            target=lambda: others.append(tried(1, partial(context.make().write, path, _OTHER))), daemon=True
        )

        def overtaken(_exchange: Exchange) -> None:
            other.start()
            other.join(_PATIENCE_SECONDS)  # if it waits for a lock of the first writer, it ends after that one

        desk.begin(requests, overtaken)
        end = _write(context, store, desk, path, said)
        if other.ident is not None:
            other.join()
        _beside(context, path, end, others[0] if others else None, said)
        _saw_answers(context)
        context.evidence["rounds"] = len(context.evidence["answers"])


def _saw_answers(context: Context) -> None:
    """Raise `NotEstablishedError` if no write had the request that was to be decided about."""
    saw_enough(len(context.evidence.get("answers", ())), 1, "writes lost a request or a reply")


_LARGE = b"a line of a large file\n" * 420_000
"""More than 9 MB: clients of object stores send it in parts, with requests that a small file doesn't need."""


@check(5, guarantee=4, lasts=True)
def a_lost_reply_of_a_large_write_is_never_a_loss(context: Context) -> None:
    """A writer of a file of 9 MB whose reply was lost says won or unknown, and doesn't write again."""
    if not _has_service(context):
        _in_files(context, "a call fails after it did its work", (errno.EIO,), "after", _LARGE)
        return
    with _before_the_service(context, _LARGE) as (store, desk, requests):
        forms: dict[str, Form] = {"the reply is lost": _dropped}
        if _speaks_http(context):
            forms["the reply is 500 after the write was done"] = partial(_replaced, 500)
        version, until = 0, enough(context)
        for at in range(requests, 0, -1):
            for what, form in forms.items():
                if at < requests and time.monotonic() > until:
                    break
                said = f"{what} (changing request {at} of {requests})"
                path = commit(context.root, version)
                version += 1
                desk.begin(at, form)
                end = _write(context, store, desk, path, said, _LARGE)
                _honest(context, path, end, _LARGE, said)
                require(not desk.sent_again, f"{said}: the conditional request was sent again")
    _saw_answers(context)
    context.evidence |= {"rounds": len(context.evidence["answers"]), "bytes": len(_LARGE)}


@check(5, guarantee=4, lasts=True)
def a_write_that_comes_late_is_never_denied(context: Context) -> None:
    """A request that is done after its writer gave up: the writer had said unknown, and it replaces nothing."""
    if not _has_service(context):
        _in_files(context, "a call does its work after it failed", (errno.EIO,), "late")
        return
    with _before_the_service(context) as (store, desk, requests):
        until = enough(context)
        for at in range(requests, 0, -1):
            for taken in (False, True):
                if at < requests and time.monotonic() > until:
                    break
                said = f"request {at} of {requests} is done after its writer gave up" + ", the name taken" * taken
                path = commit(context.root, 2 * at + taken)
                go_on, done = threading.Event(), threading.Event()

                def late(exchange: Exchange, go_on: threading.Event = go_on, done: threading.Event = done) -> None:
                    exchange.cut()
                    go_on.wait(60)
                    with contextlib.suppress(OSError):
                        exchange.forward()
                    done.set()

                desk.begin(at, late)
                end = _write(context, store, desk, path, said)
                other = tried(1, partial(context.make().write, path, _OTHER)) if taken else None
                go_on.set()
                if desk.came:
                    done.wait(60)
                _beside(context, path, end, other, said)
    _saw_answers(context)


@check(5, guarantee=4, lasts=True)
def what_was_never_sent_is_never_won(context: Context) -> None:
    """A writer that can't reach the service, or whose write fails before it is done, doesn't say won or lost."""
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
            path, said = commit(context.root, at), f"request {at} of {requests} doesn't reach the service"
            desk.begin(at, lambda _exchange: None)
            _honest(context, path, _write(context, store, desk, path, said), _DATA, said)
    _saw_answers(context)
    closed = Proxy(context.target.endpoint)
    closed.close()
    said, path = "the connection is refused", commit(context.root, 0)
    end = tried(0, lambda: context.target.through(closed.url)().write(path, _DATA))  # type: ignore[misc]
    context.evidence["answers"][said] = end.said or end.answer
    _honest(context, path, end, _DATA, said)


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
        raise NotEstablishedError("the store's service doesn't speak HTTP, so no reply can be made up")


def _said(status: int, body: bytes, exchange: Exchange) -> Reply:
    code = body.partition(b"<Code>")[2].partition(b"</Code>")[0].decode()
    kind = "application/json" if body.startswith(b"{") else "application/xml"
    named = {"x-ms-error-code": code} if code else {}
    return Reply(status, {"Content-Type": kind, "Retry-After": "0", **named}, body)


@check(6, guarantee=4)
def what_was_turned_away_is_never_a_loss(context: Context) -> None:
    """A write that the service or the file system turned away, because it is busy or full, isn't called lost."""
    if not _has_service(context):
        _in_files(context, "a call is refused", (errno.ENOSPC, errno.EMFILE), "before")
        return
    _needs_http(context)
    with _before_the_service(context) as (store, desk, requests):
        version = 0
        for said, (status, body) in _TURNED_AWAY[_kind(context)].items():
            for at in range(1, requests + 1):
                path = commit(context.root, version)
                version += 1
                desk.begin(at, partial(_said, status, body))
                what = f"{said} (changing request {at} of {requests})"
                _honest(context, path, _write(context, store, desk, path, what), _DATA, what)
    _saw_answers(context)


@check(6, guarantee=2)
def exists_is_seen_in_every_form(context: Context) -> None:
    """A loser is told so in whatever form the service says it, over a redirect too, or where a look sees nothing."""
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
                said: (partial(_said, status, body), {LOST}) for said, (status, body) in _EXISTS[_kind(context)].items()
            }
            told = {LOST, UNKNOWN, REFUSED}
            forms["304"] = (partial(_said, 304, b""), told)
            forms["307 to another address"] = (moved, told)
            for version, (said, (form, right)) in enumerate(forms.items()):
                path = commit(context.root, version)
                context.make().write(path, _OTHER)
                desk.begin(requests, form)
                end = _write(context, store, desk, path, said)
                context.timeline[:] = ["writer: writes a file that exists", f"service: {said}", f"writer: {end.answer}"]
                require(_found(context, path) == _OTHER, f"{said}: a file that exists was replaced")
                require(end.answer != WON, f"{said}: the writer of a file that exists was told that it won")
                if end.answer not in right and LOST in right and len(right) == 1:
                    broken(f"{said}: the writer of a file that exists was told {end.said or end.answer!r}, not lost")
            context.timeline.clear()
    _saw_answers(context)


# ---- a file system that fails ----


def _in_files(context: Context, what: str, codes: tuple[int, ...], when: When, data: bytes = _DATA) -> None:
    """Let each changing system call of a write fail, one in each round."""
    _needs_files(context)
    context.make().write(below(context.root, "_first"), b"")
    rounds = itertools.count()
    with crew(context, 1) as [worker]:
        for code in codes:
            for number in itertools.count(1):
                version = next(rounds)
                path = commit(context.root, version)
                taken = when == "late" and version % 2 == 1
                end, other, made = worker.call(write_failing, path, data, number, code, when, taken)
                if len(made) < number:
                    break
                if code == errno.EEXIST and made[-1] != "link":
                    continue  # only a link is sent twice and finds its own result
                said = f"{what}: {number}. os.{made[-1]} ({errno.errorcode[code]})"
                context.evidence.setdefault("answers", {})[said] = end.answer
                _beside(context, path, end, other, said, data)
    if not context.evidence.get("answers"):
        raise NotEstablishedError("the store has no service, and does nothing to files that Python can see")
    context.evidence["rounds"] = len(context.evidence["answers"])


def write_failing(
    here: Station, path: str, data: bytes, number: int, code: int, when: When, taken: bool
) -> tuple[Try, Try | None, list[str]]:
    """Write while one call of the operating system fails, then let another writer write; returns the calls made."""
    with failing(number, code, when) as calls:
        end = tried(0, partial(here.store.write, path, data))
        made = list(calls)
        other = tried(1, partial(here.make().write, path, _OTHER)) if taken else None
    return end, other, made


def _unseen_in_files(context: Context) -> None:
    _needs_files(context)
    path = commit(context.root, 0)
    context.make().write(path, _OTHER)
    with crew(context, 1) as [worker]:
        end, looks = worker.call(write_blind, path)
    context.evidence |= {"looks that saw nothing": len(looks)}
    require(_found(context, path) == _OTHER, "a file that exists, and that a look doesn't see, was replaced")
    require(
        end.answer in {LOST, UNKNOWN}, f"the writer of a file that exists, unseen, was told {end.said or end.answer!r}"
    )


def write_blind(here: Station, path: str) -> tuple[Try, list[str]]:
    """Write while no file of the directory is visible, as with a stale attribute cache."""
    with blind(local_path(path)) as looks:
        end = tried(0, partial(here.store.write, path, _DATA))
    return end, list(looks)


def _needs_files(context: Context) -> None:
    if scheme_of(context.root) != "file":
        raise NotEstablishedError("the store has no service that a proxy could stand before, and is none of files")
