"""The servers as fixtures."""

from .counted import counted
from .fixtures import (
    azurite,
    ceph,
    dynalite,
    gcs_server,
    gofakes3,
    hdfs,
    minio,
    moto_server,
    pytest_terminal_summary,
    s3rver,
    seaweedfs,
    versitygw,
)
from .programs import jars

__all__ = [
    "azurite",
    "ceph",
    "counted",
    "dynalite",
    "gcs_server",
    "gofakes3",
    "hdfs",
    "jars",
    "minio",
    "moto_server",
    "pytest_terminal_summary",
    "s3rver",
    "seaweedfs",
    "versitygw",
]
