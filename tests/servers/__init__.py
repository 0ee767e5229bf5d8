"""Real servers to test against, which install and start themselves: `python -m servers` in the directory `tests`."""

from .azurite import Azurite
from .base import Server, StorageServer
from .ceph import Ceph
from .dynalite import Dynalite
from .gcs import FakeGCS
from .gofakes3 import GoFakeS3
from .hdfs import HDFS
from .install import CannotInstallError
from .minio import MinIO
from .moto import Moto
from .s3rver import S3rver
from .seaweedfs import SeaweedFS
from .versitygw import VersityGW

SERVERS: dict[str, type[Server]] = {
    server.name: server
    for server in (MinIO, Azurite, FakeGCS, HDFS, Moto, Dynalite, Ceph, VersityGW, GoFakeS3, S3rver, SeaweedFS)
}

__all__ = [
    "HDFS",
    "SERVERS",
    "Azurite",
    "CannotInstallError",
    "Ceph",
    "Dynalite",
    "FakeGCS",
    "GoFakeS3",
    "MinIO",
    "Moto",
    "S3rver",
    "SeaweedFS",
    "Server",
    "StorageServer",
    "VersityGW",
]
