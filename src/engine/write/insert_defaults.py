"""Default values in an INSERT: one that can't be evaluated is an error only where the statement uses it.

In its place Spark gets a name that nothing has. So Spark never parses a text that the session doesn't trust, and its
error for a statement that uses the default value contains the name.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import uuid4

from ...core.protocol.schema import DEFAULT_KEY, StructField, StructType
from ...errors import TablelogError
from ..sql import fill

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class InsertDefaults:
    """The default values of the columns that one statement shows to Spark's analyzer."""

    def __init__(self, spark: "SparkSession") -> None:
        self._spark = spark
        self._errors: dict[str, TablelogError] = {}

    def shown(self, field: StructField, schema: StructType, table: str) -> StructField:
        """The column as Spark may see it."""
        try:
            fill.check_default(self._spark, schema, field, table)
        except TablelogError as error:
            name = f"refused_{uuid4().hex}"
            self._errors[name] = error
            return replace(field, metadata={**field.metadata, DEFAULT_KEY: name})
        return field

    @contextmanager
    def used(self) -> Iterator[None]:
        """Raise the error of a refused default value for Spark's error about the name in its place."""
        from pyspark.errors import AnalysisException

        try:
            yield
        except AnalysisException as error:
            text = str(error)
            for name, refusal in self._errors.items():
                if name in text:
                    raise refusal from None
            raise
