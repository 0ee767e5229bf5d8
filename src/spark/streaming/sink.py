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
_OF_BATCH_WRITES = {
    "replaceWhere": "a batch is added, or replaces the whole table",
    "txnAppId": "a batch has the id of the query as its application",
    "txnVersion": "a batch has its number as its version",
}
"""Options of `df.write` that have no meaning for a stream, and why."""


class TableSink:
    """Implements `engine.jvm.streams.StreamSink`: one commit for each batch.

    The commit stores the number of the batch under the id of the query, so that a batch that Spark repeats after a
    failure is not written twice (PROTOCOL.md, "Transaction Identifiers"). delta-spark uses the same id.
    """

    def __init__(self, path: str, options: Mapping[str, str], partition_by: Sequence[str], mode: str) -> None:
        if mode.lower() not in _MODES:
            raise InvalidArgumentError(
                f"The output mode {mode} is not supported for Delta tables: use append or complete, or merge the rows "
                "of each batch by foreachBatch.",
                condition="DELTA_MODE_NOT_SUPPORTED",
                parameters={"mode": mode, "supportedModes": "Append, Complete"},
            )
        self._path = path
        self._options = Options(options)
        _check_options(self._options)
        self._partition_by = tuple(partition_by)
        self._output_mode = mode
        self.name = f"DeltaSink[{path}]"

    def add(self, batch: int, rows: DataFrame, query_id: str) -> None:
        spark = rows.sparkSession
        _check_types(rows.schema, self._path)
        conf = session_conf(spark, self._path)
        mode = _MODES[self._output_mode.lower()]
        request = write_request(self._options, conf, mode=mode, partition_by=self._partition_by)
        log = delta_log(self._path, conf, self._options.starting_with("fs.", "dfs."))
        request = replace(
            request,
            dynamic_partitions=False,  # in the mode complete, a batch replaces the table, whatever the session has set
            commit=CommitOptions(request.commit.user_metadata, (query_id, batch)),
            stream=StreamBatch(query_id, batch, self._output_mode),
        )
        if write(spark, log, rows, request) is None:
            logger.info("%s: batch %d of the query %s was written before: skipped", log.table, batch, query_id)


def _check_options(options: Options) -> None:
    """Raise InvalidArgumentError for an option that would change which rows a batch replaces, or its number."""
    refused = dict(_OF_BATCH_WRITES)
    if (options.get("partitionOverwriteMode") or "").lower() == "dynamic":
        refused["partitionOverwriteMode"] = "a batch never replaces single partitions"
    for name, why in refused.items():
        value = options.get(name)
        if value is not None:
            raise InvalidArgumentError(
                f"Invalid value '{value}' for option '{name}', a stream can't have it: {why}. Write the batches with "
                "foreachBatch to use it.",
                condition="DELTA_ILLEGAL_OPTION",
                parameters={"input": value, "name": name, "explain": f"a stream can't have it: {why}"},
            )


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
