"""Data files written by Spark to a non-local file system of its JVM: HDFS and similar ones, or an object store.

If renames are cheap, Spark writes into a hidden staging directory of the table, and the driver renames the files. If a
rename is a copy, Spark writes directly into a new directory of the table. There, the magic committer of s3a, part of
the spark-hadoop-cloud jar, makes the files of the tasks visible when the job commits. Without that jar, the
FileOutputCommitter copies each file once more, which is correct, but slow.
"""

import logging
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING
from urllib.parse import unquote

from ....clock import SystemClock
from ....core.protocol import paths
from ....core.table_maintenance.vacuum import STAGING_PREFIX
from ....errors import StorageError
from ....logstore.common.uri import scheme_of
from ....settings.spark_own import PARQUET_COMMITTER, SOURCE_COMMIT_PROTOCOL
from ...jvm.connection.gateway import Gateway
from ...jvm.connection.java_errors import java_exception, text_with_causes, thrown_by_java
from ...jvm.registry import classes
from ...storage import access_errors
from ...storage.hadoop_client import HadoopFiles
from ...storage.parallel import in_parallel
from .. import cleanup
from ..write_spec import DataFile, WriteSpec
from . import spark_writer
from .spark_writer import StagedFile, value_of_directory

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

logger = logging.getLogger(__name__)

_MAGIC = {
    SOURCE_COMMIT_PROTOCOL.key: classes.CLOUD_COMMIT_PROTOCOL,
    PARQUET_COMMITTER.key: classes.CLOUD_PARQUET_COMMITTER,
    "fs.s3a.committer.name": "magic",
    "fs.s3a.committer.magic.enabled": "true",
}
_FACTORY = "org.apache.hadoop.fs.s3a.commit.S3ACommitterFactory"
_PLAIN = {SOURCE_COMMIT_PROTOCOL.key: classes.COMMIT_PROTOCOL, **spark_writer.COMMITTER}


class HadoopRoute:
    """Implements `WriteRoute` by Spark's Hadoop client. `settings` are Hadoop's; `renames`: a rename is no copy."""

    def __init__(
        self, spark: "SparkSession", table: str, settings: Mapping[str, str], *, renames: bool, below: str = ""
    ) -> None:
        start = f"{below}/" if below else ""
        self._own = f"{STAGING_PREFIX}{uuid.uuid4()}" if renames else f"{start}data-{uuid.uuid4()}"
        self._directory = f"{self._own}/{below}" if renames and below else self._own
        self.prefix = start if renames else f"{self._own}/"
        self._spark = spark
        self._table = table.rstrip("/")
        self._settings = settings
        self._renames = renames
        self._files = HadoopFiles(spark, settings)
        self._job_files: set[str] = set()
        self._published = False

    def write(self, df: "DataFrame", spec: WriteSpec) -> list[DataFile]:
        import pyarrow.parquet as pq

        def described(file: StagedFile) -> tuple[int, str]:
            with self._files.open_file(self._uri(f"{self._directory}/{file.name}"), file.size) as stream:
                return spec.described(pq.read_metadata(stream))

        try:
            wrote = spark_writer.run(
                df,
                spec,
                paths.absolute(self._table, self._directory),  # Hadoop expects path strings without URL encoding
                options={},
                settings={**self._committer(), **self._settings},
            )
        except thrown_by_java() as error:
            text = text_with_causes(java_exception(error))
            denied = access_errors.of_job(text, f"{self._table}: writing data files")
            if denied is None:
                raise
            raise denied from error
        staged = sorted(self._find(len(spec.partition_columns)), key=lambda file: file.name)
        return spark_writer.data_files(spec, staged, in_parallel(described, staged), self.prefix, wrote)

    def _committer(self) -> Mapping[str, str]:
        gateway = Gateway.of(self._spark)
        if scheme_of(self._table) in ("s3", "s3a", "s3n") and gateway.has_class(classes.CLOUD_COMMIT_PROTOCOL):
            return {**_MAGIC, f"mapreduce.outputcommitter.factory.scheme.{scheme_of(self._table)}": _FACTORY}
        return _PLAIN

    def _find(self, depth: int) -> Iterator[StagedFile]:
        try:
            statuses = list(self._files.list_recursive(self._uri(self._directory)))
        except FileNotFoundError:
            if self._renames:  # every job creates its directory; only object stores have no empty ones
                raise
            return
        for status in statuses:
            # Hadoop may spell the parent path differently; the directory name occurs only once.
            name = unquote(status.path.rpartition(f"/{self._directory}/")[2])
            self._job_files.add(name)
            *below, base = name.split("/")
            if len(below) == depth and base[0] not in "_." and all("=" in part for part in below):
                partition = tuple(map(value_of_directory, below))
                yield StagedFile(name, partition, status.size, status.modification_time_ms)

    def save(self, name: str, make: "Callable[[pa.NativeFile], None]") -> tuple[int, int]:
        import pyarrow as pa

        with pa.BufferOutputStream() as stream:
            make(stream)
            data = stream.getvalue().to_pybytes()
        self._files.write(self._uri(f"{self._directory}/{name.removeprefix(self.prefix)}"), data)
        return len(data), SystemClock().now_ms()

    def publish(self, names: Sequence[str], *, durable: bool) -> None:
        if self._renames:
            try:
                in_parallel(self._rename, list(names))
            except BaseException:
                with cleanup.errors_logged(self._table):
                    self.remove(names)
                raise
            return
        kept = set(names)
        self.remove([name for name in (self.prefix + name for name in self._job_files) if name not in kept])
        self._published = True

    def _rename(self, name: str) -> None:
        self._files.rename(self._uri(f"{self._directory}/{name.removeprefix(self.prefix)}"), self._uri(name))

    def clear(self) -> None:
        if self._published:
            return
        try:
            self._files.delete(self._uri(self._own), recursive=True)
        except StorageError as error:
            logger.warning("%s: files of a failed write remain in %s: %s", self._table, self._own, error)

    def remove(self, names: Sequence[str]) -> None:
        in_parallel(lambda name: self._files.delete(self._uri(name)), list(names))

    def _uri(self, name: str) -> str:
        return paths.absolute_uri(self._table, paths.encode(name))
