"""Streams with a schema log: the form of the log, where batches end, which changes are allowed. No Spark."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from support.log_builder import LogBuilder, add, metadata
from tablelog.core.protocol.actions import Metadata, Protocol
from tablelog.core.protocol.schema import parse_schema
from tablelog.core.streaming import offset
from tablelog.core.streaming.commits import CommitRules
from tablelog.core.streaming.limits import ReadLimits
from tablelog.core.streaming.offset import AFTER_SCHEMA_CHANGE, BEFORE_FILES, SCHEMA_CHANGE, SourceOffset
from tablelog.core.streaming.schema_changes import Permissions, change_between, java_hash
from tablelog.core.streaming.schema_log import SchemaLog, TrackedSchema
from tablelog.core.streaming.schema_tracking import SchemaTracking, as_tracked, merge_changes
from tablelog.core.streaming.source import StreamOptions, TableStream
from tablelog.core.table.changes import Bound
from tablelog.errors import (
    CorruptLogError,
    InvalidArgumentError,
    SchemaChangedError,
    UnsupportedFeatureError,
)
from tablelog.logstore import MemoryLogStore
from tablelog.logstore.wrappers.counting import CountingLogStore

PROTOCOL = Protocol(2, 5)
LOCATION = "memory:/checkpoint/_schema_log_t"
SOURCE = "file:/checkpoint/sources/0"
MAPPING = "delta.columnMapping."
FEED = {"delta.enableChangeDataFeed": "true"}


def columns(*fields: Sequence[str], nullable: bool = True) -> str:
    """A mapped schema; each field is (name, physical name, type)."""
    return json.dumps(
        {
            "type": "struct",
            "fields": [
                {
                    "name": name,
                    "type": type_,
                    "nullable": nullable,
                    "metadata": {
                        "delta.columnMapping.id": int(physical[1:]),
                        "delta.columnMapping.physicalName": physical,
                    },
                }
                for name, physical, type_ in fields
            ],
        },
        separators=(",", ":"),
    )


A = columns(("id", "c1", "long"), ("a", "c2", "integer"))
RENAMED = columns(("id", "c1", "long"), ("b", "c2", "integer"))
DROPPED = columns(("id", "c1", "long"))
ADDED = columns(("id", "c1", "long"), ("a", "c2", "integer"), ("x", "c3", "string"))
WIDENED = columns(("id", "c1", "long"), ("a", "c2", "long"))
NARROWED = columns(("id", "c1", "long"), ("a", "c2", "short"))


def mapped(schema: str, **configuration: str) -> Metadata:
    return metadata({"delta.columnMapping.mode": "name", **configuration}, schema=schema, table_id="t")


class Query:
    """A query over a table: each `run` starts it, and reads until there is nothing new."""

    def __init__(self, builder: LogBuilder, **options: Any) -> None:
        self.builder = builder
        self.store = MemoryLogStore()
        self.options: dict[str, str] = {}
        self.settings: dict[str, str] = {}
        self.stream_options = options
        self.end: SourceOffset | None = None
        self.read: list[tuple[str, str]] = []

    def log(self) -> SchemaLog:
        return SchemaLog(self.store, LOCATION, table="t", table_id="t")

    def start(self, source: str = SOURCE) -> TableStream:
        log = self.builder.log()
        merge_changes(log, self.log())
        permissions = Permissions(self.options.get, self.settings.get, source)
        tracking = SchemaTracking(self.log(), log.snapshot(), permissions)
        return TableStream(log, log.snapshot(), StreamOptions(**self.stream_options), tracking)

    def run(self) -> None:
        """Read each batch: pairs of a file and the name of its second column go to `read`."""
        stream = self.start()
        while True:
            end = stream.latest(self.end)
            if end is None or end == self.end:
                return
            previous, self.end = self.end, offset.parse(end.to_json())
            if previous is not None:
                stream.committed(previous)  # Spark calls it when it has stored the next offset
            names = ",".join(f.name for f in stream.read.schema.fields)
            batch = stream.batch(previous, self.end)
            self.read += [(action.path, names) for commit in batch.commits for action in commit.actions]


def table(**fields: Any) -> LogBuilder:
    return LogBuilder().commit(PROTOCOL, mapped(A, **fields), add("f0"))


# --- the log ------------------------------------------------------------------------------------------------------


def test_an_entry_has_the_form_of_delta() -> None:
    store = MemoryLogStore()
    log = SchemaLog(store, LOCATION, table="t", table_id="t")
    assert log.current is None
    entry = TrackedSchema.of(mapped(A), PROTOCOL, 3, SOURCE)
    log.add(entry)
    log.add(entry)  # no second file
    form, line = store.read(f"{LOCATION}/0").decode().split("\n")
    fields = json.loads(line)
    assert form == "v1"
    assert list(fields) == [
        "tableId", "deltaCommitVersion", "dataSchemaJson", "partitionSchemaJson", "sourceMetadataPath",
        "tableConfigurations", "protocolJson",
    ]  # fmt: skip
    assert (fields["tableId"], fields["deltaCommitVersion"], fields["dataSchemaJson"]) == ("t", 3, A)
    assert json.loads(fields["protocolJson"]) == {"protocol": {"minReaderVersion": 2, "minWriterVersion": 5}}
    assert SchemaLog(store, LOCATION, table="t", table_id="t").current == entry
    log.replace(TrackedSchema.of(mapped(ADDED), PROTOCOL, 5, SOURCE))
    assert json.loads(store.read(f"{LOCATION}/1").decode().split("\n")[1])["previousMetadataSeqNum"] == -1
    assert SchemaLog(store, LOCATION, table="t", table_id="t").previous() is None


def test_an_entry_of_an_older_delta_has_neither_properties_nor_protocol() -> None:
    store = MemoryLogStore()
    fields = {
        "tableId": "t", "deltaCommitVersion": 0, "dataSchemaJson": A, "sourceMetadataPath": SOURCE,
        "partitionSchemaJson": '{"type":"struct","fields":[]}',
    }  # fmt: skip
    store.write(f"{LOCATION}/0", b"v1\n" + json.dumps(fields).encode())
    current = SchemaLog(store, LOCATION, table="t", table_id="t").current
    assert current is not None
    snapshot = table().commit(mapped(RENAMED)).log().snapshot()
    read = as_tracked(snapshot, current)
    assert (read.version, [f.name for f in read.schema.fields]) == (1, ["id", "a"])
    assert (read.protocol, read.metadata.configuration) == (snapshot.protocol, snapshot.metadata.configuration)
    assert read.files.num_rows == snapshot.files.num_rows == 1


ENTRY = TrackedSchema("t", 0, A, ("id",), SOURCE).to_bytes()


def _with_partition(name: str) -> bytes:
    fields = json.loads(ENTRY.partition(b"\n")[2])
    return (
        b"v1\n"
        + json.dumps({**fields, "partitionSchemaJson": fields["partitionSchemaJson"].replace("id", name)}).encode()
    )


@pytest.mark.parametrize(
    "data",
    [
        b"", b"v2\n{}", b"v1\n", b"v1\n{}", b"v1\n[]", b'v1\n{"tableId":"t"', b"\xff", b"v1\n" + b"[" * 100_000,
        ENTRY.replace(b'"deltaCommitVersion":0', b'"deltaCommitVersion":1e999'),
        _with_partition("x"),  # which isn't a column
    ],
)  # fmt: skip
def test_a_damaged_entry_is_an_error(data: bytes) -> None:
    store = MemoryLogStore()
    store.write(f"{LOCATION}/0", _with_partition("id"))
    assert SchemaLog(store, LOCATION, table="t", table_id="t").current == TrackedSchema("t", 0, A, ("id",), SOURCE)
    store = MemoryLogStore()
    store.write(f"{LOCATION}/0", data)
    with pytest.raises(CorruptLogError) as raised:
        SchemaLog(store, LOCATION, table="t", table_id="t")
    assert raised.value.condition == "DELTA_STREAMING_SCHEMA_LOG_DESERIALIZE_FAILED"


def test_a_partition_column_is_spelled_as_the_column_is() -> None:
    store = MemoryLogStore()
    store.write(f"{LOCATION}/0", _with_partition("ID"))
    assert SchemaLog(store, LOCATION, table="t", table_id="t").current == TrackedSchema("t", 0, A, ("id",), SOURCE)


def test_a_schema_log_belongs_to_one_source_of_one_table() -> None:
    query = Query(table())
    query.run()
    with pytest.raises(CorruptLogError) as raised:
        SchemaLog(query.store, LOCATION, table="t", table_id="other")
    assert raised.value.condition == "DELTA_STREAMING_SCHEMA_LOG_INCOMPATIBLE_DELTA_TABLE_ID"
    with pytest.raises(InvalidArgumentError, match="streamingSourceTrackingId") as conflict:
        query.start("file:/checkpoint/sources/1")
    assert conflict.value.condition == "DELTA_STREAMING_SCHEMA_LOCATION_CONFLICT"
    other, late = query.log(), query.log()
    other.add(TrackedSchema.of(mapped(ADDED), PROTOCOL, 7, SOURCE))
    with pytest.raises(InvalidArgumentError, match="at the same time"):
        late.add(TrackedSchema.of(mapped(RENAMED), PROTOCOL, 7, SOURCE))


def test_offsets_at_a_change_have_the_form_of_delta() -> None:
    text = '{"sourceVersion":3,"reservoirId":"t","reservoirVersion":4,"index":-20,"isStartingVersion":false}'
    assert offset.parse(text) == SourceOffset("t", 4, SCHEMA_CHANGE, False)
    assert offset.parse(text).to_json() == text


# --- following changes --------------------------------------------------------------------------------------------


def evolves(query: Query) -> None:
    with pytest.raises(SchemaChangedError) as raised:
        query.run()
    assert raised.value.condition == "DELTA_STREAMING_METADATA_EVOLUTION"


@pytest.mark.parametrize("changes", [False, True])
@pytest.mark.parametrize("limits", [ReadLimits(), ReadLimits(1)])
def test_a_stream_follows_a_rename(changes: bool, limits: ReadLimits) -> None:
    feed = FEED if changes else {}
    builder = table(**feed).commit(add("f1"), add("f2"))
    query = Query(builder, start=Bound(version=0), rules=CommitRules(changes=changes), limits=limits)
    query.run()
    builder.commit(add("f3")).commit(mapped(RENAMED, **feed), add("f4")).commit(add("f5"))
    evolves(query)
    assert query.end is not None
    assert (query.end.version, query.end.index) == (3, AFTER_SCHEMA_CHANGE)
    assert query.read == [(f"f{i}", "id,a") for i in range(4)]
    with pytest.raises(SchemaChangedError, match=r"a -> b.*allowSourceColumnRename") as raised:
        query.run()
    assert raised.value.condition == "DELTA_STREAMING_CANNOT_CONTINUE_PROCESSING_POST_SCHEMA_EVOLUTION"
    query.options["allowSourceColumnRename"] = "3"
    query.run()
    assert query.read[4:] == [("f4", "id,b"), ("f5", "id,b")]
    builder.commit(add("f6"))
    query.run()
    assert query.read[6:] == [("f6", "id,b")]


def test_successive_changes_are_followed_at_once() -> None:
    builder = table()
    query = Query(builder)
    query.run()
    for schema in (RENAMED, DROPPED, ADDED):
        builder.commit(mapped(schema))
    builder.commit(add("f1"))
    evolves(query)
    query.settings["spark.databricks.delta.streaming.allowSourceColumnRenameAndDrop"] = "always"
    query.run()
    assert query.read == [("f0", "id,a"), ("f1", "id,a,x")]
    current = query.log().current
    assert current is not None
    assert (current.version, current.previous) == (3, 0)


def test_an_added_column_and_a_property_need_no_permission() -> None:
    builder = table()
    query = Query(builder)
    query.run()
    builder.commit(mapped(ADDED), add("f1"))
    evolves(query)
    query.run()
    builder.commit(mapped(ADDED, **{"delta.appendOnly": "true"})).commit(add("f2"))
    evolves(query)
    query.run()
    builder.commit(Protocol(2, 6)).commit(add("f3"))
    evolves(query)
    query.run()
    assert [path for path, _ in query.read] == ["f0", "f1", "f2", "f3"]
    builder.commit(mapped(ADDED, **{"delta.appendOnly": "true", "mine": "1"}))  # a property that isn't Delta's
    query.run()


def test_a_log_that_is_added_to_a_running_query_begins_with_its_columns() -> None:
    """The query stopped at a rename, which it couldn't follow; then it gets a schema log."""
    builder = table().commit(add("f1"))
    log = builder.log()
    start = TableStream(log, log.snapshot(), StreamOptions()).latest(None)
    builder.commit(mapped(RENAMED)).commit(add("f2"))
    with pytest.raises(UnsupportedFeatureError, match="schemaTrackingLocation"):
        TableStream(builder.log(), builder.log().snapshot(), StreamOptions()).batch(None, start)  # type: ignore[arg-type]
    query = Query(builder)
    stream = query.start()
    assert start is not None
    with pytest.raises(SchemaChangedError, match="create the streaming DataFrame again"):
        stream.batch(None, start)  # Spark repeats the last batch, with which it began
    assert query.log().current == TrackedSchema.of(mapped(A), PROTOCOL, 1, SOURCE)
    query.end = start
    evolves(query)
    query.options["allowSourceColumnRename"] = "always"
    query.run()
    assert query.read == [("f2", "id,b")]


