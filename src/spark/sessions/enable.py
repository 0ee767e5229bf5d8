"""`enable` and `disable`: replace methods of PySpark so that they support Delta tables (`replaced`).

Methods are replaced once per process, and restored when the last session is disabled. A session is enabled by a key in
its own configuration, so that sessions cloned from it (foreachBatch) are enabled too, and new sessions are not.
"""

import functools
from threading import Lock

from pyspark.sql import SparkSession

from ...engine.jvm import builders, spark_log, worker_python
from ...engine.jvm.connection.environment import check_environment
from ...engine.jvm.connection.gateway import Gateway
from ...engine.jvm.connection.sessions import is_classic, session_id
from ...engine.jvm.registry import patching
from ...engine.read import read_errors
from ...errors import UnsupportedEnvironmentError
from ...settings.declarations import ENABLED
from ...settings.spark_own import CATALOG, EXTENSIONS
from ..boundary import pyspark_errors, replacing
from ..connect import sessions as connect
from ..exceptions import as_spark
from ..sql import session_tables
from .replaced.common import Method, Patch
from .replaced.methods import replacements

_DELTA_SPARK = ("io.delta.sql.DeltaSparkSessionExtension", "org.apache.spark.sql.delta.catalog.DeltaCatalog")

_SPARKS_OWN = "builtin"
"""The value of `CATALOG` for Spark's own session catalog."""

_lock = Lock()
_enabled_sessions: set[str] = set()
_applied: patching.Applied | None = None


@pyspark_errors
def enable(spark: SparkSession) -> SparkSession:
    """Let tablelog handle `format("delta")` in this session.

    delta-spark's settings of the extension and the catalog may stay where its jar isn't on the class path.

    Args:
        spark: a classic session, or one of Spark Connect; enabling it twice has no effect.

    Returns:
        The session.

    Raises:
        UnsupportedEnvironmentError: delta-spark is active in the session, or the Spark version isn't supported.
    """
    if not is_classic(spark):
        connect.enable(spark)
        return spark
    check_environment(spark)
    conf = builders.session_conf(spark)
    configured = [name for name in _DELTA_SPARK if any(name in conf.get(key, "") for key in _extension_keys(conf))]
    active = [name for name in configured if Gateway.of(spark).has_class(name)]
    if active:
        raise UnsupportedEnvironmentError(
            f"delta-spark is active in this session ({', '.join(active)}) and also handles "
            'format("delta"). Use only one of them: to enable tablelog, start the session without the extension and '
            "the catalog of delta-spark."
        )
    if conf.get(CATALOG.key) in configured:
        # Without the jar every statement would fail, because Spark can't load the catalog.
        spark.conf.set(CATALOG.key, _SPARKS_OWN)
    with _lock:
        _install()
        spark_log.hide_refused_rows(spark)
        _enabled_sessions.add(session_id(spark))
        spark.conf.set(ENABLED.key, "true")
    session_tables.install(spark)
    worker_python.include_wheel(spark)
    return spark


@pyspark_errors
def disable(spark: SparkSession) -> None:
    """Undo `enable` for this session; PySpark's methods are restored when no enabled session is left."""
    if not is_classic(spark):
        connect.disable(spark)
        return
    with _lock:
        spark.conf.unset(ENABLED.key)
        _enabled_sessions.discard(session_id(spark))
        if not _enabled_sessions:
            _uninstall()
            spark_log.show_refused_rows(spark)
    session_tables.remove(spark)


def _extension_keys(conf: dict[str, str]) -> list[str]:
    return [key for key in conf if key in (EXTENSIONS.key, CATALOG.key)]


def _install() -> None:
    global _applied  # noqa: PLW0603
    if _applied is None:
        _applied = patching.apply({name: _maker(patch) for name, patch in replacements().items()})
        read_errors.TRANSLATION.install(as_spark)


def _uninstall() -> None:
    global _applied  # noqa: PLW0603
    if _applied is not None:
        patching.remove(_applied)
        _applied = None
        read_errors.TRANSLATION.uninstall()


def _maker(patch: Patch) -> Patch:
    def make(original: Method) -> Method:
        return functools.wraps(original)(replacing(patch(original)))

    return make
