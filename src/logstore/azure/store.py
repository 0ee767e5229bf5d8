"""The store on Azure Blob Storage: one Put Blob with `If-None-Match: *`, of which only one writer's succeeds.

A large file is one Put Blob too, from a temporary file. Blocks aren't used: blocks of a killed writer make a name look
taken to others for a week, although it has no content (found with Azurite). The SDK's own upload reads a file as a
whole, so the request is made with its generated client, which is internal.

The meaning of an answer depends only on its status and code (`answer_of`, `refusal`), because the SDK's exceptions have
less information: an existing name is 409 BlobAlreadyExists or 412 ConditionNotMet. 503 ServerBusy isn't defined as "not
applied", so it is ambiguous like every other 5xx.
"""

import errno
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, BinaryIO, ClassVar, Self, TypeVar

from ...error_context import error_context
from ...errors import (
    InvalidArgumentError,
    StorageAccessError,
    StorageError,
    StorageMissingError,
    StorageUnavailableError,
)
from ..base import Exclusion, FileStatus, LogStore, too_large
from ..common import object_uri
from ..common.conditional_put import Answer, Verdict, persist, settle
from ..common.http_clients import READ_SECONDS, Clients, never_sent, skew_note
from ..common.listing import without_false_gaps
from ..common.retry_policy import DEFAULT_RETRIES, RetryPolicy
from ..common.schemes import served_by
from ..common.spool import Content, Upload, joined, received, size_of, spooled
from ..common.uri import shown
from .settings import CONFIGURATION_PREFIXES, LARGEST_PUT, AzureSettings, place

_Result = TypeVar("_Result")

SCHEMES = served_by("azure")

# Codes for a create where the name exists. (No right to overwrite, an immutable blob, a lease.)
_EXISTS = frozenset({"BlobAlreadyExists", "UnauthorizedBlobOverwrite", "BlobImmutableDueToPolicy", "LeaseIdMissing"})
_MISSING = frozenset({"ContainerNotFound", "ContainerBeingDeleted", "ContainerDisabled"})
_ABSENT = frozenset({"BlobNotFound", "ResourceNotFound", "PathNotFound", ""})
_other_name = re.compile(r"[\\\x00-\x1f\x7f]|\.(?:/|$)").search
_OF_ONE_FILE = frozenset({"reading", "deleting"})  # 404 means that the file doesn't exist
_PIECE = 32 << 20  # bytes of one request for a part of a large blob
_REFUSED = frozenset({400, 401, 403, 404, 405, 411, 413, 414, 416})