def test_a_batch_across_a_change_that_was_planned_without_a_log_is_an_error() -> None:
    builder = table().commit(mapped(RENAMED), add("f1"))
    stream = Query(builder, start=Bound(version=0)).start()
    with pytest.raises(SchemaChangedError) as raised:
        stream.batch(None, SourceOffset("t", 2, BEFORE_FILES, False))
    assert raised.value.condition == "DELTA_STREAMING_SCHEMA_LOG_INIT_FAILED_INCOMPATIBLE_METADATA"


def test_a_change_while_the_first_version_is_read() -> None:
    builder = table()
    query = Query(builder)
    query.start()._begin_tracking(0)
    builder.commit(mapped(RENAMED), add("f1"))
    evolves(query)  # the newest version, with which the stream begins now, has other columns than the log
    query.run()  # nothing was read with the old ones: no permission is needed
    assert query.read == [("f0", "id,b"), ("f1", "id,b")]


def test_a_poll_with_a_schema_log_costs_one_listing_too() -> None:
    query = Query(table().commit(mapped(RENAMED), add("f1")))
    query.run()
    counting = CountingLogStore(query.builder.store)
    log = query.builder.log(counting)
    tracking = SchemaTracking(query.log(), log.snapshot(), Permissions(query.options.get, query.settings.get, SOURCE))
    stream = TableStream(log, log.snapshot(), StreamOptions(), tracking)
    stream.latest(query.end)
    counting.reset()
    assert stream.latest(query.end) == query.end
    assert counting.calls == {"list_from": 1}


