"""The Arrow route: Python workers read the files by pyarrow, through Spark's public Python data source.

The data source's class is made inside a function, so that it travels to the executors by value: they need pyarrow,
and not tablelog. Planning, on the driver's side, opens the log by its path.
"""

import base64
import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ...core.protocol import schema as schemas
from ..types import has_collation, spark_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.datasource import DataSource

_PUSHDOWN_KEY = "spark.sql.python.filterPushdown.enabled"
# Types whose values the data source gets in a form that leaves no doubt.
_PUSHED = (
    schemas.BYTE,
    schemas.SHORT,
    schemas.INTEGER,
    schemas.LONG,
    schemas.STRING,
    schemas.BOOLEAN,
    schemas.DATE,
)


def frame(
    spark: "SparkSession",
    table: str,
    schema: schemas.StructType,
    *,
    version: int,
    files: pa.Table | None,
    file_number: str | None,
    conf: Mapping[str, str],
) -> "DataFrame":
    """The rows of a table at `version`, of `files` alone where they are given."""
    shown = schema
    if file_number is not None:
        shown = schemas.StructType((*schema.fields, schemas.StructField(file_number, schemas.INTEGER)))
    # Spark refuses a reader that takes filters unless it is told to offer them.
    offered = str(spark.conf.get(_PUSHDOWN_KEY, "false")).lower() == "true"
    source = _source(takes_filters=offered)
    spark.dataSource.register(source)
    zone = str(spark.conf.get("spark.sql.session.timeZone"))
    spec = {"table": table, "version": version, "number": file_number, "zone": zone}
    options = {"spec": json.dumps(spec), "conf": json.dumps(dict(conf))}
    if files is not None:
        wanted = [n for n in ("path", "partitionValues", "size", "stats") if n in files.column_names]
        sink = pa.BufferOutputStream()
        chosen = files.select(wanted)
        with pa.ipc.new_stream(sink, chosen.schema) as writer:
            writer.write_table(chosen)
        options["files"] = base64.b64encode(sink.getvalue()).decode()
    return spark.read.format(source.name()).schema(spark_type(shown)).options(**options).load()


def plan(spec: Mapping[str, Any], conf: Mapping[str, str], listed: str | None, predicate: Any) -> list[dict[str, Any]]:
    """What to read, file by file: `path`, `size` and the values that are constant in the file, as Arrow scalars."""
    from ...core.deltalog import DeltaLog
    from ...core.protocol import paths
    from ...core.protocol.partition_values import typed_columns
    from ...core.table import predicates, pruning

    log = DeltaLog.for_path(spec["table"], conf=conf)
    snapshot = log.snapshot(spec["version"])
    if listed is None:
        files = snapshot.files
        keep = snapshot.prune_mask(predicate)
    else:
        files = pa.ipc.open_stream(base64.b64decode(listed)).read_all()
        keep = pruning.may_match(files, predicate, snapshot.schema, snapshot.partition_columns)
    numbers = pa.array(range(files.num_rows), pa.int32())
    if predicate != predicates.TRUE:
        files, numbers = files.filter(keep), numbers.filter(keep)
    values = typed_columns(files, snapshot.schema, snapshot.partition_columns, time_zone=spec["zone"])
    if spec["number"] is not None:
        values = values.append_column(spec["number"], numbers)
    found = []
    for i, (path, size) in enumerate(zip(files["path"].to_pylist(), files["size"].to_pylist(), strict=True)):
        location = paths.absolute(log.table, path)
        gone = (
            f"tablelog.errors.MissingDataFileError: the file {location}, which version {snapshot.version} of "
            f"{log.table} lists, is gone from storage. Restore it, or take it out of the table."
        )
        constants = {name: values.column(name)[i] for name in values.column_names}
        found.append({"path": location, "size": size, "constants": constants, "gone": gone})
    return found


def predicate_of(filters: Any, schema: schemas.StructType) -> Any:
    """The core's predicate for the filters that Spark offers a data source; what isn't understood prunes nothing."""
    from ...core.table import predicates as core

    operators = {
        "EqualTo": "=",
        "EqualNullSafe": "<=>",
        "GreaterThan": ">",
        "GreaterThanOrEqual": ">=",
        "LessThan": "<",
        "LessThanOrEqual": "<=",
    }

    def one(given: Any) -> Any:
        kind = type(given).__name__
        if kind == "Not":
            return core.Not(one(given.child))
        found = schemas.find(schema, given.attribute, case_sensitive=True) if hasattr(given, "attribute") else None
        if found is None:
            return core.Opaque(kind)
        column, field = found
        if field.data_type not in _PUSHED or has_collation(field):
            return core.Opaque(kind)
        arrow = schemas.arrow_type(field.data_type)
        if kind in operators and given.value is not None:
            return core.Compare(operators[kind], column, pa.scalar(given.value, arrow))  # type: ignore[arg-type]
        if kind == "In":
            return core.In(column, tuple(pa.scalar(value, arrow) for value in given.value))
        if kind == "IsNull":
            return core.IsNull(column)
        if kind == "IsNotNull":
            return core.IsNotNull(column)
        if kind == "StringStartsWith" and field.data_type == schemas.STRING:
            return core.StartsWith(column, given.value)
        return core.Opaque(kind)

    return core.all_of(one(given) for given in filters)


