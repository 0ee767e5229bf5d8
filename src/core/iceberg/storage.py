"""The table's `metadata` directory: its files by the log's store, for pyiceberg too, and publishing a new version.

The names are those of Iceberg's tables without a catalog: `v<number>.metadata.json`, of which each number is created
once, and `version-hint.text` with the newest number.
"""

import io
import logging
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from pyiceberg.io import FileIO, InputFile, OutputFile
from pyiceberg.table.metadata import TableMetadataUtil, TableMetadataV2

from ...errors import WriteOutcomeUnknown
from .data_files import location_of

if TYPE_CHECKING:
    from ...logstore.base import LogStore

DIRECTORY: Final = "metadata"
_HINT: Final = "version-hint.text"
_NUMBER: Final = re.compile(r"[0-9]{1,18}")
_NAME: Final = re.compile(rf"v({_NUMBER.pattern})\.metadata\.json")

logger = logging.getLogger(__name__)


def metadata_name(number: int) -> str:
    """The name of the metadata with a number."""
    return f"v{number}.metadata.json"


class MetadataDirectory(FileIO):
    """The directory of one table. Locations are those in Iceberg's metadata; only the names in them are used."""

    def __init__(self, store: "LogStore", table: str) -> None:
        super().__init__()
        self._store = store
        self._uri = f"{table.rstrip('/')}/{DIRECTORY}"
        self.table_location = location_of(table, "").rstrip("/")
        self.location = f"{self.table_location}/{DIRECTORY}"

    def _path(self, location: str) -> str:
        return f"{self._uri}/{location.rpartition('/')[2]}"

    # --- files, as pyiceberg uses them ----------------------------------------------------------------------------

    def new_input(self, location: str) -> "_Input":
        return _Input(location, self)

    def new_output(self, location: str) -> "_Output":
        return _Output(location, self)

    def delete(self, location: str | InputFile | OutputFile) -> None:
        self._store.delete(self._path(location if isinstance(location, str) else location.location))

    def read(self, location: str) -> bytes:
        """The content of a file; FileNotFoundError if there is none."""
        return self._store.read(self._path(location))

    def write(self, location: str, data: bytes) -> None:
        """Create a file whose name no other has."""
        self._store.write(self._path(location), data, overwrite=True)

    def delete_all(self, locations: Iterable[str]) -> None:
        """Delete files that nothing refers to; an error only leaves the file there."""
        for location in locations:
            try:
                self.delete(location)
            except Exception as error:
                logger.info("%s remains: %s", location, error)

    # --- versions -------------------------------------------------------------------------------------------------

    def current(self) -> tuple[int, TableMetadataV2 | None]:
        """The newest metadata and its number; (0, None) if there is none. Damaged metadata is None with its number.

        It costs three reads: of the hint, of the newest one, and of the number after it.
        """
        number = self._hinted() or 0
        content: bytes | None = None
        if number:
            content = self._data(number)
            while content is not None and (newer := self._data(number + 1)) is not None:
                number, content = number + 1, newer
        if content is None:  # there is no hint, or it is wrong
            number = max(self._numbers(), default=0)
            content = self._data(number) if number else None
        if content is None:
            return 0, None
        return number, self._parsed(number, content)

    def _parsed(self, number: int, content: bytes) -> TableMetadataV2 | None:
        """The metadata in a file; None if it is damaged, or of a version of the format that tablelog doesn't write."""
        try:
            metadata = TableMetadataUtil.parse_raw(content.decode())
        except Exception as error:  # pyiceberg raises errors of many classes for a damaged file
            name = f"{self.location}/{metadata_name(number)}"
            logger.warning("%s is damaged (%s): Iceberg's metadata is written anew", name, type(error).__name__)
            return None
        return metadata if isinstance(metadata, TableMetadataV2) else None

    def _hinted(self) -> int | None:
        try:
            text = self.read(_HINT).decode(errors="replace").strip()
        except FileNotFoundError:
            return None
        return int(text) if _NUMBER.fullmatch(text) else None

    def _numbers(self) -> list[int]:
        try:
            statuses = list(self._store.list_from(f"{self._uri}/v"))
        except FileNotFoundError:
            return []
        matches = (_NAME.fullmatch(status.path.rpartition("/")[2]) for status in statuses)
        return [int(match[1]) for match in matches if match]

    def _data(self, number: int) -> bytes | None:
        try:
            return self.read(metadata_name(number))
        except FileNotFoundError:
            return None

    def publish(self, number: int, metadata: TableMetadataV2) -> bool:
        """Create the metadata with this number; False if another writer created it.

        After any error the outcome is unknown.
        """
        data = metadata.model_dump_json().encode()
        path = self._path(metadata_name(number))
        try:
            self._store.write(path, data)
        except (FileExistsError, WriteOutcomeUnknown):
            if self._data(number) != data:
                return False
        return True

    def write_hint(self, number: int) -> None:
        """Write the hint so that it names the newest number, also if several writers write it at the same time."""
        while True:
            self._store.write(self._path(_HINT), str(number).encode(), overwrite=True)
            if self._data(number + 1) is None:
                return
            number += 1


class _Input(InputFile):
    def __init__(self, location: str, directory: MetadataDirectory) -> None:
        super().__init__(location)
        self._directory = directory

    def __len__(self) -> int:
        return len(self._directory.read(self.location))

    def exists(self) -> bool:
        try:
            return len(self) >= 0
        except FileNotFoundError:
            return False

    def open(self, seekable: bool = True) -> Any:
        return io.BytesIO(self._directory.read(self.location))


class _Output(OutputFile):
    """A file that is written to the store when its stream is closed."""

    def __init__(self, location: str, directory: MetadataDirectory) -> None:
        super().__init__(location)
        self._directory = directory
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def exists(self) -> bool:
        return self.to_input_file().exists()

    def to_input_file(self) -> _Input:
        return _Input(self.location, self._directory)

    def create(self, overwrite: bool = False) -> Any:
        return _Stream(self._finish)

    def _finish(self, data: bytes) -> None:
        self._size = len(data)
        self._directory.write(self.location, data)


class _Stream(io.BytesIO):
    def __init__(self, finish: Any) -> None:
        super().__init__()
        self._finish = finish

    def close(self) -> None:
        if not self.closed:
            self._finish(self.getvalue())
        super().close()
