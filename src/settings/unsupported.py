"""Keys of Delta that users set and that have no effect here. A session that sets one is warned once, with the reason.

A key of Delta that is declared nowhere is warned of too, without a reason.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from .declarations import DELTA, TABLELOG, has_effect
from .setting import Unsupported

_KNOWN: Final = (
    ("autoCompact.maxNumModifiedPartitions", "auto compaction looks at each partition that a commit wrote to"),
    ("autoCompact.modifiedPartitionsOnly.enabled", "auto compaction looks only at partitions that a commit wrote to"),
    ("checksum.mismatch.fatal", "state.corruptionIsFatal decides"),
    ("commitLock.enabled", "the store decides which writer wins, and there is no lock"),
    ("domainMetadatasInCrc.maxAllowed", "a checksum lists up to 100 domains"),
    ("history.metricsEnabled", "commits always record their metrics"),
    ("hudi.maxPendingCommits", "UniForm isn't supported"),
    ("iceberg.maxPendingActions", "UniForm isn't supported"),
    ("iceberg.maxPendingCommits", "UniForm isn't supported"),
    ("maxSnapshotLineageLength", "a snapshot is held by the driver and has no lineage"),
    ("merge.materializeSource", "a MERGE always reads its source once"),
    ("merge.optimizeInsertOnlyMerge.enabled", "the clauses of a MERGE decide how it runs"),
    ("merge.optimizeMatchedOnlyMerge.enabled", "the clauses of a MERGE decide how it runs"),
    ("optimize.maxThreads", "OPTIMIZE writes many files in one Spark job"),
    ("optimizeWrite.maxShufflePartitions", "Spark's adaptive execution decides"),
    ("optimizeWrite.numShuffleBlocks", "Spark's adaptive execution decides"),
    ("setTransactionsInCrc.maxAllowed", "a checksum lists up to 100 transactions"),
    ("snapshotCache.storageLevel", "a snapshot is held by the driver and isn't cached by Spark"),
    ("stalenessLimit", "each read looks for the newest version"),
    ("stats.collect", "files have statistics unless the table property delta.dataSkippingNumIndexedCols is 0"),
    ("uniform.iceberg.sync.convert.enabled", "UniForm isn't supported"),
    ("write.utcTimestampPartitionValues", "timestamps in partition values are always written in UTC"),
)
UNSUPPORTED: Final = {DELTA + name: Unsupported(DELTA + name, why) for name, why in _KNOWN}


def without_effect(keys: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Those of some keys that are Delta's or tablelog's and have no effect, each with the reason or ""."""
    for key in keys:
        if key.startswith((DELTA, TABLELOG)) and not has_effect(key):
            known = UNSUPPORTED.get(key)
            yield key, "" if known is None else known.why
