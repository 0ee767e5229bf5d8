"""CONVERT TO DELTA: turns a directory of Parquet files into a table, in place; no data file is changed."""

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import SparkSession

from ...core.deltalog import DeltaLog
from ...core.protocol import column_mapping, partition_values, paths, properties, schema
from ...core.protocol.actions import AddFile
from ...core.protocol.schema import BYTE, INTEGER, SHORT, DataType, PrimitiveType, StructType
from ...core.schema_evolution.merging import merged_schema
from ...core.table_maintenance.unneeded_files import ListedFile
from ...core.txn.operation import Operation
from ...core.txn.transaction import Committed, Transaction
from ...engine.connect.plain_paths import with_scheme
from ...engine.jvm.connection import settings
from ...engine.storage import foreign_parquet, table_files
from ...engine.storage.parallel import in_parallel
from ...engine.storage.table_files import TableFiles
from ...engine.write.routes.spark_writer import value_of_directory
from ...errors import (
    CorruptLogError,
    InvalidArgumentError,
    SchemaMismatchError,
    StorageError,
    TableNotFoundError,
    UnsupportedFeatureError,
)
from ...progress import stage
from ...settings.declarations import CONVERT_IGNORES_CAST_FAILURE, PROPERTY_DEFAULTS
from ...settings.spark_own import IGNORE_CORRUPT_FILES
from ..command.command import PLAIN, Command, CommitOptions, command_scope
from ..command.target_metadata import new_table

if TYPE_CHECKING:
    import pyarrow.parquet as pq

logger = logging.getLogger(__name__)

_BATCH = 10_000
_WIDER = (BYTE, SHORT, INTEGER)


def convert(
    spark: SparkSession,
    log: DeltaLog,
    partition_schema: StructType,
    *,
    statistics: bool = True,
    partitions: Collection[str] | None = None,
    catalog_name: str | None = None,
    options: CommitOptions = PLAIN,
) -> Committed | None:
    """Create a table from the Parquet files in a directory. Returns None if it is a Delta table already.

    `partition_schema` has the partition columns of the directories (`name=value`). `partitions` are the partition
    directories that belong to the table, if a catalog lists them: InvalidArgumentError if other directories have
    files. `catalog_name` is the table's name in the catalog, for the history. Statistics are derived from the files'
    footers, unless `statistics` is False. Raises TableNotFoundError if the directory doesn't exist or has no files,
    InvalidArgumentError for directories that don't match `partition_schema` and for files that aren't Parquet,
    SchemaMismatchError for files with incompatible schemas, UnsupportedFeatureError, the `StorageError` group.
    """
    with command_scope(spark, "CONVERT TO DELTA", log.table):
        txn = log.transaction()
        if txn.snapshot is not None:
            logger.info("%s is a Delta table already: nothing to convert", log.table)
            return None
        txn.read_whole_table()  # the commit depends on the contents of the directory: it is no blind append
        command = Command(spark, log, txn, options)
        files = table_files.choose(spark, log)
        listed = _listed(files, log.table)
        if partitions is not None:
            _check_known(listed, partitions, log.table)
        values = _partition_values(
            listed, partition_schema, log.table, checked=not settings.of(spark, CONVERT_IGNORES_CAST_FAILURE)
        )
        table_properties = properties.TableProperties(properties.defaults_from(log.conf))
        sources = _Sources(spark, files, log.table, partition_schema.names, table_properties if statistics else None)
        for start in range(0, len(listed), _BATCH):
            stage("reading footers", start, len(listed))
            sources.read(listed[start : start + _BATCH])
        _stage(txn, _with_partitions(sources.merged, partition_schema), partition_schema.names, log)
        adds = [
            AddFile(
                path=paths.encode(source.file.name),
                partition_values=values[_directory(source.file)],
                size=source.file.size,
                modification_time=source.file.modified_ms,
                data_change=True,
                stats=source.stats,
            )
            for source in sources.readable
        ]
        parameters = {
            "numFiles": len(adds),
            "partitionedBy": list(partition_schema.names),
            "collectStats": statistics,
            "catalogTable": catalog_name,
            "sourceFormat": "parquet",
        }
        metrics = {"numConvertedFiles": len(adds)}
        return command.commit(adds, Operation("CONVERT", parameters, metrics, names_absent_version=True))


def _hidden(name: str) -> bool:
    """Whether a name marks hidden files; a name of a partition directory may start with an underscore too."""
    return name.startswith((".", "_")) and "=" not in name


