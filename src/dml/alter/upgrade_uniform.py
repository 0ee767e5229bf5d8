"""REORG TABLE ... APPLY (UPGRADE UNIFORM): everything that readers of Iceberg need, for an existing table."""

from dataclasses import replace

from pyspark.sql import SparkSession

from ...core.deltalog import DeltaLog
from ...core.iceberg.enabled import KEY, is_enabled
from ...core.protocol import column_mapping, iceberg_compat
from ..command.command import PLAIN, CommitOptions
from ..maintain.optimize import optimize
from ..maintain.optimize_layout import OptimizeLayout
from ..maintain.optimize_result import OptimizeResult
from .properties import set_properties

VERSIONS = (1, 2)


def upgrade_uniform(spark: SparkSession, log: DeltaLog, version: int, options: CommitOptions = PLAIN) -> OptimizeResult:
    """Enable icebergCompatV`version`, rewrite the files that were not written for it, and enable Iceberg's metadata.

    Each is a commit of its own; one that isn't needed is left out. If it fails, it can be repeated. The errors are
    those of `set_properties` and `optimize`.
    """
    metadata = log.snapshot().metadata
    enabled = iceberg_compat.versions(metadata.configuration)
    wanted = {f"delta.enableIcebergCompatV{other}": "false" for other in enabled if other != version}
    if version not in enabled:
        wanted[f"delta.enableIcebergCompatV{version}"] = "true"
    if column_mapping.mode_of(metadata) == "none":
        wanted[column_mapping.MODE] = "name"
    if wanted:
        set_properties(spark, log, wanted, options)
    layout = replace(OptimizeLayout.of(spark, purge=True), for_iceberg=True)
    outcome = optimize(spark, log, layout, options=options)
    if not is_enabled(log.snapshot().metadata):
        set_properties(spark, log, {KEY: "iceberg"}, options)
    return outcome
