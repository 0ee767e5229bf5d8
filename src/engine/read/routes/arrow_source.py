"""The Python data source of the Arrow route, which reads the files in Spark's Python workers.

Its class is defined inside a function, so that it is pickled by value: executors need pyarrow and the storage's fsspec
package, but not tablelog.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ...jvm.connection.serialization import pickled
from .arrow_files import Systems, file_reader

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSource


NAME = "tablelog_arrow"
_KEY = os.urandom(16)  # prevents guessing a configuration from its digest


def mark_of(configuration: object) -> str:
    """A digest that distinguishes data sources with different configurations."""
    return "_" + hashlib.blake2b(pickled(configuration), digest_size=6, key=_KEY).hexdigest()


def data_source(systems: Systems, *, takes_filters: bool) -> "type[DataSource]":
    """The data source class. `read` uses only names defined inside: it runs where tablelog may not be installed."""
    from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

    read_files = file_reader()
    name = NAME + ("_skipping" if takes_filters else "") + (mark_of(systems) if systems else "")

    class TablelogReader(DataSourceReader):
        def __init__(self, options: Mapping[str, str], arrow: Any, table_schema: Any) -> None:
            self._options = dict(options)
            self._arrow = arrow
            self._table_schema = table_schema
            self._predicate: Any = None

        def partitions(self) -> list[Any]:
            from ....core.skipping.predicates import TRUE
            from .arrow_plan import grouped, plan, unpacked

            files = plan(
                json.loads(self._options["spec"]),
                unpacked(self._options["files"]),
                TRUE if self._predicate is None else self._predicate,
            )
            self._options = {}
            self._table_schema = None
            return [InputPartition(group) for group in grouped(files)] or [InputPartition([])]

        def read(self, partition: Any) -> Iterator[Any]:
            yield from read_files(systems, self._arrow, partition.value)

    class SkippingReader(TablelogReader):
        def pushFilters(self, filters: list[Any]) -> Any:
            from .arrow_plan import predicate_of

            self._predicate = predicate_of(filters, self._table_schema)
            return filters  # all are returned, so that Spark applies them to the rows

    reader = SkippingReader if takes_filters else TablelogReader

    class TablelogSource(DataSource):
        @classmethod
        def name(cls) -> str:
            return name

        def reader(self, schema: Any) -> Any:
            from ....core.protocol.schema import parse_schema
            from .arrow_plan import marked

            known = parse_schema(schema.json())
            return reader(self.options, marked(json.loads(self.options["spec"]), known), known)

    return TablelogSource
