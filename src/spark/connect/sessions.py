"""`enable` and `disable` of Spark Connect sessions."""

import functools
from threading import Lock

from pyspark.sql import SparkSession

from ...engine.connect.client import Applied, check_session
from ...errors import UnsupportedEnvironmentError
from ..boundary import replacing
from .replaced_methods import replacements

_VERSIONS = ("4.1.", "4.2.", "4.3.")
_lock = Lock()
_enabled: set[str] = set()
_applied: Applied | None = None


def _id_of(spark: SparkSession) -> str:
    return str(spark.session_id)  # type: ignore[attr-defined]


def is_enabled(spark: SparkSession) -> bool:
    """Whether this client has enabled the session. It makes no request."""
    return _id_of(spark) in _enabled


def enable(spark: SparkSession) -> None:
    """Replace the methods of PySpark's Connect client, and enable the session.

    Raises:
        UnsupportedEnvironmentError: The server's version of Spark isn't supported.
    """
    global _applied  # noqa: PLW0603
    check_session(spark)
    version = spark.version
    if not version.startswith(_VERSIONS):
        raise UnsupportedEnvironmentError(
            f"the Spark Connect server has Spark {version}: tablelog supports "
            f"{', '.join(prefix.rstrip('.') for prefix in _VERSIONS)}"
        )
    with _lock:
        if _applied is None:
            _applied = Applied(
                {
                    name: lambda original, patch=patch: functools.wraps(original)(replacing(patch(original)))  # type: ignore[misc]
                    for name, patch in replacements(is_enabled).items()
                }
            )
        _enabled.add(_id_of(spark))


def disable(spark: SparkSession) -> None:
    """Undo `enable`; the methods are restored when no enabled session is left."""
    global _applied  # noqa: PLW0603
    with _lock:
        _enabled.discard(_id_of(spark))
        if not _enabled and _applied is not None:
            _applied.restore()
            _applied = None
