"""Real servers to test against, which install and start themselves: `python -m servers` in the directory `tests`."""

from .azurite import Azurite
from .base import Server, StorageServer
from .ceph import Ceph
from .dynalite import Dynalite
from .gcs import FakeGCS
from .hdfs import HDFS
from .install import CannotInstallError
from .minio import MinIO
from .moto import Moto

SERVERS: dict[str, type[Server]] = {
    server.name: server for server in (MinIO, Azurite, FakeGCS, HDFS, Moto, Dynalite, Ceph)
}

__all__ = [
    "HDFS",
    "SERVERS",
    "Azurite",
    "CannotInstallError",
    "Ceph",
    "Dynalite",
    "FakeGCS",
    "MinIO",
    "Moto",
    "Server",
    "StorageServer",
]