class AzureLogStore(LogStore):
    """Blobs in a container, for all accounts in the paths.

    A path is `abfss://container@account.dfs.core.windows.net/path` or `az://container/path`; the store always uses the
    blob endpoint. The service can't start a listing at a name, so a listing from the end of a long log still pages
    through all names before it, 5,000 per request.
    """

    exclusion: Exclusion = "global"
    partial_writes_visible = False
    atomic_overwrite = True

    schemes: ClassVar[frozenset[str] | None] = SCHEMES
    configuration_prefixes: ClassVar[tuple[str, ...]] = CONFIGURATION_PREFIXES

    def __init__(
        self, settings: AzureSettings, *, retries: RetryPolicy = DEFAULT_RETRIES, read_seconds: float = READ_SECONDS
    ) -> None:
        self.settings = settings
        self._retries = retries
        self._clients: Clients[str, Any] = Clients(partial(settings.client, read_seconds=read_seconds))

    @classmethod
    def configured(cls, scheme: str, conf: Mapping[str, str], storage_options: Mapping[str, Any]) -> Self:
        return cls(AzureSettings.of(scheme, conf, storage_options))

    def read(self, path: str) -> bytes:
        blob = self._blob(path)
        return self._asked("reading", path, lambda: bytes(blob.download_blob().readall()))

    def read_at_most(self, path: str, most: int) -> bytes:
        blob = self._blob(path)
        data = self._asked("reading", path, lambda: _start_of(blob, most + 1))
        if len(data) > most:
            raise too_large(path, None, most)
        return data

    def open_file(self, path: str) -> BinaryIO:
        blob = self._blob(path)
        return self._asked("reading", path, lambda: received(path, _pieces(blob)))

    def write(self, path: str, data: bytes, *, overwrite: bool = False) -> None:
        self._write(path, bytes(memoryview(data)), overwrite)  # rejects text, which the SDK would accept

    def write_pieces(self, path: str, pieces: Iterable[bytes], *, overwrite: bool = False) -> None:
        with spooled(path, pieces) as content:
            self._write(path, content, overwrite)

    def _write(self, path: str, content: Content, overwrite: bool) -> None:
        blob = self._blob(path)
        if (size := size_of(content)) > LARGEST_PUT:
            raise InvalidArgumentError(
                f"{shown(path)} has {size} bytes, but one request to Azure takes {LARGEST_PUT} at most: write less data"
            )
        if overwrite:
            self._asked("overwriting", path, lambda: _put(blob, content, overwrite=True))
        else:
            settle(path, lambda: _created(path, lambda: _put(blob, content, overwrite=False)), self._retries)

    def list_from(self, path: str) -> Iterator[FileStatus]:
        scheme, authority, key = object_uri.split(path)  # the start name isn't checked: it may be any string
        directory = object_uri.parent(key)
        _split(object_uri.join(scheme, authority, directory))
        start = key[len(directory) :].encode()
        container = self._clients[authority].get_container_client(place(authority).container)
        statuses: dict[bytes, FileStatus] = {}

        def scan() -> list[bytes]:
            names = set()  # a blob that is replaced during the listing may be listed twice
            for blob in container.walk_blobs(name_starts_with=directory, delimiter="/"):
                name = blob.name[len(directory) :].encode()
                if name >= start and name and not name.endswith(b"/"):
                    modified = round(blob.last_modified.timestamp() * 1000)
                    statuses[name] = FileStatus(object_uri.join(scheme, authority, blob.name), blob.size, modified)
                    names.add(name)
            return list(names)

        listed = self._asked("listing", path, lambda: without_false_gaps(scan, start))
        return iter([statuses[name] for name in listed])

    def delete(self, path: str) -> None:
        blob = self._blob(path)
        with suppress(FileNotFoundError):
            self._asked("deleting", path, lambda: blob.delete_blob(delete_snapshots="include"))

    def resolve(self, path: str) -> str:
        """`scheme://authority/key`; see `object_uri.resolve`."""
        _split(path)
        return object_uri.resolve(path)

    def _blob(self, path: str) -> Any:
        _, authority, key = _split(path)
        return self._clients[authority].get_blob_client(place(authority).container, key)

    def _asked(self, operation: str, path: str, request: Callable[[], _Result]) -> _Result:
        """The result of a request that may be repeated, or a typed error."""

        def attempt() -> _Result:
            try:
                return request()
            except (StorageError, ValueError, TypeError):
                raise
            except Exception as error:
                reply = _reply_in(error)
                if reply is not None:
                    status, code, _ = reply
                    if operation in _OF_ONE_FILE and status == 404 and code in _ABSENT:
                        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), shown(path)) from None
                    raise refusal(operation, path, *reply) from error
                raise (
                    _without_reply(operation, path, error)
                    or StorageUnavailableError(
                        f"{operation} {shown(path)}: no whole reply came ({type(error).__name__}); try again later"
                    )
                ) from error

        with error_context(path=shown(path)):
            return persist(attempt, lambda error: isinstance(error, StorageUnavailableError), _is_busy, self._retries)


def _split(path: str) -> tuple[str, str, str]:
    """`object_uri.split`. Raises InvalidArgumentError also for a name that the service changes or rejects."""
    scheme, authority, key = object_uri.split(path)
    if _other_name(key):
        raise InvalidArgumentError(
            f"{shown(path)!r}: a blob name can't have a backslash (Azure treats it as a slash), a control "
            "character, or a dot at the end of a part"
        )
    return scheme, authority, key


def _put(blob: Any, content: Content, *, overwrite: bool) -> None:
    """Send one Put Blob."""
    operations = getattr(getattr(blob, "_client", None), "block_blob", None)
    if isinstance(content, bytes) or operations is None:
        blob.upload_blob(joined(content), overwrite=overwrite)
        return
    condition = {} if overwrite else {"If-None-Match": "*"}
    operations.upload(content_length=size_of(content), body=Upload(content), headers=condition)


def _start_of(blob: Any, size: int) -> bytes:
    """The first `size` bytes of a blob, or all if there are fewer."""
    from azure.core.exceptions import HttpResponseError

    try:
        return bytes(blob.download_blob(offset=0, length=size).readall())
    except HttpResponseError as error:
        if error.status_code != 416:  # an empty blob has no such part
            raise
    return bytes(blob.download_blob().readall())


