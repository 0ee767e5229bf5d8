"""Writing classic checkpoints (PROTOCOL.md, "Checkpoint Schema"): the whole state of a version in one Parquet file."""

import json
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ...logstore.base import LogStore
from ..protocol import partition_values, schema, stats
from ..protocol.actions import Action, Protocol
from ..protocol.codec import to_json
from ..protocol.paths import LAST_CHECKPOINT, checkpoint_name
from ..table.snapshot import Snapshot
from .columns import FILE_SCHEMA, REMOVE_SCHEMA, STRING_MAP
from .last_checkpoint import LastCheckpoint, serialise

_log = logging.getLogger(__name__)

_GROUP_ROWS = 1 << 17

_TXN = pa.struct([("appId", pa.string()), ("version", pa.int64()), ("lastUpdated", pa.int64())])
_DOMAIN = pa.struct([("domain", pa.string()), ("configuration", pa.string()), ("removed", pa.bool_())])
_METADATA = pa.struct(
    [
        ("id", pa.string()),
        ("name", pa.string()),
        ("description", pa.string()),
        ("format", pa.struct([("provider", pa.string()), ("options", STRING_MAP)])),
        ("schemaString", pa.string()),
        ("partitionColumns", pa.list_(pa.string())),
        ("configuration", STRING_MAP),
        ("createdTime", pa.int64()),
    ]
)
_PROTOCOL = pa.struct(
    [
        ("minReaderVersion", pa.int32()),
        ("minWriterVersion", pa.int32()),
        ("readerFeatures", pa.list_(pa.string())),
        ("writerFeatures", pa.list_(pa.string())),
    ]
)
# Neither stats nor tags: a tombstone is for VACUUM alone.
_REMOVE = pa.struct([field for field in REMOVE_SCHEMA if field.name not in ("tags", "stats")])


@dataclass(frozen=True, slots=True)
class Encoded:
    """A checkpoint's bytes, and what `_last_checkpoint` says of it."""

    data: bytes
    hint: LastCheckpoint


def write(store: LogStore, log_path: str, snapshot: Snapshot, now_ms: int) -> LastCheckpoint:
    """Write the checkpoint of a version, then point `_last_checkpoint` at it.

    A checkpoint of another writer at this version is left as it is: both hold the same. `now_ms` decides which
    tombstones have expired. Raises what the store raises; nothing of the table depends on it.
    """
    encoded = encode(snapshot, now_ms)
    hint = encoded.hint
    try:
        store.write(f"{log_path}/{checkpoint_name(snapshot.version)}", encoded.data)
    except FileExistsError:
        _log.info("%s: version %d has a checkpoint already", snapshot.table, snapshot.version)
        hint = LastCheckpoint(hint.version, hint.size, num_of_add_files=hint.num_of_add_files)
    store.write(f"{log_path}/{LAST_CHECKPOINT}", serialise(hint), overwrite=True)
    return hint


def encode(snapshot: Snapshot, now_ms: int) -> Encoded:
    """The classic checkpoint of a version as Parquet (V1 spec, allowed for every table)."""
    add_type = _add_type(snapshot)
    target = pa.schema(
        [
            ("txn", _TXN),
            ("add", add_type),
            ("remove", _REMOVE),
            ("metaData", _METADATA),
            ("protocol", _PROTOCOL),
            ("domainMetadata", _DOMAIN),
        ]
    )
    sink = pa.BufferOutputStream()
    rows = adds = 0
    waiting: list[pa.RecordBatch] = []
    with pq.ParquetWriter(sink, target, compression="snappy", use_compliant_nested_type=True) as writer:

        def flush() -> None:
            if waiting:
                writer.write_table(pa.Table.from_batches(waiting, target), row_group_size=2 * _GROUP_ROWS)
                waiting.clear()

        for kind, column in _parts(snapshot, add_type, now_ms):
            if len(column) == 0:
                continue
            rows += len(column)
            adds += len(column) if kind == "add" else 0
            arrays = [column if f.name == kind else pa.nulls(len(column), f.type) for f in target]
            waiting.append(pa.record_batch(arrays, schema=target))
            if sum(batch.num_rows for batch in waiting) >= _GROUP_ROWS:
                flush()
        flush()
    data = sink.getvalue().to_pybytes()
    return Encoded(data, LastCheckpoint(snapshot.version, rows, size_in_bytes=len(data), num_of_add_files=adds))


def _parts(snapshot: Snapshot, add_type: pa.DataType, now_ms: int) -> Iterator[tuple[str, pa.Array]]:
    """The rows of the checkpoint: (field, structs), the header first so that it is in the first row group."""
    retention = snapshot.properties.set_transaction_retention_ms
    oldest = None if retention is None else now_ms - retention
    transactions = [
        txn
        for txn in snapshot.transactions.values()
        if oldest is None or txn.last_updated is None or txn.last_updated > oldest
    ]
    yield "protocol", _structs([snapshot.protocol], "protocol", _PROTOCOL)
    yield "metaData", _structs([snapshot.metadata], "metaData", _METADATA)
    yield "txn", _structs(transactions, "txn", _TXN)
    yield "domainMetadata", _structs(list(snapshot.domain_metadata.values()), "domainMetadata", _DOMAIN)
    yield from (("remove", part) for part in _removes(snapshot, now_ms))
    yield from (("add", part) for part in _adds(snapshot, add_type))