def _source(*, takes_filters: bool) -> "type[DataSource]":
    """The data source. All that `read` uses stands inside: it runs where tablelog may not be installed."""
    from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

    split_size, cost_of_opening = 128 << 20, 4 << 20

    class TablelogReader(DataSourceReader):
        def __init__(self, options: Mapping[str, str], arrow: Any, table_schema: Any) -> None:
            self._options = dict(options)
            self._arrow = arrow
            self._table_schema = table_schema
            self._predicate: Any = None

        def partitions(self) -> list[Any]:
            from ...core.table.predicates import TRUE
            from .arrow import plan

            files = plan(
                json.loads(self._options["spec"]),
                json.loads(self._options["conf"]),
                self._options.get("files"),
                TRUE if self._predicate is None else self._predicate,
            )
            groups: list[list[Any]] = []
            room = 0
            for file in sorted(files, key=lambda file: -file["size"]):
                if not groups or room < file["size"]:
                    groups.append([])
                    room = split_size
                groups[-1].append(file)
                room -= file["size"] + cost_of_opening
            self._options = {}
            self._table_schema = None
            return [InputPartition(group) for group in groups] or [InputPartition([])]

        def read(self, partition: Any) -> Iterator[Any]:
            for file in partition.value:
                try:
                    yield from self._read_file(file)
                except FileNotFoundError:
                    raise FileNotFoundError(file["gone"]) from None

        def _read_file(self, file: dict[str, Any]) -> Iterator[Any]:
            import pyarrow as pa
            import pyarrow.parquet as pq

            if "://" in file["path"]:
                import fsspec

                system, name = fsspec.core.url_to_fs(file["path"])
                source = system.open(name, "rb")
            else:
                source = file["path"]
            with pq.ParquetFile(source, coerce_int96_timestamp_unit="us") as parquet:
                told = parquet.schema_arrow.metadata or {}
                legacy = b"org.apache.spark.legacyDateTime" in told or b"org.apache.spark.legacyINT96" in told
                stored = {name.lower(): name for name in reversed(parquet.schema_arrow.names)}
                wanted = [
                    stored[f.name.lower()]
                    for f in self._arrow
                    if f.name not in file["constants"] and f.name.lower() in stored
                ]
                for batch in parquet.iter_batches(batch_size=32_768, columns=wanted):
                    columns = []
                    for f in self._arrow:
                        if f.name in file["constants"]:
                            columns.append(pa.repeat(file["constants"][f.name].cast(f.type), batch.num_rows))
                        elif f.name.lower() in stored:
                            columns.append(fitted(batch.column(stored[f.name.lower()]), f.type, legacy, f.name))
                        else:
                            columns.append(pa.nulls(batch.num_rows, f.type))
                    yield pa.RecordBatch.from_arrays(columns, schema=self._arrow)

    class SkippingReader(TablelogReader):
        def pushFilters(self, filters: list[Any]) -> Any:
            from .arrow import predicate_of

            self._predicate = predicate_of(filters, self._table_schema)
            return filters  # they only choose files: Spark applies them to the rows

    reader = SkippingReader if takes_filters else TablelogReader

    def fitted(values: Any, kind: Any, legacy: bool, name: str) -> Any:
        """An Arrow array as another type: fields of structs by name, whatever their case, missing ones null."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if legacy and (pa.types.is_date(values.type) or pa.types.is_timestamp(values.type)):
            days = values.cast(pa.timestamp("us")).cast(pa.int64()) if len(values) else values
            earliest = pc.min(days).as_py() if len(values) else None
            if earliest is not None and earliest < -2_208_988_800_000_000:  # 1900-01-01
                raise ValueError(
                    f"tablelog.errors.UnsupportedEnvironmentError: the column {name} holds dates before 1900 in the "
                    "calendar of Spark 2, which the Arrow route can't read: use a classic session"
                )
        if values.type == kind:
            return values
        if pa.types.is_dictionary(values.type):
            return fitted(values.dictionary_decode(), kind, legacy, name)
        if pa.types.is_struct(kind) and pa.types.is_struct(values.type):
            stored = {f.name.lower(): i for i, f in reversed(list(enumerate(values.type)))}
            children = [
                fitted(values.field(stored[f.name.lower()]), f.type, legacy, f"{name}.{f.name}")
                if f.name.lower() in stored
                else pa.nulls(len(values), f.type)
                for f in kind
            ]
            return pa.StructArray.from_arrays(children, fields=list(kind), mask=values.is_null())
        if pa.types.is_list(kind) and pa.types.is_list(values.type):
            inner = fitted(values.values, kind.value_type, legacy, name)
            return pa.ListArray.from_arrays(values.offsets, inner, type=kind, mask=values.is_null())
        if pa.types.is_map(kind) and pa.types.is_map(values.type):
            keys = fitted(values.keys, kind.key_type, legacy, name)
            items = fitted(values.items, kind.item_type, legacy, name)
            return pa.MapArray.from_arrays(values.offsets, keys, items, type=kind, mask=values.is_null())
        return values.cast(kind)

    class TablelogSource(DataSource):
        @classmethod
        def name(cls) -> str:
            return "tablelog_arrow_skipping" if takes_filters else "tablelog_arrow"

        def reader(self, schema: Any) -> Any:
            from ...core.protocol.schema import arrow_schema, parse_schema

            known = parse_schema(schema.json())
            return reader(self.options, arrow_schema(known), known)

    return TablelogSource
