"""Each commit brings Iceberg's metadata up to its version: its files, its history, and what happens after failures."""

import logging
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.iceberg_files import files_of, locations_of, manifests_of, metadata_of, snapshots_of
from support.memory_table import WRITE, add, new_log, schema_of
from tablelog.core.deltalog import DeltaLog
from tablelog.core.iceberg import manifests
from tablelog.core.iceberg.storage import MetadataDirectory
from tablelog.core.protocol.actions import Action, AddFile, Metadata
from tablelog.core.protocol.iceberg_compat import TAG
from tablelog.core.txn.operation import Operation
from tablelog.errors import InvalidArgumentError, UnsupportedEnvironmentError, UnsupportedFeatureError
from tablelog.logstore.memory import MemoryLogStore

UNIFORM = {"delta.enableIcebergCompatV2": "true", "delta.universalFormat.enabledFormats": "iceberg"}
ID = "5a8d1f1e-0c6f-4f7e-9a51-7d1d3c1a2b3c"


def create(*by: str, store: Any = None, configuration: dict[str, str] | None = None) -> DeltaLog:
    log = new_log(store)
    txn = log.transaction()
    properties = UNIFORM if configuration is None else configuration
    txn.set_metadata(Metadata(ID, schema_of(("p", "integer"), ("v", "long")), by, properties))
    txn.commit([], Operation("CREATE TABLE"))
    return log


def tagged(log: DeltaLog, path: str, p: int | None = None, *, data_change: bool = True) -> AddFile:
    columns = log.snapshot().mapping.physical_partition_columns
    values = {name: None if p is None else str(p) for name in columns}
    return replace(add(path, data_change=data_change), partition_values=values, tags={TAG: "2"})


def commit(log: DeltaLog, *actions: Action) -> None:
    log.transaction().commit(list(actions), WRITE)


def is_current(log: DeltaLog) -> None:
    """Every version that Iceberg has consists of the files of the log, and the newest version is one of them."""
    metadata, snapshots = metadata_of(log), snapshots_of(log)
    newest = log.snapshot()
    assert metadata.properties["delta-version"] == str(newest.version)
    assert metadata.current_snapshot() == snapshots[newest.version]
    for version, snapshot in snapshots.items():
        files = files_of(log, snapshot)
        assert sorted(file.file_path for file in files) == locations_of(log, version)
        assert snapshot.summary is not None
        assert snapshot.summary["total-data-files"] == str(len(files))
        assert snapshot.summary["total-records"] == str(sum(file.record_count for file in files))


def test_a_history() -> None:
    log = create("p")
    commit(log, tagged(log, "a", 1), tagged(log, "b", None))
    commit(log, tagged(log, "c", 2))
    commit(log, tagged(log, "a", 1).remove(1), tagged(log, "d", 1))
    commit(log, tagged(log, "b").remove(1))
    commit(log, tagged(log, "c", 2).remove(1, data_change=False), tagged(log, "e", 2, data_change=False))
    is_current(log)
    operations = [snapshots_of(log)[v].summary.operation.value for v in range(6)]  # type: ignore[union-attr]
    assert operations == ["overwrite", "append", "append", "overwrite", "delete", "replace"]
    metadata = metadata_of(log)
    assert str(metadata.table_uuid) == ID
    assert [s.sequence_number for s in metadata.snapshots] == [1, 2, 3, 4, 5, 6]
    assert [s.parent_snapshot_id for s in metadata.snapshots] == [
        None,
        *(s.snapshot_id for s in metadata.snapshots[:-1]),
    ]
    assert [entry.metadata_file.rpartition("/")[2] for entry in metadata.metadata_log] == [
        f"v{n}.metadata.json" for n in range(1, 6)
    ]
    assert [list(f.partition) for f in files_of(log, snapshots_of(log)[1])] == [[1], [None]]  # type: ignore[call-overload]


def test_an_append_writes_one_manifest_and_reads_none(monkeypatch: pytest.MonkeyPatch) -> None:
    log = create()
    for name in "abc":
        commit(log, tagged(log, name))
    read: list[str] = []
    original = MetadataDirectory.read

    def counted(self: MetadataDirectory, location: str) -> bytes:
        read.append(location.rpartition("/")[2])
        return original(self, location)

    monkeypatch.setattr(MetadataDirectory, "read", counted)
    before = {m.manifest_path for m in manifests_of(log, snapshots_of(log)[3])}
    read.clear()
    commit(log, tagged(log, "d"))
    assert not any("-m" in name for name in read), "a manifest"
    assert sum(name.startswith("snap-") for name in read) == 1
    after = {m.manifest_path for m in manifests_of(log, snapshots_of(log)[4])}
    assert before < after
    assert len(after - before) == 1


