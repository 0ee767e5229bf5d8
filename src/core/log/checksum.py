"""The version checksum `<version>.crc`: a summary of a version's state (PROTOCOL.md, "Version Checksum File").

It is written once, after the commit, from the totals of the previous version and the actions of the commit. It is
compared with the replayed state when that is in memory anyway.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from ...errors import CorruptLogError
from ...settings.declarations import CHECKSUM_LISTS_FILES, CHECKSUM_MAX_FILES
from ..protocol.actions import AddFile, DomainMetadata, Metadata, Protocol, SetTransaction
from ..protocol.codec import parse_line, to_json
from ..protocol.codec.strict_json import load, reason
from ..protocol.features import supported
from ..protocol.paths import canonical
from .replay import DELETED_BINS, SIZE_BINS, Totals
from .version_state import VersionState

_MOST_LISTED = 100
"""Longer lists of transactions or domains aren't written to the checksum (Delta has the same limit)."""


def most_files(conf: Mapping[str, str]) -> int:
    """The largest number of files that a checksum lists (default 50, as in Delta); -1: it never lists files."""
    return CHECKSUM_MAX_FILES.of(conf) if CHECKSUM_LISTS_FILES.of(conf) else -1


@dataclass(frozen=True, slots=True)
class VersionChecksum:
    """The content of a `.crc` file; `None` stands for a missing field."""

    totals: Totals
    metadata: Metadata | None
    protocol: Protocol | None
    num_metadata: int = 1
    num_protocol: int = 1
    txn_id: str | None = None
    in_commit_timestamp: int | None = None
    transactions: Mapping[str, SetTransaction] | None = None
    domains: Mapping[str, DomainMetadata] | None = None
    has_vectors: bool = False
    files: tuple[AddFile, ...] | None = None


def of(
    snapshot: VersionState,
    totals: Totals,
    *,
    txn_id: str | None = None,
    in_commit_timestamp: int | None = None,
    most_files: int = -1,
) -> VersionChecksum:
    """The checksum of a version whose live files add up to `totals`.

    It lists the files if they are at most `most_files`, and if they are in memory.
    """
    files = None
    if totals.num_files <= most_files and snapshot.at_hand:
        # A file in a state isn't new data.
        files = tuple(replace(file, data_change=False) for file in snapshot.add_files())
    transactions, domains = snapshot.transactions, snapshot.domain_metadata
    return VersionChecksum(
        totals=totals,
        metadata=snapshot.metadata,
        protocol=snapshot.protocol,
        txn_id=txn_id,
        in_commit_timestamp=in_commit_timestamp,
        transactions=transactions if len(transactions) <= _MOST_LISTED else None,
        domains=domains if len(domains) <= _MOST_LISTED else None,
        has_vectors="deletionVectors" in supported(snapshot.protocol),
        files=files,
    )


