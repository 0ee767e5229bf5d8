"""Raising a table's protocol: to versions, or by one feature (PROTOCOL.md, "Protocol Evolution")."""

from pyspark.sql import SparkSession

from ...core.deltalog import DeltaLog
from ...core.protocol import properties
from ...core.txn.transaction import Committed
from ..command.command import PLAIN, CommitOptions
from .properties import set_properties


def upgrade_protocol(
    spark: SparkSession, log: DeltaLog, reader_version: int, writer_version: int, options: CommitOptions = PLAIN
) -> Committed | None:
    """Have the table support what the versions stand for; nothing that it supports already is taken away.

    InvalidArgumentError for versions that aren't, UnsupportedFeatureError for what isn't built.
    """
    asked = {"delta.minReaderVersion": str(reader_version), "delta.minWriterVersion": str(writer_version)}
    return set_properties(spark, log, asked, options)


def add_feature(spark: SparkSession, log: DeltaLog, name: str, options: CommitOptions = PLAIN) -> Committed | None:
    """Have the table support a feature and those that it needs.

    UnsupportedFeatureError for a name that isn't known, or a feature that isn't built.
    """
    asked = {properties.FEATURE_PREFIX + name: "supported"}
    return set_properties(spark, log, asked, options, told=asked)