def test_statistics_of_a_file_can_be_replaced() -> None:
    log = create()
    commit(log, tagged(log, "a"))
    commit(log, replace(tagged(log, "a", data_change=False), stats='{"numRecords":1,"nullCount":{}}'))
    is_current(log)
    # Even if the log doesn't say that the file is the same: the number of files tells.
    commit(log, replace(tagged(log, "a"), stats='{"numRecords":1}'))
    is_current(log)


STEPS = st.lists(
    st.tuples(st.sets(st.integers(0, 9), max_size=4), st.sets(st.integers(0, 9), max_size=4), st.booleans()), max_size=8
)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS, most=st.integers(1, 4), entries=st.integers(1, 3))
def test_generated_histories(
    steps: list[tuple[set[int], set[int], bool]], most: int, entries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manifests, "MOST_MANIFESTS", most)
    monkeypatch.setattr(manifests, "MOST_ENTRIES", entries)
    log = create("p")
    live: dict[str, AddFile] = {}
    for adds, removes, data_change in steps:
        removed = [live.pop(f"f{n}") for n in removes - adds if f"f{n}" in live]
        added = [tagged(log, f"f{n}", n % 3, data_change=data_change) for n in adds]
        live |= {file.path: file for file in added}
        commit(log, *added, *(file.remove(1, data_change=data_change) for file in removed))
    is_current(log)


@pytest.mark.slow
def test_many_manifests_are_merged() -> None:
    log = create()
    for number in range(manifests.MOST_MANIFESTS + 3):
        commit(log, tagged(log, f"f{number}"))
    is_current(log)
    assert len(manifests_of(log, snapshots_of(log)[log.snapshot().version])) < 5


def test_a_change_of_the_schema() -> None:
    log = create()
    commit(log, tagged(log, "a"))
    txn = log.transaction()
    txn.set_metadata(replace(txn.metadata, schema_string=txn.metadata.schema_string.replace('"v"', '"w"')))
    txn.commit([], Operation("RENAME COLUMN"))
    is_current(log)
    metadata = metadata_of(log)
    assert [[f.name for f in schema.fields] for schema in metadata.schemas] == [["p", "v"], ["p", "w"]]
    assert [f.field_id for f in metadata.schemas[1].fields] == [1, 2]
    assert [s.schema_id for s in metadata.snapshots] == [0, 0, 1]
    assert metadata.last_column_id == 2


def test_another_table_in_the_same_place_starts_again() -> None:
    store = MemoryLogStore()
    log = create(store=store)
    commit(log, tagged(log, "a"))
    for status in list(store.list_from(f"{log.log_path}/0")):
        store.delete(status.path)
    log = new_log(store)
    txn = log.transaction()
    txn.set_metadata(Metadata("not-a-uuid", schema_of(("v", "long")), (), UNIFORM))
    txn.commit([], Operation("CREATE TABLE"))
    is_current(log)
    assert list(snapshots_of(log)) == [0]
    assert store.read("memory:///t/metadata/version-hint.text") == b"3"


# --- failures and concurrent writers ------------------------------------------------------------------------------


class Failing(MemoryLogStore):
    """Fails to write files of the metadata whose names contain `broken`."""

    broken: str | None = None

    def write(self, path: str, data: bytes, *, overwrite: bool = False) -> None:
        if self.broken is not None and "/metadata/" in path and self.broken in path:
            raise OSError("no space left")
        super().write(path, data, overwrite=overwrite)


@pytest.mark.parametrize("broken", ["-m", "snap-", "v2.", "version-hint"])
def test_the_next_commit_repeats_what_failed(broken: str, caplog: pytest.LogCaptureFixture) -> None:
    store = Failing()
    log = create(store=store)
    store.broken = broken
    with caplog.at_level(logging.WARNING):
        commit(log, tagged(log, "a"))
    assert log.snapshot().version == 1
    assert ["Iceberg's metadata doesn't have it" in r.getMessage() for r in caplog.records] == [True]
    stays = {"v1.metadata.json", "version-hint.text"} | ({"v2.metadata.json"} if broken == "version-hint" else set())
    kept = {s.path.rpartition("/")[2] for s in store.list_from("memory:///t/metadata/0")}
    assert {name for name in kept if not name.endswith(".avro")} == stays
    store.broken = None
    commit(log, tagged(log, "b"))
    is_current(log)
    assert list(snapshots_of(log)) == [0, 1, 2]
    assert store.read("memory:///t/metadata/version-hint.text") == b"%d" % (3 if broken == "version-hint" else 2)


