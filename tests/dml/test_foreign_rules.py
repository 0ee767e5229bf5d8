"""Rules that strangers put into the log of a table: whatever writes to it runs none of their code."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyspark
import pytest
from pyspark.sql import SparkSession

from support.foreign_table import data_file, field, foreign_table
from support.spark_tables import Table
from tablelog.errors import InvalidArgumentError, UntrustedTableError
from tablelog.spark import DeltaTable

RAN = "tablelog.test.ran"
KEY = "spark.tablelog.trustedFunctions"
_CALL = f"'java.lang.System', 'setProperty', '{RAN}', 'yes'"

# Each gives a string.
DANGEROUS = {
    "reflect": f"reflect({_CALL})",
    "its other name": f"java_method({_CALL})",
    "in capitals, qualified": f"concat(Reflect({_CALL}), '')",
    "qualified": f"system.builtin.reflect({_CALL})",
    "try_reflect": f"try_reflect({_CALL})",
    "in a lambda": f"element_at(transform(array(1), x -> reflect({_CALL})), 1)",
    "in a branch": f"if(id is null, 'a', reflect({_CALL}))",
    "by a computed name": f"identifier('ref' || 'lect')({_CALL})",
    "in an argument that analysis evaluates": f"cast(from_json('{{}}', concat('a ', reflect({_CALL}))) as string)",
    "a Python function": "of_python('x')",
    "a function of Hive": "of_hive('x')",
    "a function of SQL": "of_sql('x')",
    "a variable": "of_session",
    "a scalar subquery": "(select string(count(*)) from text.`{file}`)",
    "a subquery that is no scalar": "string(id in (select length(value) from text.`{file}`))",
    "exists": "string(exists(select 1 from text.`{file}`))",
    "a file of Protobuf": "string(from_protobuf(cast(string(id) as binary), 'm', '{file}'))",
    "Avro": "string(from_avro(cast(string(id) as binary), '\"int\"'))",
    "XML": "string(from_xml('<a/>', 'a int', map('rowValidationXSDPath', '{file}')))",
    "chance": "string(rand())",
    "the file that is read": "input_file_name()",
    "unknown": "no_such_function(1)",
}
# One function of Java, one subquery, and one expression that Spark evaluates when it analyses a statement.
SOME = ("reflect", "a scalar subquery", "in an argument that analysis evaluates")


@pytest.fixture
def session(spark: SparkSession, tmp_path: Path) -> Iterator[SparkSession]:
    """The session with functions of its own, which leave a file where they run; and a variable."""
    mark = str(tmp_path / "ran")

    def of_python(value: str) -> str:
        Path(mark).write_text("ran")
        return value

    spark.udf.register("of_python", of_python)
    spark.sql(f"create or replace temporary function of_sql(x string) returns string return reflect({_CALL})")
    spark.sql("declare or replace variable of_session string default 'secret'")
    spark.sql("create or replace temporary function of_hive as 'org.apache.hadoop.hive.ql.udf.UDFToString'")
    (tmp_path / "secret.txt").write_text("secret\n")
    spark._jvm.java.lang.System.clearProperty(RAN)
    yield spark
    for name in ("of_python", "of_sql", "of_hive"):
        spark.sql(f"drop temporary function if exists {name}")
    spark.sql("drop temporary variable of_session")


def _check(spark: SparkSession, root: Path, sql: str, *actions: Any) -> Table:
    configuration = {"delta.constraints.c": f"({sql}) is not null"}
    return foreign_table(spark, root, _FIELDS, *actions, configuration=configuration, features=["checkConstraints"])


def _invariant(spark: SparkSession, root: Path, sql: str, *actions: Any) -> Table:
    rule = json.dumps({"expression": {"expression": f"({sql}) is not null"}})
    fields = [field("id", "long", delta__invariants=rule), field("r", "string")]
    return foreign_table(spark, root, fields, *actions, features=["invariants"])


def _generated(spark: SparkSession, root: Path, sql: str, *actions: Any) -> Table:
    fields = [field("id", "long"), field("r", "string", delta__generationExpression=sql)]
    return foreign_table(spark, root, fields, *actions, features=["generatedColumns"])


def _partition(spark: SparkSession, root: Path, sql: str) -> Table:
    fields = [field("id", "long"), field("r", "string", delta__generationExpression=sql)]
    return foreign_table(spark, root, fields, features=["generatedColumns"], partition_by=["r"])


def _default(spark: SparkSession, root: Path, sql: str, *actions: Any) -> Table:
    fields = [field("id", "long"), field("r", "string", CURRENT_DEFAULT=sql, EXISTS_DEFAULT=sql)]
    return foreign_table(spark, root, fields, *actions, features=["allowColumnDefaults"])


_FIELDS = [field("id", "long"), field("r", "string")]
Kind = Callable[..., Table]
KINDS: dict[str, Kind] = {
    "a CHECK constraint": _check,
    "an invariant": _invariant,
    "a generated column": _generated,
    "a generated partition column": _partition,
    "a default value": _default,
}


def _ran(spark: SparkSession, tmp_path: Path) -> bool:
    return spark._jvm.java.lang.System.getProperty(RAN) is not None or (tmp_path / "ran").exists()


def _refused(table: Table, tmp_path: Path, write: Callable[[], Any], *about: str) -> None:
    with pytest.raises(UntrustedTableError) as caught:
        write()
    assert not _ran(table.spark, tmp_path), about
    assert (table.version, len(table.data_files())) == (0, len(table.logged_files())), about
    assert table.path in str(caught.value)
    assert KEY in str(caught.value)


@pytest.mark.parametrize("kind", KINDS)
def test_no_rule_runs_the_code_of_a_stranger(session: SparkSession, tmp_path: Path, kind: str) -> None:
    for number, (what, text) in enumerate(DANGEROUS.items()):
        sql = text.replace("{file}", str(tmp_path / "secret.txt"))
        table = KINDS[kind](session, tmp_path / f"table{number}", sql)
        _refused(table, tmp_path, lambda table=table: table.write(session.range(2)), kind, what)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE {t} SET r = DEFAULT",
        "MERGE INTO {t} t USING (SELECT 1L AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET r = DEFAULT",
        "MERGE INTO {t} t USING (SELECT 9L AS id) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id, r) "
        "VALUES (s.id, DEFAULT)",
        "INSERT INTO {t} VALUES (5, DEFAULT)",
        "INSERT OVERWRITE {t} (r, id) VALUES (DEFAULT, 5)",
    ],
)
def test_no_keyword_runs_the_code_of_a_stranger(session: SparkSession, tmp_path: Path, statement: str) -> None:
    for number, (what, text) in enumerate(DANGEROUS.items()):
        root = tmp_path / f"table{number}"
        sql = text.replace("{file}", str(tmp_path / "secret.txt"))
        table = _default(session, root, sql, data_file(root / "a.parquet", {"id": [1, 2]}))
        command = statement.replace("{t}", f"delta.`{table.path}`")
        _refused(table, tmp_path, lambda command=command: session.sql(command), statement, what)
    table = _default(
        session, tmp_path / "good", "concat('a', 'b')", data_file(tmp_path / "good/a.parquet", {"id": [1]})
    )
    session.sql(statement.replace("{t}", f"delta.`{table.path}`"))
    assert table.read().where("r = 'ab'").count() == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO {t} VALUES (5, 'x')",
        "INSERT OVERWRITE {t} (r, id) VALUES ('x', 5)",
        "INSERT INTO {t} BY NAME SELECT 'x' AS r, 5L AS id",
        "INSERT INTO {t} REPLACE WHERE id = 5 SELECT 5L, 'x'",
        "INSERT INTO {t} SELECT id + 4, 'x' FROM {t} WHERE id = 1",
        "INSERT INTO {t} VALUES ('5', 'x')",
        "WITH new AS (SELECT 5L AS id, 'x' AS r) INSERT INTO {t} SELECT * FROM new",
        "insertInto",
    ],
)
def test_a_default_value_of_a_stranger_that_is_not_used_refuses_nothing(
    session: SparkSession, tmp_path: Path, statement: str
) -> None:
    # One statement is tried with every text, the others with some.
    names = DANGEROUS if statement == "INSERT INTO {t} VALUES (5, 'x')" else SOME
    for number, what in enumerate(names):
        root = tmp_path / f"table{number}"
        sql = DANGEROUS[what].replace("{file}", str(tmp_path / "secret.txt"))
        table = _default(session, root, sql, data_file(root / "a.parquet", {"id": [1, 2]}))
        if statement == "insertInto":
            table.read().createOrReplaceTempView("of_stranger")
            session.sql("SELECT 5L AS id, 'x' AS r").write.insertInto("of_stranger")
        else:
            session.sql(statement.replace("{t}", f"delta.`{table.path}`"))
        assert not _ran(session, tmp_path), what
        assert table.read().where("id = 5 AND r = 'x'").count() == 1, what


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO {t} SELECT 5L, DEFAULT",
        "INSERT INTO {t} (r, id) SELECT DEFAULT, 5L",
        "INSERT INTO {t} VALUES (5, 'x'), (6, DEFAULT)",
        "INSERT INTO {t} REPLACE WHERE id = 5 VALUES (5, DEFAULT)",
        "INSERT INTO {t} (id) VALUES (5)",
        "INSERT INTO {t} BY NAME SELECT 5L AS id",
    ],
)
def test_a_default_value_of_a_stranger_that_is_used_is_refused(
    session: SparkSession, tmp_path: Path, statement: str
) -> None:
    for number, sql in enumerate((DANGEROUS["reflect"], DANGEROUS["in an argument that analysis evaluates"])):
        root = tmp_path / f"table{number}"
        table = _default(session, root, sql, data_file(root / "a.parquet", {"id": [1, 2]}))
        command = statement.replace("{t}", f"delta.`{table.path}`")
        _refused(table, tmp_path, lambda command=command: session.sql(command), statement)


def test_no_filter_is_derived_from_the_code_of_a_stranger(session: SparkSession, tmp_path: Path) -> None:
    table = _partition(session, tmp_path / "table", DANGEROUS["in an argument that analysis evaluates"])
    assert table.read().where("id = 1").count() == 0
    assert not _ran(session, tmp_path)


def _merge(table: Table) -> None:
    source = table.spark.sql("select 1L id, 'new' r")
    builder = table.delta.alias("t").merge(source.alias("s"), "t.id = s.id")
    builder.whenMatchedUpdate(set={"id": "s.id + 1"}).whenNotMatchedInsert(values={"id": "s.id"}).execute()


# What writes rows that the rules apply to. Default values are for new rows alone.
COMMANDS: dict[str, Callable[[Table], Any]] = {
    "a write by a job": lambda table: table.write(table.spark.range(20_000).repartition(2)),
    "a write of all columns": lambda table: table.write(table.spark.sql("select 5L id, 'x' r")),
    "an overwrite": lambda table: table.write(table.spark.range(2), "overwrite"),
    "replaceWhere": lambda table: table.write(table.spark.range(1), "overwrite", replaceWhere="id = 0"),
    "a write that merges schemas": lambda table: table.write(table.spark.sql("select 5L id, 1 m"), mergeSchema=True),
    "UPDATE": lambda table: table.delta.update("id = 1", {"id": "id + 1"}),
    "MERGE": _merge,
}


@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_runs_the_code_of_a_stranger(session: SparkSession, tmp_path: Path, command: str) -> None:
    for kind in ("a CHECK constraint", "an invariant", "a generated column", "a default value"):
        if kind == "a default value" and command in ("a write of all columns", "UPDATE"):
            continue
        root = tmp_path / kind.replace(" ", "-")
        table = KINDS[kind](session, root, DANGEROUS["reflect"], data_file(root / "a.parquet", {"id": [1, 2]}))
        _refused(table, tmp_path, lambda table=table: COMMANDS[command](table), kind, command)


def test_what_applies_no_rule_works_on_a_table_with_bad_ones(session: SparkSession, tmp_path: Path) -> None:
    root = tmp_path / "table"
    files = [data_file(root / f"{name}.parquet", {"id": [number]}) for number, name in enumerate("abc")]
    table = _check(session, root, DANGEROUS["reflect"], *files)
    table.delta.optimize().executeCompaction()
    table.delta.delete("id = 1")
    assert table.rows("id") == [0, 2]
    table.delta.dropConstraint("c")
    table.write(session.range(1))
    assert not _ran(session, tmp_path)


ALLOWED = (
    "cast(id as string)",
    "upper(concat('a', string(id)))",
    "case when id > 1 then 'a' else null end",
    "date_format(timestamp_seconds(id), 'yyyy-MM')",
    "upper('abc')",
    "substring('abc' from 1 for 2)",
    "string(year(date_add(date'2024-01-01', int(id))))",
    *(["system.builtin.lower('A')"] if pyspark.__version__ >= "4.2" else []),  # 4.1 has no such namespace
    "string(id in (1, 2) or id between 3 and 4 or string(id) like '%a' or string(id) rlike 'b+')",
    "array_join(transform(array(id), x -> string(x + 1)), ',')",
    "get_json_object('{}', '$.a')",
    "string(from_json('{}', 'a int').a)",
    "string(hash(*))",
    "sha2(string(id), 256)",
    "string(hash(id))",
    "string(current_date() > date'2020-01-01')",
    "string(current_timestamp)",
    "current_user()",
    "if(id < -5, raise_error('negative'), 'a')",
    "regexp_extract(string(id), '(.)', 1)",
    "'a' collate utf8_lcase",
    "string(try_divide(id, 0))",
)


def test_rules_of_functions_of_spark_are_evaluated(session: SparkSession, tmp_path: Path) -> None:
    checks = {f"delta.constraints.c{i}": f"({sql}) is not null or true" for i, sql in enumerate(ALLOWED)}
    plain = [sql for sql in ALLOWED if "collate" not in sql]  # such a column has a type of its own
    constant = [sql for sql in plain if "id" not in sql]
    fields = [
        field("id", "long"),
        *(field(f"g{i}", "string", delta__generationExpression=sql) for i, sql in enumerate(plain) if "*" not in sql),
        *(field(f"d{i}", "string", CURRENT_DEFAULT=sql) for i, sql in enumerate(constant)),
    ]
    features = ["checkConstraints", "generatedColumns", "allowColumnDefaults"]
    table = foreign_table(session, tmp_path / "table", fields, configuration=checks, features=features)
    table.write(session.range(2))
    assert table.rows("id", "g0", "d0") == [(0, "0", "ABC"), (1, "1", "ABC")]


def test_the_session_may_trust_functions_by_name(session: SparkSession, tmp_path: Path, conf: Any) -> None:
    tables = [
        _generated(session, tmp_path / f"t{number}", sql)
        for number, sql in enumerate([DANGEROUS["reflect"], "of_python('x')", "upper(of_python('x') || rand())"])
    ]
    conf(KEY, "other, REFLECT")
    tables[0].write(session.range(1))
    assert _ran(session, tmp_path)
    with pytest.raises(UntrustedTableError, match="calls of_python, a user-defined function"):
        tables[1].write(session.range(1))
    conf(KEY, "of_python")
    for table in tables[1:]:
        table.write(session.range(1))
    assert tables[1].rows("r") == ["x"]
    subquery = _check(session, tmp_path / "last", "(select of_python('x'))")
    with pytest.raises(UntrustedTableError, match="subquery"):
        subquery.write(session.range(1))


def test_what_no_other_writer_evaluates_becomes_no_rule(session: SparkSession, tmp_path: Path) -> None:
    table = Table(session, tmp_path / "table")
    table.write(session.range(1), **{"delta.feature.allowColumnDefaults": "supported"})
    for what, text in DANGEROUS.items():
        sql = text.replace("{file}", str(tmp_path / "secret.txt"))
        with pytest.raises(InvalidArgumentError):
            table.delta.addConstraint("c", f"({sql}) is not null")
        made = DeltaTable.create(session).location(str(tmp_path / "made")).addColumn("id", "bigint")
        with pytest.raises(InvalidArgumentError):
            made.addColumn("r", "string", generatedAlwaysAs=sql).execute()
        assert not _ran(session, tmp_path), what
    assert table.version == 0