# --- what is allowed ----------------------------------------------------------------------------------------------

KEY = "spark.databricks.delta.streaming."
CKPT = f"ckpt_{java_hash(SOURCE)}"


@pytest.mark.parametrize(
    ("schema", "options", "settings", "allowed"),
    [
        (RENAMED, {}, {}, False),
        (RENAMED, {"allowSourceColumnRename": "Always"}, {}, True),
        (RENAMED, {"allowSourceColumnRename": "1"}, {}, True),
        (RENAMED, {"allowSourceColumnRename": "2"}, {}, False),
        (RENAMED, {"allowSourceColumnRename": "true"}, {}, False),
        (RENAMED, {"allowSourceColumnDrop": "always"}, {}, False),
        (RENAMED, {}, {f"{KEY}allowSourceColumnRename": "always"}, True),
        (RENAMED, {}, {f"{KEY}allowSourceColumnRename": "1"}, False),
        (RENAMED, {}, {f"{KEY}allowSourceColumnRename.{CKPT}": "1"}, True),
        (RENAMED, {}, {f"{KEY}allowSourceColumnRename.{CKPT}": '"always"'}, True),
        (RENAMED, {}, {f"{KEY}allowSourceColumnRename.ckpt_7": "always"}, False),
        (DROPPED, {"allowSourceColumnDrop": "1"}, {}, True),
        (DROPPED, {}, {f"{KEY}allowSourceColumnRenameAndDrop": "always"}, True),
        (DROPPED, {"allowSourceColumnRename": "always"}, {}, False),
        (WIDENED, {}, {f"{KEY}allowSourceColumnRenameAndDrop": "always"}, False),
        (WIDENED, {"allowSourceColumnTypeChange": "1"}, {}, True),
        (NARROWED, {"allowSourceColumnTypeChange": "always"}, {}, None),
    ],
)
def test_what_the_user_allows(
    schema: str, options: dict[str, str], settings: dict[str, str], allowed: bool | None
) -> None:
    builder = table()
    query = Query(builder)
    query.run()
    builder.commit(mapped(schema), add("f1"))
    evolves(query)
    query.options, query.settings = options, settings
    if allowed:
        query.run()
        assert query.read[-1][0] == "f1"
        return
    with pytest.raises(SchemaChangedError) as raised:
        query.run()
    assert raised.value.condition == (
        "DELTA_SCHEMA_CHANGED_WITH_VERSION" if allowed is None
        else "DELTA_STREAMING_CANNOT_CONTINUE_PROCESSING_POST_SCHEMA_EVOLUTION"
    )  # fmt: skip


