"""Which checkpoint is written, and that each kind holds the same: in parts, with sidecars, over another writer's."""

import dataclasses
import errno
import gc
import json
import threading
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.log_builder import PARTITIONED, LogBuilder, add, metadata, remove
from tablelog.core import DeltaLog, DomainMetadata, Operation, Protocol, SetTransaction, Snapshot
from tablelog.core.log import checkpoint, checkpoint_shares
from tablelog.core.log.open_parquet import OpenParquet
from tablelog.core.log_maintenance import checkpoint_writer, spark_hash
from tablelog.core.log_maintenance.checkpoint_writer import Kind, kind_of
from tablelog.core.protocol.actions import DeletionVectorDescriptor
from tablelog.core.protocol.paths import checkpoint_name, commit_name, parse_log_name, part_name
from tablelog.errors import InvalidArgumentError, UnsupportedFeatureError
from tablelog.logstore import CountingLogStore, MemoryLogStore
from tablelog.settings.declarations import CHECKPOINT_PART_SIZE, CHECKPOINT_V2_FORMAT

V2 = {"v2Checkpoint"}
STATS = '{"numRecords":3,"minValues":{"id":1},"maxValues":{"id":9},"nullCount":{"id":0}}'
VECTOR = DeletionVectorDescriptor("u", "ab^-aqEH.-t@S}K{vb[*k^", 36, 2, 4)


def table(
    files: int = 40, features: set[str] | None = None, configuration: Mapping[str, str] | None = None
) -> LogBuilder:
    builder = LogBuilder()
    protocol = Protocol(3, 7, frozenset(features), frozenset(features)) if features else Protocol(1, 2)
    builder.commit(protocol, metadata(configuration, schema=PARTITIONED, partition_columns=("day",), table_id="t"))
    for at in range(4):
        builder.commit(
            *(
                add(
                    f"day=2024-01-0{at + 1}/{number}{'é' * (number % 3)}.parquet",
                    size=number,
                    partition_values={"day": f"2024-01-0{at + 1}"},
                    stats=STATS if number % 5 else None,
                    deletion_vector=VECTOR if features and "deletionVectors" in features and number % 4 == 0 else None,
                )
                for number in range(at, files, 4)
            ),
            SetTransaction("app", at, 5),
        )
    first = builder.log().snapshot().add_files()[0]
    builder.commit(
        remove(first.path, at=builder.clock.now, deletion_vector=first.deletion_vector),
        DomainMetadata("d", "{}", False),
    )
    return builder


def state(snapshot: Snapshot) -> tuple[Any, ...]:
    files = {(a.path, a.deletion_vector, a.size, a.stats, a.partition_values["day"]) for a in snapshot.add_files()}
    removed = set(snapshot.tombstones.column("path").to_pylist())
    return files, removed, dict(snapshot.transactions), dict(snapshot.domain_metadata), snapshot.metadata


def without_commits(builder: LogBuilder) -> DeltaLog:
    builder.delete(*(commit_name(version) for version in range(builder.version)))
    return builder.log()


def checkpoints(builder: LogBuilder) -> list[str]:
    return [name for name in builder.names() if (file := parse_log_name(name)) and file.kind == "checkpoint"]


# --- in parts ---------------------------------------------------------------------------------------------------------


def test_small_pieces_of_an_old_checkpoint_are_divided_among_the_parts_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each division takes a time for each part: one for each small piece would be quadratic in the table's files."""
    builder = table(files=400)
    builder.log().checkpoint()
    monkeypatch.setattr(OpenParquet, "batch_rows", lambda self, groups, paths: 7)
    divided: list[int] = []
    parts = spark_hash.parts

    def counted(hashes: pa.Array, count: int) -> pa.Array:
        divided.append(len(hashes))
        return parts(hashes, count)

    monkeypatch.setattr(spark_hash, "parts", counted)
    builder.commit(add("day=2024-01-01/last.parquet", partition_values={"day": "2024-01-01"}))
    builder.log(conf={CHECKPOINT_PART_SIZE.key: "100"}).checkpoint()
    assert divided == [1, 400]  # the tombstone, and the files
    divided.clear()
    monkeypatch.setattr(checkpoint_writer.rows, "PIECE_ROWS", 100)
    builder.commit(add("day=2024-01-01/later.parquet", partition_values={"day": "2024-01-01"}))
    builder.log(conf={CHECKPOINT_PART_SIZE.key: "100"}).checkpoint()
    assert sum(divided) == 402
    assert max(divided) < 100 + 7
    monkeypatch.setattr(checkpoint_writer.rows, "_JOINED_BYTES", 1)
    builder.commit(add("day=2024-01-01/latest.parquet", partition_values={"day": "2024-01-01"}))
    builder.log(conf={CHECKPOINT_PART_SIZE.key: "100"}).checkpoint()
    assert max(divided[-50:]) <= 7


