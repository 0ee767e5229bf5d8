"""The content of a checkpoint as columns (PROTOCOL.md, "Checkpoint Schema"): the header at once, files in pieces."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..log.columns import FILE_SCHEMA, REMOVE_SCHEMA, STRING_MAP
from ..protocol import partition_values, schema
from ..protocol.actions import Action, CheckpointMetadata, DomainMetadata, Metadata, SetTransaction, Sidecar
from ..protocol.actions import Protocol as ProtocolAction
from ..protocol.codec import to_json
from ..protocol.features import supported
from ..skipping import stats
from ..table.snapshot import Snapshot

PIECE_ROWS = 1 << 16
"""The number of rows of files that are converted at a time."""
_JOINED_BYTES = 64 << 20

_NAMES: Mapping[type, str] = {
    ProtocolAction: "protocol",
    Metadata: "metaData",
    SetTransaction: "txn",
    DomainMetadata: "domainMetadata",
    CheckpointMetadata: "checkpointMetadata",
    Sidecar: "sidecar",
}
_TYPES: Mapping[str, pa.DataType] = {
    "txn": pa.struct([("appId", pa.string()), ("version", pa.int64()), ("lastUpdated", pa.int64())]),
    "domainMetadata": pa.struct([("domain", pa.string()), ("configuration", pa.string()), ("removed", pa.bool_())]),
    "metaData": pa.struct(
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
    ),
    "protocol": pa.struct(
        [
            ("minReaderVersion", pa.int32()),
            ("minWriterVersion", pa.int32()),
            ("readerFeatures", pa.list_(pa.string())),
            ("writerFeatures", pa.list_(pa.string())),
        ]
    ),
    "checkpointMetadata": pa.struct([("version", pa.int64()), ("tags", STRING_MAP)]),
    "sidecar": pa.struct(
        [("path", pa.string()), ("sizeInBytes", pa.int64()), ("modificationTime", pa.int64()), ("tags", STRING_MAP)]
    ),
}
# Without stats and tags: only VACUUM reads tombstones.
REMOVE_TYPE = pa.struct([field for field in REMOVE_SCHEMA if field.name not in ("tags", "stats")])


# --- the schemas of the files -----------------------------------------------------------------------------------------


def classic_schema(add_type: pa.DataType) -> pa.Schema:
    """The columns of a classic checkpoint, or of one part."""
    types = {**_TYPES, "add": add_type, "remove": REMOVE_TYPE}
    return pa.schema([(n, types[n]) for n in ("txn", "add", "remove", "metaData", "protocol", "domainMetadata")])


def sidecar_schema(add_type: pa.DataType) -> pa.Schema:
    """The columns of a sidecar of a V2 checkpoint."""
    return pa.schema([("add", add_type), ("remove", REMOVE_TYPE)])


def top_level_schema(add_type: pa.DataType) -> pa.Schema:
    """The columns of the top-level file of a V2 checkpoint; the file columns exist for readers that select them."""
    more = [pa.field(name, _TYPES[name]) for name in ("checkpointMetadata", "sidecar")]
    return pa.schema([*classic_schema(add_type), *more])


# --- the rows ---------------------------------------------------------------------------------------------------------


def header(snapshot: Snapshot, now_ms: int) -> list[Action]:
    """The actions that aren't files, without expired transactions."""
    retention = snapshot.properties.set_transaction_retention_ms
    oldest = None if retention is None else now_ms - retention
    transactions = [
        txn
        for txn in snapshot.transactions.values()
        if oldest is None or txn.last_updated is None or txn.last_updated > oldest
    ]
    return [snapshot.protocol, snapshot.metadata, *transactions, *snapshot.domain_metadata.values()]


def structs(actions: Sequence[Action]) -> Iterator[tuple[str, pa.Array]]:
    """Header actions as rows: (column, structs) for each kind."""
    for type_, name in _NAMES.items():
        values = [_pairs(json.loads(to_json(a))[name], _TYPES[name]) for a in actions if isinstance(a, type_)]
        if values:
            yield name, pa.array(values, _TYPES[name])


def _pairs(value: Any, type_: pa.DataType) -> Any:
    """A JSON value in the form that Arrow takes: a map is a list of pairs."""
    if value is None:
        return None
    if pa.types.is_map(type_):
        return list(value.items())
    if pa.types.is_struct(type_):
        # Delta has written metaData without a schema, but a checkpoint requires the field.
        return {
            field.name: ""
            if field.name == "schemaString" and field.name not in value
            else _pairs(value.get(field.name), field.type)
            for field in type_
        }
    return value


