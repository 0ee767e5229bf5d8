"""The store for S3 with DynamoDB: for several drivers on a service without conditional writes.

DynamoDB decides which writer wins. The layout is that of Delta's S3DynamoDBLogStore: one item for each file that is
written exclusively, with the key `tablePath` and `fileName`, and `tempPath` (relative to `_delta_log`), `complete`
("true" or "false") and `expireTime` (seconds since the epoch, only if complete). The steps of a write of N.json:

1. N.json must not exist; if the item of N-1 isn't complete, it is completed first.
2. The data is written to `.tmp/N.json.<uuid>`.
3. The item is put with the condition that there is none: this decides which writer wins.
4. N.json must still not exist; then the data is written to it. (An item that was complete and has expired doesn't stop
   a writer that had passed step 1 before; but then N.json exists, and S3 shows what was written.)
5. The item is marked complete, on condition that it is still the same, and the temporary file is removed.

A writer that is killed after step 3 has committed: the next reader, lister or writer does steps 4 and 5 instead. The
write of step 4 also has S3's own condition, if the service supports it.
"""

import logging
import re
import uuid
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Self

from ...errors import StorageError, StorageUnavailableError, UnsafeStoreError, WriteOutcomeUnknown
from ..base import FileStatus
from ..common.conditional_put import settle
from ..common.retry_policy import DEFAULT_RETRIES, RetryPolicy
from ..common.spool import Content, joined
from ..common.uri import shown
from . import dynamodb_entries as s3_entries
from .conditional_put_store import S3LogStore
from .dynamodb_entries import DynamoDBEntry, Entries, EntrySettings
from .places import S3Location, place_of
from .settings import PREFIXES, S3Settings

_LOG = "_delta_log/"
_COMMIT = re.compile(r"([0-9]{20})\.json").fullmatch

logger = logging.getLogger(__name__)


