"""Passes the session's configuration to tables' handles, and caches one handle per table and configuration."""

from collections import OrderedDict
from collections.abc import Mapping
from threading import Lock

from pyspark.sql import SparkSession

from ..core.deltalog import DeltaLog
from ..engine.connect.client import check_session
from ..engine.jvm import builders
from ..engine.jvm.connection.sessions import is_classic
from ..engine.storage import hadoop_log, hadoop_settings
from ..log_once import log_once
from ..logstore import registry
from ..settings.declarations import PER_OPERATION, PREFIXES
from ..settings.spark_own import HADOOP
from ..settings.unsupported import without_effect

_PREFIXES = (
    *PREFIXES,
    *(
        f"{of_session}{kind}."
        for of_session in ("", HADOOP.prefix)
        for kind in ("fs", "dfs", "hadoop", "google.cloud.auth")
    ),
)
_KEPT = 256
_KEPT_OF_A_PATH = 8
"""The maximum number of handles per path: each configuration has its own, also if credentials change."""

_handles: OrderedDict[tuple[str, frozenset[tuple[str, str]]], DeltaLog] = OrderedDict()
_handles_lock = Lock()


def session_conf(spark: SparkSession, path: str = "") -> dict[str, str]:
    """The session's configuration; keys of Delta that tablelog ignores are logged once.

    On a classic session it includes the Hadoop configuration for the storage of `path`; keys of Spark's configuration
    take precedence.
    """
    if is_classic(spark):
        hadoop_log.serve(spark)
        conf = {**hadoop_settings.of_hadoop(spark, path), **builders.session_conf(spark)}
    else:
        check_session(spark)
        conf = dict(spark.conf.getAll)
    for key, why in without_effect(conf):
        reason = f": {why}" if why else ""
        log_once(f"conf {key}", "%s is set, but has no effect in this version of tablelog%s.", key, reason)
    return conf


def _relevant(path: str, conf: Mapping[str, str]) -> dict[str, str]:
    """The keys on which a table's handle depends: those of Delta, of Hadoop's file systems, and of the path's store.

    Settings of single operations aren't among them.
    """
    prefixes = (*_PREFIXES, *registry.configuration_prefixes(path, conf))
    return {key: value for key, value in conf.items() if key.startswith(prefixes) and key not in PER_OPERATION}


def delta_log(path: str, conf: Mapping[str, str], extra: Mapping[str, str] | None = None) -> DeltaLog:
    """The handle of the table at `path`, shared by all threads with the same configuration."""
    settings = {**_relevant(path, conf), **(extra or {})}
    key = path, frozenset(settings.items())
    with _handles_lock:
        log = _handles.get(key)
        if log is not None:
            _handles.move_to_end(key)
            return log
    log = DeltaLog.for_path(path, conf=settings)
    with _handles_lock:
        log = _handles.setdefault(key, log)
        of_path = [key for key in _handles if key[0] == path]
        for old_key in of_path[:-_KEPT_OF_A_PATH]:
            del _handles[old_key]
        while len(_handles) > _KEPT:
            _handles.popitem(last=False)
    return log


def forget(path: str | None = None) -> None:
    """Drop the cached handles of one path, spelled as before, or of all paths."""
    with _handles_lock:
        for key in [key for key in _handles if path is None or key[0] == path]:
            del _handles[key]