def tombstones(snapshot: Snapshot, now_ms: int) -> Iterator[pa.Table]:
    """The tombstones that haven't expired, in pieces: VACUUM may still need them to find their files."""
    oldest = now_ms - snapshot.properties.deleted_file_retention_ms
    for piece in snapshot.tombstone_pieces():
        # As in Delta, a tombstone without a time counts as expired.
        yield piece.filter(pc.fill_null(pc.greater(piece.column("deletionTimestamp"), oldest), False))


def removes(kept: Iterable[pa.Table]) -> Iterator[pa.StructArray]:
    """Tombstones as rows."""
    for piece in kept:
        for batch in piece.to_batches(max_chunksize=PIECE_ROWS):
            yield _rearranged([batch.column(f.name) for f in REMOVE_TYPE], REMOVE_TYPE)


@dataclass(frozen=True)
class CheckpointLayout:
    """The form of a table's files in its checkpoints: the `type` of `add`, from its schema and properties.

    It can be pickled. `tree` and `partition` are the columns of `stats_parsed` and `partitionValues_parsed`.
    """

    type: pa.DataType
    tree: stats.Tree
    partition: list[tuple[str, schema.PrimitiveType]]

    @property
    def with_stats(self) -> bool:
        """Whether the rows contain statistics."""
        return any(self.type.get_field_index(name) >= 0 for name in ("stats", "stats_parsed"))

    def rows(self, pieces: Iterable[pa.Table]) -> Iterator[pa.StructArray]:
        """Convert pieces from `Snapshot.pieces` to rows, one piece at a time."""
        for piece in pieces:
            for batch in piece.to_batches(max_chunksize=PIECE_ROWS):
                arrays: list[pa.Array] = []
                for field in self.type:
                    if field.name == "stats_parsed":
                        arrays.append(_stats_structs(batch, self.tree, field.type))
                    elif field.name == "partitionValues_parsed":
                        arrays.append(_partition_structs(batch.column("partitionValues"), self.partition, field.type))
                    elif field.name == "stats":
                        arrays.append(_stats_texts(batch))
                    else:
                        arrays.append(batch.column(field.name))
                yield _rearranged(arrays, self.type)


def _rearranged(arrays: list[pa.Array], type_: pa.DataType) -> pa.StructArray:
    # As in Delta, files in a checkpoint aren't new data.
    index = type_.get_field_index("dataChange")
    arrays[index] = pa.repeat(pa.scalar(False), len(arrays[index]))
    return pa.StructArray.from_arrays(arrays, fields=list(type_))


# --- dividing rows among parts ----------------------------------------------------------------------------------------


def joined(columns: Iterable[tuple[str, pa.Array]]) -> Iterator[tuple[str, pa.Array]]:
    """Rows of files, with consecutive pieces of a kind joined up to `PIECE_ROWS` rows or `_JOINED_BYTES`.

    An old checkpoint may give pieces of some thousand rows, and each piece is divided among all parts: with small
    pieces, the time would grow with the square of the files.
    """
    waiting: list[pa.Array] = []
    waits_for, num_rows, num_bytes = "", 0, 0
    for kind, column in columns:
        if waiting and (kind != waits_for or num_rows >= PIECE_ROWS or num_bytes >= _JOINED_BYTES):
            yield waits_for, pa.concat_arrays(waiting)
            waiting, num_rows, num_bytes = [], 0, 0
        waits_for = kind
        waiting.append(column)
        num_rows, num_bytes = num_rows + len(column), num_bytes + column.nbytes
    if waiting:
        yield waits_for, pa.concat_arrays(waiting)


def by_part(chosen: pa.Array) -> Iterator[tuple[int, pa.Array]]:
    """The indices of the rows of each part that has some, where `chosen` are the parts of the rows."""
    order = pc.array_sort_indices(chosen)  # rows of a part stay in their order
    runs = pc.run_end_encode(chosen.take(order))
    start = 0
    for number, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
        yield number, order.slice(start, end - start)
        start = end


# --- the columns that follow the table's schema -----------------------------------------------------------------------


