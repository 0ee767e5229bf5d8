"""The hint `_last_checkpoint`, and version checksums."""

import json
from functools import cache

from fuzz.target import Target
from tablelog.core.log import checksum, last_checkpoint
from tablelog.core.log.last_checkpoint import LastCheckpoint
from tablelog.core.table.snapshot import Snapshot
from tablelog.errors import CorruptLogError

from . import examples
from .tables import opened

_HINT_WORDS = [
    "version",
    "size",
    "parts",
    "sizeInBytes",
    "numOfAddFiles",
    "checksum",
    "v2Checkpoint",
    "tags",
    "é",
    "a b",
]
_CHECKSUM_WORDS = [
    "txnId", "tableSizeBytes", "numFiles", "numDeletedRecordsOpt", "numDeletionVectorsOpt", "numMetadata",
    "numProtocol",
    "inCommitTimestampOpt", "setTransactions", "domainMetadata", "metadata", "protocol", "fileSizeHistogram",
    "histogramOpt", "sortedBinBoundaries", "fileCounts", "totalBytes", "deletedRecordCountsHistogramOpt",
    "deletedRecordCounts", "allFiles", *examples.KEYS,
]  # fmt: skip


def hint(data: bytes) -> None:
    """A hint that can be used is written as it is read; its checksum is the one of the protocol's example."""
    parsed = last_checkpoint.parse(data)
    if parsed is None:
        raise CorruptLogError("no hint")
    assert last_checkpoint.parse(last_checkpoint.serialise(parsed)) == parsed
    # The order of keys doesn't matter.
    obj = json.loads(data)
    try:
        last_checkpoint.checksum(obj)
    except UnicodeEncodeError:
        return  # half a surrogate, in a hint without a checksum
    assert last_checkpoint.checksum(obj) == last_checkpoint.checksum(dict(reversed(obj.items())))


def version_checksum(data: bytes) -> None:
    """A checksum can be compared with a version, and be continued by a commit; it is written as it is read."""
    parsed = checksum.parse(data)
    totals = parsed.totals
    for sentence in checksum.differences(parsed, _snapshot(), totals):
        assert sentence
    later = totals.changed([(1, 100, None), (1, 5, examples.VECTOR), (-1, 100, None)])
    assert later.num_files == totals.num_files + 1
    assert later.size_in_bytes == totals.size_in_bytes + 5
    once = checksum.parse(checksum.serialise(parsed))
    assert checksum.parse(checksum.serialise(once)) == once
    assert (once.protocol, once.metadata, once.transactions) == (parsed.protocol, parsed.metadata, parsed.transactions)
    assert once.domains == parsed.domains


@cache
def _snapshot() -> Snapshot:
    return opened(examples.table("none")).snapshot()


def _hint_seeds() -> list[bytes]:
    full = LastCheckpoint(6, 12, 2, 4096, 10)
    return [
        last_checkpoint.serialise(LastCheckpoint(6, 12)),
        last_checkpoint.serialise(full),
        b'{"version":6,"size":12}',
        b'{"version":6,"size":12,"v2Checkpoint":{"path":"a","sidecarFiles":[{"path":"x"}]},"tags":{"a b":"\\u00e9"}}',
    ]


def _checksum_seeds() -> list[bytes]:
    return [examples.table(kind)["00000000000000000004.crc"] for kind in ("none", "v2-json")]


TARGETS = (
    Target("hint", hint, _hint_seeds, "json", _HINT_WORDS),
    Target("checksum", version_checksum, _checksum_seeds, "json", _CHECKSUM_WORDS),
)
