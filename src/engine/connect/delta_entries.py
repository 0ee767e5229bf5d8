"""Adds and drops catalog entries of Delta tables on a server that has no Delta source.

CREATE TABLE ... USING delta and DROP TABLE need a source of that name. So they run in a copy of the client's session
with a Python data source for it, which can do nothing. The client's own session doesn't get the source: there, Spark
would take a Delta table for one without columns, and saveAsTable in another format could replace it.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException

from ...errors import UnsupportedEnvironmentError
from . import client, data_sources, server_errors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MESSAGE = (
    'on Spark Connect tablelog reads and writes Delta tables by their paths: use spark.read.format("delta").load(path)'
)


def create(spark: "SparkSession", name: str, location: str | None) -> None:
    """Add an entry without columns, unless the catalog has a table or view of this name.

    Args:
        spark: The client's session.
        name: The name, quoted for SQL.
        location: The directory of an external table. None: of a managed table, whose directory the catalog chooses.

    Raises:
        UnsupportedEnvironmentError: The server has a Delta source of its own, which Spark doesn't let a client replace.
        pyspark.errors.AnalysisException: The server refuses the name or the directory.
    """
    at, arguments = ("", {}) if location is None else (" LOCATION :location", {"location": location})
    with _with_source(spark, f"can't add the table {name} to its catalog: create the table by that source") as session:
        client.sql(session, f"CREATE TABLE IF NOT EXISTS {name} USING delta{at}", arguments)


def drop(spark: "SparkSession", statement: str, arguments: Any, formatted: Mapping[str, Any]) -> None:
    """Run a statement DROP TABLE for a Delta table of the catalog, with the `args` and the keywords of `spark.sql`."""
    with _with_source(spark, "can't drop the table: drop it by that source") as session:
        client.sql(session, statement, arguments, formatted)


@contextmanager
def _with_source(spark: "SparkSession", refusal: str) -> "Iterator[SparkSession]":
    """A copy of the session, with its current schema and settings, that has the source."""
    session = spark.cloneSession()  # type: ignore[attr-defined]
    try:
        try:
            data_sources.register(session, _source())
        except PySparkException as error:
            if "DATA_SOURCE_ALREADY_EXISTS" not in server_errors.text_of(error):
                raise
            raise UnsupportedEnvironmentError(
                f"The server has a Delta source of its own, so tablelog {refusal}, or use the path of the table"
            ) from None
        yield session
    finally:
        # Not session.stop(), which also stops the server of a session with the address "local".
        session.client.release_session()
        session.client.close()


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
