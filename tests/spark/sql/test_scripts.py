"""Statements on Delta tables in SQL scripts and EXECUTE IMMEDIATE."""

import pytest
from pyspark.errors import PySparkException

from tablelog.errors import ConstraintViolationError, InvalidArgumentError, TablelogError, UnsupportedFeatureError


@pytest.fixture
def t(spark, database):
    spark.sql("CREATE TABLE t (id BIGINT, k INT) USING delta")
    spark.sql("INSERT INTO t VALUES (1, 1), (2, 2)")
    return "t"


def rows(spark, text="SELECT id, k FROM t ORDER BY id"):
    return [tuple(row) for row in spark.sql(text).collect()]


def versions(spark):
    return spark.sql("DESCRIBE HISTORY t").count()


def test_a_script_changes_tables(spark, t):
    found = spark.sql("""
        BEGIN
          DECLARE v BIGINT = 3;
          CREATE TABLE made (id BIGINT) USING delta;
          CREATE TABLE other (id BIGINT) USING parquet;
          INSERT INTO other VALUES (v);
          WHILE v < 6 DO
            INSERT INTO t VALUES (v, 0);
            SET v = v + 1;
          END WHILE;
          IF v = 6 THEN
            DELETE FROM t WHERE id = v - 1;
          ELSE
            DELETE FROM t;
          END IF;
          CASE WHEN v = 0 THEN DELETE FROM t; ELSE UPDATE t SET k = v WHERE id = 1; END CASE;
          FOR one AS SELECT id FROM t WHERE id > 2 DO
            INSERT INTO made VALUES (one.id);
          END FOR;
          MERGE INTO t USING made ON t.id = made.id WHEN MATCHED THEN UPDATE SET k = v
            WHEN NOT MATCHED THEN INSERT (id) VALUES (0);
          REPEAT INSERT INTO made VALUES (v); SET v = v + 1; UNTIL v > 7 END REPEAT;
          SELECT count(*) AS n FROM t;
          DROP TABLE other;
        END""")
    assert (found.columns, found.collect()) == (["n"], [(4,)])
    assert rows(spark) == [(1, 6), (2, 2), (3, 6), (4, 6)]
    assert rows(spark, "SELECT id FROM made ORDER BY id") == [(3,), (4,), (6,), (7,)]
    assert spark.sql("BEGIN DROP TABLE made; DESCRIBE t; DELETE FROM t WHERE id = :id; END", {"id": 4}).columns == []
    assert not spark.catalog.tableExists("own.made")
    assert rows(spark) == [(1, 6), (2, 2), (3, 6)]


@pytest.mark.slow
def test_the_handlers_of_a_script_catch_our_errors_and_spark_s(spark, t):
    spark.sql("ALTER TABLE t ADD CONSTRAINT small CHECK (id < 100)")
    for statement in (
        "INSERT INTO t VALUES (100, 0)",
        "DELETE FROM t WHERE nope = 1",
        "EXECUTE IMMEDIATE 'INSERT INTO t VALUES (100, 0)'",
    ):
        spark.sql(f"""
            BEGIN
              BEGIN
                DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN INSERT INTO t VALUES (50, 5); END;
                {statement};
                INSERT INTO t VALUES (9, 9);
              END;
              INSERT INTO t VALUES (60, 6);
            END""")
        assert rows(spark, "SELECT id, k FROM t WHERE id > 2 ORDER BY id") == [(50, 5), (60, 6)], statement
        spark.sql("DELETE FROM t WHERE id > 2")
    state = ConstraintViolationError("x", condition="DELTA_VIOLATE_CONSTRAINT_WITH_VALUES").sql_state
    spark.sql(f"""
        BEGIN
          DECLARE EXIT HANDLER FOR SQLSTATE '{state}' BEGIN UPDATE t SET k = 7; END;
          INSERT INTO t VALUES (100, 0);
        END""")
    assert rows(spark) == [(1, 7), (2, 7)]