def test_the_kinds_of_change_have_deltas_names() -> None:
    everything = columns(("k", "c1", "long"), ("y", "c4", "long"))
    old = columns(("id", "c1", "integer"), ("a", "c2", "integer"))
    change = change_between(parse_schema(old), parse_schema(everything))
    assert change.operation == "RENAME, DROP AND TYPE WIDENING"
    assert change.details == "renamed: id -> k; dropped: a; widened: id (int -> bigint)"
    assert change_between(parse_schema(A), parse_schema(RENAMED)).operation == "RENAME COLUMN"
    both = columns(("k", "c1", "long"))
    assert change_between(parse_schema(A), parse_schema(both)).operation == "RENAME AND DROP COLUMN"
    wide = columns(("k", "c1", "decimal(20,0)"), ("a", "c2", "integer"))
    assert change_between(parse_schema(A), parse_schema(wide)).operation == "RENAME AND TYPE WIDENING"
    assert change_between(parse_schema(A), parse_schema(columns(("id", "c1", "long"), nullable=False))).incompatible


@pytest.mark.parametrize(
    ("text", "value"), [("", 0), ("a", 97), ("file:/checkpoint/sources/0", None), ("\U0001f600", 1772899)]
)
def test_the_suffix_is_javas_hash(text: str, value: int | None) -> None:
    assert -(2**31) <= java_hash(text) < 2**31
    if value is not None:
        assert java_hash(text) == value
    assert java_hash("polygenelubricants") == -(2**31)