class S3DynamoDBLogStore(S3LogStore):
    """Objects in a bucket, with the winning writers in DynamoDB, for any number of writers on any number of hosts.

    All writers of a table must use this store with the same DynamoDB table. Settings have Delta's keys
    (`spark.io.delta.storage.S3DynamoDBLogStore.*`); the SDK's variable `AWS_ENDPOINT_URL_DYNAMODB` sets another
    endpoint. `s3`, `s3a` and `s3n` are the same location; the items have `s3a`.
    """

    configuration_prefixes: ClassVar[tuple[str, ...]] = (*PREFIXES, *s3_entries.PREFIXES)
    endangered_by = MappingProxyType(
        {"delta-rs": "by default it relies on S3's conditions, but this store on DynamoDB"}
    )

    def __init__(
        self,
        settings: S3Settings | None = None,
        entries: EntrySettings | None = None,
        *,
        retries: RetryPolicy = DEFAULT_RETRIES,
    ) -> None:
        super().__init__(settings, retries=retries)
        self._entries = Entries(entries or EntrySettings(), retries=retries)

    @classmethod
    def configured(cls, scheme: str, conf: Mapping[str, str], storage_options: Mapping[str, Any]) -> Self:
        settings = S3Settings.of(scheme, conf, storage_options)
        return cls(settings, EntrySettings.of(conf, settings))

    def read(self, path: str) -> bytes:
        place = place_of(path)
        try:
            return self._requests.get(place)
        except FileNotFoundError:
            if not _COMMIT(_name(place)) or not self._recovered(place):
                raise
        return self._requests.get(place)

    def list_from(self, path: str) -> Iterator[FileStatus]:
        place = place_of(path)
        entry = self._entries.newest(_table_path(place))
        if entry is not None and not entry.complete:
            self._recover(entry, place)
        return super().list_from(path)

    def delete(self, path: str) -> None:
        place = place_of(path)
        # The item is removed first: if the process is killed here, the remaining file needs no item.
        entry = self._entries.remove(_table_path(place), _name(place))
        self._requests.delete(place)
        if entry is not None and not entry.complete:
            self._requests.delete(place.beside(entry.temp_path))

    def _create(self, place: S3Location, content: Content) -> None:
        name, data = _name(place), joined(content)
        if self._requests.exists(place):
            raise FileExistsError(shown(place.uri))
        commit = _COMMIT(name)
        if commit and int(commit[1]):
            self._recovered(place.beside(f"{int(commit[1]) - 1:020}.json"))
        entry = DynamoDBEntry(_table_path(place), name, f".tmp/{name}.{uuid.uuid4()}")
        self._requests.put(place.beside(entry.temp_path), data)
        self._decide(entry, place)
        try:
            lost = self._requests.exists(place) and self._requests.get(place) != data
        except (StorageError, FileNotFoundError) as error:
            raise WriteOutcomeUnknown(
                shown(place.uri), f"it won in DynamoDB, but the object in S3 couldn't be read: {error}"
            ) from error
        try:
            lost = lost or not self._put_in_place(place, data)
        except (StorageError, WriteOutcomeUnknown) as error:
            if not commit:  # a later listing completes only commits
                raise WriteOutcomeUnknown(
                    shown(place.uri), f"it won in DynamoDB, but wasn't written to S3: {error}"
                ) from error
            logger.warning(
                "%s is committed, but writing it to S3 failed; the next reader writes it: %s", shown(place.uri), error
            )
            return
        self._finish(entry, place)
        if lost:
            raise FileExistsError(shown(place.uri))

    def _decide(self, entry: DynamoDBEntry, place: S3Location) -> None:
        """Put the item; raises the errors of `write`. The temporary file remains only if the item may still arrive."""
        try:
            settle(place.uri, lambda: self._entries.put_new(entry, place.uri), self._retries)
            return
        except FileExistsError:
            other = self._entries.get(entry.table_path, entry.file_name)
        except WriteOutcomeUnknown as error:
            try:
                other = self._entries.get(entry.table_path, entry.file_name)
            except StorageError:
                raise error from None
            if other is None:
                raise
            if other.temp_path == entry.temp_path:
                return
        except Exception:
            self._remove(place.beside(entry.temp_path))
            raise
        self._remove(place.beside(entry.temp_path))
        if other is None:
            raise WriteOutcomeUnknown(shown(place.uri), "its item in DynamoDB was removed meanwhile")
        if not other.complete:
            self._recover(other, place)
        elif not self._requests.exists(place):
            raise StorageError(
                f"{shown(place.uri)} was not written: DynamoDB has it as complete, but the file doesn't exist. If the "
                f"table was removed and created again, remove its items (tablePath = {entry.table_path}), or wait "
                "until they expire",
                path=shown(place.uri),
            )
        raise FileExistsError(shown(place.uri))

    def _recovered(self, place: S3Location) -> bool:
        """Complete the write of one file if it is incomplete; returns whether it was."""
        entry = self._entries.get(_table_path(place), _name(place))
        if entry is None or entry.complete:
            return False
        self._recover(entry, place)
        return True

    def _recover(self, entry: DynamoDBEntry, beside: S3Location) -> None:
        """Do steps 4 and 5 for another writer, which may have been killed."""
        final = beside.beside(entry.file_name)
        if not self._requests.exists(final):
            try:
                data = self._requests.get(beside.beside(entry.temp_path))
            except FileNotFoundError:
                if not self._requests.exists(final):  # otherwise another writer has completed it meanwhile
                    raise StorageError(
                        f"{shown(final.uri)} was committed, but its data is lost: neither it nor "
                        f"{shown(beside.beside(entry.temp_path).uri)} exists; restore one of them",
                        path=shown(final.uri),
                    ) from None
            else:
                try:
                    self._put_in_place(final, data)
                except WriteOutcomeUnknown as error:
                    raise StorageUnavailableError(
                        f"{shown(final.uri)} is committed, but not written to S3 yet: {error.reason}; try again later",
                        path=shown(final.uri),
                    ) from error
        self._finish(entry, beside)

    def _put_in_place(self, place: S3Location, data: bytes) -> bool:
        """Write the winner's data to the final name; returns whether the object there has this data."""
        try:
            settle(place.uri, lambda: self._requests.put_if_absent(place, data), self._retries)
            return True
        except FileExistsError:
            return self._requests.get(place) == data
        except UnsafeStoreError:  # the service has no conditions: only DynamoDB's applies
            settle(place.uri, lambda: self._requests.put_once(place, data), self._retries)
            return True
        except WriteOutcomeUnknown as error:
            try:
                return self._requests.get(place) == data
            except FileNotFoundError:
                raise error from None

    def _finish(self, entry: DynamoDBEntry, place: S3Location) -> None:
        """Do step 5; if it fails, a later reader does it."""
        try:
            self._entries.complete(entry)
        except StorageError as error:
            logger.warning("the item of %s remains incomplete: %s", shown(place.uri), error)
            return
        self._remove(place.beside(entry.temp_path))


def _name(place: S3Location) -> str:
    return place.key[len(place.directory) :]


def _table_path(place: S3Location) -> str:
    """The table's path as Hadoop writes it; for a file that isn't directly in a log, the path of its directory."""
    directory = place.directory
    if directory == _LOG or directory.endswith(f"/{_LOG}"):
        directory = directory[: -len(_LOG)].rstrip("/")
    return f"s3a://{place.bucket}/{directory}"
