"""The URI schemes and the properties of the storage of each: one table for the log, data files and Hadoop."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

Backend: TypeAlias = Literal["local", "memory", "s3", "azure", "gcs", "hdfs"]


@dataclass(frozen=True, slots=True)
class Scheme:
    """The properties of all paths of one scheme."""

    backend: Backend | None = None
    """The folder of `tablelog.logstore` with the store for the log; None: only a user's own store."""
    fsspec: Backend | None = None
    """The backend whose fsspec file system reads data files that Spark's JVM can't read; None: fsspec's default."""
    same_as: str | None = None
    """Another scheme of the same storage."""
    has_container: bool = False
    """Whether the part before the @ of the authority is a container, not user information."""
    hadoop_keys: tuple[str, ...] = ()
    """Prefixes of Hadoop's keys for this storage."""
    renames: bool = False
    """Whether Hadoop's client renames a file without copying it, so a write may use staging files."""
    has_directories: bool = True
    """Whether directories are real in Hadoop's client, not only parts of names."""
    vacuum_is_logged: bool = False
    """Whether VACUUM is recorded in the log by default, as in Delta."""


_S3 = Scheme("s3", "s3", hadoop_keys=("fs.s3a.",), has_directories=False)
_AZURE = Scheme("azure", "azure", hadoop_keys=("fs.azure.",), has_container=True)
_ABFS = replace(_AZURE, renames=True, vacuum_is_logged=True)
_WASB = replace(_AZURE, has_directories=False, vacuum_is_logged=True)
_GCS = Scheme("gcs", "gcs", hadoop_keys=("fs.gs.", "google.cloud.auth."), has_directories=False, vacuum_is_logged=True)
_HADOOP = Scheme(hadoop_keys=("fs.", "dfs.", "hadoop."), renames=True)
_HDFS = replace(_HADOOP, backend="hdfs")
_FLAT = Scheme(has_directories=False)

SCHEMES: Mapping[str, Scheme] = {
    "file": Scheme("local", vacuum_is_logged=True),
    "memory": Scheme("memory"),
    "s3": _S3,
    "s3a": replace(_S3, same_as="s3"),
    "s3n": replace(_S3, same_as="s3"),
    "abfs": _ABFS,
    "abfss": replace(_ABFS, same_as="abfs"),
    "az": _AZURE,
    "wasb": _WASB,
    "wasbs": replace(_WASB, same_as="wasb"),
    "gs": _GCS,
    "gcs": replace(_GCS, same_as="gs"),
    "hdfs": replace(_HDFS, fsspec="hdfs", vacuum_is_logged=True),
    "viewfs": replace(_HDFS, fsspec="hdfs"),
    "ofs": _HDFS,
    # Only Hadoop's clients support these; tablelog has no store for them.
    "o3fs": _HADOOP,
    "adl": Scheme(vacuum_is_logged=True),
    "oss": _FLAT,
    "cosn": _FLAT,
    "obs": _FLAT,
}

_UNKNOWN = Scheme()


def about(scheme: str) -> Scheme:
    """The properties of a scheme (lower case); the defaults for an unknown one."""
    return SCHEMES.get(scheme, _UNKNOWN)


def served_by(backend: Backend) -> frozenset[str]:
    """The schemes that a backend supports for logs."""
    return frozenset(name for name, scheme in SCHEMES.items() if scheme.backend == backend)