def _listed(files: TableFiles, table: str) -> list[ListedFile]:
    listed: list[ListedFile] = []
    for directory in files.walk(_hidden):
        if directory.other:
            raise InvalidArgumentError(
                f"{table}/{directory.name} contains links; data behind links would not be part of the table: "
                "replace the links by the files that they point to"
            )
        if not directory.name and "_spark_metadata" in directory.hidden:
            raise UnsupportedFeatureError(
                f"{table} was written by a Spark stream, and only its log (_spark_metadata) lists the valid files. "
                "Read it with spark.read.parquet and write it as a Delta table",
                ("_spark_metadata",),
            )
        listed += [
            ListedFile(directory.path_of(name), size, modified)
            for name, size, modified in directory.files
            if not name.startswith((".", "_"))
        ]
    if not listed:
        raise TableNotFoundError(
            f"there is no file to convert in {table}",
            condition="DELTA_EMPTY_DIRECTORY",
            parameters={"directory": table},
        )
    return sorted(listed)


def _check_known(files: Sequence[ListedFile], partitions: Collection[str], table: str) -> None:
    others = sorted({_directory(file) for file in files} - set(partitions))
    if others:
        raise InvalidArgumentError(
            f"{table}/{others[0]} and {len(others) - 1} more directories have files, but the catalog doesn't list them "
            "as partitions. Add them (MSCK REPAIR TABLE) or remove them, then convert again"
        )


# --- partitions ---------------------------------------------------------------------------------------------------


def _directory(file: ListedFile) -> str:
    return file.name.rpartition("/")[0]


def _partition_values(
    files: Sequence[ListedFile], columns: StructType, table: str, *, checked: bool
) -> Mapping[str, Mapping[str, str | None]]:
    """The partition values of each directory with files, as text."""
    values_of: dict[str, dict[str, str | None]] = {}
    for directory in {_directory(file) for file in files}:
        pairs = partition_of(directory)
        names = [name for name, _ in pairs]
        if [name.lower() for name in names] != [name.lower() for name in columns.names]:
            raise InvalidArgumentError(
                f"{table}/{directory}: the directories are partitioned by {names}, but the given partition schema "
                f"has {list(columns.names)}. List the partition columns of the directories, in their order",
                condition="DELTA_UNEXPECTED_PARTITION_COLUMN_FROM_FILE_NAME"
                if len(names) == len(columns)
                else "DELTA_UNEXPECTED_NUM_PARTITION_COLUMNS_FROM_FILE_NAME",
                parameters={"path": directory, "expectedCols": list(columns.names), "parsedCols": names},
            )
        values_of[directory] = dict(zip(columns.names, (value for _, value in pairs), strict=True))
    for field in columns.fields if checked else ():
        if not isinstance(field.data_type, PrimitiveType):
            raise InvalidArgumentError(
                f"{table} can't be partitioned by {field.name}: its type is not a primitive type",
                condition="DELTA_INVALID_PARTITION_COLUMN_TYPE",
                parameters={"name": field.name, "dataType": schema.type_text(field.data_type)},
            )
        texts = sorted({text for values in values_of.values() if (text := values[field.name]) is not None})
        try:
            partition_values.typed(
                pa.array(texts, pa.string()), field.data_type, time_zone="UTC"
            )  # any time zone will do: only the format is checked
        except CorruptLogError as error:
            raise InvalidArgumentError(
                f"{table}: the partition column {field.name} can't have its type, because {error}. Use another type "
                "for it",
                condition="DELTA_FAILED_CAST_PARTITION_VALUE",
                parameters={"value": error, "dataType": schema.type_text(field.data_type)},
            ) from None
    return values_of


def partition_of(directory: str) -> list[tuple[str, str | None]]:
    """The partition columns and values in the name of a directory, outermost first."""
    pairs: list[tuple[str, str | None]] = []
    for part in reversed(directory.split("/")):
        name, equals, _ = part.partition("=")
        if equals and name:
            pairs.append((paths.hive_unescape(name), value_of_directory(part)))
        elif pairs:
            break
    return pairs[::-1]


# --- schemas and statistics ---------------------------------------------------------------------------------------


def _stage(txn: Transaction, columns: StructType, partition_by: Sequence[str], log: DeltaLog) -> None:
    metadata = new_table(columns, partition_by, {}, comment=None, created_time=log.clock.now_ms(), table=log.table)
    txn.set_metadata(metadata)
    if column_mapping.mode_of(txn.metadata) != "none":
        raise UnsupportedFeatureError(
            f"{log.table} can't be converted to a table with column mapping, because the files don't have physical "
            f"column names: unset {PROPERTY_DEFAULTS.prefix}columnMapping.mode",
            ("columnMapping",),
            condition="DELTA_CONVERSION_UNSUPPORTED_COLUMN_MAPPING",
            parameters={"config": "delta.columnMapping.mode"},
        )