def _structs(actions: Sequence[Action], kind: str, type_: pa.DataType) -> pa.Array:
    return pa.array([_pairs(json.loads(to_json(action))[kind], type_) for action in actions], type_)


def _pairs(value: Any, type_: pa.DataType) -> Any:
    """A JSON value as Arrow takes it: a map is a list of pairs."""
    if value is None:
        return None
    if pa.types.is_map(type_):
        return list(value.items())
    if pa.types.is_struct(type_):
        # Delta has written metaData without a schema; in a checkpoint the field is required.
        return {
            field.name: ""
            if field.name == "schemaString" and field.name not in value
            else _pairs(value.get(field.name), field.type)
            for field in type_
        }
    return value


def _removes(snapshot: Snapshot, now_ms: int) -> Iterator[pa.Array]:
    tombstones = snapshot.tombstones
    oldest = now_ms - snapshot.properties.deleted_file_retention_ms
    # As in Delta, a tombstone with no time is as old as can be.
    kept = tombstones.filter(pc.fill_null(pc.greater(tombstones.column("deletionTimestamp"), oldest), False))
    for batch in kept.to_batches(max_chunksize=_GROUP_ROWS):
        arrays = [batch.column(f.name) for f in _REMOVE]
        yield pa.StructArray.from_arrays(_without_data_change(arrays, _REMOVE), fields=list(_REMOVE))


def _without_data_change(arrays: list[pa.Array], type_: pa.DataType) -> list[pa.Array]:
    # A checkpoint rearranges: nothing in it is new data (what Delta writes, too).
    index = type_.get_field_index("dataChange")
    arrays[index] = pa.repeat(pa.scalar(False), len(arrays[index]))
    return arrays


def _add_type(snapshot: Snapshot) -> pa.DataType:
    fields = [pa.field(f.name, f.type) for f in FILE_SCHEMA]
    properties = snapshot.properties
    if properties.checkpoint_write_stats_as_json:
        fields.append(pa.field("stats", pa.string()))
    if properties.checkpoint_write_stats_as_struct:
        partition = _partition_fields(snapshot)
        if partition:
            fields.append(
                pa.field("partitionValues_parsed", pa.struct([(n, schema.arrow_type(t)) for n, t in partition]))
            )
        fields.append(pa.field("stats_parsed", _stats_type(snapshot)))
    return pa.struct(fields)


def _partition_fields(snapshot: Snapshot) -> list[tuple[str, schema.PrimitiveType]]:
    found = []
    for name in snapshot.mapping.physical_partition_columns:
        field = snapshot.mapping.physical.get(name, case_sensitive=True)
        if field is not None and isinstance(field.data_type, schema.PrimitiveType):
            found.append((name, field.data_type))
    return found


def _stats_tree(snapshot: Snapshot) -> stats.Tree:
    properties = snapshot.properties
    leaves = schema.indexed_leaves(
        snapshot.schema,
        snapshot.partition_columns,
        properties.data_skipping_num_indexed_cols,
        properties.data_skipping_stats_columns,
    )
    return stats.tree((snapshot.mapping.to_physical(column), f.data_type) for column, f in leaves)


def _stats_type(snapshot: Snapshot) -> pa.DataType:
    """What Delta has in `stats_parsed`: `tightBounds` only where a deletion vector may make it false."""
    type_ = stats.struct_type(_stats_tree(snapshot))
    return pa.struct([f for f in type_ if f.name != "tightBounds" or _may_have_vectors(snapshot.protocol)])


def _may_have_vectors(protocol: Protocol) -> bool:
    return "deletionVectors" in (protocol.reader_features or ())


def _adds(snapshot: Snapshot, add_type: pa.DataType) -> Iterator[pa.Array]:
    names = [f.name for f in add_type]
    needs_stats = "stats" in names or "stats_parsed" in names
    files = snapshot.files_with_stats_text() if needs_stats else snapshot.files
    tree = _stats_tree(snapshot) if "stats_parsed" in names else {}
    partition = _partition_fields(snapshot)
    for batch in files.to_batches(max_chunksize=_GROUP_ROWS):
        arrays: list[pa.Array] = []
        for field in add_type:
            if field.name == "stats_parsed":
                arrays.append(_stats_structs(batch.column("stats"), tree, field.type))
            elif field.name == "partitionValues_parsed":
                arrays.append(_partition_structs(batch.column("partitionValues"), partition, field.type))
            else:
                arrays.append(batch.column(field.name))
        yield pa.StructArray.from_arrays(_without_data_change(arrays, add_type), fields=list(add_type))


def _stats_structs(texts: pa.Array, tree: stats.Tree, type_: pa.DataType) -> pa.Array:
    parsed = stats.parse_json(texts, tree).combine_chunks()
    if isinstance(parsed, pa.ChunkedArray):
        parsed = pa.concat_arrays(parsed.chunks) if parsed.num_chunks else pa.nulls(0, parsed.type)
    children = {parsed.type.field(i).name: child for i, child in enumerate(parsed.flatten())}
    arrays = [children[f.name] for f in type_]
    return pa.StructArray.from_arrays(arrays, fields=list(type_), mask=parsed.is_null())


def _partition_structs(
    values: pa.Array, columns: Sequence[tuple[str, schema.PrimitiveType]], type_: pa.DataType
) -> pa.Array:
    arrays = [
        partition_values.typed(partition_values.column_of(values, name), data_type) for name, data_type in columns
    ]
    return pa.StructArray.from_arrays(arrays, fields=list(type_))
