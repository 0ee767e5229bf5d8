"""Opens the data files of a version, and the files of its deletion vectors, without Spark.

A file outside of the table's directory is opened only if `spark.tablelog.externalPaths` allows it (decision 50).
"""

from collections.abc import Iterable, Mapping
from typing import IO, TYPE_CHECKING, cast
from urllib.parse import unquote

from ...errors import CorruptLogError, MissingDataFileError, UntrustedTableError
from ...logstore.common.uri import shown
from ...logstore.data_files import DataFiles
from ...settings.declarations import EXTERNAL_PATHS
from ..protocol import deletion_vectors, external_paths, paths
from ..protocol.actions import DeletionVectorDescriptor
from ..protocol.deletion_vectors import DeletedRows

if TYPE_CHECKING:
    from ..deltalog import DeltaLog


def refused(log: "DeltaLog", in_log: Iterable[str]) -> str | None:
    """The first of some paths in the log that may not even be looked at; `None`: all are allowed."""
    return external_paths.refused(log.table, in_log, cast(external_paths.Policy, EXTERNAL_PATHS.of(log.conf)))


def check_allowed(log: "DeltaLog", in_log: Iterable[str]) -> None:
    """Raise UntrustedTableError if a path in the log is outside of the table, and the settings don't allow it."""
    path = refused(log, in_log)
    if path is not None:
        place, key = external_paths.shown(shown(path)), EXTERNAL_PATHS.key
        raise UntrustedTableError(
            f"{log.table} has a file outside of the table, {place}, and {key} is {EXTERNAL_PATHS.of(log.conf)}: it "
            f"wasn't read. If you trust the table, set {key} to allow",
            table=log.table,
            path=place,
        )


class TableData:
    """The data files of one table, by their paths in the log. Threads may share it."""

    def __init__(self, log: "DeltaLog") -> None:
        self._log = log
        self._inside = DataFiles.of(log.table, log.conf, log.storage_options)

    def open(self, path: str) -> IO[bytes]:
        """Open a file; MissingDataFileError if it doesn't exist, UntrustedTableError if it may not be read."""
        files, name = self._place(path)
        try:
            return files.open(name)
        except FileNotFoundError:
            raise self._missing(path) from None

    def vectors(
        self, path: str, descriptors: Iterable[DeletionVectorDescriptor]
    ) -> Mapping[DeletionVectorDescriptor, DeletedRows]:
        """The deletion vectors in one file.

        Raises:
            CorruptLogError: A vector is damaged.
            MissingDataFileError: The file doesn't exist.
            UntrustedTableError: The file is outside of the table.
        """
        files, name = self._place(path)
        try:
            return deletion_vectors.of_file(lambda start, end: files.read_range(name, start, end), list(descriptors))
        except FileNotFoundError:
            raise self._missing(path) from None
        except CorruptLogError as error:
            raise CorruptLogError(f"{self._log.table}, {paths.decode(path)}: {error}", path=path) from None

    def deleted_rows(self, descriptor: DeletionVectorDescriptor | None) -> DeletedRows | None:
        """The deleted rows of one data file; `None` if it has no vector."""
        if descriptor is None:
            return None
        if descriptor.storage_type == "i":
            return deletion_vectors.of_inline(descriptor)
        return self.vectors(deletion_vectors.path_of(descriptor), [descriptor])[descriptor]

    def _place(self, path: str) -> tuple[DataFiles, str]:
        name = paths.below(self._log.table, path)
        if name is not None:
            return self._inside, name
        check_allowed(self._log, [path])
        parent, _, base = paths.absolute_uri(self._log.table, path).rpartition("/")
        return DataFiles.of(parent, self._log.conf, self._log.storage_options), unquote(base)

    def _missing(self, path: str) -> MissingDataFileError:
        place = external_paths.shown(shown(paths.decode(path)))
        return MissingDataFileError(
            f"{self._log.table}: the file {place} doesn't exist. Restore it, or remove it from the table with "
            "`tablelog repair`",
            table=self._log.table,
            path=place,
        )
