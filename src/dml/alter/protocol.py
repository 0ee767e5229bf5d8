"""Upgrades a table's protocol to given versions, or by one feature (PROTOCOL.md, "Protocol Evolution")."""

from pyspark.sql import SparkSession

from ...core.deltalog import DeltaLog
from ...core.protocol import properties
from ...core.txn.transaction import Committed
from ..command.command import PLAIN, CommitOptions
from .properties import set_properties


def upgrade_protocol(
    spark: SparkSession, log: DeltaLog, reader_version: int, writer_version: int, options: CommitOptions = PLAIN
) -> Committed | None:
    """Upgrade the protocol to support what these versions imply; supported features are kept.

    Raises InvalidArgumentError for invalid versions, UnsupportedFeatureError for unsupported features.
    """
    requested = {"delta.minReaderVersion": str(reader_version), "delta.minWriterVersion": str(writer_version)}
    return set_properties(spark, log, requested, options)


def add_feature(spark: SparkSession, log: DeltaLog, name: str, options: CommitOptions = PLAIN) -> Committed | None:
    """Add a feature, and the features that it depends on, to the protocol.

    Raises UnsupportedFeatureError for an unknown feature, or one that tablelog doesn't support.
    """
    requested = {properties.FEATURE_PREFIX + name: "supported"}
    return set_properties(spark, log, requested, options, logged=requested)