@pytest.mark.parametrize("features", [None, {"deletionVectors"}])
def test_parts_hold_what_one_file_would(features: set[str] | None) -> None:
    builder = table(features=features)
    before = state(builder.log().snapshot())
    hint = builder.log(conf={CHECKPOINT_PART_SIZE.key: "9"}).checkpoint()
    assert (hint.parts, hint.num_of_add_files) == (5, 39)
    assert checkpoints(builder) == [part_name(5, number, 5) for number in range(1, 6)]
    assert hint.size_in_bytes == sum(len(builder.read(name)) for name in checkpoints(builder))
    rows = [pq.read_table(pa.BufferReader(builder.read(name))) for name in checkpoints(builder)]
    assert hint.size == sum(table.num_rows for table in rows)
    # The header stands where Spark puts a row with no path: 42 modulo 5.
    assert [table["protocol"].null_count < table.num_rows for table in rows] == [False, False, True, False, False]
    again = without_commits(builder).snapshot()
    assert again.base_version == 5
    assert state(again) == before


def test_later_actions_are_sorted_once_for_all_pieces_of_a_large_checkpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once for each piece, the time would grow with the files of the checkpoint times those of the later commits."""
    builder = table(files=100)
    builder.log().checkpoint()
    builder.commit(*(remove(add_.path) for add_ in builder.log().snapshot().add_files()[:50]))
    monkeypatch.setattr(checkpoint, "_AT_ONCE", 0)
    monkeypatch.setattr(OpenParquet, "batch_rows", lambda self, groups, paths: 7)
    calls: list[int] = []
    path_set = checkpoint_shares.path_set
    monkeypatch.setattr(checkpoint_shares, "path_set", lambda keys: calls.append(len(keys)) or path_set(keys))
    pieces = list(builder.log().snapshot().pieces(with_stats=False))
    assert len(pieces) > 10
    assert sum(piece.num_rows for piece in pieces) == 49
    assert calls == [50]


def test_the_hash_is_sparks() -> None:
    texts = ["", "a", "ab", "abc", "abcd", "abcde", "Spark", "é", "day=2024-01-01/part-0.parquet", None]
    found = spark_hash.hashed(pa.array(texts)).view(pa.int32()).to_pylist()
    # SELECT hash(x) in Spark 4.3.
    assert found == [
        142593372, 1485273170, -97053317, 1322437556, -396302900, 814637928, 228093765, 2119106806, 827304898, 42,
    ]  # fmt: skip
    assert spark_hash.parts(pa.array([42, 0, 2**32 - 1, 2**31], pa.uint32()), 7).to_pylist() == [
        value % 7 for value in (42, 0, -1, -(2**31))
    ]


def test_two_writers_parts_fit_together() -> None:
    """The other one is older: its tombstone hasn't expired, and its parts come between ours."""
    builder = table()
    before = state(builder.log().snapshot())
    conf = {CHECKPOINT_PART_SIZE.key: "20"}
    builder.log(conf=conf).checkpoint()
    builder.delete(part_name(5, 1, 2))
    builder.clock.now += 30 * 86_400_000
    builder.log(conf=conf).checkpoint()
    assert len(checkpoints(builder)) == 2
    files, _, *others = state(without_commits(builder).snapshot())
    assert [files, *others] == [before[0], *before[2:]]


