"""The listed route: on Spark Connect, Spark's own Parquet scan over the paths of a version's files (see `routes`).

If the directory of each file says its partition values, as most writers name them, Spark reads the values from there
and skips files by them. Otherwise the values are joined by the file's path, and filters on them skip nothing.
"""

import json
import re
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from ....core.protocol import paths
from ....core.protocol import schema as schemas
from ....errors import UnsupportedEnvironmentError, UnsupportedFeatureError
from ....settings.spark_own import PARQUET_FIELD_IDS
from ...connect.plain_paths import with_scheme, without_pattern
from ...jvm.connection import settings
from ...jvm.types import read_schema, spark_type
from ...sql.column_names import columns_read, renamed, with_extra
from ...sql.hidden_names import free_names
from ...sql.resolution import column_named
from ...storage import external_files
from ..deletion_vectors import Hidden, Vectors, any_has_vector, is_live
from ..scan_spec import ScanSpec
from .file_constants import file_constants

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame, SparkSession

    from ....core.deltalog import DeltaLog

MARK = "tablelog.scan"
"""An option of each scan: JSON with `table`, `version` and `newest` (whether no version was selected)."""
_MARK_OF_EMPTY = re.compile(r"\btablelog_scan_((?:[0-9a-f]{2})+)\b")
"""A version without files has no scan. The alias of its frame has the same JSON, in hexadecimal digits."""

_ADDED = ("__tablelog_path", "__tablelog_path_of_row", "__tablelog_place")
_MOST_BYTES = 96 << 20
"""The paths in one plan. A message to the server has at most 128 MiB, unless both sides are configured otherwise."""

_PLAIN = r"^[A-Za-z0-9_./=:\-]+$"
# Types whose values Spark reads from names of directories as the log writes them, in each time zone.
_IN_DIRECTORIES = (schemas.STRING, schemas.BYTE, schemas.SHORT, schemas.INTEGER, schemas.LONG, schemas.DATE)


def frame(spark: "SparkSession", log: "DeltaLog", spec: ScanSpec) -> "DataFrame":
    """The rows of a scan, without void columns.

    Raises UnsupportedEnvironmentError for more files than a plan can name, UnsupportedFeatureError for a file whose
    name Spark would ignore.
    """
    snapshot, extra = spec.snapshot, spec.extra
    files = snapshot.files if spec.files is None else spec.files
    external_files.check_files(spark, snapshot.table, snapshot.version, files)
    table, mapping = snapshot.table, with_extra(snapshot.mapping, extra.stored)
    schema, partition_columns = columns_read(mapping), mapping.physical_partition_columns
    fields = {f.name: f for f in schema.select(partition_columns)}
    locations = _locations(table, files)
    in_directories = bool(fields) and _says_values(files, list(fields.values()))
    records = _records(spark, spec, locations, schema, tuple(fields), in_directories=in_directories)

    more = spec.constant_names
    taken = {*mapping.logical.names, *schema.names, *more}
    key, key_of_row, place = free_names(_ADDED, taken)
    hidden = Hidden(Vectors(spark, log), {*taken, key, key_of_row, place}) if any_has_vector(files) else None
    of_rows: dict[str, Column] = {}
    of_record = records.metadataColumn("_metadata") if files.num_rows else None  # also if the table has such a column
    if of_record is not None and spec.row_index is not None:
        of_rows[spec.row_index] = of_record["row_index"]
    if of_record is not None and hidden is not None:
        of_rows[place] = of_record["row_index"]
    from_log = () if in_directories or not files.num_rows else partition_columns
    zone = settings.time_zone(spark)
    kinds, values = file_constants(spec, files, schema, from_log, hidden, time_zone=zone)
    if values and of_record is not None:
        plain = bool(pc.all(pc.match_substring_regex(pa.array(locations, pa.string()), _PLAIN)).as_py())
        local = any(location.startswith("file:") for location in locations)
        path_of_row = _path_of(of_record["file_path"], plain=plain, local=local)
        constants = pa.table({**values, key: pa.array([same(location) for location in locations], pa.string())})
        known = spark.createDataFrame(
            constants, spark_type(schemas.StructType((*kinds, schemas.StructField(key, schemas.STRING))))
        )
        records = _joined(records.withColumns({**of_rows, key_of_row: path_of_row}), known, key_of_row, key, table)
        if hidden is not None:
            records = records.where(is_live(records[hidden.deleted], records[place]))
    elif of_rows:
        records = records.withColumns(of_rows)
    if mapping.active or (in_directories and any(field.metadata for field in fields.values())):
        # Spark drops the metadata of columns whose values it reads from directories, such as the length of a char.
        return renamed(records, schema, read_schema(mapping.logical), more)
    return records.select(*map(column_named, [*schema.names, *more]))


