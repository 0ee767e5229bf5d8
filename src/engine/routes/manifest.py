"""The manifest route: Spark's own scan of a list of files, with no JVM gateway (see `routes`)."""

import atexit
import json
import shutil
import uuid
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from ...core.protocol import paths
from ...core.protocol import schema as schemas
from ...core.protocol.partition_values import typed_columns
from ..bulk_listing import uris
from ..types import spark_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_KEY = "__tablelog_path"
# The path of a record's file, decoded: Java leaves characters as they are that Python encodes.
_FILE = "url_decode(replace(_metadata.file_path, '+', '%2B'))"


@lru_cache(maxsize=8)
def _scratch(directory: str) -> Path:
    """A directory of this process's own below `directory`, which goes when the process ends."""
    own = Path(directory) / f"tablelog-{uuid.uuid4()}"
    own.mkdir(parents=True)
    atexit.register(shutil.rmtree, own, ignore_errors=True)
    return own


def _entry(uri: str, size: int, modified: int) -> str:
    return json.dumps(
        {
            "path": uri,
            "size": size,
            "isDir": False,
            "modificationTime": modified,
            "blockReplication": 1,
            "blockSize": 128 << 20,
            "action": "add",
        }
    )


def frame(
    spark: "SparkSession",
    scratch: str,
    table: str,
    files: pa.Table,
    schema: schemas.StructType,
    *,
    partition_columns: tuple[str, ...],
    file_number: str | None,
    options: Mapping[str, str],
) -> "DataFrame":
    """The rows of the files, in the order of the schema's columns; `scratch` is the shared directory."""
    from pyspark.sql import functions as F

    target = _scratch(scratch) / str(uuid.uuid4())
    (target / "_spark_metadata").mkdir(parents=True)
    locations = uris(table, files)
    sizes, times = files.column("size").to_pylist(), files.column("modificationTime").to_pylist()
    lines = ["v1", *map(_entry, locations, sizes, (time or 0 for time in times))]
    (target / "_spark_metadata" / "0").write_text("\n".join(lines), encoding="utf-8")

    data = spark_type(schema.without(partition_columns))
    # With the look-up in depth Spark takes no partition columns from the names of directories.
    reader = spark.read.schema(data).options(**options).option("recursiveFileLookup", "true")
    found = reader.parquet(str(target))
    values = typed_columns(
        files, schema, partition_columns, time_zone=str(spark.conf.get("spark.sql.session.timeZone"))
    )
    if file_number is not None:
        values = values.append_column(file_number, pa.array(range(files.num_rows), pa.int32()))
    if not values.num_columns:
        return found
    decoded = [_as_spark_names(paths.absolute(table, path)) for path in files.column("path").to_pylist()]
    fields = [*schema.select(partition_columns).fields]
    fields = [schemas.StructField(f.name, f.data_type) for f in fields]
    if file_number is not None:
        fields.append(schemas.StructField(file_number, schemas.INTEGER))
    kinds = spark_type(schemas.StructType((*fields, schemas.StructField(_KEY, schemas.STRING))))
    constants = spark.createDataFrame(
        pa.table({**{f.name: values.column(f.name) for f in fields}, _KEY: pa.array(decoded, pa.string())}), kinds
    )
    joined = found.withColumn(f"{_KEY}_of_row", F.expr(_FILE)).join(
        F.broadcast(constants), F.col(f"{_KEY}_of_row") == F.col(_KEY), "left"
    )
    # A file that isn't found again would lose its values in silence.
    lost = F.raise_error(F.concat(F.lit(f"a file that {table} doesn't list was read: "), F.col(f"{_KEY}_of_row")))
    joined = joined.where(F.when(F.col(_KEY).isNull(), lost.cast("boolean")).otherwise(F.lit(True)))
    names = [*schema.names, *([] if file_number is None else [file_number])]
    return joined.select(*(F.col("`" + name.replace("`", "``") + "`") for name in names))


def _as_spark_names(location: str) -> str:
    """A decoded location as the decoded `_metadata.file_path` spells it."""
    return location if "://" in location else f"file:{location}"
