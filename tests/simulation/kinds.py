"""What a schedule is about: drawn from its seed, so that each costly thing happens in a share of the schedules."""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

HOUR_S: Final = 3600.0
DAY_S: Final = 86_400.0
RETENTION_MS: Final = 2 * 86_400_000
_DEFAULTS: Final = "spark.databricks.delta.properties.defaults."
_CHECKPOINTS: Final[tuple[Mapping[str, str], ...]] = (
    {},
    {"spark.databricks.delta.checkpoint.partSize": "3"},
    {f"{_DEFAULTS}checkpointPolicy": "v2", "spark.databricks.delta.checkpoint.partSize": "4"},
    {
        f"{_DEFAULTS}checkpointPolicy": "v2",
        "spark.databricks.delta.checkpointV2.topLevelFileFormat": "parquet",
    },
)


@dataclass(frozen=True, slots=True)
class Kind:
    """`whole`: with all that follows a commit. `long`: days pass between commits, and what expired is removed.
    `growing`: a table without row ids gets them, while files get deletion vectors. `tracked`, `stamped`: it has row
    ids, in-commit timestamps from its beginning.

    `skew_s` is how far the writers' clocks may be off; `own_file_times` says that files bear those, as on a shared
    disk. `restarts` is how often a process begins anew between two commits, `reads` how often it reads an old version.
    """

    serializable: bool
    partitioned: bool = False
    whole: bool = False
    long: bool = False
    growing: bool = False
    tracked: bool = False
    stamped: bool = False
    skew_s: float = 0.0
    own_file_times: bool = False
    restarts: float = 0.0
    reads: float = 0.0
    most_open: int = 1
    checkpoints: int = 0

    @property
    def upkeep(self) -> bool:
        """Whether checkpoints are written."""
        return self.whole or self.long

    @property
    def label(self) -> str:
        what = next((name for name in ("whole", "long", "growing") if getattr(self, name)), "plain")
        return what + "".join(
            f", {name}" for name in ("partitioned", "tracked", "stamped", "own_file_times") if getattr(self, name)
        )

    def conf(self) -> dict[str, str]:
        """The settings of the session, by which the table is made."""
        conf = {
            f"{_DEFAULTS}isolationLevel": "Serializable" if self.serializable else "WriteSerializable",
            f"{_DEFAULTS}checkpointInterval": "5" if self.whole else "4" if self.long else "1000",
            "spark.databricks.delta.writeChecksumFile.enabled": str(self.whole),
        }
        if self.upkeep:
            conf |= _CHECKPOINTS[self.checkpoints]
        if self.whole and self.checkpoints % 2:
            conf["spark.databricks.delta.deltaLog.minorCompaction.useForWrites"] = "true"
            conf[f"{_DEFAULTS}logCompactionInterval"] = "3"
        if self.long:
            conf[f"{_DEFAULTS}logRetentionDuration"] = "interval 2 days"
            conf[f"{_DEFAULTS}deletedFileRetentionDuration"] = "interval 1 day"
        if self.growing:
            conf[f"{_DEFAULTS}enableDeletionVectors"] = "true"
        if self.tracked:
            conf[f"{_DEFAULTS}enableRowTracking"] = "true"
        if self.stamped:
            conf[f"{_DEFAULTS}enableInCommitTimestamps"] = "true"
        return conf


def drawn(rng: random.Random, only: str | None = None) -> Kind:
    """The kind of a schedule; `only` is "whole", "long" or "growing" for none but such."""
    dice = rng.random()
    whole = only == "whole" or (only is None and dice < 0.004)
    long = only == "long" or (only is None and 0.004 <= dice < 0.007)
    growing = only == "growing" or (only is None and 0.007 <= dice < 0.05)
    skewed = rng.random() < 0.2
    return Kind(
        serializable=rng.random() < 0.6,
        partitioned=rng.random() < 0.12,
        whole=whole,
        long=long,
        growing=growing,
        tracked=rng.random() < 0.15 and not growing,
        stamped=rng.random() < 0.15,
        # Cleanup trusts the clocks of those that write to be right within minutes.
        skew_s=0.0 if not skewed else 60.0 if long else 3 * DAY_S,
        own_file_times=skewed and rng.random() < 0.5,
        restarts=0.05 if whole or long or rng.random() < 0.2 else 0.0,
        reads=0.1 if whole or long else 0.05 if rng.random() < 0.2 else 0.0,
        most_open=1 + int(rng.random() * 3) if long or rng.random() < 0.4 else 1,
        checkpoints=int(rng.random() * len(_CHECKPOINTS)),
    )
