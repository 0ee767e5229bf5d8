"""Keys of Delta that have no effect in tablelog. A session that sets one gets one warning, with the reason.

A key of Delta that isn't declared anywhere also causes a warning, without a reason.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from .declarations import DELTA, TABLELOG, has_effect
from .setting import Unsupported

_KNOWN: Final = (
    ("autoCompact.maxNumModifiedPartitions", "auto compaction considers every partition that the commit wrote to"),
    (
        "autoCompact.modifiedPartitionsOnly.enabled",
        "auto compaction considers only partitions that the commit wrote to",
    ),
    ("checksum.mismatch.fatal", "use spark.databricks.delta.state.corruptionIsFatal instead"),
    ("commitLock.enabled", "the log store decides which writer wins, without a lock"),
    ("domainMetadatasInCrc.maxAllowed", "a checksum lists up to 100 domains"),
    ("history.metricsEnabled", "commits always record their metrics"),
    ("hudi.maxPendingCommits", "Hudi's metadata isn't written"),
    ("iceberg.maxPendingActions", "Iceberg's metadata is written by each commit"),
    ("iceberg.maxPendingCommits", "Iceberg's metadata is written by each commit"),
    ("maxSnapshotLineageLength", "the driver holds the snapshot, which has no lineage"),
    ("merge.materializeSource", "a MERGE always reads its source once"),
    ("merge.optimizeInsertOnlyMerge.enabled", "the clauses of a MERGE decide how it runs"),
    ("merge.optimizeMatchedOnlyMerge.enabled", "the clauses of a MERGE decide how it runs"),
    ("optimize.maxThreads", "OPTIMIZE writes many files in one Spark job"),
    ("optimizeWrite.maxShufflePartitions", "Spark's adaptive execution sets the number of partitions"),
    ("optimizeWrite.numShuffleBlocks", "Spark's adaptive execution sets the number of partitions"),
    ("setTransactionsInCrc.maxAllowed", "a checksum lists up to 100 transactions"),
    ("snapshotCache.storageLevel", "the driver holds the snapshot; Spark doesn't cache it"),
    ("stalenessLimit", "every read looks for the newest version"),
    ("stats.collect", "files have statistics unless the table property delta.dataSkippingNumIndexedCols is 0"),
    ("uniform.iceberg.sync.convert.enabled", "Iceberg's metadata is written by each commit"),
    ("write.utcTimestampPartitionValues", "timestamps in partition values are always written in UTC"),
)
UNSUPPORTED: Final = {DELTA + name: Unsupported(DELTA + name, why) for name, why in _KNOWN}


def without_effect(keys: Iterable[str]) -> Iterator[tuple[str, str]]:
    """The keys of Delta and tablelog among `keys` that have no effect, each with the reason or ""."""
    for key in keys:
        if key.startswith((DELTA, TABLELOG)) and not has_effect(key):
            known = UNSUPPORTED.get(key)
            yield key, "" if known is None else known.why