def _with_partitions(data: StructType, partitions: StructType) -> StructType:
    """The table's columns: those of the files, then the partition columns that only the directories contain."""
    own = {f.name.lower(): replace(f, nullable=True) for f in partitions.fields}
    fields = [own.pop(f.name.lower(), f) for f in data.fields]
    return StructType((*fields, *own.values()))


def widens(narrow: DataType, wide: DataType) -> bool:
    """Whether values of type `narrow` can be read as `wide`: integers with the same physical Parquet type."""
    return narrow in _WIDER and wide in _WIDER and _WIDER.index(narrow) <= _WIDER.index(wide)


@dataclass(frozen=True, slots=True)
class _Source:
    """One file, and its statistics."""

    file: ListedFile
    stats: str | None


class _Sources:
    """The Parquet files of the directory; their footers are read in batches and not kept.

    `table_properties` configure the statistics; `None` if no statistics are collected.
    """

    def __init__(
        self,
        spark: SparkSession,
        files: TableFiles,
        table: str,
        partition_by: Sequence[str],
        table_properties: properties.TableProperties | None,
    ) -> None:
        self._spark = spark
        self._files = files
        self._table = table
        self._partition_by = partition_by
        self._table_properties = table_properties
        self._ignores = settings.of(spark, IGNORE_CORRUPT_FILES)
        self._schemas: dict[str, StructType] = {}
        self._statistics: dict[str, foreign_parquet.Statistics] = {}
        self.merged = StructType()
        self.readable: list[_Source] = []

    def read(self, files: Sequence[ListedFile]) -> None:
        """Read the footers of more files, merge their schemas and compute their statistics."""
        read = [(file, footer) for file, footer in in_parallel(self._footer, files) if footer is not None]
        keys = [foreign_parquet.key_of(footer) for _, footer in read]
        for (file, footer), key in zip(read, keys, strict=True):
            if key not in self._schemas:
                self._take(file, footer, key)
        table_properties = self._table_properties
        if table_properties is None:
            self.readable += [_Source(file, None) for file, _ in read]
            return
        texts = in_parallel(lambda item: self._statistics[item[1]].of(item[0][1]), list(zip(read, keys, strict=True)))
        self.readable += [_Source(file, text) for (file, _), text in zip(read, texts, strict=True)]

    def _footer(self, file: ListedFile) -> "tuple[ListedFile, pq.FileMetaData | None]":
        try:
            return file, self._files.footer(file)
        except (pa.ArrowInvalid, OSError) as error:
            if isinstance(error, OSError) and (error.errno is not None or isinstance(error, StorageError)):
                raise  # a storage error; for an encrypted footer, Arrow raises an OSError without errno
            if self._ignores:
                logger.warning("%s/%s is skipped: it is not a Parquet file: %s", self._table, file.name, error)
                return file, None
            raise InvalidArgumentError(
                f"{self._table}/{file.name} is not a Parquet file ({error}). Remove it, or set "
                f"{IGNORE_CORRUPT_FILES.key} to true to skip such files",
                condition="DELTA_FAILED_READ_FILE_FOOTER",
                parameters={"currentFile": file.name},
            ) from error

    def _take(self, file: ListedFile, footer: "pq.FileMetaData", key: str) -> None:
        """Merge the schema of a file into the table's; called once per distinct schema."""
        own = foreign_parquet.schema_of(footer)
        if own is None:
            own = foreign_parquet.schema_by_spark(
                self._spark, footer, with_scheme(paths.absolute(self._table, paths.encode(file.name)))
            )
        partitions = {name.lower() for name in self._partition_by}
        data = StructType(tuple(f for f in own.fields if f.name.lower() not in partitions))
        merged = merged_schema(self.merged, data) if self._schemas else data
        if not foreign_parquet.fits(merged, data, widens):
            raise SchemaMismatchError(
                f"{self._table}/{file.name} has the columns {schema.type_text(own)}, which can't be merged with the "
                f"columns of the files before it, {schema.type_text(self.merged)}",
                condition="DELTA_FAILED_MERGE_SCHEMA_FILE",
                parameters={"file": file.name, "schema": schema.type_text(own)},
            )
        self.merged = merged
        self._schemas[key] = own
        if self._table_properties is not None:
            leaves = schema.indexed_leaves(
                merged,
                (),
                self._table_properties.data_skipping_num_indexed_cols,
                self._table_properties.data_skipping_stats_columns,
            )
            indexed = [name for name, _ in leaves]
            prefix = self._table_properties.data_skipping_string_prefix_length
            self._statistics[key] = foreign_parquet.Statistics(own, indexed, prefix)