class Blocked(MemoryLogStore):
    """A writer has taken the number of v2 for itself, and has ended before the file existed."""

    def write(self, path: str, data: bytes, *, overwrite: bool = False) -> None:
        if path.endswith("/v2.metadata.json"):
            raise FileExistsError(path)
        super().write(path, data, overwrite=overwrite)


def test_a_number_that_is_taken_without_a_file_is_left_out() -> None:
    log = create(store=Blocked())
    commit(log, tagged(log, "a"))
    commit(log, tagged(log, "b"))
    is_current(log)
    assert log.store.read("memory:///t/metadata/version-hint.text") == b"4"


def test_commits_that_are_no_longer_in_the_log_are_skipped() -> None:
    store = Failing()
    log = create(store=store)
    store.broken = "snap-"
    commit(log, tagged(log, "a"))
    commit(log, tagged(log, "b"))
    store.broken = None
    log.write_checkpoint(log.snapshot())
    store.delete(f"{log.log_path}/{1:020d}.json")
    commit(new_log(store), tagged(log, "c"))
    assert list(snapshots_of(log)) == [0, 3]
    assert len(files_of(log, snapshots_of(log)[3])) == 3


def test_a_lost_hint_is_no_loss() -> None:
    store = MemoryLogStore()
    log = create(store=store)
    commit(log, tagged(log, "a"))
    store.delete("memory:///t/metadata/version-hint.text")
    commit(log, tagged(log, "b"))
    is_current(log)
    store.write("memory:///t/metadata/version-hint.text", b"1", overwrite=True)
    commit(log, tagged(log, "c"))
    is_current(log)
    assert store.read("memory:///t/metadata/version-hint.text") == b"4"


def test_concurrent_writers() -> None:
    store = MemoryLogStore()
    log = create(store=store)
    errors: list[BaseException] = []

    def write(thread: int) -> None:
        mine = new_log(store)
        try:
            for number in range(6):
                commit(mine, tagged(mine, f"{thread}-{number}"))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert log.snapshot().version == 24
    commit(log, tagged(log, "last"))
    is_current(log)
    assert list(snapshots_of(log)) == list(range(26))
    # Nothing remains of the tries that lost.
    referred = {s.manifest_list for s in metadata_of(log).snapshots}
    referred |= {m.manifest_path for s in metadata_of(log).snapshots for m in manifests_of(log, s)}
    stored = {s.path for s in store.list_from("memory:///t/metadata/0") if s.path.endswith(".avro")}
    assert {name.rpartition("/")[2] for name in stored} == {name.rpartition("/")[2] for name in referred}


def test_expired_snapshots_are_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryLogStore()
    log = create(store=store)
    for name in "abc":
        commit(log, tagged(log, name))
    commit(log, tagged(log, "a").remove(1))
    times = {v: s.timestamp_ms for v, s in snapshots_of(log).items()}

    def cut(self: Any) -> Iterator[int]:
        return log.snapshot().timestamp_ms - times[3]  # type: ignore[return-value]

    monkeypatch.setattr("tablelog.core.protocol.properties.TableProperties.log_retention_ms", property(cut))
    commit(log, tagged(log, "d"))
    assert set(snapshots_of(log)) <= {2, 3, 4, 5}
    assert 5 in snapshots_of(log)
    is_current(log)
    referred = {s.manifest_list.rpartition("/")[2] for s in metadata_of(log).snapshots}
    for snapshot in metadata_of(log).snapshots:
        referred |= {m.manifest_path.rpartition("/")[2] for m in manifests_of(log, snapshot)}
    stored = {s.path.rpartition("/")[2] for s in store.list_from("memory:///t/metadata/0") if s.path.endswith(".avro")}
    assert stored == referred