# --- V2 ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["json", "parquet"])
@pytest.mark.parametrize("features", [V2, V2 | {"deletionVectors"}])
def test_v2_holds_the_same_beside_its_sidecars(form: str, features: set[str]) -> None:
    builder = table(features=features, configuration={"delta.checkpointPolicy": "v2"})
    before = state(builder.log().snapshot())
    hint = builder.log(conf={CHECKPOINT_PART_SIZE.key: "15", CHECKPOINT_V2_FORMAT.key: form}).checkpoint()
    (name,) = checkpoints(builder)
    assert name.endswith(f".{form}")
    sidecars = [s.path.rpartition("/")[2] for s in builder.store.list_from(f"{builder.log_path}/_sidecars/0")]
    assert len(sidecars) == 3
    assert hint.num_of_add_files == 39
    assert (
        hint.size == 40 + 3 + 5
    )  # files and a tombstone; sidecars; checkpointMetadata, protocol, metaData, txn, domain
    for sidecar in sidecars:
        rows = pq.read_table(pa.BufferReader(builder.read(f"_sidecars/{sidecar}")))
        assert rows.column_names == ["add", "remove"]
        assert rows.num_rows <= 15
    if form == "json":
        lines = [json.loads(line) for line in builder.read(name).splitlines()]
        assert lines[0]["checkpointMetadata"]["tags"]["sidecarNumActions"] == "40"
    again = without_commits(builder).snapshot()
    assert again.base_version == 5
    assert state(again) == before
    builder.log().checkpoint(builder.commit().log().snapshot())  # from one into the next
    assert state(builder.log().snapshot()) == before


def test_two_v2_checkpoints_of_one_version_are_as_good_as_one() -> None:
    builder = table(features=V2, configuration={"delta.checkpointPolicy": "v2"})
    before = state(builder.log().snapshot())
    builder.log().checkpoint()
    builder.log(conf={CHECKPOINT_V2_FORMAT.key: "parquet"}).checkpoint()
    names = checkpoints(builder)
    assert len(names) == 2
    for lost in names:
        data = builder.read(lost)
        builder.delete(lost)
        assert state(builder.log().snapshot()) == before
        assert builder.log().snapshot().base_version == 5
        builder.write(lost, data)


def test_an_empty_table_has_no_sidecar() -> None:
    builder = LogBuilder().commit(
        Protocol(3, 7, frozenset(V2), frozenset(V2)), metadata({"delta.checkpointPolicy": "v2"})
    )
    builder.log().checkpoint()
    assert builder.log().snapshot().base_version == 0
    assert builder.log().snapshot().num_files == 0


def test_a_commit_at_the_interval_writes_it() -> None:
    builder = table(features=V2, configuration={"delta.checkpointPolicy": "v2", "delta.checkpointInterval": "3"})
    log = builder.log()
    log.transaction().commit([], Operation("WRITE"))
    assert len(checkpoints(builder)) == 1
    assert json.loads(builder.read("_last_checkpoint"))["version"] == 6
    assert builder.log().snapshot().base_version == 6


# --- which --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("features", "policy", "conf", "expected"),
    [
        (None, "classic", {}, Kind("classic")),
        (None, "classic", {CHECKPOINT_PART_SIZE.key: "40"}, Kind("classic")),
        (None, "classic", {CHECKPOINT_PART_SIZE.key: "39"}, Kind("parts", 2)),
        (V2, "classic", {CHECKPOINT_PART_SIZE.key: "1"}, Kind("classic")),  # parts are forbidden
        (V2, "v2", {}, Kind("v2", 1, "json")),
        (V2, "v2", {CHECKPOINT_PART_SIZE.key: "8", CHECKPOINT_V2_FORMAT.key: "Parquet"}, Kind("v2", 5, "parquet")),
        (None, "v2", {}, Kind("classic")),  # the protocol decides
    ],
)
def test_which_kind(features: set[str] | None, policy: str, conf: dict[str, str], expected: Kind) -> None:
    snapshot = table(features=features, configuration={"delta.checkpointPolicy": policy}).log().snapshot()
    assert kind_of(snapshot, 1, 5, conf) == expected
    if expected.name == "v2" and not conf:
        assert kind_of(snapshot, 1, 100_000, conf).form == "parquet"


@pytest.mark.parametrize("conf", [{CHECKPOINT_PART_SIZE.key: "0"}, {CHECKPOINT_PART_SIZE.key: "x"}])
def test_a_wrong_setting_is_told(conf: dict[str, str]) -> None:
    with pytest.raises(InvalidArgumentError, match="partSize"):
        table().log(conf=conf).checkpoint()
    builder = table(features=V2, configuration={"delta.checkpointPolicy": "v2"})
    with pytest.raises(InvalidArgumentError, match="topLevelFileFormat"):
        builder.log(conf={CHECKPOINT_V2_FORMAT.key: "avro"}).checkpoint()


