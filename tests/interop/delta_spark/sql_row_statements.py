"""Generated statements that change and query rows: INSERT, UPDATE, DELETE, MERGE, TRUNCATE, SELECT; right and wrong."""

import random

from .sql_grammar import STRUCT, Column, Maker, Statement, Table

DYNAMIC = "spark.sql.sources.partitionOverwriteMode"


def _new(dice: random.Random) -> int:
    return dice.randrange(100, 900)


# --- INSERT -------------------------------------------------------------------------------------------------------


def insert_rows(dice: random.Random, table: Table) -> Statement:
    """By position; all columns or none are computed, else Spark wants a column list."""
    columns = table.written
    number = _new(dice)
    names = "" if len(columns) == len(table.columns) else f" ({', '.join(one.name for one in columns)})"
    if dice.random() < 0.5:
        return Statement(
            "INSERT VALUES", f"INSERT INTO {table.name}{names} VALUES ({', '.join(table.literals(number))})"
        )
    return Statement("INSERT SELECT", f"INSERT INTO {table.name}{names} {table.rows(number, 3)}")


def insert_by_name(dice: random.Random, table: Table) -> Statement:
    columns = dice.sample(table.written, len(table.written))
    return Statement("INSERT BY NAME", f"INSERT INTO {table.name} BY NAME {table.rows(_new(dice), 2, columns)}")


def insert_part(dice: random.Random, table: Table) -> Statement:
    """Into some of the columns: the others get their default or null."""
    columns = [table.columns[0], *dice.sample(table.written[1:], dice.randrange(1, len(table.written)))]
    names = ", ".join(one.name for one in columns)
    if dice.random() < 0.5:
        return Statement(
            "INSERT BY NAME part", f"INSERT INTO {table.name} BY NAME {table.rows(_new(dice), 2, columns)}"
        )
    return Statement("INSERT columns", f"INSERT INTO {table.name} ({names}) {table.rows(_new(dice), 2, columns)}")


def insert_default(dice: random.Random, table: Table) -> Statement:
    column = dice.choice(table.written[1:])
    values = [
        "DEFAULT" if one is column else value
        for one, value in zip(table.written, table.literals(_new(dice)), strict=True)
    ]
    names = ", ".join(one.name for one in table.written)
    return Statement("INSERT DEFAULT", f"INSERT INTO {table.name} ({names}) VALUES ({', '.join(values)})")


def overwrite(dice: random.Random, table: Table) -> Statement:
    names = ", ".join(one.name for one in table.written)
    return Statement("INSERT OVERWRITE", f"INSERT OVERWRITE {table.name} ({names}) {table.rows(_new(dice), 6)}")


def overwrite_dynamic(dice: random.Random, table: Table) -> list[Statement]:
    names = ", ".join(one.name for one in table.written)
    return [
        Statement("SET", f"SET {DYNAMIC}=dynamic"),
        Statement("INSERT OVERWRITE dynamic", f"INSERT OVERWRITE {table.name} ({names}) {table.rows(_new(dice), 2)}"),
        Statement("SET", f"SET {DYNAMIC}=static"),
    ]


def partition_clause(dice: random.Random, table: Table) -> Statement:
    """PARTITION (p = 1), or an error of a table without that partition column."""
    others = [one for one in table.written if one.name != "p"]
    verb = dice.choice(["INSERT INTO", "INSERT OVERWRITE"])
    names = f" ({', '.join(one.name for one in others)})" if len(others) + 1 < len(table.columns) else ""
    text = f"{verb} {table.name} PARTITION (p = {dice.randrange(4)}){names} {table.rows(_new(dice), 2, others)}"
    kind = "PARTITION clause" if table.partition_by == ("p",) else "PARTITION clause of another column"
    return Statement(f"{verb} {kind}", text)


def replace_where(dice: random.Random, table: Table) -> Statement:
    number = dice.randrange(5)
    if dice.random() < 0.5:
        query = table.rows(_new(dice), 2, p=str(number))
        return Statement("REPLACE WHERE", f"INSERT INTO {table.name} REPLACE WHERE p = {number} {query}")
    query = table.rows(10 * number, 4)
    where = f"id >= {10 * number} AND id < {10 * number + 10}"
    return Statement("REPLACE WHERE data", f"INSERT INTO {table.name} REPLACE WHERE {where} {query}")


