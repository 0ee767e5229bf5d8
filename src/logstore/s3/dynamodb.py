"""The store for S3 with DynamoDB as the judge: for several drivers on a service without conditional writes.

The layout is that of Delta's own S3DynamoDBLogStore: one item for each file that is written exclusively, with
`tablePath` and `fileName` as its key, and `tempPath` (relative to `_delta_log`), `complete` ("true" or "false") and
`expireTime` (seconds since the epoch, on complete ones only). The steps of a write of N.json:

1. N.json must not be there; an item of N-1 that isn't complete is completed first.
2. The bytes go to `.tmp/N.json.<uuid>`.
3. The item is put, on condition that there is none: this decides who wins.
4. N.json must still not be there, then the bytes go there. (An item that was complete and has expired no longer keeps
   away a writer that passed step 1 before; but its N.json is there then, and S3 shows what was written.)
5. The item is marked complete, on condition that it is still the same, and the temporary file is removed.

A writer that dies after step 3 has committed: whoever lists, reads or writes next does steps 4 and 5 in its place. The
write of step 4 carries S3's own condition too, wherever the service knows it.
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
from ..common.uri import shown
from . import dynamodb_entries as s3_entries
from .conditional import S3LogStore
from .dynamodb_entries import DynamoDBEntry, Entries, EntrySettings
from .requests import S3Location, place_of
from .settings import PREFIXES, S3Settings

_LOG = "_delta_log/"
_COMMIT = re.compile(r"([0-9]{20})\.json").fullmatch

logger = logging.getLogger(__name__)


class S3DynamoDBLogStore(S3LogStore):
    """Objects in a bucket, and the winners of their names in DynamoDB, for any number of writers anywhere.

    All writers of a table must use it, with the same table of items. Settings are under Delta's keys
    (`spark.io.delta.storage.S3DynamoDBLogStore.*`); the SDK's variable `AWS_ENDPOINT_URL_DYNAMODB` names another
    endpoint. `s3`, `s3a` and `s3n` are one place, written as `s3a` in the items.
    """

    configuration_prefixes: ClassVar[tuple[str, ...]] = (*PREFIXES, *s3_entries.PREFIXES)
    endangered_by = MappingProxyType({"delta-rs": "by default it asks S3 who is first, where this store asks DynamoDB"})

    def __init__(self, settings: S3Settings | None = None, entries: EntrySettings | None = None) -> None:
        super().__init__(settings)
        self._entries = Entries(entries or EntrySettings())

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
        # The item goes first: what is left after a crash here is a file that needs none.
        entry = self._entries.remove(_table_path(place), _name(place))
        self._requests.delete(place)
        if entry is not None and not entry.complete:
            self._requests.delete(place.beside(entry.temp_path))

    def _create(self, place: S3Location, data: bytes) -> None:
        name = _name(place)
        if self._requests.exists(place):
            raise FileExistsError(shown(place.uri))
        commit = _COMMIT(name)
        if commit and int(commit[1]):
            self._recovered(place.beside(f"{int(commit[1]) - 1:020}.json"))
        entry = DynamoDBEntry(_table_path(place), name, f".tmp/{name}.{uuid.uuid4()}")
        self._requests.put(place.beside(entry.temp_path), data)
        self._decide(entry, place)
        try:
            taken = self._requests.exists(place) and self._requests.get(place) != data
        except (StorageError, FileNotFoundError) as error:
            raise WriteOutcomeUnknown(
                shown(place.uri), f"DynamoDB has it as won, and what S3 has couldn't be seen: {error}"
            ) from error
        try:
            taken = taken or not self._put_in_place(place, data)
        except (StorageError, WriteOutcomeUnknown) as error:
            if not commit:  # only commits are completed by those who list
                raise WriteOutcomeUnknown(
                    shown(place.uri), f"DynamoDB has it as won, but S3 hasn't: {error}"
                ) from error
            logger.warning("%s is committed; the next reader puts it in place, for here: %s", shown(place.uri), error)
            return
        self._finish(entry, place)
        if taken:
            raise FileExistsError(shown(place.uri))

    def _decide(self, entry: DynamoDBEntry, place: S3Location) -> None:
        """Put the item, or raise as `write` does; the temporary file stays only where the item may yet arrive."""
        try:
            settle(place.uri, lambda: self._entries.put_new(entry, place.uri))
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
            raise WriteOutcomeUnknown(shown(place.uri), "its item in DynamoDB went away meanwhile")
        if not other.complete:
            self._recover(other, place)
        elif not self._requests.exists(place):
            raise StorageError(
                f"{shown(place.uri)} was not written: DynamoDB has it as complete, but the file is gone. "
                f"Was the table removed and made anew? Then remove its items (tablePath = {entry.table_path}), or wait "
                "until they expire"
            )
        raise FileExistsError(shown(place.uri))

    def _recovered(self, place: S3Location) -> bool:
        """Complete the write of one file, if it isn't; whether that was so."""
        entry = self._entries.get(_table_path(place), _name(place))
        if entry is None or entry.complete:
            return False
        self._recover(entry, place)
        return True

    def _recover(self, entry: DynamoDBEntry, beside: S3Location) -> None:
        """Steps 4 and 5 in the place of a writer that may have died."""
        final = beside.beside(entry.file_name)
        if not self._requests.exists(final):
            try:
                data = self._requests.get(beside.beside(entry.temp_path))
            except FileNotFoundError:
                if not self._requests.exists(final):  # else another has completed it in between
                    raise StorageError(
                        f"{shown(final.uri)} was committed, but its bytes are gone: neither it nor "
                        f"{shown(beside.beside(entry.temp_path).uri)} is there; restore either of them"
                    ) from None
            else:
                try:
                    self._put_in_place(final, data)
                except WriteOutcomeUnknown as error:
                    raise StorageUnavailableError(
                        f"{shown(final.uri)} is committed, but not in place yet: {error.reason}; try again later"
                    ) from error
        self._finish(entry, beside)

    def _put_in_place(self, place: S3Location, data: bytes) -> bool:
        """Put the winner's bytes under the name; whether that is what stands there now."""
        try:
            settle(place.uri, lambda: self._requests.put_if_absent(place, data))
            return True
        except FileExistsError:
            return self._requests.get(place) == data
        except UnsafeStoreError:  # the service knows no condition: DynamoDB's alone has to do
            settle(place.uri, lambda: self._requests.put_once(place, data))
            return True
        except WriteOutcomeUnknown as error:
            try:
                return self._requests.get(place) == data
            except FileNotFoundError:
                raise error from None

    def _finish(self, entry: DynamoDBEntry, place: S3Location) -> None:
        """Step 5; what fails is done by the next who looks."""
        try:
            self._entries.complete(entry)
        except StorageError as error:
            logger.warning("the item of %s stays incomplete: %s", shown(place.uri), error)
            return
        self._remove(place.beside(entry.temp_path))


def _name(place: S3Location) -> str:
    return place.key[len(place.directory) :]


def _table_path(place: S3Location) -> str:
    """The table as Hadoop spells its path; for a file that isn't right under a log, its directory."""
    directory = place.directory
    if directory == _LOG or directory.endswith(f"/{_LOG}"):
        directory = directory[: -len(_LOG)].rstrip("/")
    return f"s3a://{place.bucket}/{directory}"
