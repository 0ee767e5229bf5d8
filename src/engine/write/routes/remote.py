"""Data files of a Spark Connect session: the server's Spark writes them, this process reads their footers by fsspec.

Spark writes below a new directory of the table, where the files stay: nothing is renamed. It has no name by which
readers or the VACUUM of other engines would ignore it.
"""

import logging
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from ....clock import SystemClock
from ....core.protocol import paths
from ....errors import StorageError
from ....logstore.data_files import DataFiles
from ...storage.parallel import in_parallel
from ..write_spec import DataFile, WriteSpec
from . import spark_writer
from .spark_writer import COMMITTER, StagedFile, value_of_directory

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

logger = logging.getLogger(__name__)


class RemoteRoute:
    """Implements `WriteRoute` for a server of Spark Connect. `files` is the table's directory."""

    def __init__(self, files: DataFiles, below: str = "") -> None:
        self._files = files
        self._directory = f"{below}/data-{uuid.uuid4()}" if below else f"data-{uuid.uuid4()}"
        self.prefix = f"{self._directory}/"
        self._written: set[str] = set()
        self._ran = False
        self._published = False

    def write(self, df: "DataFrame", spec: WriteSpec) -> list[DataFile]:
        self._ran = True
        directory = paths.absolute(self._files.root, self._directory)  # Hadoop expects paths without URL encoding
        spark_writer.run(df, spec, directory, options=COMMITTER, settings={})
        staged = sorted(self._find(len(spec.partition_columns)), key=lambda file: file.name)
        spark_writer.check_found(df, staged, self._files.root)
        described = in_parallel(lambda file: self._described(file, spec), staged)
        return spark_writer.data_files(spec, staged, described, self.prefix)

    def _described(self, file: StagedFile, spec: WriteSpec) -> tuple[int, str]:
        import pyarrow.parquet as pq

        with self._files.open(f"{self.prefix}{file.name}") as stream:
            return spec.described(pq.read_metadata(stream))

    def _find(self, depth: int) -> Iterator[StagedFile]:
        for name, size, modified_ms in self._files.statuses(self._directory):
            self._written.add(name)
            *below, base = name.removeprefix(self.prefix).split("/")
            if len(below) == depth and base[0] not in "_." and all("=" in part for part in below):
                yield StagedFile("/".join((*below, base)), tuple(map(value_of_directory, below)), size, modified_ms)

    def save(self, name: str, make: "Callable[[pa.NativeFile], None]") -> tuple[int, int]:
        import pyarrow as pa

        with pa.BufferOutputStream() as stream:
            make(stream)
            data = stream.getvalue().to_pybytes()
        self._ran = True
        self._files.write(name, data)
        return len(data), SystemClock().now_ms()

    def publish(self, names: Sequence[str], *, durable: bool) -> None:
        self._files.delete(self._written - set(names))
        self._published = True

    def clear(self) -> None:
        if self._published or not self._ran:
            return
        try:
            self._files.delete_all(self._directory)
        except StorageError as error:
            logger.warning("%s: files of a failed write remain below %s: %s", self._files.root, self.prefix, error)

    def remove(self, names: Sequence[str]) -> None:
        self._files.delete(names)