def wrong_insert(dice: random.Random, table: Table) -> Statement:
    name, columns = table.name, table.written
    names = ", ".join(one.name for one in columns)
    values = table.literals(_new(dice))
    by_value = dict(zip((one.name for one in columns), values, strict=True))
    choices = [
        ("too few columns", f"INSERT INTO {name} VALUES ({', '.join(values[:-1])})"),
        ("too many columns", f"INSERT INTO {name} VALUES ({', '.join(values)}, 1, 2, 3)"),
        ("unknown column in list", f"INSERT INTO {name} (nope, id) VALUES (1, 2)"),
        ("column twice in list", f"INSERT INTO {name} (id, id) VALUES (1, 2)"),
        ("list and values differ", f"INSERT INTO {name} (id, p) VALUES (1)"),
        ("BY NAME unknown column", f"INSERT INTO {name} BY NAME SELECT 1L AS id, 2 AS nope"),
        ("BY NAME column twice", f"INSERT INTO {name} BY NAME SELECT 1L AS id, 2L AS id"),
        ("array into number", f"INSERT INTO {name} (id, p) VALUES (1, array(1))"),
        ("text into number", f"INSERT INTO {name} (id, p) VALUES (1, 'text')"),
        ("overflow", f"INSERT INTO {name} (id, p) VALUES (1, 99999999999L)"),
        ("null key", f"INSERT INTO {name} ({names}) VALUES ({', '.join(['NULL', *values[1:]])})"),
        ("unknown table", f"INSERT INTO {name}_none VALUES (1)"),
        ("unknown source", f"INSERT INTO {name} SELECT * FROM no_such_table"),
        ("REPLACE WHERE not met", f"INSERT INTO {name} REPLACE WHERE p = 100 {table.rows(1, 2)}"),
        ("REPLACE WHERE unknown column", f"INSERT INTO {name} REPLACE WHERE nope = 1 {table.rows(1, 2)}"),
        ("REPLACE WHERE subquery", f"INSERT INTO {name} REPLACE WHERE p IN (SELECT 1) {table.rows(1, 2)}"),
        ("PARTITION of no column", f"INSERT INTO {name} PARTITION (nope = 1) SELECT 1L"),
        ("computed", f"INSERT INTO {name} (id, {table.columns[-1].name}) VALUES (3, 4)"),
    ]
    kind, text = dice.choice(choices)
    if kind == "null key" and "s" in by_value and dice.random() < 0.3:
        return Statement("wrong INSERT: syntax", f"INSERT INTO {name} VALUES")
    return Statement(f"wrong INSERT: {kind}", text)


# --- UPDATE, DELETE, TRUNCATE -------------------------------------------------------------------------------------


def update(dice: random.Random, table: Table) -> Statement:
    number = dice.randrange(30)
    name, any_column = table.name, dice.choice(table.written[1:])
    struct = next((one.name for one in table.columns if one.type == STRUCT), None)
    choices = [
        ("a column", f"UPDATE {name} SET {any_column.name} = {any_column.value()} WHERE id < {number}"),
        ("with an alias", f"UPDATE {name} AS t SET t.p = t.p + 1 WHERE t.id % 5 = {number % 5}"),
        ("two columns", f"UPDATE {name} SET p = p + 1, {_other(table)} = NULL WHERE id = {number}"),
        ("all rows", f"UPDATE {name} SET p = -p"),
        ("by its name", f"UPDATE {name} SET p = {number} WHERE p IS NULL OR id BETWEEN {number} AND {number + 3}"),
        ("scalar subquery as value", f"UPDATE {name} SET p = (SELECT max(id) FROM range({number + 1})) WHERE id = 3"),
        ("to DEFAULT", f"UPDATE {name} SET {_other(table)} = DEFAULT WHERE id = {number}"),
        ("no row", f"UPDATE {name} SET p = 1 WHERE id = -5"),
        ("false", f"UPDATE {name} SET p = 1 WHERE 1 = 0"),
    ]
    if struct:
        choices += [("a nested field", f"UPDATE {name} SET {struct}.a = {number} WHERE id > {number}")] * 3
    kind, text = dice.choice(choices)
    return Statement(f"UPDATE: {kind}", text)


def _other(table: Table) -> str:
    """A column that isn't `id` or `p`, where there is one."""
    others = [one.name for one in table.written if one.name not in ("id", "p")]
    return others[0] if others else "p"