def _pieces(blob: Any) -> Iterator[bytes]:
    """The content of a blob, by requests for parts of one version of it."""
    from azure.core import MatchConditions

    properties = blob.get_blob_properties()
    of_version = {"etag": properties.etag, "match_condition": MatchConditions.IfNotModified}
    for at in range(0, properties.size, _PIECE):
        yield bytes(blob.download_blob(offset=at, length=_PIECE, **of_version).readall())


def answer_of(path: str, status: int, code: str, note: str = "") -> Answer:
    """The answer for the reply to a conditional Put Blob, by its status and its `x-ms-error-code`."""
    if status == 201:
        return Answer(Verdict.APPLIED)
    if status == 412 or code in _EXISTS:
        return Answer(Verdict.EXISTS)
    if status == 429:
        return Answer(Verdict.NOT_APPLIED, _said(status, code))
    if status in _REFUSED or code in _MISSING:
        return Answer.failed(refusal("writing", path, status, code, note))
    return Answer(Verdict.AMBIGUOUS, f"the service answered {_said(status, code)}")


def refusal(operation: str, path: str, status: int, code: str, note: str = "") -> StorageError:
    """The error for a reply that isn't a success; `note` adds a reason."""
    context = f"{operation} {shown(path)}: Azure answered {_said(status, code)}{note}"
    if status == 404 or code in _MISSING:
        return StorageMissingError(f"{context}; the container doesn't exist, or is being removed: create it first")
    if status in (401, 403):
        return StorageAccessError(
            f"{context}; check the account key, the SAS token (its permissions and expiry) or the role of the "
            "identity, and this machine's clock"
        )
    changed = operation == "reading" and status == 412  # the blob was replaced between the requests for its parts
    if changed or status in (408, 429) or status >= 500:
        return StorageUnavailableError(f"{context}; try again later")
    return StorageError(f"{context}; the service rejects this request, and retrying doesn't help")


def _said(status: int, code: str) -> str:
    return f"{status} {code}".rstrip()


def _created(path: str, send: Callable[[], Any]) -> Answer:
    """Send a conditional write once and return the answer."""
    try:
        send()
    except (ValueError, TypeError):  # raised by the SDK before it sends
        raise
    except Exception as error:
        reply = _reply_in(error)
        if reply is not None:
            return answer_of(path, *reply)
        refused = _without_reply("writing", path, error)
        if refused is not None:
            return Answer.failed(refused)
        return Answer(Verdict.AMBIGUOUS, f"no reply came: {type(error).__name__}")
    return Answer(Verdict.APPLIED)


def _is_busy(error: Exception) -> bool:
    """Whether one of our errors is for the reply of a service that has too much to do."""
    reply = _reply_in(error.__cause__) if isinstance(error.__cause__, Exception) else None
    return reply is not None and reply[0] in (429, 503)


def _reply_in(error: Exception) -> tuple[int, str, str] | None:
    """(status, code, note on the clock) of the service's reply, if the error has one."""
    from azure.core.exceptions import ClientAuthenticationError, HttpResponseError

    response = getattr(error, "response", None)
    if not isinstance(error, HttpResponseError) or response is None:
        return None
    if isinstance(error, ClientAuthenticationError) and "x-ms-request-id" not in response.headers:
        return None  # the reply of a token service or of a proxy
    code = response.headers.get("x-ms-error-code") or getattr(error, "error_code", None) or ""
    note = skew_note(response.headers.get("Date")) if response.status_code == 403 else ""
    return response.status_code, str(getattr(code, "value", code)), note


def _without_reply(operation: str, path: str, error: Exception) -> StorageError | None:
    """The error for a request that was certainly not served; None: it is unknown whether it was."""
    from azure.core.exceptions import ClientAuthenticationError

    if isinstance(error, ClientAuthenticationError):
        return StorageAccessError(
            f"{operation} {shown(path)}: there are no credentials that Azure accepts ({type(error).__name__}); set an "
            "account key, a SAS token or a service principal"
        )
    if never_sent(error):
        return StorageUnavailableError(
            f"{operation} {shown(path)}: the storage account can't be reached; check the account's name, the endpoint "
            "and the network"
        )
    return None
