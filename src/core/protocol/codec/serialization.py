"""Actions as JSON lines, with Delta's order of fields (PROTOCOL.md, "Actions").

As in Delta, missing optional fields aren't written; a null partition value stays a JSON null.
"""

from collections.abc import Callable, Iterable
from typing import Any

from ....errors import InvalidArgumentError
from ..actions import (
    Action,
    AddCDCFile,
    AddFile,
    CheckpointMetadata,
    CommitInfo,
    DeletionVectorDescriptor,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
    Sidecar,
)
from .commit_info import commit_info_json
from .strict_json import Json, encoder, reason


def _put(obj: Json, key: str, value: Any) -> None:
    if value is not None:
        obj[key] = value


def _dv_json(dv: DeletionVectorDescriptor) -> Json:
    obj: Json = {"storageType": dv.storage_type, "pathOrInlineDv": dv.path_or_inline_dv}
    if dv.offset is not None:
        obj["offset"] = dv.offset
    obj["sizeInBytes"] = dv.size_in_bytes
    obj["cardinality"] = dv.cardinality
    return obj


def _add_json(a: AddFile) -> Json:
    obj: Json = {
        "path": a.path,
        "partitionValues": a.partition_values,
        "size": a.size,
        "modificationTime": a.modification_time,
        "dataChange": a.data_change,
    }
    if a.stats is not None:
        obj["stats"] = a.stats
    if a.tags is not None:
        obj["tags"] = a.tags
    if a.deletion_vector is not None:
        obj["deletionVector"] = _dv_json(a.deletion_vector)
    if a.base_row_id is not None:
        obj["baseRowId"] = a.base_row_id
    if a.default_row_commit_version is not None:
        obj["defaultRowCommitVersion"] = a.default_row_commit_version
    if a.clustering_provider is not None:
        obj["clusteringProvider"] = a.clustering_provider
    return obj


def _remove_json(r: RemoveFile) -> Json:
    obj: Json = {"path": r.path}
    _put(obj, "deletionTimestamp", r.deletion_timestamp)
    obj["dataChange"] = r.data_change
    _put(obj, "extendedFileMetadata", r.extended_file_metadata)
    _put(obj, "partitionValues", r.partition_values)
    _put(obj, "size", r.size)
    _put(obj, "stats", r.stats)
    _put(obj, "tags", r.tags)
    if r.deletion_vector is not None:
        obj["deletionVector"] = _dv_json(r.deletion_vector)
    _put(obj, "baseRowId", r.base_row_id)
    _put(obj, "defaultRowCommitVersion", r.default_row_commit_version)
    return obj


def _cdc_json(c: AddCDCFile) -> Json:
    obj: Json = {"path": c.path, "partitionValues": c.partition_values, "size": c.size}
    _put(obj, "tags", c.tags)
    obj["dataChange"] = c.data_change
    return obj


def _metadata_json(m: Metadata) -> Json:
    obj: Json = {"id": m.id}
    _put(obj, "name", m.name)
    _put(obj, "description", m.description)
    obj["format"] = {"provider": m.format.provider, "options": m.format.options}
    if m.schema_string:
        obj["schemaString"] = m.schema_string
    obj["partitionColumns"] = m.partition_columns
    obj["configuration"] = m.configuration
    _put(obj, "createdTime", m.created_time)
    return obj


def _protocol_json(p: Protocol) -> Json:
    obj: Json = {"minReaderVersion": p.min_reader_version, "minWriterVersion": p.min_writer_version}
    if p.reader_features is not None:
        obj["readerFeatures"] = sorted(p.reader_features)
    if p.writer_features is not None:
        obj["writerFeatures"] = sorted(p.writer_features)
    return obj


def _txn_json(t: SetTransaction) -> Json:
    obj: Json = {"appId": t.app_id, "version": t.version}
    _put(obj, "lastUpdated", t.last_updated)
    return obj


def _domain_json(d: DomainMetadata) -> Json:
    return {"domain": d.domain, "configuration": d.configuration, "removed": d.removed}


def _checkpoint_metadata_json(c: CheckpointMetadata) -> Json:
    obj: Json = {"version": c.version}
    _put(obj, "tags", c.tags)
    return obj


def _sidecar_json(s: Sidecar) -> Json:
    obj: Json = {"path": s.path, "sizeInBytes": s.size_in_bytes, "modificationTime": s.modification_time}
    _put(obj, "tags", s.tags)
    return obj


_WRITERS: dict[type, tuple[str, Callable[[Any], Json]]] = {
    AddFile: ("add", _add_json),
    RemoveFile: ("remove", _remove_json),
    AddCDCFile: ("cdc", _cdc_json),
    CommitInfo: ("commitInfo", commit_info_json),
    Metadata: ("metaData", _metadata_json),
    Protocol: ("protocol", _protocol_json),
    SetTransaction: ("txn", _txn_json),
    DomainMetadata: ("domainMetadata", _domain_json),
    CheckpointMetadata: ("checkpointMetadata", _checkpoint_metadata_json),
    Sidecar: ("sidecar", _sidecar_json),
}


def to_json(action: Action) -> str:
    """The action as one line of JSON without a line feed, in Delta's order of fields.

    `InvalidArgumentError` if a value can't be written as JSON (such as NaN).
    """
    name, write = _WRITERS[type(action)]
    try:
        return encoder.encode({name: write(action)})
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidArgumentError(f"the action {name!r} can't be written: {reason(error)}") from None


def serialise(actions: Iterable[Action]) -> bytes:
    """The content of a commit file: one line with a line feed for each action (PROTOCOL.md, "Delta Log Entries").

    `InvalidArgumentError` if a text isn't valid Unicode or a value can't be written as JSON.
    """
    lines = [to_json(action) for action in actions]
    lines.append("")
    try:
        return "\n".join(lines).encode()
    except UnicodeEncodeError as error:
        raise InvalidArgumentError(f"the commit can't be written as UTF-8: {reason(error)}") from None
