"""Options of Java with which the JVMs of tests start in half the time."""

import sys
from pathlib import Path

# Java loads and verifies some 15,000 of Spark's classes at each start; from an archive it maps them into memory.
# An archive fits one JVM and one list of jars: where it doesn't, Java says nothing and goes on without it.
ARCHIVE = Path(sys.prefix) / "spark-classes.jsa"

# Queries that run once gain nothing from the optimising compiler, which took half of the processor time.
_COMPILER = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m"
# Neither do they gain from a collector that works beside the program on the same two cores.
_COLLECTOR = "-XX:+UseSerialGC -XX:MetaspaceSize=512m -Xms1g"
_JAVA_OPTIONS = f"{_COMPILER} {_COLLECTOR} -Xshare:auto -Xlog:disable"


def java_options() -> str:
    """Options for the JVM of a driver or an executor in this environment."""
    return f"{_JAVA_OPTIONS} -XX:SharedArchiveFile={ARCHIVE}" if ARCHIVE.exists() else _JAVA_OPTIONS
