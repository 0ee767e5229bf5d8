"""Tables as a stranger may have written them: a log by hand, with whatever it says of rules and files."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from support.spark_tables import Table


def field(name: str, data_type: str, **metadata: Any) -> dict[str, Any]:
    """A field of a schema; `metadata` has `__` where a key has a dot."""
    own = {key.replace("__", "."): value for key, value in metadata.items()}
    return {"name": name, "type": data_type, "nullable": True, "metadata": own}


def foreign_table(
    spark: SparkSession,
    root: Path,
    fields: Sequence[Mapping[str, Any]],
    *actions: Mapping[str, Any],
    configuration: Mapping[str, str] | None = None,
    features: Sequence[str] = (),
    partition_by: Sequence[str] = (),
) -> Table:
    """A table with one commit. `features` are reader and writer features alike where they are deletion vectors."""
    protocol: dict[str, Any] = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": list(features)}
    if "deletionVectors" in features:
        protocol |= {"minReaderVersion": 3, "readerFeatures": ["deletionVectors"]}
    metadata = {
        "id": "5fba94ed-9794-4965-ba6e-6ee3c0d22af9",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": list(fields)}),
        "partitionColumns": list(partition_by),
        "configuration": dict(configuration or {}),
        "createdTime": 1_700_000_000_000,
    }
    lines = [{"protocol": protocol}, {"metaData": metadata}, *actions]
    log = root / "_delta_log"
    log.mkdir(parents=True)
    (log / f"{0:020}.json").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return Table(spark, root)


def data_file(path: Path, rows: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    """Write a Parquet file; returns the action that adds it to a table in its directory."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(dict(rows)), path)
    return add(path.name, path.stat().st_size)


def add(path: str, size: int, **more: Any) -> dict[str, Any]:
    """The action that adds a data file."""
    values = {"partitionValues": {}, "modificationTime": 1_700_000_000_000, "dataChange": True, **more}
    return {"add": {"path": path, "size": size, **values}}
