"""The schemes of paths, and what holds of the storage behind each: one table for the log, data files and Hadoop."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

Backend: TypeAlias = Literal["local", "memory", "s3", "azure", "gcs", "hdfs"]


@dataclass(frozen=True, slots=True)
class Scheme:
    """What holds for every path of one scheme."""

    backend: Backend | None = None
    """The folder of `tablelog.logstore` whose store serves the log; None: a store of the user's own, if any."""
    fsspec: Backend | None = None
    """Whose fsspec file system reads data files that Spark's JVM doesn't reach; None: what fsspec has itself."""
    same_as: str | None = None
    """Another scheme that names the same storage."""
    has_container: bool = False
    """Whether what stands before the @ of the authority is a container, and no user information."""
    hadoop_keys: tuple[str, ...] = ()
    """What Hadoop's keys for this storage begin with."""
    renames: bool = False
    """Whether Hadoop's client renames a file without a copy, so that a write may stage its files."""
    has_directories: bool = True
    """Whether Hadoop's client has directories there that are more than parts of names."""
    vacuum_is_logged: bool = False
    """Whether VACUUM is recorded in the log where the session says nothing, as Delta does."""


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
    # Without a store of ours: Hadoop's clients alone know these.
    "o3fs": _HADOOP,
    "adl": Scheme(vacuum_is_logged=True),
    "oss": _FLAT,
    "cosn": _FLAT,
    "obs": _FLAT,
}

_UNKNOWN = Scheme()


def about(scheme: str) -> Scheme:
    """What is known of a scheme, in lower case; the defaults for one that isn't in the table."""
    return SCHEMES.get(scheme, _UNKNOWN)


def served_by(backend: Backend) -> frozenset[str]:
    """The schemes whose logs a backend serves."""
    return frozenset(name for name, scheme in SCHEMES.items() if scheme.backend == backend)
