"""Creates catalog entries of Delta tables on a server that has no Delta source.

CREATE TABLE ... USING delta needs a source of that name. The client registers a Python data source for it, in its own
session only. It can do nothing: tablelog reads and writes Delta tables by their paths.
"""

from inspect import unwrap
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException

from ...errors import UnsupportedEnvironmentError
from . import data_sources, server_errors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MESSAGE = (
    'on Spark Connect tablelog reads and writes Delta tables by their paths: use spark.read.format("delta").load(path)'
)


def create(spark: "SparkSession", name: str, location: str | None) -> None:
    """Add an entry without columns, unless there is one of this name. `name` is quoted for SQL.

    `location`: the directory of an external table; None for a managed one, whose directory the catalog chooses. Raises
    UnsupportedEnvironmentError if the server has a Delta source of its own, which Spark doesn't let a client replace.
    """
    try:
        data_sources.register(spark, _source())
    except PySparkException as error:
        if "DATA_SOURCE_ALREADY_EXISTS" not in server_errors.text_of(error):
            raise
        raise UnsupportedEnvironmentError(
            f"The server has a Delta source of its own, so tablelog can't add the table {name} to its catalog: create "
            "the table by that source, or write to a path"
        ) from None
    at, arguments = ("", {}) if location is None else (" LOCATION :location", {"location": location})
    sql = unwrap(type(spark).sql)  # PySpark's own method: the one of `enable` refuses statements on Delta tables
    sql(spark, f"CREATE TABLE IF NOT EXISTS {name} USING delta{at}", args=arguments)


def _source() -> Any:
    """The data source, defined inside a function so that it is pickled by value: the server may lack tablelog."""
    from pyspark.sql.datasource import DataSource
    from pyspark.sql.types import StructType

    message = _MESSAGE

    class DeltaEntry(DataSource):
        @classmethod
        def name(cls) -> str:
            return "delta"

        def schema(self) -> StructType:
            return StructType([])

        def reader(self, schema: StructType) -> Any:
            raise NotImplementedError(message)

        def writer(self, schema: StructType, overwrite: bool) -> Any:
            raise NotImplementedError(message)

    return DeltaEntry
