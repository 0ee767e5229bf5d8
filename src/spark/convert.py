"""What names a table for CONVERT TO DELTA and CLONE: parquet.`path`, delta.`path`, or a path."""

import re

from pyspark.sql import SparkSession
from pyspark.sql.types import DataType, StructType

from ..core.deltalog import DeltaLog
from ..core.protocol import paths, schema
from ..core.table.snapshot import Snapshot
from ..dml.clone import Source
from ..dml.convert import convert
from ..engine.types import table_schema
from ..errors import InvalidArgumentError, UnsupportedFeatureError
from .conf import delta_log, session_conf
from .writer import commit_of

_BY_PATH = re.compile(r"\s*(\w+)\s*\.\s*`((?:[^`]|``)+)`\s*", re.DOTALL)
_ABSOLUTE = re.compile(r"/|[A-Za-z][A-Za-z0-9+.-]*:/")


def converted(
    spark: SparkSession, identifier: str, partition_schema: str | StructType | None, *, statistics: bool
) -> DeltaLog:
    """The log of the table that was made of the Parquet files of `identifier`, or was there."""
    match = _BY_PATH.fullmatch(identifier)
    if match is None:
        raise UnsupportedFeatureError(
            f"convertToDelta({identifier!r}): tables of Spark's catalog come with a later version of tablelog. Name "
            "the directory: parquet.`/path`"
        )
    provider, path = match[1].lower(), match[2].replace("``", "`")
    if provider == "iceberg":
        raise UnsupportedFeatureError(
            f"{path}: tables of Iceberg can't be converted. Read it with Spark and write it as a Delta table",
            ("iceberg",),
        )
    if provider not in ("parquet", "delta"):
        raise InvalidArgumentError(
            f"CONVERT TO DELTA takes a directory of Parquet files (parquet.`/path`), not {provider}"
        )
    log = delta_log(path, session_conf(spark, path))
    convert(spark, log, _columns(partition_schema), statistics=statistics, options=commit_of(spark))
    return log


def _columns(given: str | StructType | None) -> schema.StructType:
    if given is None:
        return schema.StructType()
    if isinstance(given, str):
        parsed = DataType.fromDDL(given)
        if not isinstance(parsed, StructType):
            raise InvalidArgumentError(f"partitionSchema is {given!r}: name columns, such as 'day date, n int'")
        given = parsed
    if not isinstance(given, StructType):
        raise TypeError(f"partitionSchema must be a string or a StructType, not {type(given).__name__}")
    return table_schema(given)


def named(snapshot: Snapshot) -> Source:
    """A version of a table by the name that Delta gives one that is no catalog's."""
    return Source(snapshot, f"delta.`{_hadoop(snapshot.table)}`")


def _hadoop(table: str) -> str:
    """A table's root as Hadoop prints it: nothing is encoded, and a local path has one slash."""
    place = paths.absolute(table, "")
    return f"file:{place}" if place.startswith("/") else place


def target_path(target: str) -> str:
    """The path that names the target of a clone."""
    match = _BY_PATH.fullmatch(target)
    if match is not None and match[1].lower() == "delta":
        return match[2].replace("``", "`")
    if _ABSOLUTE.match(target):
        return target
    raise UnsupportedFeatureError(
        f"clone({target!r}): tables of Spark's catalog come with a later version of tablelog. Name an absolute path"
    )
