"""A Delta table as a stream of Spark Connect: a Python data source, which the client registers at the server.

Spark asks a Python process of the server for offsets and for the files of a batch (`stream_planner`). tablelog must be
installed there. The files are read by Python workers, which need pyarrow and the storage's fsspec package, but not
tablelog: the class is defined inside a function, so that it is pickled by value. The configuration of the storage is
pickled with it, so options and plans contain no secrets.
"""

from __future__ import annotations  # the server defines a class, where this module's names aren't known

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ... import __version__
from ...core.protocol import schema as schemas
from ...settings.declarations import EXTERNAL_PATHS
from ..connect import data_sources
from ..jvm.connection import settings
from ..jvm.types import frame_schema, read_schema, spark_type
from ..sql import column_names
from .routes.arrow_files import file_reader
from .routes.arrow_source import mark_of
from .stream_planner import options_as_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.datasource import DataSource

    from ...core.deltalog import DeltaLog
    from ...core.streaming.source import StreamOptions
    from ...core.table.snapshot import Snapshot

_NAME = "tablelog_stream"
_MISSING = (
    "tablelog.errors.UnsupportedEnvironmentError: a stream of a Delta table needs tablelog in the server's Python, "
    "in the client's version {wanted}, and the server has {installed}. Install it on the driver of the server"
)


def frame(
    spark: SparkSession,
    log: DeltaLog,
    snapshot: Snapshot,
    options: StreamOptions,
    more: Sequence[schemas.StructField],
) -> DataFrame:
    """The streaming DataFrame of a table with the columns of `snapshot`, and `more` that the options add."""
    shown = schemas.StructType((*read_schema(snapshot.schema).fields, *more))
    schemas.arrow_schema(shown)  # raises here, not in a worker, for a type that Arrow doesn't support
    source = stream_source(log.conf)
    data_sources.register(spark, source)
    spec = {
        "tablelog": __version__,
        "table": log.table,
        "columns": schemas.to_json(frame_schema(snapshot.schema)),
        "schema": schemas.to_json(snapshot.schema),
        "mode": snapshot.mapping.mode,
        "partition_columns": list(snapshot.partition_columns),
        "options": options_as_json(options),
        "settings": {EXTERNAL_PATHS.key: settings.of(spark, EXTERNAL_PATHS)},
        "zone": settings.time_zone(spark),
    }
    rows = spark.readStream.format(source.name()).schema(spark_type(shown)).option("spec", json.dumps(spec)).load()
    return column_names.with_void(rows, frame_schema(snapshot.schema), [field.name for field in more])


def stream_source(conf: Mapping[str, str]) -> type[DataSource]:
    """The data source class. `read` uses only names defined inside; the other methods import tablelog."""
    from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

    read_files = file_reader()
    source_name = _NAME + mark_of(conf)
    missing = _MISSING

    class Reader(DataSourceStreamReader):
        def __init__(self, spec: dict[str, Any], arrow: Any) -> None:
            self._spec = spec
            self._arrow = arrow
            self._planner: Any = None

        def __getstate__(self) -> dict[str, Any]:
            return {"_spec": {}, "_arrow": self._arrow, "_planner": None}  # what the workers need

        @property
        def planner(self) -> Any:
            if self._planner is None:
                from .stream_planner import StreamPlanner

                self._planner = StreamPlanner(self._spec, conf)
            return self._planner

        def initialOffset(self) -> Any:
            return self.planner.first()

        def partitions(self, start: Any, end: Any) -> list[Any]:
            return [InputPartition(task) for task in self.planner.tasks(start, end)]

        def read(self, partition: Any) -> Iterator[Any]:
            systems, files = partition.value
            yield from read_files(systems, self._arrow, files)

    class TablelogStream(DataSource):
        def __init__(self, options: Any) -> None:
            super().__init__(options)
            try:
                from ... import __version__ as installed
            except ImportError:
                installed = "none"
            wanted = json.loads(options["spec"])["tablelog"]
            if installed != wanted:
                raise RuntimeError(missing.format(wanted=wanted, installed=installed))

        @classmethod
        def name(cls) -> str:
            return source_name

        def streamReader(self, schema: Any) -> Any:
            from ...core.protocol.schema import parse_schema
            from .routes.arrow_plan import marked

            spec = json.loads(self.options["spec"])
            return reader_type()(spec, marked(spec, parse_schema(schema.json())))

    def reader_type() -> Any:
        """The reader for the server's version of Spark."""
        try:
            from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxFiles, SupportsTriggerAvailableNow
        except ImportError:  # Spark 4.1

            class Unlimited(Reader):
                def latestOffset(self) -> Any:  # type: ignore[override]
                    return self.planner.newest()

            return Unlimited

        class Limited(Reader, SupportsTriggerAvailableNow):
            def getDefaultReadLimit(self) -> Any:
                return ReadMaxFiles(self.planner.max_files)

            def latestOffset(self, start: Any, limit: Any) -> Any:
                return self.planner.latest(start, unlimited=isinstance(limit, ReadAllAvailable))

            def prepareForTriggerAvailableNow(self) -> None:
                self.planner.stop_at_newest()

        return Limited

    return TablelogStream
