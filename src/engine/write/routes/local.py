"""Data files on a local file system: Spark writes them into a staging directory, and the driver renames them.

A staging directory is inside the table's directory, so that a rename suffices. Its name starts with an underscore, so
that readers ignore it, and the VACUUM of other engines keeps it while a job may still write to it. A file's final name
relative to the table is the partition directory and the file name of the job, which contains a UUID. File names are
unique within one directory only: jobs repeat them in several partition directories.
"""

import errno
import logging
import os
import shutil
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from ....core.protocol import paths
from ....core.table_maintenance.vacuum import STAGING_PREFIX
from ...storage.parallel import in_parallel
from ..write_spec import DataFile, WriteSpec
from . import spark_writer
from .spark_writer import StagedFile, value_of_directory

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

logger = logging.getLogger(__name__)

_TRIES = 5
_OPTIONS = {
    # No checksum file per data file: small files are written a third faster, and renames leave no stale ones.
    "fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "fs.file.impl.disable.cache": "true",
}


class LocalRoute:
    """Implements `WriteRoute` on a local file system. `table` is the table's canonical URI."""

    def __init__(self, table: str, below: str = "") -> None:
        self.prefix = f"{below}/" if below else ""
        self._root = paths.absolute(table, "")
        self._directory = new_directory(self._root)

    def write(self, df: "DataFrame", spec: WriteSpec) -> list[DataFile]:
        import pyarrow.parquet as pq

        directory = os.path.join(self._directory, self.prefix.rstrip("/")).rstrip("/")
        wrote = spark_writer.run(df, spec, directory, options=_OPTIONS, settings={})
        staged = find(directory, spec.partition_columns)
        spark_writer.check_found(df, staged, self._root)
        described = in_parallel(lambda file: spec.described(pq.read_metadata(f"{directory}/{file.name}")), staged)
        return spark_writer.data_files(spec, staged, described, self.prefix, wrote)

    def save(self, name: str, make: "Callable[[pa.NativeFile], None]") -> tuple[int, int]:
        import pyarrow as pa

        path = os.path.join(self._directory, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with pa.OSFile(path, "wb") as stream:
            make(stream)
        status = os.stat(path)
        return status.st_size, status.st_mtime_ns // 1_000_000

    def publish(self, names: Sequence[str], *, durable: bool) -> None:
        publish(self._directory, self._root, names, durable=durable)

    def clear(self) -> None:
        clear(self._directory)

    def remove(self, names: Sequence[str]) -> None:
        remove(self._root, names)


def new_directory(root: str) -> str:
    """A unique name for a staging directory; the first file that is written creates it."""
    return os.path.join(root, f"{STAGING_PREFIX}{uuid.uuid4()}")


def find(directory: str, partition_columns: Sequence[str]) -> list[StagedFile]:
    """The data files of a finished job, in the order of their names."""
    if not os.path.isdir(directory):
        return []
    return sorted(_find(directory, "", len(partition_columns), ()), key=lambda staged: staged.name)


def _find(directory: str, below: str, depth: int, partition: tuple[str | None, ...]) -> Iterator[StagedFile]:
    with os.scandir(os.path.join(directory, below) if below else directory) as entries:
        for entry in entries:
            name = f"{below}/{entry.name}" if below else entry.name
            if depth:
                if entry.is_dir(follow_symlinks=False) and "=" in entry.name:
                    yield from _find(directory, name, depth - 1, (*partition, value_of_directory(entry.name)))
            elif entry.name[0] not in "_." and entry.is_file(follow_symlinks=False):
                status = entry.stat()
                yield StagedFile(name, partition, status.st_size, status.st_mtime_ns // 1_000_000)


def publish(directory: str, root: str, names: Sequence[str], *, durable: bool) -> None:
    """Rename each file from `directory` to the same relative name below `root`.

    With `durable`, the files and all changed directories are synced to disk, so they are as durable as the commit that
    will reference them. On an error, no file is left in the table if it can be deleted.
    """
    if durable:
        in_parallel(_sync, [os.path.join(directory, name) for name in names])
    changed: set[str] = set()
    moved: list[str] = []
    try:
        for below in sorted({os.path.dirname(name) for name in names}):
            changed.update(_make_directories(root, below))
        for name in names:
            moved.append(name)
            try:
                os.rename(os.path.join(directory, name), os.path.join(root, name))
            except FileNotFoundError:  # another engine's VACUUM deleted the empty directory
                changed.update(_make_directories(root, os.path.dirname(name)))
                os.rename(os.path.join(directory, name), os.path.join(root, name))
        if durable:
            in_parallel(_sync, sorted(changed))
    except BaseException:
        _take_back(root, moved)
        raise


def _take_back(root: str, names: Sequence[str]) -> None:
    # An error here is only logged: the one that made the write fail is the one to report.
    errors = []
    for name in names:
        try:
            remove(root, [name])
        except OSError as error:
            errors.append(error)
    if errors:
        logger.warning(
            "%d files of a failed write could not be deleted and are left to VACUUM: %s", len(errors), errors[0]
        )


def _make_directories(root: str, below: str) -> Iterator[str]:
    # All directories whose entries change: the one that gets the files, and the parent of each new one.
    target = os.path.join(root, below) if below else root
    yield target
    missing: list[str] = []
    while not os.path.isdir(target):
        missing.append(target)
        target = os.path.dirname(target)
        yield target
    for directory in reversed(missing):
        os.makedirs(directory, exist_ok=True)


def sync(root: str, names: Sequence[str]) -> None:
    """Sync files below `root`, and their parent directories, to disk."""
    in_parallel(_sync, [os.path.join(root, name) for name in names])
    directories = {root}
    for name in names:
        while name := os.path.dirname(name):
            directories.add(os.path.join(root, name))
    in_parallel(_sync, sorted(directories))


def _sync(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove(root: str, names: Iterable[str]) -> None:
    """Delete files by their names relative to `root`; missing files are ignored. Directories are kept."""
    for name in names:
        try:
            os.unlink(os.path.join(root, name))
        except FileNotFoundError:
            continue


def clear(directory: str) -> None:
    """Delete a staging directory with all its files; a missing one is ignored.

    A task that Spark is about to kill may still create and delete files there: an attempt that another one overtook.
    """
    for _ in range(_TRIES):
        try:
            shutil.rmtree(directory)
        except FileNotFoundError:
            if not os.path.lexists(directory):
                return
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
    if os.path.lexists(directory):
        logger.warning("files of a write remain in %s, which VACUUM removes: tasks still write there", directory)
