"""Files that a log names and that lie elsewhere: none is asked for unless the session's setting allows it."""

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from support.foreign_table import add, data_file, field, foreign_table
from support.spark_tables import Table
from tablelog.errors import InvalidArgumentError, UntrustedTableError
from tablelog.settings.declarations import EXTERNAL_PATHS
from tablelog.spark import DeltaTable

FIELDS = [field("id", "long")]


@pytest.fixture
def server() -> Iterator[tuple[str, list[str]]]:
    """The address of a server of HTTP, and the paths that it was asked for."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_error(404)

        def do_HEAD(self) -> None:
            self.do_GET()

        def log_message(self, *_: Any) -> None:
            pass

    own = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=own.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{own.server_port}", asked
    own.shutdown()
    thread.join()
    own.server_close()


def merge(table: Table) -> Any:
    source = table.spark.sql("select 1L id")
    return table.delta.alias("t").merge(source.alias("s"), "t.id = s.id").whenMatchedDelete().execute()


COMMANDS: dict[str, Callable[[Table], Any]] = {
    "DELETE": lambda table: table.delta.delete("id = 1"),
    "UPDATE": lambda table: table.delta.update("id = 1", {"id": "id + 1"}),
    "MERGE": merge,
    "OPTIMIZE": lambda table: table.delta.optimize().executeCompaction(),
    "Z-order": lambda table: table.delta.optimize().executeZOrderBy("id"),
    "a clone": lambda table: table.delta.clone(f"{table.path}-clone", isShallow=True),
    "a constraint": lambda table: table.delta.addConstraint("c", "id > 0"),
}


def refused(run: Callable[[], Any], path: str = "") -> None:
    with pytest.raises(UntrustedTableError) as caught:
        run()
    assert EXTERNAL_PATHS.key in str(caught.value)
    assert path in str(caught.value)


def test_no_route_asks_another_store(
    spark: SparkSession, tmp_path: Path, route: str, server: tuple[str, list[str]]
) -> None:
    address, asked = server
    for number, path in enumerate([f"{address}/secret.parquet", "hdfs://127.0.0.1:1/x.parquet", "s3a://other/x"]):
        table = foreign_table(spark, tmp_path / f"t{number}", FIELDS, add(path, 1000))
        refused(lambda table=table: table.read().collect(), path)
        vector = {"storageType": "p", "pathOrInlineDv": path, "offset": 1, "sizeInBytes": 40, "cardinality": 1}
        root = tmp_path / f"v{number}"
        file = data_file(root / "a.parquet", {"id": [1, 2]})
        file["add"] |= {"deletionVector": vector, "stats": json.dumps({"numRecords": 2})}
        table = foreign_table(spark, root, FIELDS, file, features=["deletionVectors"])
        refused(lambda table=table: table.read().collect(), path)
    assert asked == []


def test_no_command_asks_another_store(spark: SparkSession, tmp_path: Path, server: tuple[str, list[str]]) -> None:
    address, asked = server
    files = [add(f"{address}/{name}.parquet", 1000) for name in "ab"]
    table = foreign_table(spark, tmp_path / "table", FIELDS, *files, features=["checkConstraints"])
    for what, command in COMMANDS.items():
        refused(lambda command=command: command(table), address)
        assert (table.version, asked) == (0, []), what
    table.delta.delete()  # reads none, and takes them out of the table
    with pytest.raises(UntrustedTableError):
        table.delta.restoreToVersion(0)
    assert (table.version, asked) == (1, [])


def test_change_files_elsewhere(spark: SparkSession, tmp_path: Path, server: tuple[str, list[str]]) -> None:
    address, asked = server
    changes = {"path": f"{address}/c.parquet", "partitionValues": {}, "size": 1000, "dataChange": False}
    configuration = {"delta.enableChangeDataFeed": "true"}
    table = foreign_table(
        spark, tmp_path / "t", FIELDS, {"cdc": changes}, configuration=configuration, features=["changeDataFeed"]
    )
    refused(table.read(readChangeFeed="true", startingVersion=0).collect, address)
    assert asked == []


@pytest.mark.one_case
def test_files_of_the_same_store(spark: SparkSession, tmp_path: Path, route: str, conf: Any) -> None:
    source = Table(spark, tmp_path / "source")
    source.write(spark.range(3).repartition(1))
    source.delta.clone(str(tmp_path / "clone"), isShallow=True)
    clone = Table(spark, tmp_path / "clone")
    data_file(tmp_path / "outside.parquet", {"id": [7]})
    size = (tmp_path / "outside.parquet").stat().st_size
    above = foreign_table(spark, tmp_path / "above", FIELDS, add("%2e%2e/outside.parquet", size))
    linked = foreign_table(spark, tmp_path / "linked", FIELDS, add("a.parquet", size))
    (linked.root / "a.parquet").symlink_to(tmp_path / "outside.parquet")
    assert [one.rows() for one in (clone, above, linked)] == [[0, 1, 2], [7], [7]]
    conf(EXTERNAL_PATHS.key, "Refuse")
    for one in (clone, above, linked):
        refused(lambda one=one: one.read().collect())
    assert source.rows() == [0, 1, 2]
    refused(lambda: source.delta.clone(str(tmp_path / "again"), isShallow=True))
    assert not (tmp_path / "again" / "_delta_log").exists() or not list((tmp_path / "again" / "_delta_log").iterdir())
    conf(EXTERNAL_PATHS.key, "some")
    with pytest.raises(InvalidArgumentError, match="allow, sameStore or refuse"):
        source.read().collect()
    conf(EXTERNAL_PATHS.key, "allow")
    assert clone.rows() == [0, 1, 2]


def test_vacuum_removes_nothing_outside(spark: SparkSession, tmp_path: Path, conf: Any) -> None:
    outside = tmp_path / "outside.parquet"
    file = data_file(outside, {"id": [7]})["add"]
    own = data_file(tmp_path / "table" / "own.parquet", {"id": [1]})
    gone = {"deletionTimestamp": 1_700_000_000_000, "dataChange": True, "size": file["size"]}
    names = [str(outside), outside.as_uri(), "../outside.parquet", "%2E%2E/outside.parquet", "x/../../outside.parquet"]
    removed = [{"remove": {"path": name, **gone}} for name in names]
    table = foreign_table(spark, tmp_path / "table", FIELDS, own, *removed)
    (table.root / "link").symlink_to(tmp_path)
    conf("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    table.delta.vacuum(0)
    assert outside.exists()
    conf("spark.databricks.delta.vacuum.lite.enabled", "true")
    table.delta.vacuum(0)
    assert outside.exists()
    assert DeltaTable.isDeltaTable(spark, table.path)
