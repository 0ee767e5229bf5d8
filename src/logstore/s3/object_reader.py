"""Reads objects of a bucket without the SDK's overhead for each request.

Most of the cost of a GET in the SDK (more than a millisecond of CPU time) is the construction of a request that differs
from the previous one only in its key. So the SDK itself makes the first request, and the next ones are copies of it
with another key. The SDK signs the copies, because credentials change, and sends them over its connections, with its
time-outs, proxy and certificates.
If the reply is neither the object nor a clear "not found", the SDK makes the request again and interprets the reply.

This uses internal parts of the SDK. If one is missing, or raises an error that isn't an error of a request, all later
reads of the client use only the SDK, and one warning says so.
"""

import logging
from contextlib import suppress
from contextvars import ContextVar
from typing import Any, NamedTuple
from urllib.parse import quote

from .settings import sdk

logger = logging.getLogger(__name__)

_AS_REQUIRED = "when_required"
_OF_ONE_REQUEST = frozenset({"amz-sdk-invocation-id", "amz-sdk-request", "authorization", "range", "x-amz-date"})

_seen: ContextVar[list[Any] | None] = ContextVar("seen", default=None)
"""The requests that the SDK is about to sign during a watched call."""


class _Model(NamedTuple):
    """A request of the SDK without its key."""

    before_key: str
    headers: dict[str, str]
    context: dict[str, Any]
    signer: Any


class Reader:
    """GETs from one bucket with a botocore client. Threads may share it."""

    def __init__(self, client: Any) -> None:
        self._model: _Model | None = None
        self._session: Any = None
        self._given_up = False
        try:
            session = client._endpoint.http_session
            # If the user has enabled checksums of replies, the SDK must verify them.
            if client.meta.config.response_checksum_validation == _AS_REQUIRED:
                client.meta.events.register_last("before-sign.s3.GetObject", _note)
                self._session = session
        except Exception as error:
            self._give_up(error)

    def read(self, key: str, most: int | None = None) -> bytes | None:
        """The object's bytes, with `most` one more than that many of them at most.

        None: use the SDK through `watched`, which records it. Raises botocore's errors.
        """
        model, session = self._model, self._session
        if model is None or session is None:
            return None
        try:
            headers = model.headers if most is None else {**model.headers, "Range": part(most)}
            request = sdk().awsrequest.AWSRequest("GET", model.before_key + _quoted(key), headers=dict(headers))
            request.context = dict(model.context)
            model.signer.sign("GetObject", request)
            reply = session.send(request.prepare())
            status, data, content_length = reply.status_code, bytes(reply.content), reply.headers.get("content-length")
        except (sdk().exceptions.BotoCoreError, sdk().exceptions.ClientError):
            raise  # an error of the request or the credentials: the SDK's own read would raise it as well
        except Exception as error:
            self._give_up(error)
            return None
        if status == 404 and b"<Code>NoSuchKey</Code>" in data:
            absent = {"Error": {"Code": "NoSuchKey"}, "ResponseMetadata": {"HTTPStatusCode": 404}}
            raise sdk().exceptions.ClientError(absent, "GetObject")
        if status not in (200, 206):
            return None
        if content_length is not None and int(content_length) != len(data):
            raise sdk().exceptions.IncompleteReadError(actual_bytes=len(data), expected_bytes=int(content_length))
        return data

    def watched(self, key: str, call: Any) -> Any:
        """The result of `call`, the SDK's own GET of `key`; on success its request becomes the model of later ones."""
        if self._session is None:
            return call()
        requests: list[Any] = []
        token = _seen.set(requests)
        try:
            reply = call()
        finally:
            _seen.reset(token)
        if len(requests) == 1 and requests[0][0].endswith(f"/{_quoted(key)}"):  # no redirection was followed
            url, headers, context, signer = requests[0]
            self._model = _Model(url[: -len(_quoted(key))], headers, context, signer)
        return reply

    def _give_up(self, error: Exception) -> None:
        if not self._given_up:
            logger.warning(
                "this version of botocore doesn't allow fast reads (%s): each read of S3 takes about a millisecond "
                "more CPU time", type(error).__name__,
            )  # fmt: skip
        self._given_up = True
        self._session = self._model = None


def part(most: int) -> str:
    """The header `Range` for one byte more than `most`: it shows whether there are more."""
    return f"bytes=0-{most}"


def _quoted(key: str) -> str:
    return quote(key, safe="/~")


def _note(request: Any = None, request_signer: Any = None, **_: Any) -> None:
    """Record a request that is about to be signed; if its form is unknown, it isn't recorded and no copy is made."""
    requests = _seen.get()
    if requests is None:
        return
    with suppress(Exception):
        headers = {
            name: value.decode("latin-1") if isinstance(value, bytes) else value
            for name, value in request.headers.items()
            if name.lower() not in _OF_ONE_REQUEST
        }
        requests.append((request.url, headers, dict(request.context), request_signer))
