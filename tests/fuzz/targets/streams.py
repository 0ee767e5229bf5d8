"""What a stream stores in the checkpoint of its query: offsets, and the entries of a schema log."""

import json
from functools import partial

from fuzz.target import Target
from tablelog.core.protocol import codec
from tablelog.core.protocol.actions import Metadata, Protocol
from tablelog.core.streaming import offset
from tablelog.core.streaming.schema_log import SchemaLog, TrackedSchema
from tablelog.errors import CorruptLogError
from tablelog.logstore import MemoryLogStore

from . import examples

_OFFSET_WORDS = [
    "sourceVersion",
    "reservoirId",
    "reservoirVersion",
    "index",
    "isStartingVersion",
    "-1",
    "-100",
    "-20",
    "true",
]
_ENTRY_WORDS = [
    "tableId", "deltaCommitVersion", "dataSchemaJson", "partitionSchemaJson", "sourceMetadataPath",
    "tableConfigurations",
    "protocolJson", "previousMetadataSeqNum", "v1", "v2", *examples.KEYS,
]  # fmt: skip


def source_offset(data: bytes) -> None:
    """An offset is written as it is read, and the next one comes after it."""
    parsed = offset.parse(_text(data))
    assert offset.parse(parsed.to_json()) == parsed
    assert -1 <= parsed.version < 2**63
    assert -(2**63) <= parsed.index < 2**63
    later = offset.after((parsed.version + 1, offset.AFTER_FILES), parsed)
    assert later.position > parsed.position
    assert offset.parse(later.to_json()) == later


def schema_entry(data: bytes) -> None:
    """An entry of a schema log is written as it is read."""
    store = MemoryLogStore()
    entry = _entry(store, data)
    again = _entry(store, entry.to_bytes())
    assert again == entry
    base = Metadata("table", examples.SCHEMA, (), {})
    assert entry.metadata(base).schema_string == entry.schema_string


def _entry(store: MemoryLogStore, data: bytes) -> TrackedSchema:
    location = "memory:/schemas"
    store.write(f"{location}/0", data, overwrite=True)
    read = partial(SchemaLog, store, location, table="memory:/t")
    try:
        log = read(table_id="table")
    except CorruptLogError as error:
        if error.condition != "DELTA_STREAMING_SCHEMA_LOG_INCOMPATIBLE_DELTA_TABLE_ID":
            raise
        log = read(table_id=error.message_parameters["persistedId"])
    assert log.current is not None
    return log.current


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise CorruptLogError("not UTF-8") from None


def _offset_seeds() -> list[bytes]:
    offsets = [
        offset.SourceOffset("table", 5, offset.BEFORE_FILES, True),
        offset.SourceOffset("table", 7, 3, False),
        offset.SourceOffset("table", 9, offset.SCHEMA_CHANGE, False),
    ]
    return [one.to_json().encode() for one in offsets]


def _entry_seeds() -> list[bytes]:
    protocol = Protocol(3, 7, examples.FEATURES, examples.FEATURES)
    metadata = Metadata("table", examples.SCHEMA, ("day",), {"delta.appendOnly": "true"})
    entry = TrackedSchema.of(metadata, protocol, 3, "memory:/q/sources/0")
    assert json.loads(codec.to_json(protocol))
    return [entry.to_bytes(), entry.to_bytes().replace(b'"tableConfigurations"', b'"previousMetadataSeqNum":4,"x"')]


TARGETS = (
    Target("offset", source_offset, _offset_seeds, "json", _OFFSET_WORDS),
    Target("schema-log", schema_entry, _entry_seeds, "lines", _ENTRY_WORDS),
)