def layout(snapshot: Snapshot) -> CheckpointLayout:
    """The layout of a version's checkpoint."""
    fields = [pa.field(f.name, f.type) for f in FILE_SCHEMA]
    properties = snapshot.properties
    if properties.checkpoint_write_stats_as_json:
        fields.append(pa.field("stats", pa.string()))
    tree: stats.Tree = {}
    partition = _partition_fields(snapshot)
    if properties.checkpoint_write_stats_as_struct:
        tree = _stats_tree(snapshot)
        if partition:
            fields.append(
                pa.field("partitionValues_parsed", pa.struct([(n, schema.arrow_type(t)) for n, t in partition]))
            )
        fields.append(pa.field("stats_parsed", _stats_type(snapshot, tree)))
    return CheckpointLayout(pa.struct(fields), tree, partition)


def _partition_fields(snapshot: Snapshot) -> list[tuple[str, schema.PrimitiveType]]:
    columns = []
    for name in snapshot.mapping.physical_partition_columns:
        field = snapshot.mapping.physical.get(name, case_sensitive=True)
        if field is not None and isinstance(field.data_type, schema.PrimitiveType):
            columns.append((name, field.data_type))
    return columns


def _stats_tree(snapshot: Snapshot) -> stats.Tree:
    properties = snapshot.properties
    leaves = schema.indexed_leaves(
        snapshot.schema,
        snapshot.partition_columns,
        properties.data_skipping_num_indexed_cols,
        properties.data_skipping_stats_columns,
    )
    return stats.tree((snapshot.mapping.to_physical(column), f.data_type) for column, f in leaves)


def _stats_type(snapshot: Snapshot, tree: stats.Tree) -> pa.DataType:
    """The type of `stats_parsed`, as in Delta: `tightBounds` only if deletion vectors may make it false."""
    type_ = stats.struct_type(tree)
    with_vectors = "deletionVectors" in supported(snapshot.protocol)
    return pa.struct([f for f in type_ if f.name != "tightBounds" or with_vectors])


def _stats_structs(batch: pa.RecordBatch, tree: stats.Tree, type_: pa.DataType) -> pa.Array:
    """The statistics of a piece as structs: from the old checkpoint if they have all fields, else parsed from JSON."""
    texts = batch.column("stats")
    if batch.schema.get_field_index("stats_parsed") >= 0:
        known = batch.column("stats_parsed")
        fitted = _fitted(known, type_)
        if fitted is not None and not pc.any(pc.and_(known.is_null(), texts.is_valid())).as_py():
            return fitted
        texts = _stats_texts(batch)
    parsed = stats.parse_json(texts, tree).combine_chunks()
    if isinstance(parsed, pa.ChunkedArray):
        parsed = pa.concat_arrays(parsed.chunks) if parsed.num_chunks else pa.nulls(0, parsed.type)
    children = {parsed.type.field(i).name: child for i, child in enumerate(parsed.flatten())}
    return pa.StructArray.from_arrays([children[f.name] for f in type_], fields=list(type_), mask=parsed.is_null())


def _fitted(array: pa.Array, type_: pa.DataType) -> pa.Array | None:
    """`array` as `type_`; `None` if it lacks a leaf, or has a leaf of a type that can't be widened to it."""
    if array.type.equals(type_):
        return array
    if not pa.types.is_struct(type_):
        if pa.types.is_float32(type_):
            return None  # a rounded value isn't a valid bound
        try:
            return array.cast(type_)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return None
    if not pa.types.is_struct(array.type):
        return None
    names = {field.name: index for index, field in enumerate(array.type)}
    children = array.flatten()
    fitted_children: list[pa.Array] = []
    for field in type_:
        child = _fitted(children[names[field.name]], field.type) if field.name in names else None
        if child is None:
            return None
        fitted_children.append(child)
    return pa.StructArray.from_arrays(fitted_children, fields=list(type_), mask=array.is_null())


def _stats_texts(batch: pa.RecordBatch) -> pa.Array:
    """The statistics of a piece as JSON text, converted from structs if the old checkpoint had only these."""
    texts = batch.column("stats")
    if not texts.null_count or batch.schema.get_field_index("stats_parsed") < 0:
        return texts
    from ..skipping.stats_text import stats_texts

    return stats_texts(pa.chunked_array([texts]), pa.chunked_array([batch.column("stats_parsed")])).chunk(0)


def _partition_structs(
    values: pa.Array, columns: Sequence[tuple[str, schema.PrimitiveType]], type_: pa.DataType
) -> pa.Array:
    # Readers in every time zone use the checkpoint, so a timestamp without a zone isn't read in a local zone.
    arrays = [
        partition_values.typed(partition_values.column_of(values, name), data_type, time_zone="UTC")
        for name, data_type in columns
    ]
    return pa.StructArray.from_arrays(arrays, fields=list(type_))
