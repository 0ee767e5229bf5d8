"""Valid commits and tables that the cases start from."""

import contextlib
import json
from functools import cache
from typing import Any

from support.log_builder import LogBuilder, add, metadata, remove
from tablelog.core.log import checksum
from tablelog.core.protocol import codec
from tablelog.core.protocol.actions import (
    Action,
    AddCDCFile,
    CheckpointMetadata,
    CommitInfo,
    DeletionVectorDescriptor,
    DomainMetadata,
    Protocol,
    SetTransaction,
    Sidecar,
)
from tablelog.core.protocol.paths import crc_name
from tablelog.logstore import MemoryLogStore

COLUMNS = {
    "id": "long", "s": "string", "d": "double", "f": "float", "n": "decimal(10,2)", "day": "date", "t": "timestamp",
    "l": "timestamp_ntz", "b": "boolean", "y": "byte", "x": "binary",
}  # fmt: skip
SCHEMA = json.dumps(
    {
        "type": "struct",
        "fields": [
            *({"name": n, "type": t, "nullable": True, "metadata": {}} for n, t in COLUMNS.items()),
            {
                "name": "st",
                "type": {"type": "struct", "fields": [{"name": "a", "type": "integer",
                "nullable": True, "metadata": {}}]},
                "nullable": True,
                "metadata": {},
            },
            {
                "name": "m",
                "type": {"type": "map", "keyType": "string", "valueType": "long", "valueContainsNull": True},
                "nullable": True,
                "metadata": {},
            },
            {
                "name": "a",
                "type": {"type": "array", "elementType": "decimal(38,18)", "containsNull": False},
                "nullable": True,
                "metadata": {},
            },
        ],
    },
    separators=(",", ":"),
)  # fmt: skip
_OF_TABLES = ("id", "s", "n", "day", "t", "st")
TABLE_SCHEMA = json.dumps(
    {"type": "struct", "fields": [field for field in json.loads(SCHEMA)["fields"] if field["name"] in _OF_TABLES]},
    separators=(",", ":"),
)
"""A schema of fewer columns, for whole logs: a checkpoint has some six columns for each."""
STATS = json.dumps(
    {
        "numRecords": 3,
        "tightBounds": True,
        "minValues": {"id": 1, "s": "a", "d": -0.5, "f": 1.5, "n": 1.25, "day": "2024-01-31", "y": 1,
                      "t": "2024-01-31T10:00:00.000Z", "l": "2024-01-31T10:00:00.123", "st": {"a": 1}},
        "maxValues": {"id": 9, "s": "z", "d": 0.5, "f": 2.5, "n": 99.99, "day": "2024-12-31", "y": 7,
                      "t": "2024-12-31T10:00:00.999-08:00", "l": "2024-12-31T10:00:00.123", "st": {"a": 7}},
        "nullCount": {"id": 0, "s": 1, "d": 0, "f": 0, "n": 0, "day": 0, "t": 0, "l": 0, "b": 3, "st": {"a": 2}},
    },
    separators=(",", ":"),
)  # fmt: skip
FEATURES = frozenset({"deletionVectors"})
VECTOR = DeletionVectorDescriptor("u", "ab^-aqEH.-t@S}K{vb[*k^", 36, 2, 4)
INLINE = DeletionVectorDescriptor("i", "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L", 40, 6)
PROPERTIES = {"delta.checkpointInterval": "5", "delta.logRetentionDuration": "interval 30 days", "own": "x"}
KEYS = [
    "path", "partitionValues", "size", "modificationTime", "dataChange", "stats", "tags", "deletionVector", "baseRowId",
    "defaultRowCommitVersion", "clusteringProvider", "deletionTimestamp", "extendedFileMetadata", "storageType", "id",
    "pathOrInlineDv", "offset", "sizeInBytes", "cardinality", "appId", "version", "lastUpdated", "domain", "removed",
    "configuration", "schemaString", "partitionColumns", "format", "provider", "options", "name", "createdTime",
    "minReaderVersion", "minWriterVersion", "readerFeatures", "writerFeatures", "add", "remove", "metaData", "protocol",
    "txn", "domainMetadata", "commitInfo", "cdc", "sidecar", "checkpointMetadata", "timestamp", "inCommitTimestamp",
    "operation", "operationParameters", "txnId", "engineInfo", "deletionVectors", "numRecords", "minValues",
    "maxValues",
    "nullCount", "tightBounds", "checksum", "a.parquet", "file:///t/a.parquet", "%61.parquet", "./a.parquet",
    "2024-01-31",
]  # fmt: skip