def wrong_update(dice: random.Random, table: Table) -> Statement:
    name = table.name
    choices = [
        ("unknown column", f"UPDATE {name} SET nope = 1"),
        ("unknown column in value", f"UPDATE {name} SET p = nope"),
        ("unknown column in condition", f"UPDATE {name} SET p = 1 WHERE nope = 1"),
        ("array into number", f"UPDATE {name} SET p = array(1)"),
        ("text into number", f"UPDATE {name} SET p = 'text' WHERE id >= 0"),
        ("aggregate", f"UPDATE {name} SET p = max(p)"),
        ("column twice", f"UPDATE {name} SET p = 1, P = 2"),
        ("rand in condition", f"UPDATE {name} SET p = 1 WHERE rand() > 0.5"),
        ("subquery in condition", f"UPDATE {name} SET p = 1 WHERE id IN (SELECT 1)"),
        ("condition of no boolean", f"UPDATE {name} SET p = 1 WHERE id"),
        ("null key", f"UPDATE {name} SET id = NULL"),
        ("field of no struct", f"UPDATE {name} SET p.a = 1"),
        ("unknown table", f"UPDATE {name}_none SET p = 1"),
        ("overflow", f"UPDATE {name} SET p = 99999999999L WHERE id >= 0"),
        ("computed", f"UPDATE {name} SET {table.columns[-1].name} = 5"),
    ]
    kind, text = dice.choice(choices)
    return Statement(f"wrong UPDATE: {kind}", text)


def delete(dice: random.Random, table: Table) -> Statement:
    number = dice.randrange(40)
    choices = [
        ("a row", f"DELETE FROM {table.name} WHERE id = {number}"),
        ("with an alias", f"DELETE FROM {table.name} AS t WHERE t.id % 7 = {number % 7}"),
        ("by partition", f"DELETE FROM {table.name} WHERE p = {number % 7}"),
        ("both", f"DELETE FROM {table.name} WHERE p = {number % 7} AND id > {number}"),
        ("nulls", f"DELETE FROM {table.name} WHERE {_other(table)} IS NULL"),
        ("no row", f"DELETE FROM {table.name} WHERE id = -3"),
        ("false", f"DELETE FROM {table.name} WHERE false"),
        ("all", f"DELETE FROM {table.name}"),
    ]
    weights = [3] * 6 + [1, 1]
    kind, text = dice.choices(choices, weights)[0]
    return Statement(f"DELETE: {kind}", text)


def wrong_delete(dice: random.Random, table: Table) -> Statement:
    name = table.name
    choices = [
        ("unknown column", f"DELETE FROM {name} WHERE nope = 1"),
        ("aggregate", f"DELETE FROM {name} WHERE max(id) = 1"),
        ("rand", f"DELETE FROM {name} WHERE rand() > 0.5"),
        ("subquery", f"DELETE FROM {name} WHERE id IN (SELECT 1)"),
        ("exists", f"DELETE FROM {name} t WHERE EXISTS (SELECT 1 FROM range(3) r WHERE r.id = t.id)"),
        ("scalar subquery", f"DELETE FROM {name} WHERE id = (SELECT 1)"),
        ("no boolean", f"DELETE FROM {name} WHERE id + 1"),
        ("unknown table", f"DELETE FROM {name}_none"),
        ("unknown function", f"DELETE FROM {name} WHERE nope(id)"),
        ("syntax", f"DELETE FROM {name} WHERE id ="),
    ]
    kind, text = dice.choice(choices)
    return Statement(f"wrong DELETE: {kind}", text)


def truncate(dice: random.Random, table: Table) -> list[Statement]:
    if dice.random() < 0.4:
        return [Statement("wrong TRUNCATE: partition", f"TRUNCATE TABLE {table.name} PARTITION (p = 1)")]
    return [Statement("TRUNCATE", f"TRUNCATE TABLE {table.name}"), insert_rows(dice, table)]


# --- MERGE --------------------------------------------------------------------------------------------------------


