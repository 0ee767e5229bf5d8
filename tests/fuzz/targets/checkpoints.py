"""Checkpoints: their bytes, the footer and the pages of a Parquet file, and rows in other types than ours."""

import io
import json
from functools import cache

import pyarrow as pa
import pyarrow.parquet as pq

from fuzz.target import Target, allowed
from tablelog.core.log.columns import FILE_SCHEMA, REMOVE_SCHEMA, table_of
from tablelog.core.log.parquet_footer import footer_of
from tablelog.core.log.parquet_pages import pages_of
from tablelog.core.protocol.actions import Action, AddFile, RemoveFile
from tablelog.core.protocol.codec import parse_commit, to_json
from tablelog.core.protocol.paths import checkpoint_name
from tablelog.errors import CorruptLogError

from . import examples
from .commits import Model
from .tables import PARTS, agree, opened, use

KINDS = ("classic", "parts", "v2-json", "v2-parquet")


def checkpoint(data: bytes) -> None:
    """One file of a checkpoint is replaced, and the commits that could be read instead are gone.

    The first byte says which file, and what is asked: a part of the state, or the health.
    """
    places = _places()
    question, place = divmod(data[0] if data else 0, len(places))
    kind, name = places[place]
    handle = opened({**_alone(kind), name: data[1:]})
    snapshot = handle.snapshot()
    question %= _QUESTIONS
    if question < len(PARTS):
        use(snapshot, question)
    else:
        allowed(handle.health)


_QUESTIONS = len(PARTS) + 1


@cache
def _alone(kind: str) -> dict[str, bytes]:
    """A log that can only be read by its checkpoint, whose Parquet files are without our checksums."""
    files = {}
    for name, data in examples.table(kind).items():
        if name.endswith((".json", ".crc")) and ".checkpoint." not in name and name < f"{4:020}":
            continue
        if name == "_last_checkpoint" or name.endswith(".crc"):
            continue
        files[name] = data
    return files


def _plain_parquet(data: bytes) -> bytes:
    """The same rows, written by pyarrow with no checksums, so that a change is seen only by its effect."""
    sink = io.BytesIO()
    pq.write_table(pq.read_table(io.BytesIO(data)), sink, compression="none", write_page_checksum=False)
    return sink.getvalue()


@cache
def _places() -> list[tuple[str, str]]:
    return [
        (kind, name) for kind in KINDS for name in sorted(_alone(kind)) if "checkpoint" in name or "_sidecars" in name
    ]


def _checkpoint_seeds() -> list[bytes]:
    seeds = []
    places = _places()
    for at, (kind, name) in enumerate(places):
        data = _alone(kind)[name]
        content = data if name.endswith(".json") or at % 3 else _plain_parquet(data)
        seeds += [bytes([question * len(places) + at]) + content for question in range(_QUESTIONS)]
    return seeds


def parquet(data: bytes) -> None:
    """The footer and the headers of the pages: numbers that can be true of a file of this size, or an error."""
    try:
        footer = footer_of(data)
    except (ValueError, OSError, pa.ArrowException) as error:
        raise CorruptLogError(str(error)) from None
    assert footer.size == len(data)
    for group in footer.row_groups:
        for column in group.columns:
            try:
                pages = pages_of(data, column.start, column.size)
            except ValueError:
                continue
            assert pages.dictionary <= pages.decompressed


def rows(data: bytes) -> None:
    """Actions as the rows of a checkpoint that another program wrote: the state is that of the model.

    The bits of the first byte say how they are written: with large texts, as dictionaries, in several row groups, with
    columns in another order, with narrower numbers, or with only the columns that the actions need; and what is asked.
    """
    how = data[0] if data else 0
    actions = [action for action in parse_commit(data[1:]) if to_json(action)[2:5] not in ("com", "cdc", "che", "sid")]
    kinds: dict[str, list[Action]] = {}
    for action in actions:
        kinds.setdefault(next(iter(json.loads(to_json(action)))), []).append(action)
    if any(len(kinds.get(kind, ())) != 1 for kind in ("protocol", "metaData")):
        raise CorruptLogError("no state of a table")
    content = _parquet(kinds, how)
    model = Model()
    for action in actions:
        model.apply(action, "memory:/table")
    if len(model.files) != sum(isinstance(action, AddFile | RemoveFile) for action in actions):
        raise CorruptLogError("not reconciled")
    snapshot = opened({checkpoint_name(3): content}).snapshot()
    agree(snapshot, model)
    use(snapshot, how >> 6)