def history() -> list[list[Action]]:
    """The actions of five commits: each kind of action, and files that are added, removed and added again."""
    first = [
        CommitInfo(timestamp=1, operation="NEW", operation_parameters={"a": "[]"}, in_commit_timestamp=5, txn_id="t"),
        Protocol(3, 7, FEATURES, FEATURES),
        metadata(PROPERTIES, schema=TABLE_SCHEMA, partition_columns=("day",), table_id="table"),
    ]  # fmt: skip
    days = [{"day": "2024-01-31"}, {"day": None}]
    return [
        first,
        [add(f"{n}.parquet", size=n, stats=STATS, partition_values=days[n % 2], tags={"k": "v"}) for n in range(4)],
        [
            remove("1.parquet", deletion_vector=None),
            add("1.parquet", deletion_vector=VECTOR, partition_values=days[0], stats=STATS),
            remove("file:///other/f"),
            SetTransaction("app", 1, 5),
        ],
        [
            remove("1.parquet", deletion_vector=VECTOR),
            add("1.parquet", deletion_vector=INLINE, partition_values=days[0], base_row_id=4),
            DomainMetadata("d", "{}", False),
            AddCDCFile("_change_data/c", days[0], 5),
        ],
        [
            remove("2.parquet"),
            SetTransaction("app", 2),
            DomainMetadata("d", "", True),
            add("%C3%A9", partition_values=days[0]),
        ],
    ]  # fmt: skip


def others() -> list[Action]:
    """Actions that are only in checkpoints."""
    return [CheckpointMetadata(4, {"a": "b"}), Sidecar("x.parquet", 10, 5, {})]


def lines(actions: list[Action]) -> bytes:
    return codec.serialise(actions).rstrip(b"\n")


@cache
def table(kind: str) -> dict[str, bytes]:
    """The files of a log with a checkpoint of this kind: classic, parts, v2-json or v2-parquet; or none."""
    conf: dict[str, str] = {}
    features = set(FEATURES)
    if kind == "parts":
        conf["spark.databricks.delta.checkpoint.partSize"] = "2"
    if kind.startswith("v2"):
        features.add("v2Checkpoint")
        conf["spark.databricks.delta.checkpointV2.topLevelFileFormat"] = kind.removeprefix("v2-")
    builder = LogBuilder()
    for number, actions in enumerate(history()):
        changed: list[Any] = list(actions)
        if number == 0:
            policy = {"delta.checkpointPolicy": "v2"} if kind.startswith("v2") else {}
            if kind == "parts":  # with half of the columns, so that a case takes less time
                policy = {"delta.checkpoint.writeStatsAsStruct": "false"}
            changed[1] = Protocol(3, 7, frozenset(features), frozenset(features))
            changed[2] = metadata(
                {**PROPERTIES, **policy}, schema=TABLE_SCHEMA, partition_columns=("day",), table_id="table"
            )
        builder.version += 1
        builder.write_commit(builder.version, changed)
    log = builder.log(conf=conf)
    snapshot = log.snapshot()
    totals = snapshot.totals()
    assert totals is not None
    builder.write(crc_name(4), checksum.serialise(checksum.of(snapshot, totals, most_files=50)))
    if kind == "none":
        log.compact(1, 3)
    else:
        log.checkpoint(log.snapshot(3))
    return contents(builder)


def contents(builder: LogBuilder) -> dict[str, bytes]:
    """Name and content of each file in the log."""
    assert isinstance(builder.store, MemoryLogStore)
    files: dict[str, bytes] = {}
    for directory in ("", "_sidecars/"):
        with contextlib.suppress(FileNotFoundError):
            for status in builder.store.list_from(f"{builder.log_path}/{directory}0"):
                name = directory + status.path.rpartition("/")[2]
                files[name] = builder.read(name)
    with contextlib.suppress(FileNotFoundError):
        files["_last_checkpoint"] = builder.read("_last_checkpoint")
    return files