def test_expired_snapshots_with_a_damaged_list_leave_their_files(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store = MemoryLogStore()
    log = create(store=store)
    for name in "ab":
        commit(log, tagged(log, name))
    damaged = snapshots_of(log)[1].manifest_list.rpartition("/")[2]
    store.write(f"memory:///t/metadata/{damaged}", b"Obj\x01\x01", overwrite=True)
    monkeypatch.setattr("tablelog.core.protocol.properties.TableProperties.log_retention_ms", property(lambda _: -1))
    commit(log, tagged(log, "c"))
    assert not caplog.records
    assert set(snapshots_of(log)) == {3}
    is_current(log)
    stored = [status.path.rpartition("/")[2] for status in store.list_from("memory:///t/metadata/")]
    assert damaged in stored


# --- the property -------------------------------------------------------------------------------------------------


def set_properties(log: DeltaLog, **properties: str) -> None:
    txn = log.transaction()
    configuration = {
        **txn.metadata.configuration,
        **{f"delta.{k.replace('__', '.')}": v for k, v in properties.items()},
    }
    txn.set_metadata(replace(txn.metadata, configuration=configuration))
    txn.commit([], Operation("SET TBLPROPERTIES"))


def test_a_table_can_get_the_metadata_later() -> None:
    log = create(configuration={"delta.enableIcebergCompatV2": "true"})
    commit(log, tagged(log, "a"))
    set_properties(log, universalFormat__enabledFormats="iceberg")
    assert list(snapshots_of(log)) == [2]
    is_current(log)


def test_not_with_files_that_were_not_written_for_it() -> None:
    log = create(configuration={})
    commit(log, add("a"))
    with pytest.raises(InvalidArgumentError, match="enableIcebergCompatV2"):
        set_properties(log, universalFormat__enabledFormats="iceberg")
    with pytest.raises(InvalidArgumentError, match=r"the file a wasn't written for Iceberg.*INSERT OVERWRITE"):
        set_properties(
            log, columnMapping__mode="name", enableIcebergCompatV2="true", universalFormat__enabledFormats="iceberg"
        )
    ready = create()
    with pytest.raises(InvalidArgumentError, match="the file b wasn't written for Iceberg"):
        commit(ready, add("b"))


def test_it_needs_pyiceberg(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tablelog.core.iceberg.enabled.find_spec", lambda name: None)
    with pytest.raises(UnsupportedEnvironmentError, match=r"tablelog\[iceberg\]"):
        create()


def test_hudi_is_refused() -> None:
    with pytest.raises(UnsupportedFeatureError, match="hudi"):
        create(configuration={**UNIFORM, "delta.universalFormat.enabledFormats": "iceberg,hudi"})


def test_damaged_metadata_is_written_anew(caplog: pytest.LogCaptureFixture) -> None:
    store = MemoryLogStore()
    log = create(store=store)
    commit(log, tagged(log, "a"))
    store.delete(f"memory:///t/metadata/{snapshots_of(log)[1].manifest_list.rpartition('/')[2]}")
    with caplog.at_level(logging.WARNING):
        commit(log, tagged(log, "b"))
    assert "is written anew" in caplog.text
    assert len(files_of(log, snapshots_of(log)[2])) == 2


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b'{"format-version": 2}', b"\xff\xfe", b"[" * 100_000])
def test_damaged_metadata_of_the_newest_version_is_written_anew(
    caplog: pytest.LogCaptureFixture, content: bytes
) -> None:
    store = MemoryLogStore()
    log = create(store=store)
    commit(log, tagged(log, "a"))
    store.write("memory:///t/metadata/v2.metadata.json", content, overwrite=True)
    with caplog.at_level(logging.WARNING):
        commit(log, tagged(log, "b"))
    assert "v2.metadata.json is damaged" in caplog.text
    assert len(files_of(log, snapshots_of(log)[2])) == 2
    commit(log, tagged(log, "c"))
    is_current(log)


def test_a_damaged_manifest_is_written_anew(caplog: pytest.LogCaptureFixture) -> None:
    store = MemoryLogStore()
    log = create(store=store)
    commit(log, tagged(log, "a"), tagged(log, "b"))
    (manifest,) = manifests_of(log, snapshots_of(log)[1])
    store.write(manifest.manifest_path, b"Obj\x01\x01", overwrite=True)
    with caplog.at_level(logging.WARNING):
        commit(log, tagged(log, "a").remove(1))
    assert "DamagedAvroError" in caplog.text
    assert [file.file_path for file in files_of(log, snapshots_of(log)[2])] == locations_of(log, 2)


def test_a_manifest_that_lost_its_files_is_written_anew(caplog: pytest.LogCaptureFixture) -> None:
    store = MemoryLogStore()
    log = create(store=store)
    commit(log, tagged(log, "a"), tagged(log, "b"))
    (manifest,) = manifests_of(log, snapshots_of(log)[1])
    content = store.read(manifest.manifest_path)
    header = content[: content.index(content[-16:]) + 16]  # up to the marker before the first block
    store.write(manifest.manifest_path, header, overwrite=True)
    with caplog.at_level(logging.WARNING):
        commit(log, tagged(log, "a").remove(1))
    assert "hasn't as many files as its list says" in caplog.text
    assert [file.file_path for file in files_of(log, snapshots_of(log)[2])] == locations_of(log, 2)


@pytest.mark.parametrize("data", [b"9" * 5000, b"\xff", b"-1", "²".encode(), b"7", b"0"])
def test_a_hint_that_is_wrong_costs_a_listing(data: bytes) -> None:
    store = MemoryLogStore()
    log = create(store=store)
    store.write("memory:///t/metadata/version-hint.text", data, overwrite=True)
    commit(log, tagged(log, "a"))
    is_current(log)
    assert store.read("memory:///t/metadata/version-hint.text") == b"2"