def _parquet(kinds: dict[str, list[Action]], how: int) -> bytes:
    columns: dict[str, pa.Array] = {}
    count = sum(map(len, kinds.values()))
    before = 0
    for kind, actions in kinds.items():
        own = _structs(kind, actions, how)
        columns[kind] = pa.concat_arrays(
            [pa.nulls(before, own.type), own, pa.nulls(count - before - len(own), own.type)]
        )
        before += len(own)
    names = sorted(columns) if how & 8 else list(columns)
    sink = io.BytesIO()
    groups = 2 if how & 4 else count
    pq.write_table(
        pa.table({name: columns[name] for name in names}), sink, row_group_size=max(groups, 1),
        use_dictionary=bool(how & 2), data_page_version="2.0" if how & 16 else "1.0",
    )  # fmt: skip
    return sink.getvalue()


def _structs(kind: str, actions: list[Action], how: int) -> pa.StructArray:
    try:
        if kind in ("add", "remove"):
            files = [action for action in actions if isinstance(action, AddFile | RemoveFile)]
            schema = FILE_SCHEMA.append(pa.field("stats", pa.string())) if kind == "add" else REMOVE_SCHEMA
            table = table_of(files, schema)
            if how & 1:
                table = table.set_column(0, "path", table["path"].cast(pa.large_string()))
            if how & 32:
                table = table.drop_columns([n for n in table.column_names[3:] if table[n].null_count == len(table)])
            return pa.StructArray.from_arrays([c.combine_chunks() for c in table.columns], names=table.column_names)
        values = [json.loads(to_json(action))[kind] for action in actions]
        return pa.array(values, _TYPES.get(kind))
    except (pa.ArrowException, OverflowError) as error:
        raise CorruptLogError(f"these can't be rows: {error}") from None


_MAP = pa.map_(pa.string(), pa.string())
_TYPES = {
    "metaData": pa.struct(
        [("id", pa.string()), ("name", pa.string()), ("description", pa.string()), ("schemaString", pa.string()),
         ("format", pa.struct([("provider", pa.string()), ("options", _MAP)])), ("createdTime", pa.int64()),
         ("partitionColumns", pa.list_(pa.string())), ("configuration", _MAP)]
    ),
    "protocol": pa.struct(
        [("minReaderVersion", pa.int32()), ("minWriterVersion", pa.int32()), ("readerFeatures", pa.list_(pa.string())),
         ("writerFeatures", pa.list_(pa.string()))]
    ),
    "txn": pa.struct([("appId", pa.string()), ("version", pa.int64()), ("lastUpdated", pa.int64())]),
    "domainMetadata": pa.struct([("domain", pa.string()), ("configuration", pa.string()), ("removed", pa.bool_())]),
}  # fmt: skip


def _rows_seeds() -> list[bytes]:
    first, adds, second, third, _ = examples.history()
    actions = [*first[1:], *adds[2:], *second, *third[1:]]
    kept = [action for action in actions if not isinstance(action, RemoveFile) or action.path.startswith("file:")]
    return [bytes([how]) + examples.lines(kept) for how in (0, 65, 130, 196, 8, 80, 160, 255)]


def _parquet_seeds() -> list[bytes]:
    files = [
        data for kind in ("classic", "v2-parquet") for name, data in _alone(kind).items() if name.endswith(".parquet")
    ]
    return [*files, *map(_plain_parquet, files)]


TARGETS = (
    Target("checkpoint", checkpoint, _checkpoint_seeds, "binary", examples.KEYS, keep=1, seconds=5, megabytes=400),
    Target("checkpoint-rows", rows, _rows_seeds, "lines", examples.KEYS, keep=1, seconds=5, megabytes=128),
    Target("parquet", parquet, _parquet_seeds, "binary", examples.KEYS, megabytes=128),
)
