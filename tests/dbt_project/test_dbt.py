"""dbt builds a project on Delta tables in a session that tablelog enables, and changes its tables in a second run."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from support.java import java_options
from support.sessions import session_builder
from tablelog.spark import DeltaTable, enable

pytestmark = pytest.mark.timeout(1800)
HERE = Path(__file__).parent

CHANGED_BOOKS = """\
book_id,title,price,changed_at
1,Maps of the moon,12.5,2024-06-01 08:00:00
2,A short war,20.0,2024-05-01 08:00:00
4,New here,7.0,2024-06-01 08:00:00
"""
MORE_LOANS = """\
5,2,dee,2024-05-03,50
6,4,ann,2024-05-04,60
"""


def _profile(root: Path, schema: str) -> dict[str, Any]:
    """A target of dbt: what a user writes, and settings that keep the files of the test in its own directory."""
    settings = {
        "spark.master": "local[2]",
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(root / "warehouse"),
        "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={root / 'metastore'};create=true",
        "spark.driver.extraJavaOptions": f"{java_options()} -Dderby.stream.error.file={root / 'derby.log'}",
    }
    return {
        "type": "spark",
        "method": "session",
        "host": "NA",
        "schema": schema,
        "threads": 2,
        "server_side_parameters": settings,
    }


def _dbt(root: Path, *program: str) -> str:
    """Run a program on the project by `python -m tablelog.spark`; its output."""
    variables = json.dumps({"external": str(root / "external"), "with_shelf": "second_run.py" in program[0]})
    done = subprocess.run(
        [sys.executable, "-m", "tablelog.spark", *program, "--vars", variables, "--no-partial-parse"],
        cwd=root / "library",
        env={**os.environ, "DBT_PROFILES_DIR": str(root), "DO_NOT_TRACK": "1", "DBT_VERSION_CHECK": "false"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of the project, after a first run, a change of its seeds, and a second run."""
    root = tmp_path_factory.mktemp("dbt")
    shutil.copytree(HERE / "library", root / "library")
    targets = {"dev": _profile(root, "library"), "copy": _profile(root, "copies")}
    (root / "profiles.yml").write_text(json.dumps({"library": {"target": "dev", "outputs": targets}}))
    _dbt(root, "dbt", "build", "--event-time-start", "2024-05-01", "--event-time-end", "2024-05-04")
    shutil.copytree(root / "library" / "target", root / "first_run")
    seeds = root / "library" / "seeds"
    (seeds / "books.csv").write_text(CHANGED_BOOKS)
    with (seeds / "loans.csv").open("a") as loans:
        loans.write(MORE_LOANS)
    _dbt(root, str(HERE / "second_run.py"), str(root / "first_run"))
    return root


@pytest.fixture(scope="module")
def spark(built: Path) -> Iterator[SparkSession]:
    session = session_builder("local[2]", {"spark.sql.warehouse.dir": str(built / "unused")}).getOrCreate()
    yield enable(session)
    session.stop()


class Built:
    """The tables of the project, read by their paths."""

    def __init__(self, spark: SparkSession, root: Path) -> None:
        self._spark = spark
        self.root = root

    def path(self, name: str) -> str:
        return str(self.root / "warehouse" / "library.db" / name)

    def rows(self, name: str, columns: str, version: int | None = None) -> list[tuple[Any, ...]]:
        """The columns of the table's rows, in order."""
        reader = self._spark.read.format("delta")
        if version is not None:
            reader = reader.option("versionAsOf", version)
        path = name if name.startswith("/") else self.path(name)
        return sorted(map(tuple, reader.load(path).selectExpr(*columns.split()).collect()))

    def operations(self, name: str) -> list[str]:
        """The operations of the table's history, the oldest first."""
        history = DeltaTable.forPath(self._spark, self.path(name)).history().select("operation").collect()
        return [row[0] for row in reversed(history)]


@pytest.fixture(scope="module")
def tables(spark: SparkSession, built: Path) -> Built:
    return Built(spark, built)


