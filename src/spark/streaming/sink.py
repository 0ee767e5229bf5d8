"""The sink of a streaming query: a Delta table, as Spark's streaming engine writes it."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql.types import ArrayType, DataType, MapType, NullType, StructType

from ...dml.change.write import StreamBatch, write
from ...dml.command.command import CommitOptions
from ...errors import InvalidArgumentError, SchemaMismatchError
from ..conf import delta_log, session_conf
from ..options import Options, write_request

logger = logging.getLogger(__name__)

_MODES = {"append": "Append", "complete": "Overwrite"}
_REFUSED = {
    "replaceWhere": "a batch of a stream is added, or replaces the whole table. Use foreachBatch",
    "txnAppId": "a stream writes each batch once by its own id",
    "txnVersion": "a stream writes each batch once by its own number",
}


class TableSink:
    """Implements `engine.jvm.streams.StreamSink`: one commit for each batch.

    The commit stores the number of the batch under the id of the query, so that a batch that Spark repeats after a
    failure is not written twice (PROTOCOL.md, "Transaction Identifiers"). delta-spark uses the same id.
    """

    def __init__(
        self,
        path: str,
        options: Mapping[str, str],
        mode: str,
        *,
        partition_by: Sequence[str] = (),
        cluster_by: Sequence[str] = (),
    ) -> None:
        if mode.lower() not in _MODES:
            raise InvalidArgumentError(
                f"The output mode {mode} is not supported for Delta tables: use append or complete, or merge the rows "
                "of each batch by foreachBatch.",
                condition="DELTA_MODE_NOT_SUPPORTED",
                parameters={"mode": mode, "supportedModes": "Append, Complete"},
            )
        self._path = path
        self._options = Options(options)
        for name, reason in _REFUSED.items():
            self._options.refuse(name, reason)
        if self._options.boolean("dataChange") is False:
            self._options.refuse("dataChange", "the rows of a stream are new: other streams would not read them")
        if (self._options.get("partitionOverwriteMode") or "").lower() == "dynamic":
            self._options.refuse("partitionOverwriteMode", "a batch of a stream never replaces single partitions")
        self._partition_by = tuple(partition_by)
        self._cluster_by = tuple(cluster_by)
        self._output_mode = mode
        self.name = f"DeltaSink[{path}]"

    def add(self, batch: int, rows: DataFrame, query_id: str) -> None:
        spark = rows.sparkSession
        _check_types(rows.schema, self._path)
        conf = session_conf(spark, self._path)
        mode = _MODES[self._output_mode.lower()]
        request = write_request(
            self._options, conf, mode=mode, partition_by=self._partition_by, cluster_by=self._cluster_by
        )
        log = delta_log(self._path, conf, self._options.starting_with("fs.", "dfs."))
        request = replace(
            request,
            dynamic_partitions=False,  # in the mode complete, a batch replaces the table, whatever the session has set
            commit=CommitOptions(request.commit.user_metadata, (query_id, batch)),
            stream=StreamBatch(query_id, batch, self._output_mode),
        )
        if write(spark, log, rows, request) is None:
            logger.info("%s: batch %d of the query %s was written before: skipped", log.table, batch, query_id)


def _check_types(data_type: DataType, path: str) -> None:
    """Raise SchemaMismatchError for a column without a type."""
    if isinstance(data_type, NullType):
        raise SchemaMismatchError(
            f"The stream into {path} has a column of the type void: cast it to the type that it should have.",
            condition="DELTA_NULL_SCHEMA_IN_STREAMING_WRITE",
        )
    if isinstance(data_type, StructType):
        for field in data_type.fields:
            _check_types(field.dataType, path)
    elif isinstance(data_type, ArrayType):
        _check_types(data_type.elementType, path)
    elif isinstance(data_type, MapType):
        _check_types(data_type.keyType, path)
        _check_types(data_type.valueType, path)
