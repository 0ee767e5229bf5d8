"""Gives Spark's streaming engine the source and the sink of a query."""

import json
from collections.abc import Mapping, Sequence

from pyspark.sql import SparkSession

from ...engine.jvm.streams import StreamSink, StreamSource
from ...errors import InvalidArgumentError
from ..conf import delta_log, session_conf
from ..options import Options
from .sink import TableSink
from .source import TableSource

_CLUSTERING = "__clustering_columns"
"""The option by which Spark passes the columns of `clusterBy` to a sink, as JSON."""


class Streams:
    """Implements `engine.jvm.streams.StreamProvider`."""

    def source(
        self, spark: SparkSession, schema_json: str, options: Mapping[str, str], metadata_path: str
    ) -> StreamSource:
        texts = Options(options)
        path = _path(texts)
        log = delta_log(path, session_conf(spark, path), texts.starting_with("fs.", "dfs."))
        return TableSource(spark, log, texts, schema_json, metadata_path)

    def sink(
        self, spark: SparkSession, options: Mapping[str, str], partition_by: Sequence[str], mode: str
    ) -> StreamSink:
        others = dict(options)
        clustered = json.loads(others.pop(_CLUSTERING, "[]"))
        return TableSink(_path(Options(options)), others, mode, partition_by=partition_by, cluster_by=clustered)


def _path(options: Options) -> str:
    path = options.get("path")
    if not path:
        raise InvalidArgumentError("'path' is not specified.")
    return path
