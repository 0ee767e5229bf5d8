"""CHECK constraints: added, dropped, held by every command that writes rows."""

import pytest

from support.spark_tables import Table
from tablelog.core import DeltaLog
from tablelog.errors import (
    ConcurrentAppendException,
    ConstraintViolationError,
    InvalidArgumentError,
    MetadataChangedException,
    SchemaMismatchError,
)


@pytest.fixture
def people(table: Table) -> Table:
    """ids 0 to 5, age = 10 * id, name null for id 0."""
    table.write(table.spark.range(6).selectExpr("id", "id * 10 age", "if(id = 0, null, 'n' || id) name").coalesce(1))
    return table


def test_a_constraint_holds_from_then_on(people: Table) -> None:
    people.delta.addConstraint("Adult", "age >= 0 and (name is null or name <> 'bad')")
    info = people.info()
    assert (info["operation"], info["readVersion"]) == ("ADD CONSTRAINT", 0)
    assert info["operationParameters"] == {"name": "Adult", "expr": "age >= 0 and (name is null or name <> 'bad')"}
    actions = people.actions()
    assert actions[1]["protocol"] == {"minReaderVersion": 1, "minWriterVersion": 3}
    kept = actions[2]["metaData"]["configuration"]
    assert kept == {"delta.constraints.adult": "age >= 0 and (name is null or name <> 'bad')"}

    spark = people.spark
    before = people.data_files()
    for small in (True, False):  # collected on the driver, and written by Spark
        rows = 1 if small else 20_000
        with pytest.raises(ConstraintViolationError) as raised:
            people.write(spark.range(rows).selectExpr("id", "-id - 1 age", "'x' name"))
        text = str(raised.value)
        assert "the CHECK constraint adult" in text
        assert "age = -" in text  # the row is shown
        assert 'name = "x"' in text
        assert people.path in text
    assert (people.version, people.data_files()) == (1, before)
    with pytest.raises(ConstraintViolationError, match="adult"):  # unknown isn't TRUE
        people.write(spark.sql("select 7L id, cast(null as bigint) age, 'x' name"))
    people.write(spark.sql("select 7L id, 7L age"), mode="overwrite", replaceWhere="id >= 5")
    assert people.rows("id") == [0, 1, 2, 3, 4, 7]


def test_rows_that_are_there_are_looked_at_first(people: Table) -> None:
    with pytest.raises(ConstraintViolationError, match=r"3 rows of the table violate age < 30"):
        people.delta.addConstraint("young", "age < 30")
    with pytest.raises(ConstraintViolationError, match="1 rows"):
        people.delta.addConstraint("named", "name > ''")
    assert people.version == 0
    people.delta.delete("age >= 30")
    people.delta.addConstraint("young", "age < 30")
    people.delta.delete("id = 1")  # rows that stay were looked at before
    assert people.rows("id") == [0, 2]


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("age", "has the type bigint, not boolean"),
        ("height > 0", "can't be resolved with the columns id, age, name"),
        ("age >", "not a valid SQL expression"),
        ("count(*) > 1", "more than one row"),
        ("age > (select 1)", "more than one row"),
        ("row_number() over (order by id) > 0", "more than one row"),
        ("rand() < 2", "not deterministic"),
        ("one(age) > 0", "user-defined function"),
    ],
)
def test_what_can_be_no_constraint(people: Table, sql: str, why: str) -> None:
    people.spark.udf.register("one", lambda value: value, "bigint")
    with pytest.raises(InvalidArgumentError, match=why):
        people.delta.addConstraint("c", sql)
    assert people.version == 0


def test_names_differ_by_more_than_case(people: Table) -> None:
    people.delta.addConstraint("A", "id >= 0")
    with pytest.raises(InvalidArgumentError, match="has the constraint a already, id >= 0"):
        people.delta.addConstraint("a", "true")
    with pytest.raises(InvalidArgumentError, match="no constraint 'b'; it has a"):
        people.delta.dropConstraint("b")
    people.delta.dropConstraint("b", ifExists=True)
    assert people.info()["operationParameters"] == {"name": "b", "existed": "false"}
    people.delta.dropConstraint("A")
    assert people.info()["operation"] == "DROP CONSTRAINT"
    assert people.info()["operationParameters"] == {"name": "A", "expr": "id >= 0", "existed": "true"}
    people.write(people.spark.sql("select -1L id"))
    assert people.rows("id")[0] == -1


def test_a_constraint_that_the_schema_outlived_is_named(people: Table) -> None:
    people.delta.addConstraint("c", "age >= 0")
    with pytest.raises(SchemaMismatchError, match="the CHECK constraint c"):
        people.write(people.spark.range(2), mode="overwrite", overwriteSchema=True)
    assert people.version == 1


def test_writers_at_the_same_time(people: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    from tablelog.dml.alter import constraints

    log = DeltaLog.for_path(people.path)
    stale = log.transaction()
    check = constraints.expressions.check_constraint

    def while_another_appends(*args: object) -> None:
        check(*args)  # type: ignore[arg-type]
        people.write(people.spark.sql("select 9L id, -1L age"))

    with monkeypatch.context() as patched:
        patched.setattr(constraints.expressions, "check_constraint", while_another_appends)
        with pytest.raises(ConcurrentAppendException):
            people.delta.addConstraint("c", "age >= 0")
    people.delta.delete("age < 0")
    people.delta.addConstraint("c", "age >= 0")
    from tablelog.core import AddFile, Operation

    with pytest.raises(MetadataChangedException):  # it was written without the constraint
        stale.commit([AddFile("f", {}, 1, 1, True)], Operation("WRITE"))


@pytest.mark.parametrize("by", [(), ("c",)])
def test_a_condition_on_a_char_ignores_trailing_spaces(table: Table, by: tuple[str, ...]) -> None:
    """As in queries. Else an UPDATE would find that rows break the constraint that ADD CONSTRAINT accepted."""
    spark, name = table.spark, f"delta.`{table.path}`"
    partitioned = f"PARTITIONED BY ({', '.join(by)})" if by else ""
    spark.sql(
        f"CREATE TABLE {name} (id INT, c CHAR(3), short BOOLEAN GENERATED ALWAYS AS (c IN ('a', 'b'))) "
        f"USING delta {partitioned}"
    )
    spark.sql(f"INSERT INTO {name} (id, c) VALUES (1, 'a'), (2, 'b')")
    spark.sql(f"ALTER TABLE {name} ADD CONSTRAINT known CHECK (c IN ('a', 'b'))")
    spark.sql(f"UPDATE {name} SET id = 3 WHERE c = 'a'")
    spark.sql(f"INSERT INTO {name} VALUES (4, 'b ', true)")
    table.write(spark.sql("SELECT 5 id, 'b' c"), "overwrite", replaceWhere="c = 'b'")
    spark.sql(f"INSERT INTO {name} REPLACE WHERE c = 'a' VALUES (6, 'a  ', true)")
    assert table.rows("id", "c", "short") == [(5, "b  ", True), (6, "a  ", True)]
    with pytest.raises(ConstraintViolationError, match="known"):
        spark.sql(f"INSERT INTO {name} (id, c) VALUES (7, 'ab')")
    with pytest.raises(ConstraintViolationError, match="replaceWhere"):
        table.write(spark.sql("SELECT 5 id, 'b' c"), "overwrite", replaceWhere="c = 'a'")
