"""Reading one object after another of a bucket, without what the SDK does around each request.

Most of what a GET costs in the SDK (more than a millisecond of a processor) goes into working out a request that
differs from the one before in its key alone. So the first is the SDK's own, and the next are copies of it with another
key: signed by the SDK, for credentials change, and sent over its connections, with its time-outs, proxy and
certificates.
What is neither there nor plainly absent is asked for once more by the SDK itself, which knows what a reply means.

This uses parts of the SDK that it doesn't promise to keep. Where one of them is missing, or raises what is no error of
a request, all reads of the client are the SDK's own from then on, and one warning says so.
"""

import logging
from contextlib import suppress
from contextvars import ContextVar
from typing import Any, NamedTuple
from urllib.parse import quote

from .settings import sdk

logger = logging.getLogger(__name__)

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
        self._model: _Model | None = None
        self._session: Any = None
        self._given_up = False
        try:
            session = client._endpoint.http_session
            # A checksum of the reply, where the user has asked for it, is the SDK's to verify.
            if client.meta.config.response_checksum_validation == _AS_REQUIRED:
                client.meta.events.register_last("before-sign.s3.GetObject", _note)
                self._session = session
        except Exception as error:
            self._give_up(error)

    def read(self, key: str) -> bytes | None:
        """The object's bytes; None: the SDK has to ask, and `watched` learns from it. Raises botocore's errors."""
        model, session = self._model, self._session
        if model is None or session is None:
            return None
        try:
            request = sdk().awsrequest.AWSRequest("GET", model.before_key + _quoted(key), headers=dict(model.headers))
            request.context = dict(model.context)
            model.signer.sign("GetObject", request)
            reply = session.send(request.prepare())
            status, data, said = reply.status_code, bytes(reply.content), reply.headers.get("content-length")
        except (sdk().exceptions.BotoCoreError, sdk().exceptions.ClientError):
            raise  # of the request, or of the credentials: the SDK's own read would raise it as well
        except Exception as error:
            self._give_up(error)
            return None
        if status == 404 and b"<Code>NoSuchKey</Code>" in data:
            absent = {"Error": {"Code": "NoSuchKey"}, "ResponseMetadata": {"HTTPStatusCode": 404}}
            raise sdk().exceptions.ClientError(absent, "GetObject")
        if status != 200:
            return None
        if said is not None and int(said) != len(data):
            raise sdk().exceptions.IncompleteReadError(actual_bytes=len(data), expected_bytes=int(said))
        return data

    def watched(self, key: str, call: Any) -> Any:
        """What `call` gives, the SDK's own GET of `key`; if it is answered, the request is the model of the next."""
        if self._session is None:
            return call()
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

    def _give_up(self, error: Exception) -> None:
        if not self._given_up:
            logger.warning(
                "this version of botocore can't be asked without its own client (%s): each read of S3 takes about a "
                "millisecond of a processor more", type(error).__name__,
            )  # fmt: skip
        self._given_up = True
        self._session = self._model = None


def _quoted(key: str) -> str:
    return quote(key, safe="/~")


def _note(request: Any = None, request_signer: Any = None, **_: Any) -> None:
    """Keep a request that is about to be signed; where it isn't as it is known, nothing: no copy is made then."""
    seen = _seen.get()
    if seen is None:
        return
    with suppress(Exception):
        headers = {
            name: value.decode("latin-1") if isinstance(value, bytes) else value
            for name, value in request.headers.items()
            if name.lower() not in _OF_ONE_REQUEST
        }
        seen.append((request.url, headers, dict(request.context), request_signer))