def test_a_table_is_replaced_and_keeps_its_history(tables: Built, spark: SparkSession) -> None:
    assert tables.rows("prices", "book_id price") == [(1, 12.5), (2, 20.0), (4, 7.0)]
    created = "CREATE OR REPLACE TABLE AS SELECT"
    operations = tables.operations("prices")
    assert [one for one in operations if one == created] == [created, created]
    assert tables.rows("prices", "book_id", version=0) == [(1,), (2,), (3,)]
    detail = DeltaTable.forPath(spark, tables.path("prices")).detail().first()
    assert detail is not None
    assert detail["description"] == "The price of each book; 'now'."
    assert {**detail["properties"]} == {
        "delta.enableChangeDataFeed": "true",
        "owner_team": "books",
        "delta.constraints.price_is_positive": "price > 0",
    }
    schema = spark.read.format("delta").load(tables.path("prices")).schema
    comments = {field.name: field.metadata.get("comment") for field in schema}
    assert comments == {"book_id": "The book's number", "title": "", "price": "In euro"}


def test_a_table_with_a_location_and_partitions(tables: Built, spark: SparkSession) -> None:
    path = str(tables.root / "external" / "pages_by_member")
    assert tables.rows(path, "member pages") == [("ann", 100), ("bob", 20), ("cy", 40), ("dee", 50)]
    detail = DeltaTable.forPath(spark, path).detail().first()
    assert detail is not None
    assert detail["partitionColumns"] == ["member"]


def test_append(tables: Built) -> None:
    assert tables.rows("loans_appended", "loan_id") == [(1,), (2,), (3,), (4,), (5,), (6,)]
    assert tables.operations("loans_appended") == ["CREATE OR REPLACE TABLE AS SELECT", "WRITE"]


def test_merge(tables: Built) -> None:
    assert tables.rows("loans_merged", "loan_id member") == [
        (1, "ann"), (2, "bob"), (3, "ann"), (4, "cy"), (5, "dee"), (6, "ann"),
    ]  # fmt: skip
    assert tables.operations("loans_merged") == ["CREATE OR REPLACE TABLE AS SELECT", "MERGE"]


def test_merge_of_some_columns_into_a_table_that_gains_one(tables: Built) -> None:
    day = "date_format(changed_at,'MM')"
    # Only the price of book 1 was updated; book 3, which the seed lost, stays.
    assert tables.rows("books_merged", f"book_id price {day}") == [
        (1, 12.5, "05"), (2, 20.0, "05"), (3, 5.25, "05"), (4, 7.0, "06"),
    ]  # fmt: skip
    assert tables.rows("books_merged", "book_id coalesce(shelf,'')") == [(1, ""), (2, ""), (3, ""), (4, "shelf 0")]


def test_insert_overwrite(tables: Built) -> None:
    assert tables.rows("loans_by_day", "day member pages") == [
        (date(2024, 5, 1), "ann", 10),
        (date(2024, 5, 1), "bob", 20),
        (date(2024, 5, 2), "ann", 30),
        (date(2024, 5, 3), "cy", 40),
        (date(2024, 5, 3), "dee", 50),
        (date(2024, 5, 4), "ann", 60),
    ]
    assert tables.rows("loans_replaced", "loan_id") == [(5,), (6,)]
    assert tables.rows("loans_in_batches", "loan_id pages") == [(1, 10), (2, 20), (3, 30), (4, 40), (5, 50), (6, 60)]


def test_snapshots(tables: Built) -> None:
    by_time = [(1, 10.5, True), (1, 12.5, False), (2, 20.0, False), (3, 5.25, False), (4, 7.0, False)]
    by_values = [(1, 10.5, True), (1, 12.5, False), (2, 20.0, False), (3, 5.25, True), (4, 7.0, False)]
    columns = "book_id price coalesce(dbt_valid_to>'2020-01-01',false)"
    for name, expected in (("books_by_time", by_time), ("books_by_values", by_values)):
        found = sorted((book, price, bool(ended)) for book, price, ended in tables.rows(name, columns))
        assert found == expected, name


def test_every_model_test_and_unit_test_passed(built: Path) -> None:
    results = json.loads((built / "first_run" / "run_results.json").read_text())["results"]
    assert len(results) > 15
    assert {one["status"] for one in results} <= {"success", "pass"}


def test_a_clone_shares_the_files(tables: Built) -> None:
    copies = tables.root / "warehouse" / "copies.db"
    assert tables.rows(str(copies / "loans_merged"), "loan_id") == [(1,), (2,), (3,), (4,), (5,), (6,)]
    assert not list((copies / "loans_merged").glob("*.parquet"))
