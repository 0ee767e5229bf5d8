"""The manifest route: Spark's own scan over a list of files, without a JVM gateway (see `routes`)."""

import atexit
import json
import shutil
import uuid
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from ....core.protocol import paths
from ....core.protocol import schema as schemas
from ...jvm.connection import settings
from ...jvm.types import read_schema, spark_type
from ...sql.column_names import columns_read, renamed, with_extra
from ...sql.hidden_names import free_names
from ...sql.resolution import column_named
from ...storage import external_files
from .. import read_errors
from ..bulk_listing import uris
from ..deletion_vectors import Hidden, Vectors, any_has_vector, is_live
from ..scan_spec import ScanSpec
from . import scratch_of
from .file_constants import file_constants

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from ....core.deltalog import DeltaLog

_ADDED = ("__tablelog_path", "__tablelog_path_of_row", "__tablelog_place")


@lru_cache(maxsize=8)
def _own_scratch(directory: str) -> Path:
    """A directory of this process below `directory`, which is deleted when the process ends."""
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


def frame(spark: "SparkSession", log: "DeltaLog", spec: ScanSpec) -> "DataFrame":
    """The rows of a scan, without void columns. Needs a scratch directory (`READ_SCRATCH`).

    Not for columns mapped by field ID: the reader converts option names to lower case, and the required option is
    case-sensitive.
    """
    from pyspark.sql import functions as F

    snapshot, extra = spec.snapshot, spec.extra
    files = snapshot.files if spec.files is None else spec.files
    read_errors.remember(snapshot.table, snapshot.version)
    external_files.check_files(spark, snapshot.table, snapshot.version, files)
    table, mapping = snapshot.table, with_extra(snapshot.mapping, extra.stored)
    schema, partition_columns = columns_read(mapping), mapping.physical_partition_columns
    target = _own_scratch(scratch_of(spark) or "") / str(uuid.uuid4())
    (target / "_spark_metadata").mkdir(parents=True)
    locations = uris(table, files)
    sizes, times = files.column("size").to_pylist(), files.column("modificationTime").to_pylist()
    # A file is read once, and joined with all rows of `files` that reference it.
    entries = dict.fromkeys(map(_entry, locations, sizes, (time or 0 for time in times)))
    lines = ["v1", *entries]
    (target / "_spark_metadata" / "0").write_text("\n".join(lines), encoding="utf-8")

    data = spark_type(schema.without(partition_columns))
    # With recursiveFileLookup, Spark derives no partition columns from directory names.
    reader = spark.read.schema(data).options(**spec.options).option("recursiveFileLookup", "true")
    records = reader.parquet(str(target))
    more = spec.constant_names
    taken = {*mapping.logical.names, *schema.names, *more}
    key, key_of_row, place = free_names(_ADDED, taken)
    of_record = records.metadataColumn("_metadata")  # also if the table has a column with that name
    # The decoded path of a record's file: Java and Python encode different sets of characters.
    path_of_record = F.url_decode(F.replace(of_record["file_path"], F.lit("+"), F.lit("%2B")))
    hidden = Hidden(Vectors(spark, log), {*taken, key, key_of_row, place}) if any_has_vector(files) else None
    of_rows = {} if spec.row_index is None else {spec.row_index: of_record["row_index"]}
    if hidden is not None:
        of_rows[place] = of_record["row_index"]
    zone = settings.time_zone(spark)
    fields, values = file_constants(spec, files, schema, partition_columns, hidden, time_zone=zone)
    if not values:
        records = records.withColumns(of_rows) if of_rows else records
        if mapping.active:
            return renamed(records, schema, read_schema(mapping.logical), more)
        # A plan that is only a relation could be the target of an INSERT: Spark would write to `target`.
        return records.select(*map(column_named, records.columns))
    decoded = [_as_spark_names(paths.absolute(table, path)) for path in files.column("path").to_pylist()]
    kinds = spark_type(schemas.StructType((*fields, schemas.StructField(key, schemas.STRING))))
    constants = spark.createDataFrame(pa.table({**values, key: pa.array(decoded, pa.string())}), kinds)
    located = records.withColumns({**of_rows, key_of_row: path_of_record})
    joined = located.join(F.broadcast(constants), F.col(key_of_row) == F.col(key), "left")
    # Without this check, a file that isn't matched would silently lose its values.
    lost = F.raise_error(F.concat(F.lit(f"a file was read that is not part of {table}: "), F.col(key_of_row)))
    joined = joined.where(F.when(F.col(key).isNull(), lost.cast("boolean")).otherwise(F.lit(True)))
    if hidden is not None:
        joined = joined.where(is_live(joined[hidden.deleted], joined[place]))
    if mapping.active:
        return renamed(joined, schema, read_schema(mapping.logical), more)
    return joined.select(*map(column_named, [*schema.names, *more]))


def _as_spark_names(location: str) -> str:
    """A decoded location, spelled as in the decoded `_metadata.file_path`."""
    return location if "://" in location else f"file:{location}"
