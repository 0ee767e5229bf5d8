"""The directories and tables that an SQL statement names, found without Spark's parser."""

from typing import Any

import pytest

from tablelog.engine.connect.sql_directories import NOTHING, Written, tokens_of, written


@pytest.mark.parametrize(
    ("sql", "directory"),
    [
        ("INSERT OVERWRITE DIRECTORY '/t' USING parquet SELECT 1", "/t"),
        ('insert overwrite local directory "/t" stored as orc select 1', "/t"),
        ("INSERT/**/OVERWRITE--x\nDIRECTORY /* '/no' /* nested */ */ '/t' SELECT 1", "/t"),
        ("INSERT OVERWRITE DIRECTORY USING parquet OPTIONS (path '/t', a 'b') SELECT 1", "/t"),
        ("INSERT OVERWRITE DIRECTORY USING parquet OPTIONS ('a' = 'b', `Path` = '/t') SELECT 1", "/t"),
        ("INSERT OVERWRITE DIRECTORY r'/t' USING parquet SELECT 1", "/t"),
        ("INSERT OVERWRITE DIRECTORY '/' 't' USING parquet SELECT 1", "/t"),
        ("INSERT OVERWRITE DIRECTORY '/\\t' USING parquet SELECT 1", "/t"),
        ("FROM a INSERT OVERWRITE DIRECTORY '/t' SELECT *", "/t"),
        ("EXPLAIN INSERT OVERWRITE DIRECTORY '/t' SELECT 1", "/t"),
        ("BEGIN IF true THEN INSERT OVERWRITE DIRECTORY '/t' USING csv SELECT 1; END IF; END", "/t"),
        ("EXECUTE IMMEDIATE 'INSERT OVERWRITE DIRECTORY \"/t\" USING csv SELECT 1'", "/t"),
        ("CREATE TABLE x (id INT) USING parquet LOCATION '/t'", "/t"),
        ("CREATE TABLE x USING parquet OPTIONS (path = '/t') AS SELECT 1", "/t"),
        ("CREATE TABLE x LIKE y USING csv LOCATION '/t'", "/t"),
        ("CREATE TEMPORARY VIEW x USING parquet OPTIONS (path '/t')", "/t"),
        ("ALTER TABLE x SET LOCATION '/t'", "/t"),
        ("ALTER TABLE x ADD PARTITION (p = 1) LOCATION '/t'", "/t"),
        ("CREATE SCHEMA s LOCATION '/t'", "/t"),
        ("LOAD DATA INPATH '/t' INTO TABLE x", "/t"),
    ],
)
def test_directories(sql: str, directory: str) -> None:
    found = written(sql)
    assert directory in found.directories
    assert not found.unknown


@pytest.mark.parametrize(
    ("sql", "arguments", "overwritten"),
    [
        ("INSERT OVERWRITE DIRECTORY :dir USING csv SELECT :x", {"dir": "/t", "x": 1}, {"/t"}),
        ("INSERT OVERWRITE DIRECTORY ? USING csv SELECT ?", ["/t", 1], {"/t"}),
        ("CREATE TABLE x USING csv OPTIONS (a = ?, path = ?)", ["b", "/t"], set()),
    ],
)
def test_parameters(sql: str, arguments: Any, overwritten: set[str]) -> None:
    assert written(sql, arguments) == Written(("/t",), overwritten=frozenset(overwritten))


@pytest.mark.parametrize(
    ("sql", "arguments", "formatted"),
    [
        ("INSERT OVERWRITE DIRECTORY :dir USING csv SELECT 1", None, False),
        ("INSERT OVERWRITE DIRECTORY :dir USING csv SELECT 1", {"dir": 1}, False),
        ("INSERT OVERWRITE DIRECTORY ? USING csv SELECT 1", [], False),
        ("INSERT OVERWRITE DIRECTORY '${x}' USING csv SELECT 1", None, False),
        ("INSERT OVERWRITE DIRECTORY '/a/{x}' USING csv SELECT 1", None, True),
        ("INSERT OVERWRITE DIRECTORY {x} USING csv SELECT 1", None, True),
        ("INSERT OVERWRITE DIRECTORY IDENTIFIER('/t') USING csv SELECT 1", None, False),
        ("INSERT OVERWRITE DIRECTORY USING csv OPTIONS (path :x) SELECT 'options', path '/t'", None, False),
        ("EXECUTE IMMEDIATE 'INSERT OVERWRITE DIRECTORY ? USING csv SELECT 1' USING v", None, False),
    ],
)
def test_a_directory_that_is_not_known(sql: str, arguments: Any, formatted: bool) -> None:
    assert written(sql, arguments, formatted=formatted).unknown


@pytest.mark.parametrize(
    ("sql", "name"),
    [
        ("INSERT INTO a.b VALUES (1)", "a.b"),
        ("insert overwrite table `a b`.`c``d` partition (p = 1) select 1", "`a b`.`c``d`"),
        ("WITH x AS (SELECT 1) INSERT INTO TABLE t SELECT * FROM x", "t"),
        ("TRUNCATE TABLE t", "t"),
        ("EXECUTE IMMEDIATE 'TRUNCATE TABLE t'", "t"),
    ],
)
def test_tables(sql: str, name: str) -> None:
    assert written(sql) == Written(tables=(name,))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 'INSERT OVERWRITE DIRECTORY'",
        "SELECT location, directory FROM t -- INSERT OVERWRITE DIRECTORY :x",
        "SELECT `directory` '/t'",
        "SELECT * FROM parquet.`/t`",
        "INSERT INTO IDENTIFIER(:x) SELECT 1",
        "/* INSERT OVERWRITE DIRECTORY '/t'",
        "SET spark.sql.x = 'location'",
    ],
)
def test_nothing(sql: str) -> None:
    assert written(sql) == NOTHING


@pytest.mark.parametrize("sql", ["'", '"', "`", "/*", "'\\", "\0", "'a''", "é 🙂 \ud800", "insert into", "options("])
def test_any_text_has_tokens(sql: str) -> None:
    assert written(sql) == NOTHING
    assert tokens_of(sql) or sql == "/*"