def merge(dice: random.Random, table: Table) -> Statement:
    first = dice.randrange(30)
    source = dice.choice(
        [
            f"({table.rows(first, 8)})",
            f"({table.rows(first, 5)} UNION ALL {table.rows(600, 2)})",
            f"(WITH c AS ({table.rows(first, 6)}) SELECT * FROM c WHERE id IN (SELECT id FROM range(100)))",
        ]
    )
    condition = dice.choice(["t.id = s.id", "t.id = s.id AND t.p = s.p", "s.id = t.id AND t.id > 3"])
    computed = len(table.written) < len(table.columns)
    matched = dice.choice(
        [
            "WHEN MATCHED THEN DELETE",
            "WHEN MATCHED AND s.id % 2 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET t.p = s.p + 1",
            "WHEN MATCHED THEN UPDATE SET p = coalesce(t.p, 0) + s.p, " + f"t.{_other(table)} = s.{_other(table)}"
            if _other(table) != "p"
            else "WHEN MATCHED THEN UPDATE SET p = s.p",
            "" if computed else "WHEN MATCHED THEN UPDATE SET *",
        ]
    )
    names = ", ".join(one.name for one in table.written)
    values = ", ".join(f"s.{one.name}" for one in table.written)
    inserted = dice.choice(
        [
            "",
            f"WHEN NOT MATCHED THEN INSERT ({names}) VALUES ({values})",
            "WHEN NOT MATCHED BY TARGET AND s.id > 5 THEN INSERT (id, p) VALUES (s.id, s.p)",
            "" if computed else "WHEN NOT MATCHED THEN INSERT *",
        ]
    )
    by_source = dice.choice(
        [
            "",
            "",
            "WHEN NOT MATCHED BY SOURCE AND t.id > 20 THEN DELETE",
            "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET p = -1",
        ]
    )
    clauses = " ".join(filter(None, [matched, inserted, by_source])) or "WHEN MATCHED THEN DELETE"
    return Statement("MERGE", f"MERGE INTO {table.name} t USING {source} s ON {condition} {clauses}")


def merge_evolving(dice: random.Random, table: Table) -> Statement:
    name = f"e{_new(dice)}"
    query = table.rows(dice.randrange(30), 5) + " "
    source = query.replace(" FROM range", f", CAST(id AS INT) AS {name} FROM range")
    clauses = dice.choice(
        [
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
            "WHEN NOT MATCHED THEN INSERT *",
            f"WHEN MATCHED THEN UPDATE SET {name} = s.{name}",
        ]
    )
    if all(not one.computed for one in table.columns):
        table.columns.append(Column(name, "INT"))
    text = f"MERGE WITH SCHEMA EVOLUTION INTO {table.name} t USING ({source}) s ON t.id = s.id {clauses}"
    return Statement("MERGE WITH SCHEMA EVOLUTION", text)


def wrong_merge(dice: random.Random, table: Table) -> Statement:
    start = f"MERGE INTO {table.name} t USING ({table.rows(1, 4)}) s ON"
    on = f"{start} t.id = s.id"
    choices = [
        (
            "several matches",
            f"MERGE INTO {table.name} t USING (SELECT 1L AS id UNION ALL SELECT 1L) s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET p = 1",
        ),
        (
            "several matches deleted",
            f"MERGE INTO {table.name} t USING (SELECT 1L AS id UNION ALL SELECT 1L) s "
            "ON t.id = s.id WHEN MATCHED THEN DELETE",
        ),
        ("unknown column in condition", f"{start} t.nope = s.id WHEN MATCHED THEN DELETE"),
        ("ambiguous column", f"{start} id = s.id WHEN MATCHED THEN DELETE"),
        ("aggregate", f"{start} max(t.id) = s.id WHEN MATCHED THEN DELETE"),
        ("rand", f"{start} t.id = s.id AND rand() > 0.5 WHEN MATCHED THEN DELETE"),
        ("subquery in condition", f"{start} t.id = s.id AND s.id IN (SELECT 1) WHEN MATCHED THEN DELETE"),
        ("subquery in clause", f"{on} WHEN MATCHED AND s.id IN (SELECT 1) THEN DELETE"),
        ("unknown column set", f"{on} WHEN MATCHED THEN UPDATE SET nope = s.id"),
        ("unknown value", f"{on} WHEN MATCHED THEN UPDATE SET p = s.nope"),
        ("column set twice", f"{on} WHEN MATCHED THEN UPDATE SET p = 1, P = 2"),
        ("unknown column inserted", f"{on} WHEN NOT MATCHED THEN INSERT (nope) VALUES (1)"),
        ("target column inserted", f"{on} WHEN NOT MATCHED THEN INSERT (id) VALUES (t.id)"),
        ("source column by source", f"{on} WHEN NOT MATCHED BY SOURCE THEN UPDATE SET p = s.p"),
        ("unreachable clause", f"{on} WHEN MATCHED THEN DELETE WHEN MATCHED THEN UPDATE SET p = 1"),
        (
            "star of too few columns",
            f"MERGE INTO {table.name} t USING (SELECT 1L AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *",
        ),
        (
            "star inserted of too few columns",
            f"MERGE INTO {table.name} t USING (SELECT -1L AS id) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *",
        ),
        ("array into number", f"{on} WHEN MATCHED THEN UPDATE SET p = array(1)"),
        ("text into number", f"{on} WHEN MATCHED THEN UPDATE SET p = 'text'"),
        ("unknown table", f"MERGE INTO {table.name}_none t USING range(3) s ON t.id = s.id WHEN MATCHED THEN DELETE"),
        ("unknown source", f"MERGE INTO {table.name} t USING no_such s ON t.id = s.id WHEN MATCHED THEN DELETE"),
        ("no clause", on),
    ]
    kind, text = dice.choice(choices)
    return Statement(f"wrong MERGE: {kind}", text)


