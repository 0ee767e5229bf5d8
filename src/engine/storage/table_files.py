"""The files in a table's directory on any storage: `choose` selects how they are listed, checked and deleted.

- `LocalFiles`: by the operating system; never follows links.
- `HadoopTableFiles`: by Spark's own Hadoop client.
- `FsspecFiles`: by fsspec, if the JVM has no file system for the storage.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING
from urllib.parse import unquote

from ...core.protocol import paths
from ...core.table_maintenance.listing import grouped
from ...core.table_maintenance.table_files import (
    THREADS,
    FsspecFiles,
    LocalFiles,
    TableFiles,
    chunks,
    in_threads,
    of_table,
)
from ...core.table_maintenance.unneeded_files import Directory, ListedFile
from ...logstore.common import schemes
from ...logstore.common.uri import scheme_of
from ...settings.spark_own import LISTING_PARALLELISM
from ..jvm.connection import settings as session_settings
from ..jvm.connection.sessions import is_classic
from . import hadoop_settings

if TYPE_CHECKING:
    import pyarrow.parquet as pq
    from pyspark.sql import SparkSession

    from ...core.deltalog import DeltaLog
    from .hadoop_client import HadoopFiles

__all__ = ["THREADS", "FsspecFiles", "HadoopTableFiles", "LocalFiles", "TableFiles", "choose"]


def choose(spark: "SparkSession | None", log: "DeltaLog") -> TableFiles:
    """The implementation for the storage of a table; without a session, one that doesn't need Spark."""
    if scheme_of(log.table) != "file" and spark is not None and is_classic(spark):
        settings = hadoop_settings.reaching(spark, log.table, log.conf)
        if settings is not None:
            from .hadoop_client import HadoopFiles

            most = session_settings.of(spark, LISTING_PARALLELISM)
            threads = THREADS if most is None else min(max(most, 1), THREADS)
            return HadoopTableFiles(log.table, HadoopFiles(spark, settings), threads)
    return of_table(log)


# --- Spark's Hadoop client ----------------------------------------------------------------------------------------


class HadoopTableFiles:
    """Implements `TableFiles` by Hadoop. On storage without real directories, it uses one flat listing."""

    def __init__(self, table: str, files: "HadoopFiles", threads: int = THREADS) -> None:
        self._table = table.rstrip("/")
        self._files = files
        self._threads = threads

    def walk(self, hidden: Callable[[str], bool], below: str = "") -> Iterator[Directory]:
        if not schemes.about(scheme_of(self._table)).has_directories:
            return self._flat(hidden, below)
        return self._by_directory(hidden, below)

    def _flat(self, hidden: Callable[[str], bool], below: str) -> Iterator[Directory]:
        try:
            listed = self._files.list_recursive(self._uri(below) if below else self._table)
            start = len(self._uri("x")) - 1
            files = [(unquote(status.path[start:]), status.size, status.modification_time_ms) for status in listed]
        except FileNotFoundError:
            return iter(())
        return grouped(files, hidden, below)

    def _by_directory(self, hidden: Callable[[str], bool], below: str) -> Iterator[Directory]:
        level: list[tuple[str, int]] = [(below, 0)]
        while level:
            deeper: list[tuple[str, int]] = []
            for (name, modified), listed in zip(level, in_threads(self._children, level, self._threads), strict=True):
                if listed is None:
                    continue
                files, directories = listed
                kept = [directory for directory in directories if not hidden(directory[0])]
                passed = [entry[0] for entry in (*files, *directories) if hidden(entry[0])]
                seen = [file for file in files if not hidden(file.name)]
                yield Directory(name, seen, [directory[0] for directory in kept], passed, 0, modified)
                deeper.extend((f"{name}/{subdirectory}" if name else subdirectory, at) for subdirectory, at in kept)
            level = deeper

    def _children(self, directory: tuple[str, int]) -> tuple[list[ListedFile], list[tuple[str, int]]] | None:
        try:
            return self._files.list_children(self._uri(directory[0]) if directory[0] else self._table)
        except FileNotFoundError:
            return None

    def delete(self, names: Sequence[str], *, threads: int | None = None) -> int:
        parts = chunks([self._uri(name) for name in names])
        return sum(in_threads(self._files.delete_many, parts, threads or THREADS))

    def remove_directories(self, names: Sequence[str]) -> int:
        return sum(self._files.remove_empty(self._uri(name)) for name in names)

    def absent(self, paths_in_log: Sequence[str]) -> list[str]:
        def there(path: str) -> bool:
            return self._files.exists(paths.absolute_uri(self._table, path))

        answers = in_threads(there, paths_in_log, THREADS)
        return [path for path, exists in zip(paths_in_log, answers, strict=True) if not exists]

    def footer(self, file: ListedFile) -> "pq.FileMetaData":
        import pyarrow.parquet as pq

        with self._files.open_file(self._uri(file.name), file.size) as stream:
            return pq.read_metadata(stream)

    def same_place(self, path: str) -> str | None:
        return None

    def behind_links(self, names: Iterable[str]) -> set[str]:
        return set()

    def _uri(self, name: str) -> str:
        return paths.absolute_uri(self._table, paths.encode(name))
