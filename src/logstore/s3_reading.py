"""Reading one object after another of a bucket, without what the SDK does around each request.

Most of what a GET costs in the SDK (more than a millisecond of a processor) goes into working out a request that
differs from the one before in its key alone. So the first is the SDK's own, and the next are copies of it with another
key: signed by the SDK, for credentials change, and sent over its connections, with its time-outs, proxy and
certificates.
What is neither there nor plainly absent is asked for once more by the SDK itself, which knows what a reply means.
"""

from contextvars import ContextVar
from typing import Any, NamedTuple
from urllib.parse import quote

from .s3_settings import sdk

_AS_REQUIRED = "when_required"
_OF_ONE_REQUEST = frozenset({"amz-sdk-invocation-id", "amz-sdk-request", "authorization", "x-amz-date"})

_seen: ContextVar[list[Any] | None] = ContextVar("seen", default=None)
"""The requests that the SDK is about to sign for a call, while that call is watched."""


class _Model(NamedTuple):
    """A request of the SDK's without its key."""

    before_key: str
    headers: dict[str, str]
    context: dict[str, Any]
    signer: Any


class Reader:
    """GETs from one bucket by the client of botocore that asks for nothing else. Shared by threads."""

    def __init__(self, client: Any) -> None:
        self._session = getattr(getattr(client, "_endpoint", None), "http_session", None)
        self._model: _Model | None = None
        # A checksum of the reply, where the user has asked for it, is the SDK's to verify.
        if self._session is not None and client.meta.config.response_checksum_validation == _AS_REQUIRED:
            client.meta.events.register_last("before-sign.s3.GetObject", _note)

    def read(self, key: str) -> bytes | None:
        """The object's bytes; None: the SDK has to ask, and `watched` learns from it. Raises botocore's errors."""
        model = self._model
        if model is None or self._session is None:
            return None
        request = sdk().awsrequest.AWSRequest("GET", model.before_key + _quoted(key), headers=dict(model.headers))
        request.context = dict(model.context)
        model.signer.sign("GetObject", request)
        reply = self._session.send(request.prepare())
        if reply.status_code == 404 and b"<Code>NoSuchKey</Code>" in reply.content:
            absent = {"Error": {"Code": "NoSuchKey"}, "ResponseMetadata": {"HTTPStatusCode": 404}}
            raise sdk().exceptions.ClientError(absent, "GetObject")
        if reply.status_code != 200:
            return None
        said = reply.headers.get("content-length")
        if said is not None and int(said) != len(reply.content):
            raise sdk().exceptions.IncompleteReadError(actual_bytes=len(reply.content), expected_bytes=int(said))
        return bytes(reply.content)

    def watched(self, key: str, call: Any) -> Any:
        """What `call` gives, the SDK's own GET of `key`; if it is answered, the request is the model of the next."""
        seen: list[Any] = []
        token = _seen.set(seen)
        try:
            reply = call()
        finally:
            _seen.reset(token)
        if len(seen) == 1 and seen[0][0].endswith(f"/{_quoted(key)}"):  # and no redirection was followed
            url, headers, context, signer = seen[0]
            self._model = _Model(url[: -len(_quoted(key))], headers, context, signer)
        return reply


def _quoted(key: str) -> str:
    return quote(key, safe="/~")


def _note(request: Any, request_signer: Any, **_: Any) -> None:
    seen = _seen.get()
    if seen is not None:
        headers = {
            name: value.decode("latin-1") if isinstance(value, bytes) else value
            for name, value in request.headers.items()
            if name.lower() not in _OF_ONE_REQUEST
        }
        seen.append((request.url, headers, dict(request.context), request_signer))