def _records(
    spark: "SparkSession",
    spec: ScanSpec,
    locations: "Sequence[str]",
    schema: schemas.StructType,
    partition_columns: "Sequence[str]",
    *,
    in_directories: bool,
) -> "DataFrame":
    """The rows of the files with the columns of `schema`, without the partition columns unless `in_directories`."""
    snapshot = spec.snapshot
    mark = json.dumps({"table": snapshot.table, "version": snapshot.version, "newest": not spec.pinned})
    if not locations:
        more = [*spec.extra.per_file_fields]
        more += [schemas.StructField(n, schemas.INTEGER) for n in (spec.file_number,) if n is not None]
        more += [schemas.StructField(n, schemas.LONG) for n in (spec.row_index,) if n is not None]
        none = spark.createDataFrame([], spark_type(schemas.StructType((*schema.fields, *more))))
        return none.alias(f"tablelog_scan_{mark.encode().hex()}")
    size = sum(map(len, locations))
    if size > _MOST_BYTES:
        raise UnsupportedEnvironmentError(
            f"version {snapshot.version} of {snapshot.table} has {len(locations)} files, whose paths have "
            f"{size >> 20} MiB: a plan of Spark Connect can't name so many. Read the table in a classic session, or "
            "compact it there (OPTIMIZE)",
            table=snapshot.table,
            version=snapshot.version,
        )
    if snapshot.mapping.mode == "id" and spark.conf.get(PARQUET_FIELD_IDS.key) != "true":
        # An option of the reader would arrive in lower case. Only schemas with field IDs are affected.
        spark.conf.set(PARQUET_FIELD_IDS.key, "true")
    reader = spark.read.options(**spec.options).option(MARK, mark)
    if in_directories:
        root = same(_location(snapshot.table, ""))
        reader = reader.schema(spark_type(schema)).option("basePath", root)
    else:
        # With recursiveFileLookup, Spark derives no partition columns from directory names.
        reader = reader.schema(spark_type(schema.without(partition_columns))).option("recursiveFileLookup", "true")
    return reader.parquet(*map(without_pattern, dict.fromkeys(locations)))


def mark_of(relation: Any) -> dict[str, Any]:
    """The `MARK` of a relation (`spark.connect.Relation`) that is a scan, else nothing."""
    if relation.WhichOneof("rel_type") == "subquery_alias":
        return next(iter(marks_in(relation.subquery_alias.alias)), {})
    text = ""
    if relation.WhichOneof("rel_type") == "read" and relation.read.HasField("data_source"):
        text = relation.read.data_source.options.get(MARK)
    found: dict[str, Any] = json.loads(text) if text else {}
    return found


def marks_in(explained: str) -> list[dict[str, Any]]:
    """The marks of versions without files in the explanation of a plan, also those behind names."""
    return [json.loads(bytes.fromhex(text)) for text in _MARK_OF_EMPTY.findall(explained)]


def _joined(records: "DataFrame", known: "DataFrame", key_of_row: str, key: str, table: str) -> "DataFrame":
    """The rows with the constants of their file; a file that is referenced twice has its rows twice."""
    from pyspark.sql import functions as F

    joined = records.join(F.broadcast(known), F.col(key_of_row) == F.col(key), "left")
    # Without this check, a file that isn't matched would silently lose its values.
    lost = F.raise_error(F.concat(F.lit(f"a file was read that is not part of {table}: "), F.col(key_of_row)))
    return joined.where(F.when(F.col(key).isNull(), lost.cast("boolean")).otherwise(F.lit(True)))


def _path_of(file_path: "Column", *, plain: bool, local: bool) -> "Column":
    """The path of a record's file as `same` spells it. Java and Python encode different sets of characters."""
    from pyspark.sql import functions as F

    if not plain:
        file_path = F.url_decode(F.replace(file_path, F.lit("+"), F.lit("%2B")))
    return F.regexp_replace(file_path, "^file:/+", "file:/") if local else file_path


def same(location: str) -> str:
    """A location that isn't URL-encoded, with one spelling for a local file."""
    return re.sub("^file:/+", "file:/", location)


def plain(path: str) -> str:
    """The location of a path in a plan, as `same` spells it."""
    return same(re.sub(r"\\(.)", r"\1", path))


def _locations(table: str, files: pa.Table) -> list[str]:
    """The path of each file as Hadoop expects it: with a scheme, and not URL-encoded."""
    result = [_location(table, path) for path in files.column("path").to_pylist()]
    for location in result:
        name = location.rpartition("/")[2]
        if name[:1] in "_." or not _is_text(location):
            raise UnsupportedFeatureError(
                f"{table} has the file {location!r}, whose name Spark ignores or can't be sent to it on Spark Connect: "
                "read the table in a classic session",
                ("names of files on Spark Connect",),
                table=table,
            )
    return result


def _location(table: str, path: str) -> str:
    return with_scheme(paths.absolute(table, path))


def _is_text(location: str) -> bool:
    try:
        location.encode()
    except UnicodeEncodeError:  # bytes that aren't UTF-8
        return False
    return True


def _says_values(files: pa.Table, fields: "Sequence[schemas.StructField]") -> bool:
    """Whether Spark reads the same partition values from the directories of all files as the log has."""
    if not files.num_rows or any(f.data_type not in _IN_DIRECTORIES for f in fields):
        return False
    names = [f.name for f in fields]
    if any(name != name.strip() for name in names):
        return False
    for path, entries in zip(
        files.column("path").to_pylist(), files.column("partitionValues").to_pylist(), strict=True
    ):
        values = dict(entries)
        if values.keys() != set(names) or any(value == "" for value in values.values()):
            return False
        directory = paths.decode(path).rpartition("/")[0]
        if ":" in path.partition("/")[0] or directory != paths.partition_directory(names, values):
            return False
    return True