def test_an_error_in_a_script_is_that_of_the_statement(spark, t):
    spark.sql("ALTER TABLE t ADD CONSTRAINT small CHECK (id < 100)")
    for text, condition in [
        ("INSERT INTO t VALUES (100, 0)", "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"),
        ("DELETE FROM t WHERE nope = 1", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
        ("TRUNCATE TABLE t PARTITION (k = 1)", "DELTA_TRUNCATE_TABLE_PARTITION_NOT_SUPPORTED"),
    ]:
        with pytest.raises((TablelogError, PySparkException)) as alone:
            spark.sql(text)
        for inside in (f"BEGIN {text}; DELETE FROM t; END", f"EXECUTE IMMEDIATE '{text}'"):
            with pytest.raises(type(alone.value)) as caught:
                spark.sql(inside)
            assert caught.value.getCondition() == alone.value.getCondition() == condition
    assert versions(spark) == 3


def test_an_interrupt_ends_the_script(spark, t, monkeypatch):
    from tablelog.spark.sql.statements import changes

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(changes, "delete", interrupted)
    with pytest.raises(KeyboardInterrupt):
        spark.sql("""
            BEGIN
              DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN INSERT INTO t VALUES (5, 5); END;
              DELETE FROM t;
              INSERT INTO t VALUES (6, 6);
            END""")
    assert rows(spark) == [(1, 1), (2, 2)]


def test_execute_immediate(spark, t):
    assert spark.sql("EXECUTE IMMEDIATE 'DELETE FROM t WHERE id = ?' USING 2").first()[0] == 1
    spark.sql("DECLARE OR REPLACE VARIABLE statement STRING")
    spark.sql("DECLARE OR REPLACE VARIABLE small TINYINT = 5Y")
    spark.sql("SET VAR statement = 'INSERT INTO t VALUES (:id, :k)'")
    spark.sql("EXECUTE IMMEDIATE statement USING small AS id, 4000000000 - 3999999999 AS k")
    spark.sql("EXECUTE IMMEDIATE 'UPDATE ' || 't' || ' SET k = 8 WHERE id = 5'")
    spark.sql("EXECUTE IMMEDIATE :text USING 1", {"text": "UPDATE t SET k = 3 WHERE id = ?"})
    assert rows(spark) == [(1, 3), (5, 8)]
    assert spark.sql("EXECUTE IMMEDIATE 'DESCRIBE HISTORY t'").count() == versions(spark) == 6
    assert spark.sql("EXECUTE IMMEDIATE 'OPTIMIZE t'").columns == ["path", "metrics"]
    spark.sql("EXECUTE IMMEDIATE 'CREATE TABLE made USING delta AS SELECT * FROM t WHERE id = ?' USING 5")
    assert rows(spark, "SELECT * FROM made") == [(5, 8)]
    assert rows(spark, "EXECUTE IMMEDIATE 'SELECT * FROM t WHERE id = 5'") == [(5, 8)]
    spark.sql("EXECUTE IMMEDIATE 'DROP TABLE made'")
    assert not spark.catalog.tableExists("own.made")


def test_execute_immediate_into_takes_no_command(spark, t):
    spark.sql("DECLARE OR REPLACE VARIABLE n BIGINT")
    spark.sql("EXECUTE IMMEDIATE 'SELECT count(*) FROM t' INTO n")
    assert rows(spark, "SELECT n") == [(2,)]
    for text in ("DELETE FROM t", "OPTIMIZE t"):
        with pytest.raises(InvalidArgumentError) as caught:
            spark.sql(f"EXECUTE IMMEDIATE '{text}' INTO n")
        assert caught.value.getCondition() == "INVALID_STATEMENT_FOR_EXECUTE_INTO"
    with pytest.raises(UnsupportedFeatureError):
        spark.sql("BEGIN DECLARE m BIGINT; EXECUTE IMMEDIATE 'DELETE FROM t' INTO m; END")
    with pytest.raises((PySparkException, UnsupportedFeatureError)):
        spark.sql("EXECUTE IMMEDIATE 'BEGIN DELETE FROM t; END'")  # Spark refuses every script there
    assert versions(spark) == 2


@pytest.mark.slow
def test_execute_immediate_in_a_script(spark, t):
    spark.sql("DECLARE OR REPLACE VARIABLE outside BIGINT = 8")
    found = spark.sql("""
        BEGIN
          DECLARE outside BIGINT = 9;
          DECLARE v INT = 1;
          DECLARE name STRING = 't';
          WHILE v < 3 DO
            EXECUTE IMMEDIATE 'UPDATE ' || name || ' SET k = k + ? WHERE id = ?' USING outside, v;
            SET v = v + 1;
          END WHILE;
          EXECUTE IMMEDIATE 'INSERT INTO t SELECT session.outside, outside';
          EXECUTE IMMEDIATE 'OPTIMIZE t';
          EXECUTE IMMEDIATE 'SELECT sum(k) AS s FROM t WHERE id < ?' USING v;
        END""")
    assert (found.columns, found.collect()) == (["s"], [(21,)])
    assert rows(spark) == [(1, 10), (2, 11), (8, 8)]


@pytest.mark.slow
def test_a_variable_names_the_table(spark, t):
    spark.sql("DECLARE OR REPLACE VARIABLE name STRING = 'own.t'")
    spark.sql("DELETE FROM IDENTIFIER(name) WHERE id = 1")
    spark.sql("UPDATE IDENTIFIER('own' || '.t') SET k = 5")
    assert rows(spark) == [(2, 5)]
    spark.sql("INSERT INTO IDENTIFIER(name) VALUES (3, 3)")
    spark.sql("INSERT INTO IDENTIFIER('own.' || :n) (id) VALUES (:id)", {"n": "t", "id": 4})
    spark.sql("WITH c AS (SELECT 5L, 5) INSERT INTO IDENTIFIER(name) SELECT * FROM c")
    spark.sql("INSERT INTO IDENTIFIER(name) REPLACE WHERE id = 2 SELECT 2L, 9")
    assert rows(spark) == [(2, 9), (3, 3), (4, None), (5, 5)]
    spark.sql("FROM VALUES (6L, 6) AS v (a, b) INSERT INTO IDENTIFIER(name) SELECT * INSERT INTO t SELECT a + 1, b")
    spark.sql("INSERT OVERWRITE IDENTIFIER(name) SELECT id, k FROM t WHERE id > 5")
    assert rows(spark) == [(6, 6), (7, 6)]
    spark.sql("FROM VALUES (8L, 8) AS v (a, b) INSERT INTO t SELECT * INSERT INTO IDENTIFIER(name) SELECT a + 1, b")
    assert rows(spark) == [(6, 6), (7, 6), (8, 8), (9, 8)]


def test_a_variable_names_the_table_in_a_script(spark, t):
    spark.sql("""
        BEGIN
          DECLARE name STRING = 'own.t';
          UPDATE IDENTIFIER(name) SET k = 7;
          DELETE FROM IDENTIFIER(name) WHERE id = 2;
          INSERT INTO IDENTIFIER(name) VALUES (3, 8);
        END""")
    assert rows(spark) == [(1, 7), (3, 8)]