def serialise(checksum: VersionChecksum) -> bytes:
    """The content of the file: one JSON object."""
    totals = checksum.totals
    obj: dict[str, Any] = {}
    if checksum.txn_id is not None:
        obj["txnId"] = checksum.txn_id
    obj["tableSizeBytes"] = totals.size_in_bytes
    obj["numFiles"] = totals.num_files
    if checksum.has_vectors:
        obj["numDeletedRecordsOpt"] = totals.num_deleted_records
        obj["numDeletionVectorsOpt"] = totals.num_deletion_vectors
    obj["numMetadata"] = checksum.num_metadata
    obj["numProtocol"] = checksum.num_protocol
    if checksum.in_commit_timestamp is not None:
        obj["inCommitTimestampOpt"] = checksum.in_commit_timestamp
    if checksum.transactions is not None:
        obj["setTransactions"] = [_json(txn, "txn") for txn in checksum.transactions.values()]
    if checksum.domains is not None:
        obj["domainMetadata"] = [_json(domain, "domainMetadata") for domain in checksum.domains.values()]
    if checksum.metadata is not None:
        obj["metadata"] = _json(checksum.metadata, "metaData")
    if checksum.protocol is not None:
        obj["protocol"] = _json(checksum.protocol, "protocol")
    if totals.file_counts:
        obj["fileSizeHistogram"] = {
            "sortedBinBoundaries": SIZE_BINS,
            "fileCounts": totals.file_counts,
            "totalBytes": totals.file_bytes,
        }
    if checksum.has_vectors and totals.deleted_counts:
        obj["deletedRecordCountsHistogramOpt"] = {"deletedRecordCounts": totals.deleted_counts}
    if checksum.files is not None:
        obj["allFiles"] = [_json(file, "add") for file in checksum.files]
    return json.dumps(obj, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


def _json(action: Any, name: str) -> Any:
    return json.loads(to_json(action))[name]


def parse(data: bytes) -> VersionChecksum:
    """Parse a `.crc` file. CorruptLogError when it is invalid; the table can still be read without it."""
    try:
        obj = load(data.decode())
        if not isinstance(obj, dict):
            raise ValueError("not an object")
        counts, sums = _histogram(obj.get("fileSizeHistogram", obj.get("histogramOpt")))
        totals = Totals(
            num_files=_long(obj, "numFiles"),
            size_in_bytes=_long(obj, "tableSizeBytes"),
            num_deletion_vectors=_long_or_none(obj, "numDeletionVectorsOpt") or 0,
            num_deleted_records=_long_or_none(obj, "numDeletedRecordsOpt") or 0,
            file_counts=counts,
            file_bytes=sums,
            deleted_counts=_deleted(obj),
        )
        transactions, domains = obj.get("setTransactions"), obj.get("domainMetadata")
        txns = [_action("txn", item) for item in transactions or ()]
        files = obj.get("allFiles")
        live = [_action("domainMetadata", item) for item in domains or ()]
        return VersionChecksum(
            totals=totals,
            metadata=None if obj.get("metadata") is None else _action("metaData", obj["metadata"]),
            protocol=None if obj.get("protocol") is None else _action("protocol", obj["protocol"]),
            num_metadata=_long(obj, "numMetadata"),
            num_protocol=_long(obj, "numProtocol"),
            txn_id=_text_or_none(obj, "txnId"),
            in_commit_timestamp=_long_or_none(obj, "inCommitTimestampOpt"),
            transactions=None if transactions is None else {txn.app_id: txn for txn in txns},
            domains=None if domains is None else {item.domain: item for item in live if not item.removed},
            has_vectors=obj.get("numDeletionVectorsOpt") is not None,
            files=None if files is None else tuple(_action("add", item) for item in files),
        )
    except (ValueError, TypeError, RecursionError) as error:
        raise CorruptLogError(f"not a version checksum: {reason(error)}") from None


def _action(name: str, value: Any) -> Any:
    action = parse_line(json.dumps({name: value}))
    if action is None:
        raise ValueError(f"no {name}")
    return action


def _long(obj: Mapping[str, Any], key: str) -> int:
    value = obj.get(key)
    if type(value) is not int:
        raise ValueError(f"{key!r} must be an integer")
    return value


def _long_or_none(obj: Mapping[str, Any], key: str) -> int | None:
    return None if obj.get(key) is None else _long(obj, key)


def _text_or_none(obj: Mapping[str, Any], key: str) -> str | None:
    value = obj.get(key)
    if value is not None and type(value) is not str:
        raise ValueError(f"{key!r} must be a string")
    return value


def _longs(obj: Mapping[str, Any], key: str) -> tuple[int, ...]:
    values = tuple(obj.get(key) or ())
    if any(type(value) is not int for value in values):
        raise ValueError(f"{key!r} must be a list of integers")
    return values


def _histogram(value: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    if not isinstance(value, dict) or tuple(value.get("sortedBinBoundaries") or ()) != SIZE_BINS:
        return (), ()
    counts, sums = _longs(value, "fileCounts"), _longs(value, "totalBytes")
    return (counts, sums) if len(counts) == len(sums) == len(SIZE_BINS) else ((), ())


def _deleted(obj: Mapping[str, Any]) -> tuple[int, ...]:
    histogram = obj.get("deletedRecordCountsHistogramOpt")
    counts = _longs(histogram, "deletedRecordCounts") if isinstance(histogram, dict) else ()
    if not counts and not obj.get("numDeletionVectorsOpt"):
        return _long(obj, "numFiles"), *(0 for _ in DELETED_BINS[1:])
    return counts if len(counts) == len(DELETED_BINS) else ()


def differences(checksum: VersionChecksum, snapshot: VersionState, totals: Totals) -> list[str]:
    """The differences between the checksum and the replayed state, one sentence each; empty when they agree."""
    sentences: list[str] = []

    def compare(name: str, theirs: object, ours: object) -> None:
        if theirs != ours:
            sentences.append(f"{name} is {ours}, the checksum says {theirs}")

    compare("the number of files", checksum.totals.num_files, totals.num_files)
    compare("their size in bytes", checksum.totals.size_in_bytes, totals.size_in_bytes)
    compare("the number of metaData actions", checksum.num_metadata, 1)
    compare("the number of protocol actions", checksum.num_protocol, 1)
    if checksum.protocol is not None and checksum.protocol != snapshot.protocol:
        sentences.append(f"the protocol is {snapshot.protocol}, the checksum says {checksum.protocol}")
    if checksum.metadata is not None and _comparable(checksum.metadata) != _comparable(snapshot.metadata):
        sentences.append(f"the metadata differs in {', '.join(_differing(checksum.metadata, snapshot.metadata))}")
    if checksum.has_vectors:
        compare("the number of deletion vectors", checksum.totals.num_deletion_vectors, totals.num_deletion_vectors)
        compare("the number of deleted rows", checksum.totals.num_deleted_records, totals.num_deleted_records)
    if checksum.totals.file_counts and totals.file_counts and checksum.totals.file_counts != totals.file_counts:
        sentences.append("the histogram of file sizes differs")
    if (
        checksum.totals.deleted_counts
        and totals.deleted_counts
        and checksum.totals.deleted_counts != totals.deleted_counts
    ):
        sentences.append("the histogram of deleted rows differs")
    if checksum.in_commit_timestamp is not None and snapshot.properties.enable_in_commit_timestamps:
        compare("the in-commit timestamp", checksum.in_commit_timestamp, snapshot.timestamp_ms)
    if checksum.files is not None:
        listed = {(canonical(f.path, snapshot.table), f.deletion_vector, f.size) for f in checksum.files}
        live = {(canonical(f.path, snapshot.table), f.deletion_vector, f.size) for f in snapshot.listed_files()}
        if example := min((path for path, *_ in listed ^ live), default=None):
            sentences.append(
                f"{len(live - listed)} files aren't in its list, and {len(listed - live)} more are: {example}"
            )
    if checksum.transactions is not None:
        theirs = {app: txn.version for app, txn in checksum.transactions.items()}
        ours = {app: txn.version for app, txn in snapshot.transactions.items()}
        if snapshot.properties.set_transaction_retention_ms is not None:
            ours = {app: version for app, version in ours.items() if app in theirs}  # others may have expired
        if theirs != ours:
            sentences.append(f"the transactions are {ours}, the checksum says {theirs}")
    if checksum.domains is not None and dict(checksum.domains) != dict(snapshot.domain_metadata):
        sentences.append(
            f"the domains are {sorted(snapshot.domain_metadata)}, the checksum says {sorted(checksum.domains)}"
        )
    return sentences


def _comparable(metadata: Metadata) -> Metadata:
    return replace(metadata, configuration=dict(metadata.configuration))


def _differing(theirs: Metadata, ours: Metadata) -> list[str]:
    return [field.name for field in fields(Metadata) if getattr(theirs, field.name) != getattr(ours, field.name)]
