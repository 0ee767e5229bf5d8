"""Check 6: the result of a write when the service rejects it, or says in an unusual form that the file exists."""

import errno
from collections.abc import Mapping
from functools import partial
from typing import TypeAlias

from tablelog.logstore.common.schemes import about
from tablelog.logstore.common.uri import scheme_of

from ...failures import NotEstablishedError, broken, require
from ...harness.proxy import Exchange, Proxy, Reply
from ...model import Context
from ..suite import check, commit
from ..trial import LOST, REFUSED, UNKNOWN, WON
from .failing_calls import write_with_failing_calls, write_with_hidden_files
from .intercepted_writes import (
    DATA,
    OTHER_DATA,
    Form,
    content_of,
    error_body,
    has_service,
    intercepted_write,
    needs_http,
    proxied_store,
    require_true_answer,
    saw_answers,
)

_Replies: TypeAlias = Mapping[str, tuple[int, bytes]]
"""Status and body of replies, by a name for the report."""

_TURNED_AWAY: Mapping[str | None, _Replies] = {
    "s3": {
        "409 ConditionalRequestConflict": (409, error_body("ConditionalRequestConflict")),
        "503 SlowDown": (503, error_body("SlowDown")),
        "429": (429, error_body("TooManyRequests")),
    },
    "azure": {
        "503 ServerBusy": (503, error_body("ServerBusy")),
        "429": (429, error_body("TooManyRequests")),
        "409 LeaseAlreadyPresent": (409, error_body("LeaseAlreadyPresent")),
    },
    "gcs": {
        "429": (429, b'{"error": {"code": 429, "message": "rateLimitExceeded"}}'),
        "503": (503, b'{"error": {"code": 503, "message": "backendError"}}'),
    },
    None: {"429": (429, b""), "503": (503, b"")},
}

_EXISTS: Mapping[str | None, _Replies] = {
    "s3": {
        "412 with its condition": (412, error_body("PreconditionFailed", "<Condition>If-None-Match</Condition>")),
        "412 without its condition": (412, error_body("PreconditionFailed")),
        "412 without a body": (412, b""),
    },
    "azure": {
        "409 BlobAlreadyExists": (409, error_body("BlobAlreadyExists")),
        "412 ConditionNotMet": (412, error_body("ConditionNotMet")),
    },
    "gcs": {
        "412": (412, b'{"error": {"code": 412, "message": "conditionNotMet"}}'),
        "412 without a body": (412, b""),
    },
    None: {},
}


def _of_backend(replies: Mapping[str | None, _Replies], context: Context) -> _Replies:
    return replies.get(about(scheme_of(context.root)).backend, replies[None])


def _reply(status: int, body: bytes, exchange: Exchange) -> Reply:
    code = body.partition(b"<Code>")[2].partition(b"</Code>")[0].decode()
    kind = "application/json" if body.startswith(b"{") else "application/xml"
    azure_code = {"x-ms-error-code": code} if code else {}
    return Reply(status, {"Content-Type": kind, "Retry-After": "0", **azure_code}, body)


@check(6, guarantee=4)
def what_was_turned_away_is_never_a_loss(context: Context) -> None:
    """If the service or the file system rejects a write because it is busy or full, the answer is never lost."""
    if not has_service(context):
        write_with_failing_calls(context, "a call is refused", (errno.ENOSPC, errno.EMFILE), "before")
        return
    needs_http(context)
    with proxied_store(context) as (store, interceptor, requests):
        version = 0
        for reply, (status, body) in _of_backend(_TURNED_AWAY, context).items():
            for at in range(1, requests + 1):
                path = commit(context.root, version)
                version += 1
                interceptor.begin(at, partial(_reply, status, body))
                what = f"{reply} (changing request {at} of {requests})"
                require_true_answer(
                    context, path, intercepted_write(context, store, interceptor, path, what), DATA, what
                )
    saw_answers(context)


@check(6, guarantee=2)
def exists_is_seen_in_every_form(context: Context) -> None:
    """Each form of reply for an existing file makes the write lose; redirects and stale caches never make it win."""
    if not has_service(context):
        write_with_hidden_files(context)
        return
    needs_http(context)
    with proxied_store(context) as (store, interceptor, requests):
        assert context.target.endpoint is not None
        with Proxy(context.target.endpoint) as elsewhere:

            def moved(exchange: Exchange) -> Reply:
                address = elsewhere.url.split("/", 3)
                return Reply(
                    307, {"Location": f"{'/'.join(address[:3])}{exchange.request.target}"}, error_body("Moved")
                )

            forms: dict[str, tuple[Form, set[str]]] = {
                reply: (partial(_reply, status, body), {LOST})
                for reply, (status, body) in _of_backend(_EXISTS, context).items()
            }
            not_won = {LOST, UNKNOWN, REFUSED}
            forms["304"] = (partial(_reply, 304, b""), not_won)
            forms["307 to another address"] = (moved, not_won)
            for version, (reply, (form, allowed)) in enumerate(forms.items()):
                path = commit(context.root, version)
                context.make().write(path, OTHER_DATA)
                interceptor.begin(requests, form)
                result = intercepted_write(context, store, interceptor, path, reply)
                context.timeline[:] = [
                    "writer: writes a file that exists",
                    f"service: {reply}",
                    f"writer: {result.answer}",
                ]
                require(content_of(context, path) == OTHER_DATA, f"{reply}: the write replaced a file that exists")
                require(result.answer != WON, f"{reply}: the write of a file that exists won")
                if result.answer not in allowed and allowed == {LOST}:
                    broken(
                        f"{reply}: the write of a file that exists ended with {result.said or result.answer!r}, "
                        "not with lost"
                    )
            context.timeline.clear()
    if not context.evidence["answers"]:
        raise NotEstablishedError(
            "the store looks for the file before it writes, so the service got no write of a file that exists; "
            "the checks of races cover what happens between the two"
        )
