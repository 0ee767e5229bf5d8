"""Iceberg's metadata beside a log: the hint, the metadata of the version before, its manifest list and manifests."""

from dataclasses import replace
from functools import cache

from pyiceberg.table.snapshots import Snapshot

from fuzz.target import Target
from support.iceberg_files import files_of, locations_of, manifests_of, snapshots_of
from support.memory_table import WRITE, add, new_log, schema_of
from tablelog.core.deltalog import DeltaLog
from tablelog.core.iceberg.convert import convert
from tablelog.core.iceberg.metadata import version_of
from tablelog.core.iceberg.storage import MetadataDirectory
from tablelog.core.protocol.actions import Metadata
from tablelog.core.protocol.iceberg_compat import TAG
from tablelog.core.txn.operation import Operation
from tablelog.logstore.memory import MemoryLogStore

_UNIFORM = {"delta.enableIcebergCompatV2": "true", "delta.universalFormat.enabledFormats": "iceberg"}
_ID = "5a8d1f1e-0c6f-4f7e-9a51-7d1d3c1a2b3c"
_DIRECTORY = "memory:///t/metadata"
_METADATA_WORDS = [
    "format-version", "table-uuid", "location", "last-sequence-number", "last-updated-ms", "last-column-id",
    "current-schema-id", "schemas", "fields", "type", "struct", "list", "map", "decimal(10,2)", "required",
    "partition-specs", "spec-id", "default-spec-id", "last-partition-id", "transform", "identity", "bucket[16]",
    "source-id", "field-id", "sort-orders", "order-id", "default-sort-order-id", "snapshots", "snapshot-id",
    "parent-snapshot-id", "manifest-list", "summary", "operation", "append", "delta-version", "properties",
    "current-snapshot-id", "snapshot-log", "metadata-log", "metadata-file", "timestamp-ms", "refs", "statistics", "3",
]  # fmt: skip


@cache
def _table() -> tuple[dict[str, bytes], list[str]]:
    """The files of a table with three versions; the manifest list and the manifests of its version 1."""
    store = MemoryLogStore()
    log = new_log(store)
    txn = log.transaction()
    txn.set_metadata(Metadata(_ID, schema_of(("p", "integer"), ("v", "long")), (), _UNIFORM))
    txn.commit([], Operation("CREATE TABLE"))
    first, second = (replace(add(path), tags={TAG: "2"}) for path in ("a", "b"))
    log.transaction().commit([first], WRITE)
    log.transaction().commit([first.remove(1), second], WRITE)
    listed = [status for name in ("_delta_log", "metadata") for status in store.list_from(f"memory:///t/{name}/")]
    files = {status.path: store.read(status.path) for status in listed}
    before = snapshots_of(log)[1]
    names = [before.manifest_list, *(each.manifest_path for each in manifests_of(log, before))]
    return files, [f"{_DIRECTORY}/{name.rpartition('/')[2]}" for name in names]


def _converted(changed: dict[str, bytes]) -> tuple[DeltaLog, Snapshot] | None:
    """Bring Iceberg's metadata up to the log after these files have changed; None if it says that it is there."""
    store = MemoryLogStore()
    for path, data in (_table()[0] | changed).items():
        store.write(path, data)
    store.delete(f"{_DIRECTORY}/v3.metadata.json")
    log = DeltaLog.for_path("memory:///t", store=store)
    directory = MetadataDirectory(store, log.table)
    before, _ = directory.current()
    convert(log, store, log.snapshot())
    number, after = directory.current()
    assert after is not None
    if number == before:
        assert version_of(after) >= 2
        return None
    current = after.current_snapshot()
    assert current is not None
    return log, current


def metadata(data: bytes) -> None:
    """Damaged metadata of the version before doesn't prevent that of this version."""
    done = _converted({f"{_DIRECTORY}/v2.metadata.json": data, f"{_DIRECTORY}/version-hint.text": b"2"})
    if done is not None:
        log, current = done
        assert sorted(file.file_path for file in files_of(log, current)) == locations_of(log, 2)


def manifest(data: bytes) -> None:
    """Nor does a damaged manifest list or manifest. The first byte says which of them has the other bytes."""
    names = _table()[1]
    done = _converted({names[data[0] % len(names)]: data[1:], f"{_DIRECTORY}/version-hint.text": b"2"})
    assert done is not None
    assert done[1].summary is not None
    assert done[1].summary["total-data-files"] == "1"


def hint(data: bytes) -> None:
    """A hint that is wrong costs a listing."""
    assert _converted({f"{_DIRECTORY}/version-hint.text": data}) is not None


def _metadata_seeds() -> list[bytes]:
    return [_table()[0][f"{_DIRECTORY}/v{number}.metadata.json"] for number in (1, 2)]


def _manifest_seeds() -> list[bytes]:
    files, names = _table()
    return [bytes([number]) + files[name] for number, name in enumerate(names)]


TARGETS = (
    Target("iceberg-metadata", metadata, _metadata_seeds, "json", _METADATA_WORDS),
    Target("iceberg-manifest", manifest, _manifest_seeds, "binary", keep=1),
    Target("iceberg-hint", hint, lambda: [b"1", b"2", b"7"], "text"),
)
