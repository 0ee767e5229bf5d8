"""Which SQL texts are expressions over one row that give the same result each time, without Spark's parser."""

import time

import pytest

from tablelog.engine.connect.sql_text import check, name_parts

COLUMNS = ("id", "name", "day", "s", "a b")


@pytest.mark.parametrize(
    ("sql", "columns"),
    [
        ("id = 1", [("id",)]),
        ("ID >= 1 AND Name LIKE 'a%'", [("ID",), ("Name",)]),
        ("t.id = 3", [("id",)]),
        ("t.s.x > 1", [("s", "x")]),
        ("s.x = 'it''s' or s.x = 'it\\'s'", [("s", "x"), ("s", "x")]),
        ("id in (1, 2, 3) and not (day is null)", [("id",), ("day",)]),
        ("cast(id as decimal(10, 2)) > 1.5 and try_cast(name as int) = 1", [("id",), ("name",)]),
        ("day > date'2024-01-01' - interval 1 day", [("day",)]),
        ("day > timestamp '2024-01-01 00:00:00' - interval '3' hour", [("day",)]),
        ("name is not distinct from 'x' or name is distinct from null", [("name",), ("name",)]),
        ("case when id = 1 then upper(name) else concat_ws(',', name, 'x') end = 'A'", [("id",), ("name",), ("name",)]),
        ("`a b` = 3", [("a b",)]),
        ("`t`.`a b` = 1e3", [("a b",)]),
        ("array(1, 2)[0] = id", [("id",)]),
        ("1 = 1", []),
        ("x'00' = name", [("name",)]),
        ("id div 2 = 1", [("id",)]),
        ("'select rand() from x' = name", [("name",)]),
    ],
)
def test_accepted(sql: str, columns: list[tuple[str, ...]]) -> None:
    found = check(sql, COLUMNS, ["t"])
    assert found.refused is None
    assert list(found.columns) == columns


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("rand() < 1", "rand"),
        ("`rand`() < 1", "rand"),
        ("uuid() = name", "uuid"),
        ("current_date > day", "no column"),
        ("current_timestamp() > day", "current_timestamp"),
        ("now() > day", "now"),
        ("unix_timestamp() > id", "unix_timestamp"),
        ("id in (select 1)", "query"),
        ("id in (table t)", "query"),
        ("id in (values 1)", "query"),
        ("exists(select 1)", "exists"),
        ("(with x as (select 1) select 1) = id", "query"),
        ("my.f(id) = 1", "my.f"),
        ("upper.x(name) = 1", "upper.x"),
        ("java_method('a', 'b') = 1", "java_method"),
        ("reflect('a', 'b') = 1", "reflect"),
        ("count(*) > 1", "count"),
        ("max(id) over () = 1", "max"),
        ("lower(name) over (partition by id) = 'x'", "over"),
        ("explode(s) = 1", "explode"),
        ("variable = 1", "no column"),
        ("u.id = 1", "no column"),
        ("id = :parameter", "parser"),
        ("id = ?", "parser"),
        ("id = 1; drop", "parser"),
        ("id = 1 -- comment", "comment"),
        ("id = /* comment */ 1", "comment"),
        ("transform(s, x -> x)", "transform"),
        ("cast(id as array<int>) is null", "simple type"),
        ("cast(id) = 1", "cast"),
        ("'rand'() = 1", "parenthesis"),
        ("extract(year from day) = 1", "extract"),
        ("ai_query('x', name) = 'y'", "ai_query"),
        ("input_file_name() = name", "input_file_name"),
        ("monotonically_increasing_id() = id", "monotonically"),
    ],
)
def test_refused(sql: str, reason: str) -> None:
    found = check(sql, COLUMNS, ["t"])
    assert found.refused is not None
    assert reason in found.refused


def test_trusted_functions() -> None:
    assert check("my.f(id) = 1", COLUMNS, trusted=["my.f"]).refused is None


def test_a_column_with_the_name_of_a_function_or_of_a_query() -> None:
    assert check("rand = 1 and interval = 2", ("rand", "interval")).columns == (("rand",), ("interval",))
    assert check("select = 1", ("select",)).refused is not None
    assert check("`select` = 1", ("select",)).refused is None


def test_names() -> None:
    assert name_parts("a.`b.c`.d") == ("a", "b.c", "d")
    assert name_parts("`x``y`") == ("x`y",)
    assert name_parts("a b") is None
    assert name_parts("a.") is None
    assert name_parts("") is None


@pytest.mark.parametrize(
    "text", ["9" * 100_000 + "a", "1." * 50_000 + "x", "'" * 99_999, "cast(" * 3_000, " " * 100_000 + "{"]
)
def test_no_text_takes_long(text: str) -> None:
    """A number that isn't followed by the end of a word was tried with each number of its digits, and of those each."""
    started = time.process_time()
    assert check(text, ["id"]).refused is not None
    assert time.process_time() - started < 1
