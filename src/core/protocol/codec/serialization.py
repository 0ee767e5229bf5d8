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


def _add_json(add: AddFile) -> Json:
    obj: Json = {
        "path": add.path,
        "partitionValues": add.partition_values,
        "size": add.size,
        "modificationTime": add.modification_time,
        "dataChange": add.data_change,
    }
    if add.stats is not None:
        obj["stats"] = add.stats
    if add.tags is not None:
        obj["tags"] = add.tags
    if add.deletion_vector is not None:
        obj["deletionVector"] = _dv_json(add.deletion_vector)
    if add.base_row_id is not None:
        obj["baseRowId"] = add.base_row_id
    if add.default_row_commit_version is not None:
        obj["defaultRowCommitVersion"] = add.default_row_commit_version
    if add.clustering_provider is not None:
        obj["clusteringProvider"] = add.clustering_provider
    return obj


def _remove_json(remove: RemoveFile) -> Json:
    obj: Json = {"path": remove.path}
    _put(obj, "deletionTimestamp", remove.deletion_timestamp)
    obj["dataChange"] = remove.data_change
    _put(obj, "extendedFileMetadata", remove.extended_file_metadata)
    _put(obj, "partitionValues", remove.partition_values)
    _put(obj, "size", remove.size)
    _put(obj, "stats", remove.stats)
    _put(obj, "tags", remove.tags)
    if remove.deletion_vector is not None:
        obj["deletionVector"] = _dv_json(remove.deletion_vector)
    _put(obj, "baseRowId", remove.base_row_id)
    _put(obj, "defaultRowCommitVersion", remove.default_row_commit_version)
    return obj


def _cdc_json(file: AddCDCFile) -> Json:
    obj: Json = {"path": file.path, "partitionValues": file.partition_values, "size": file.size}
    _put(obj, "tags", file.tags)
    obj["dataChange"] = file.data_change
    return obj


def _metadata_json(metadata: Metadata) -> Json:
    obj: Json = {"id": metadata.id}
    _put(obj, "name", metadata.name)
    _put(obj, "description", metadata.description)
    obj["format"] = {"provider": metadata.format.provider, "options": metadata.format.options}
    if metadata.schema_string:
        obj["schemaString"] = metadata.schema_string
    obj["partitionColumns"] = metadata.partition_columns
    obj["configuration"] = metadata.configuration
    _put(obj, "createdTime", metadata.created_time)
    return obj


def _protocol_json(protocol: Protocol) -> Json:
    obj: Json = {"minReaderVersion": protocol.min_reader_version, "minWriterVersion": protocol.min_writer_version}
    if protocol.reader_features is not None:
        obj["readerFeatures"] = sorted(protocol.reader_features)
    if protocol.writer_features is not None:
        obj["writerFeatures"] = sorted(protocol.writer_features)
    return obj


def _txn_json(transaction: SetTransaction) -> Json:
    obj: Json = {"appId": transaction.app_id, "version": transaction.version}
    _put(obj, "lastUpdated", transaction.last_updated)
    return obj


def _domain_json(domain: DomainMetadata) -> Json:
    return {"domain": domain.domain, "configuration": domain.configuration, "removed": domain.removed}


def _checkpoint_metadata_json(metadata: CheckpointMetadata) -> Json:
    obj: Json = {"version": metadata.version}
    _put(obj, "tags", metadata.tags)
    return obj


def _sidecar_json(sidecar: Sidecar) -> Json:
    obj: Json = {
        "path": sidecar.path,
        "sizeInBytes": sidecar.size_in_bytes,
        "modificationTime": sidecar.modification_time,
    }
    _put(obj, "tags", sidecar.tags)
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
