"""Which sessions are enabled: a key in the configuration of a session says so, and its clones have that key too."""

from pyspark.sql import SparkSession

from ...engine.jvm.connection import settings
from ...engine.jvm.connection.sessions import is_classic
from ...settings.declarations import ENABLED
from ..boundary import pyspark_errors
from ..connect import sessions as connect


@pyspark_errors
def is_enabled(spark: SparkSession) -> bool:
    """Whether the session, or the session that it was cloned from, is enabled."""
    if not is_classic(spark):
        return connect.is_enabled(spark)
    return settings.of(spark, ENABLED)
