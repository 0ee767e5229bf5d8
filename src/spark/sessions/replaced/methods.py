"""The list of all replacements, by method; `python_internals.PATCHES` declares the methods.

Other formats and other sessions use PySpark's original methods.
"""

from typing import Any

from ....engine.jvm.registry import patching
from ....engine.jvm.registry.python_internals import PATCHES
from ....engine.read import explain
from ...sql import session_tables
from ..enabled_sessions import is_enabled
from .catalog import (
    create_database_method,
    create_table_method,
    drop_database_method,
    refresh_table_method,
    table_exists_method,
    truncate_table_method,
)
from .common import Method, Patch, explained_by_catalog, explained_by_writer
from .readers import batch_load, load_method, stream_load, stream_table_method, table_method
from .streams import start_method, to_table_method
from .writers import (
    create_method,
    directory_method,
    insert_into_method,
    merge_method,
    save_as_table_method,
    save_method,
    write_to_method,
)


def _sql_method(original: Method) -> Method:
    def sql(self: Any, sqlQuery: str, args: Any = None, **kwargs: Any) -> Any:
        if not is_enabled(self):
            return original(self, sqlQuery, args, **kwargs)
        from ...sql.run import run

        session_tables.install(self)  # a session that was cloned from an enabled one has its own catalogs
        return run(self, original, sqlQuery, args, kwargs)

    return sql


def _explain_method(original: Method) -> Method:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        original(self, *args, **kwargs)
        scans = explain.describe(self) if is_enabled(self.sparkSession) and not self.isStreaming else ""
        if scans:
            print(scans)

    return method


def replacements() -> dict[str, Patch]:
    save_as_table = explained_by_writer("df.write", "saveAsTable")
    by_name: dict[str, Patch] = {
        "DataFrame.explain": _explain_method,
        "DataFrameReader.load": load_method(batch_load),
        "DataFrameReader.table": table_method,
        "DataFrameWriter.save": save_method,
        "DataFrameWriter.saveAsTable": lambda original: save_as_table_method(save_as_table(original)),
        "DataFrameWriter.insertInto": insert_into_method,
        "DataStreamReader.load": load_method(stream_load),
        "DataStreamReader.table": stream_table_method,
        "DataStreamWriter.start": start_method,
        "DataStreamWriter.toTable": to_table_method,
        "MergeIntoWriter.merge": merge_method,
        "SparkSession.sql": _sql_method,
        "SparkSession.table": table_method,
        "Catalog.tableExists": table_exists_method,
    }
    by_name |= {
        f"DataFrameWriter.{name}": directory_method for name in ("csv", "json", "orc", "parquet", "text", "xml")
    }
    for name in ("append", "overwrite", "overwritePartitions"):
        by_name[f"DataFrameWriterV2.{name}"] = write_to_method(name)
    for name in ("create", "replace", "createOrReplace"):
        by_name[f"DataFrameWriterV2.{name}"] = create_method(name)
    by_name |= {"Catalog.createTable": create_table_method, "Catalog.refreshTable": refresh_table_method}
    (rest,) = (patch for patch in PATCHES if patch.attribute == "*")
    for name in patching.targets(rest):
        method = name.removeprefix("Catalog.")
        by_name[name] = _OF_CATALOG.get(method) or explained_by_catalog(method)
    return by_name


_OF_CATALOG: dict[str, Patch] = {
    "createDatabase": create_database_method,
    "dropDatabase": drop_database_method,
    "truncateTable": truncate_table_method,
}
"""Methods of the catalog that some versions of PySpark don't have."""