# --- queries and views --------------------------------------------------------------------------------------------


def query(dice: random.Random, table: Table) -> Statement:
    number = dice.randrange(6)
    name = table.name
    choices = [
        ("a filter", f"SELECT id, p FROM {name} WHERE id > {number} AND (p IS NULL OR p < 5)"),
        ("a group", f"SELECT p, count(*), min(id), max(id) FROM {name} GROUP BY p"),
        ("a version", f"SELECT * FROM {name} VERSION AS OF {number % 2}"),
        ("a join of versions", f"SELECT a.id FROM {name} VERSION AS OF 1 a LEFT ANTI JOIN {name} b ON a.id = b.id"),
        ("no such version", f"SELECT * FROM {name} VERSION AS OF 99"),
        ("no time yet", f"SELECT * FROM {name} TIMESTAMP AS OF '1999-01-01'"),
        ("an unknown column", f"SELECT nope FROM {name}"),
        ("a subquery", f"SELECT count(*) FROM {name} WHERE id IN (SELECT id + 1 FROM {name})"),
        ("metadata", f"SELECT count(DISTINCT _metadata.file_name) > 0 FROM {name}"),
    ]
    kind, text = dice.choice(choices)
    return Statement(f"SELECT: {kind}", text)


def by_view(dice: random.Random, table: Table) -> list[Statement]:
    number = dice.randrange(30)
    view = f"view_{_new(dice)}"
    whole = dice.random() < 0.6
    query = f"SELECT * FROM {table.name}" + ("" if whole else " WHERE id > 3")
    change = dice.choice(
        [
            ("UPDATE", f"UPDATE {view} SET p = {number} WHERE id = {number}"),
            ("DELETE", f"DELETE FROM {view} WHERE id = {number}"),
            ("MERGE", f"MERGE INTO {view} t USING ({table.rows(number, 3)}) s ON t.id = s.id WHEN MATCHED THEN DELETE"),
        ]
    )
    kind = "view" if whole else "view of a part"
    return [
        Statement("CREATE VIEW", f"CREATE TEMPORARY VIEW {view} AS {query}"),
        Statement(f"{change[0]} of a {kind}", change[1]),
        Statement("DROP VIEW", f"DROP VIEW {view}"),
    ]


def check(dice: random.Random, table: Table) -> list[Statement]:
    """A constraint, statements that break it, and its end."""
    name = f"c{_new(dice)}"
    values = table.literals(-7)
    names = ", ".join(one.name for one in table.written)
    broken = [
        Statement("broken CHECK: INSERT", f"INSERT INTO {table.name} ({names}) VALUES ({', '.join(values)})"),
        Statement("broken CHECK: UPDATE", f"UPDATE {table.name} SET id = -id - 1"),
        Statement(
            "broken CHECK: MERGE",
            f"MERGE INTO {table.name} t USING range(2) s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET id = -9 WHEN NOT MATCHED THEN INSERT (id, p) VALUES (-4, 1)",
        ),
    ]
    return [
        Statement("ADD CONSTRAINT", f"ALTER TABLE {table.name} ADD CONSTRAINT {name} CHECK (id >= 0)"),
        dice.choice(broken),
        Statement("DROP CONSTRAINT", f"ALTER TABLE {table.name} DROP CONSTRAINT {name}"),
    ]


MAKERS: list[tuple[int, Maker]] = [
    (3, insert_rows), (2, insert_by_name), (2, insert_part), (1, insert_default), (2, overwrite),
    (2, overwrite_dynamic), (2, partition_clause), (3, replace_where), (7, wrong_insert),
    (6, update), (5, wrong_update), (5, delete), (4, wrong_delete), (1, truncate),
    (6, merge), (3, merge_evolving), (7, wrong_merge), (4, query), (2, by_view), (2, check),
]  # fmt: skip
