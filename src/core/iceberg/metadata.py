"""The metadata of an Iceberg table that follows a table's versions: pure functions of the previous metadata."""

import hashlib
import re
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Final

from pyiceberg.manifest import ManifestFile
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadataV2
from pyiceberg.table.snapshots import MetadataLogEntry, Operation, Snapshot, SnapshotLogEntry, Summary
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER

from ..protocol import column_mapping
from ..protocol.actions import Action, AddFile, Metadata, RemoveFile
from ..protocol.column_mapping import ColumnMapping
from .manifests import Counts, counts_of
from .schema import FIRST_PARTITION_ID, schema_of, spec_of

VERSION: Final = "delta-version"
"""The property, of the table and of the summary of each snapshot, with the version of the log."""

TIMESTAMP: Final = "delta-timestamp"
MOST_LOGGED: Final = 100
"""The number of earlier metadata files that are kept."""

_CONFIG: Final = "delta.universalformat.config.iceberg."


def uuid_of(table: Metadata) -> uuid.UUID:
    """The UUID of the Iceberg table: the id of the table, which is one unless another writer chose it."""
    try:
        return uuid.UUID(table.id)
    except ValueError:
        return uuid.uuid5(uuid.NAMESPACE_URL, table.id)


def version_of(metadata: TableMetadataV2) -> int:
    """The version of the log that the metadata stands for; -1: unknown."""
    text = metadata.properties.get(VERSION, "")
    return int(text) if re.fullmatch(r"[0-9]{1,18}", text) else -1


def snapshot_id_of(table: Metadata, version: int, previous: TableMetadataV2) -> int:
    """The id of the snapshot of a version: always the same, unless the table has a snapshot with this id."""
    text = f"{table.id}:{version}"
    while True:
        number = (int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1) or 1
        if previous.snapshot_by_id(number) is None:
            return number
        text += "+"


def empty(table: Metadata, location: str) -> TableMetadataV2:
    """The metadata of a table without versions."""
    values: dict[str, Any] = {
        "location": location,
        "table_uuid": uuid_of(table),
        "last_updated_ms": 0,
        "last_column_id": 0,
        "schemas": [Schema(schema_id=0)],
        "current_schema_id": 0,
        "partition_specs": [PartitionSpec(spec_id=0)],
        "default_spec_id": 0,
        "last_partition_id": FIRST_PARTITION_ID - 1,
        "sort_orders": [UNSORTED_SORT_ORDER],
        "last_sequence_number": 0,
    }
    return TableMetadataV2(**values)


def with_table(previous: TableMetadataV2, table: Metadata, mapping: ColumnMapping) -> TableMetadataV2:
    """The metadata with the schema and the partitioning of a version, new or known ones."""
    first = not previous.snapshots
    schema = schema_of(mapping.logical)
    schemas = [] if first else list(previous.schemas)
    known = next((each for each in schemas if each == schema), None)
    if known is None:
        known = schema_of(mapping.logical, max((each.schema_id for each in schemas), default=-1) + 1)
        schemas.append(known)
    specs = [] if first else list(previous.partition_specs)
    spec = spec_of(mapping, specs)
    if spec not in specs:
        specs.append(spec)
    return _changed(
        previous,
        schemas=schemas,
        current_schema_id=known.schema_id,
        last_column_id=max(previous.last_column_id, column_mapping.max_id(table), known.highest_field_id),
        partition_specs=specs,
        default_spec_id=spec.spec_id,
        last_partition_id=max([FIRST_PARTITION_ID - 1, *(f.field_id for each in specs for f in each.fields)]),
        properties=_properties(table),
    )


def _properties(table: Metadata) -> dict[str, str]:
    chosen = {
        key[len(_CONFIG) :]: value for key, value in table.configuration.items() if key.lower().startswith(_CONFIG)
    }
    return {"write.format.default": "parquet", "write.metadata.previous-versions-max": str(MOST_LOGGED), **chosen}


def operation_of(actions: Sequence[Action]) -> Operation:
    """What a commit did to the rows."""
    files = [action for action in actions if isinstance(action, AddFile | RemoveFile)]
    if files and not any(file.data_change for file in files):
        return Operation.REPLACE
    if any(isinstance(file, RemoveFile) for file in files):
        return Operation.OVERWRITE if any(isinstance(file, AddFile) for file in files) else Operation.DELETE
    return Operation.APPEND


def summary_of(
    operation: Operation, version: int, manifests: Sequence[ManifestFile], before: Counts, added: Counts
) -> Summary:
    """The summary of a snapshot: what it added and removed, its totals, and the version of the log."""
    total = counts_of(manifests)
    removed = Counts(before.files + added.files - total.files, before.rows + added.rows - total.rows)
    changes = {
        "added-data-files": added.files,
        "added-records": added.rows,
        "deleted-data-files": removed.files,
        "deleted-records": removed.rows,
    }
    texts = {key: str(value) for key, value in changes.items() if value}
    totals = {
        "total-data-files": str(total.files),
        "total-records": str(total.rows),
        "total-delete-files": "0",
        "total-position-deletes": "0",
        "total-equality-deletes": "0",
    }
    return Summary(operation, **texts, **totals, **{VERSION: str(version)})


def with_snapshot(previous: TableMetadataV2, snapshot: Snapshot, version: int) -> TableMetadataV2:
    """The metadata with one more snapshot, which is the current one."""
    entry = SnapshotLogEntry.model_validate(
        {"snapshot-id": snapshot.snapshot_id, "timestamp-ms": snapshot.timestamp_ms}
    )
    texts = {VERSION: str(version), TIMESTAMP: str(snapshot.timestamp_ms)}
    return _changed(
        previous,
        snapshots=[*previous.snapshots, snapshot],
        snapshot_log=[*previous.snapshot_log, entry],
        current_snapshot_id=snapshot.snapshot_id,
        last_sequence_number=snapshot.sequence_number,
        last_updated_ms=snapshot.timestamp_ms,
        properties={**previous.properties, **texts},
    )


def without_snapshots(
    previous: TableMetadataV2, before_ms: int
) -> tuple[TableMetadataV2, list[Snapshot], Snapshot | None]:
    """The metadata without the snapshots before a time, those snapshots, and the oldest one that stays.

    The current snapshot always stays.
    """
    expired = [
        each
        for each in previous.snapshots
        if each.timestamp_ms < before_ms and each.snapshot_id != previous.current_snapshot_id
    ]
    if not expired:
        return previous, [], None
    gone = {each.snapshot_id for each in expired}
    kept = [each for each in previous.snapshots if each.snapshot_id not in gone]
    log = [entry for entry in previous.snapshot_log if entry.snapshot_id not in gone]
    return _changed(previous, snapshots=kept, snapshot_log=log), expired, kept[0]


def with_log(previous: TableMetadataV2, earlier: Mapping[str, int]) -> TableMetadataV2:
    """The metadata with the earlier metadata files, by location, and their times, appended to the list of them."""
    entries = [
        MetadataLogEntry.model_validate({"metadata-file": name, "timestamp-ms": time}) for name, time in earlier.items()
    ]
    return _changed(previous, metadata_log=[*previous.metadata_log, *entries][-MOST_LOGGED:])


def _changed(previous: TableMetadataV2, **fields: object) -> TableMetadataV2:
    """A copy with other values; `refs` follow the current snapshot."""
    values = {name: getattr(previous, name) for name in TableMetadataV2.model_fields if name != "refs"}
    return TableMetadataV2(**{**values, **fields})
