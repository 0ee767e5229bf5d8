"""The Arrow route: Python workers read the files by pyarrow, through Spark's public Python data source.

This module makes the DataFrame. `arrow_source` has the data source, and `arrow_plan` what it reads from each file. The
options of the file systems are pickled with the data source; so neither options nor plans contain secrets. The list of
files is an option, because Spark Connect plans a frame more than once.
"""

import base64
import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from ....core.protocol import schema as schemas
from ....core.protocol.paths import absolute_uri
from ....logstore.data_files import file_system
from ....settings.spark_own import PYTHON_FILTER_PUSHDOWN
from ...connect import data_sources
from ...jvm import worker_python
from ...jvm.connection import settings
from ...jvm.connection.sessions import is_classic
from ...jvm.types import read_schema, spark_type
from ...storage import external_files
from ..deletion_vectors import Vectors, any_has_vector, plain_bitmap
from ..extra_columns import ExtraColumns
from ..scan_spec import ScanSpec
from .arrow_plan import DELETED, place_of
from .arrow_source import data_source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from ....core.deltalog import DeltaLog


def frame(spark: "SparkSession", log: "DeltaLog", scan: ScanSpec) -> "DataFrame":
    """The rows of a scan, without void columns."""
    if is_classic(spark):
        worker_python.check_planner(spark)
    snapshot, files, extra = scan.snapshot, scan.files, scan.extra
    # The user didn't select the version, so a write may pin the frame to another one (`pinning`).
    newest = not (scan.pinned or scan.added_names)
    shown = schemas.StructType((*read_schema(snapshot.schema).fields, *extra.fields))
    for name, kind in ((scan.file_number, schemas.INTEGER), (scan.row_index, schemas.LONG)):
        if name is not None:
            shown = schemas.StructType((*shown.fields, schemas.StructField(name, kind)))
    schemas.arrow_schema(shown)  # raises here, not in a worker, for a type that Arrow doesn't support
    # Spark raises an error for a reader with pushed filters unless pushdown is enabled.
    offered = settings.of(spark, PYTHON_FILTER_PUSHDOWN)
    if files is None:
        files = snapshot.files_with("stats") if offered else snapshot.files
    external_files.check_files(spark, snapshot.table, snapshot.version, files)
    if any_has_vector(files):
        rows = Vectors(spark, log).rows(files)
        maps = [None if vector_rows is None else plain_bitmap(vector_rows) for vector_rows in rows]
        files = files.append_column(DELETED, pa.array(maps, pa.large_binary()))
    source = data_source(_systems(log, files), takes_filters=offered)
    data_sources.register(spark, source)
    spec = {
        "table": snapshot.table,
        "version": snapshot.version,
        "newest": newest,
        "schema": schemas.to_json(snapshot.schema),
        "mode": snapshot.mapping.mode,
        "partition_columns": list(snapshot.partition_columns),
        "per_file": [[f.name, name] for f, name in extra.per_file],
        "number": scan.file_number,
        "row_index": scan.row_index,
        "zone": settings.time_zone(spark),
    }
    options = {"spec": json.dumps(spec), "files": _packed(files, extra)}
    return spark.read.format(source.name()).schema(spark_type(shown)).options(**options).load()


def _packed(files: pa.Table, extra: ExtraColumns) -> str:
    wanted = dict.fromkeys(("path", "partitionValues", "size", "stats", DELETED, *(name for _, name in extra.per_file)))
    chosen = files.select([name for name in wanted if name in files.column_names])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, chosen.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(chosen)
    return base64.b64encode(sink.getvalue()).decode()


def _systems(log: "DeltaLog", files: pa.Table) -> dict[str, tuple[str, dict[str, Any]]]:
    """`scheme://authority` of each location of files -> (module:Class, options) of its fsspec file system."""
    paths = files.column("path")
    elsewhere = paths.filter(pc.match_substring(paths, ":")).to_pylist()
    places = {place_of(absolute_uri(log.table, path)) for path in ("x", *elsewhere)}
    file_systems = {
        place: file_system(f"{place}/x", log.conf, log.storage_options) for place in places if place != "file://"
    }
    return {place: (system.implementation, dict(system.options)) for place, system in file_systems.items()}
