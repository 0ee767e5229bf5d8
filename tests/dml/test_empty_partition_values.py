"""An empty text in a partition column is a null in the table, and the table's rules see that null, in every command."""

from typing import Any

import pytest

from support.spark_tables import Table
from tablelog.errors import ConstraintViolationError
from tablelog.settings.declarations import WRITE_ROUTE
from tablelog.spark import DeltaTable

ROUTES = ["driver", "spark", "arrow"]
MANY = 20_000  # rows that the driver doesn't write by itself


def made(table: Table, *, generated: bool = False) -> None:
    """Partitioned by p, which must not be null; or by q, which is generated from p, and can't be null either."""
    builder = DeltaTable.create(table.spark).location(table.path).addColumn("id", "bigint").addColumn("p", "string")
    if generated:
        builder = builder.addColumn("q", "string", generatedAlwaysAs="trim(p)").partitionedBy("q")
        column = "q"
    else:
        builder, column = builder.partitionedBy("p"), "p"
    builder.property("delta.constraints.known", f"{column} is not null").execute()
    table.write(table.spark.sql("select 1L id, 'a' p"))


def merged(table: Table, rows: Any, **clauses: Any) -> None:
    target = table.delta.alias("t").merge(rows.alias("s"), "t.id = s.id")
    if "update" in clauses:
        target = target.whenMatchedUpdate(set={"p": "s.p"})
    else:
        target = target.whenNotMatchedInsert(values={"id": "s.id", "p": "s.p"})
    target.execute()


COMMANDS = {
    "append": lambda t, rows: t.write(rows),
    "overwrite": lambda t, rows: t.write(rows, "overwrite"),
    "dynamic overwrite": lambda t, rows: t.write(rows, "overwrite", partitionOverwriteMode="dynamic"),
    "replaceWhere": lambda t, rows: t.write(rows, "overwrite", replaceWhere="id > 0"),
    "update": lambda t, rows: t.delta.update("id = 1", {"p": "''"}),
    "merge, update": lambda t, rows: merged(t, rows, update=True),
    "merge, insert": lambda t, rows: merged(t, rows.selectExpr("id + 1 id", "p")),
}


@pytest.mark.parametrize("generated", [False, True], ids=["given", "generated"])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_rule_sees_the_null_that_is_stored(table: Table, command: str, generated: bool) -> None:
    made(table, generated=generated)
    before = table.version
    value = "' '" if generated else "''"
    rows = table.spark.sql(f"select 1L id, {value} p")
    with pytest.raises(ConstraintViolationError, match="known"):
        COMMANDS[command](table, rows)
    assert (table.version, table.rows("id", "p")) == (before, [(1, "a")])


@pytest.mark.parametrize("route", ROUTES)
def test_by_every_way_to_write(table: Table, conf: Any, route: str) -> None:
    made(table)
    if route == "arrow":
        conf(WRITE_ROUTE.key, "arrow")
    rows = table.spark.range(1 if route == "driver" else MANY).selectExpr("id", "if(id = 0, '', 'b') p")
    with pytest.raises(ConstraintViolationError, match="known"):
        table.write(rows)
    assert table.rows("id") == [1]


def test_what_is_generated_from_it_is_generated_from_the_null(table: Table) -> None:
    builder = DeltaTable.create(table.spark).location(table.path).addColumn("id", "int").addColumn("p", "string")
    builder.addColumn("n", "string", generatedAlwaysAs="coalesce(p, 'none')").partitionedBy("p").execute()
    table.write(table.spark.sql("select 1 id, '' p"))
    assert [tuple(row) for row in table.read().select("id", "p", "n").collect()] == [(1, None, "none")]
    with pytest.raises(ConstraintViolationError, match="generation expression of the column n"):
        table.write(table.spark.sql("select 2 id, '' p, '' n"))


@pytest.mark.parametrize("value", ["''", "X''"])
def test_replace_where_takes_no_row_that_it_would_not_find(table: Table, value: str) -> None:
    kind = "binary" if value.startswith("X") else "string"
    table.write(table.spark.sql(f"select 1 id, cast('a' as {kind}) p"), by=("p",))
    empty = table.spark.sql(f"select 2 id, {value} p")
    with pytest.raises(ConstraintViolationError, match="replaceWhere"):
        table.write(empty, "overwrite", replaceWhere=f"p = {value}")
    assert table.rows("id") == [1]
    table.write(empty, "overwrite", replaceWhere="p is null")
    table.write(empty, "overwrite", replaceWhere="p is null")
    assert table.rows("id") == [1, 2]