# --- what is there already --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("damage", [b"", b"PAR1", b"PAR1 and nothing more PAR1"])
def test_a_checkpoint_that_cannot_be_read_is_replaced(damage: bytes) -> None:
    builder = table()
    before = state(builder.log().snapshot())
    builder.write(checkpoint_name(5), damage)
    hint = builder.log().checkpoint()
    made = builder.read(checkpoint_name(5))
    assert (hint.size, hint.num_of_add_files) == (pq.read_metadata(pa.BufferReader(made)).num_rows, 39)
    assert hint.size_in_bytes == len(made)
    again = without_commits(builder).snapshot()
    assert (again.base_version, state(again)) == (5, before)


def test_of_a_checkpoint_that_is_there_the_hint_says_what_it_holds_and_not_its_size() -> None:
    builder = table()
    first = builder.log().checkpoint()
    assert first.size_in_bytes is not None
    assert builder.log().checkpoint() == dataclasses.replace(first, size_in_bytes=None)


class LosesAfter(MemoryLogStore):
    """Takes some pieces before it sees that the name is taken, or that there is no room."""

    def __init__(self, pieces: int, room: bool = True) -> None:
        super().__init__()
        self._pieces = pieces
        self._room = room

    def write_pieces(self, path: str, pieces: Iterable[bytes], *, overwrite: bool = False) -> None:
        given = iter(pieces)
        whole = b"".join(next(given) for _ in range(self._pieces))
        if not self._room:
            raise OSError(errno.ENOSPC, "No space left", path)
        if not overwrite and self._there(path):
            raise FileExistsError(path)
        self.write(path, whole + b"".join(given), overwrite=overwrite)

    def _there(self, path: str) -> bool:
        try:
            self.read(path)
        except FileNotFoundError:
            return False
        return True


@pytest.mark.parametrize("pieces", [0, 3])
@pytest.mark.parametrize("damaged", [False, True])
def test_the_hint_is_right_whenever_a_store_says_that_the_name_is_taken(
    monkeypatch: pytest.MonkeyPatch, pieces: int, damaged: bool
) -> None:
    builder, store = table(), LosesAfter(pieces)
    monkeypatch.setattr(checkpoint_writer.rows, "PIECE_ROWS", 5)
    snapshot, path = builder.log().snapshot(), f"memory:///log/{checkpoint_name(5)}"
    first = checkpoint_writer.write(store, "memory:///log", snapshot, builder.clock.now)
    if damaged:
        store.write(path, b"PAR1", overwrite=True)
    # A checksum may be wrong, and counting the files of a large table needs all of them.
    monkeypatch.setattr(Snapshot, "num_files", property(lambda _: pytest.fail("asked how many files there are")))
    again = checkpoint_writer.write(store, "memory:///log", snapshot, builder.clock.now)
    assert again == dataclasses.replace(first, size_in_bytes=len(store.read(path)) if damaged else None)


def test_nothing_goes_on_after_a_write_that_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    builder = table()
    monkeypatch.setattr(checkpoint_writer.rows, "PIECE_ROWS", 5)
    snapshot = builder.log().snapshot()
    with pytest.raises(OSError, match="No space left") as kept:
        checkpoint_writer.write(LosesAfter(2, room=False), "memory:///log", snapshot, builder.clock.now)
    assert [each.name for each in threading.enumerate() if each.name.startswith("tablelog-checkpoint")] == []
    assert kept.value.errno == errno.ENOSPC


def test_a_store_that_takes_pieces_gets_each_as_it_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    builder = table(files=60)
    monkeypatch.setattr(checkpoint_writer.rows, "PIECE_ROWS", 5)
    laid_out = 0
    lay_out = checkpoint_writer.rows.CheckpointLayout.rows

    def counted(
        layout: checkpoint_writer.rows.CheckpointLayout, pieces: Iterable[pa.Table]
    ) -> Iterator[pa.StructArray]:
        nonlocal laid_out
        for batch in lay_out(layout, pieces):
            laid_out += 1
            yield batch

    monkeypatch.setattr(checkpoint_writer.rows.CheckpointLayout, "rows", counted)
    ahead = []

    class TakesPieces(MemoryLogStore):
        def write_pieces(self, path: str, pieces: Iterable[bytes], *, overwrite: bool = False) -> None:
            whole = b""
            for piece in pieces:
                whole += piece
                ahead.append(laid_out)
            self.write(path, whole, overwrite=overwrite)

    store = TakesPieces()
    snapshot = builder.log().snapshot()
    checkpoint_writer.write(store, "memory:///log", snapshot, builder.clock.now)
    assert laid_out > 10
    assert ahead[0] <= 4  # the first is written, the next encoded, the one after that laid out
    made = store.read(f"memory:///log/{checkpoint_name(5)}")
    assert pq.read_metadata(pa.BufferReader(made)).num_row_groups > 10


def test_the_hint_goes_back_only_from_what_is_not_there() -> None:
    builder = table()
    log = builder.log()
    log.checkpoint()
    log.checkpoint(log.snapshot(3))
    assert json.loads(builder.read("_last_checkpoint"))["version"] == 5
    builder.delete(checkpoint_name(5))
    builder.log().checkpoint(builder.log().snapshot(4))
    assert json.loads(builder.read("_last_checkpoint"))["version"] == 4


def test_no_checkpoint_of_a_version_that_is_not_understood() -> None:
    """What `checkpointProtection` is there for: a feature that was dropped since would be lost from the old state."""
    unheard = frozenset({"unheardOf"})
    builder = LogBuilder().commit(Protocol(1, 7, None, unheard), metadata()).commit(Protocol(1, 2))
    snapshot = builder.log().snapshot(0)
    with pytest.raises(UnsupportedFeatureError, match="unheardOf"):
        builder.log().checkpoint(snapshot)
    assert not checkpoints(builder)


def test_the_statistics_go_from_checkpoint_to_checkpoint_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parsing the texts of a large table again, for each checkpoint, is most of the work."""
    builder = table()
    builder.log().checkpoint()
    builder.commit(add("new", partition_values={"day": "2024-01-01"}, stats=STATS))
    before = state(builder.log().snapshot())
    parsed: list[int] = []
    parse = checkpoint_writer.rows.stats.parse_json

    def counting(texts: pa.Array, tree: Any) -> pa.ChunkedArray:
        parsed.append(len(texts))
        return parse(texts, tree)

    monkeypatch.setattr(checkpoint_writer.rows.stats, "parse_json", counting)
    builder.log().checkpoint()
    assert parsed == [1]
    again = without_commits(builder).snapshot()
    assert (again.base_version, state(again)) == (6, before)


def test_a_checkpoint_goes_on_from_what_was_recovered() -> None:
    """The one below turns out to be damaged only when its sidecars are read."""
    builder = table(features=V2, configuration={"delta.checkpointPolicy": "v2"})
    builder.log(conf={CHECKPOINT_PART_SIZE.key: "10"}).checkpoint()
    builder.commit(add("new", partition_values={"day": "2024-01-01"}, stats=STATS))
    for sidecar in list(builder.store.list_from(f"{builder.log_path}/_sidecars/0"))[1:]:
        builder.store.delete(sidecar.path)
    before = state(builder.log().snapshot())
    assert len(before[0]) == 40
    builder.log().checkpoint()
    again = without_commits(builder).snapshot()
    assert (again.base_version, state(again)) == (6, before)


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
def test_a_store_that_fails_in_between_leaves_no_checkpoint() -> None:
    class Failing(CountingLogStore):
        def write(self, path: str, data: bytes, *, overwrite: bool = False) -> None:
            if "0000000002.0000000005" in path or path.endswith(".json"):
                raise OSError("no")
            super().write(path, data, overwrite=overwrite)

    for features, policy in ((None, "classic"), (V2, "v2")):
        builder = table(features=features, configuration={"delta.checkpointPolicy": policy})
        before = state(builder.log().snapshot())
        with pytest.raises(OSError, match="no"):
            builder.log(Failing(builder.store), conf={CHECKPOINT_PART_SIZE.key: "9"}).checkpoint()
        gc.collect()
        assert builder.log().snapshot().base_version == -1
        assert state(builder.log().snapshot()) == before
        builder.log(conf={CHECKPOINT_PART_SIZE.key: "9"}).checkpoint()
        assert builder.log().snapshot().base_version == 5
