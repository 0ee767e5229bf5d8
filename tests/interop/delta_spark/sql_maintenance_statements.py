"""Generated statements that maintain tables: OPTIMIZE, VACUUM, RESTORE, REORG, CONVERT, clones, and their history."""

import random

from .sql_grammar import Maker, Statement, Table
from .sql_table_statements import rows

CHECK = "spark.databricks.delta.retentionDurationCheck.enabled"


def _new(dice: random.Random) -> int:
    return dice.randrange(100, 900)


def change(dice: random.Random, table: Table) -> Statement:
    number = dice.randrange(20)
    choices = [
        ("DELETE", f"DELETE FROM {table.name} WHERE id % 9 = {number % 9}"),
        ("UPDATE", f"UPDATE {table.name} SET p = p + 1 WHERE id = {number}"),
        ("MERGE", f"MERGE INTO {table.name} t USING range({number}) s ON t.id = s.id WHEN MATCHED THEN DELETE"),
    ]
    kind, text = dice.choice(choices)
    return Statement(f"{kind} to maintain", text)


def optimize(dice: random.Random, table: Table) -> list[Statement]:
    name = table.name
    choices = [
        ("whole", f"OPTIMIZE {name}"),
        ("whole", f"OPTIMIZE {name}"),
        ("WHERE", f"OPTIMIZE {name} WHERE p >= 2"),
        ("WHERE data column", f"OPTIMIZE {name} WHERE id >= 2"),
        ("WHERE unknown column", f"OPTIMIZE {name} WHERE nope = 2"),
        ("ZORDER", f"OPTIMIZE {name} ZORDER BY (id)"),
        ("ZORDER two", f"OPTIMIZE {name} ZORDER BY (id, {table.columns[1].name})"),
        ("ZORDER unknown", f"OPTIMIZE {name} ZORDER BY (nope)"),
        ("ZORDER partition", f"OPTIMIZE {name} ZORDER BY (p)"),
        ("FULL", f"OPTIMIZE {name} FULL"),
        ("unknown table", f"OPTIMIZE {name}_none"),
        ("syntax", f"OPTIMIZE {name} ZORDER (id)"),
    ]
    kind, text = dice.choice(choices)
    return [rows(dice, table), Statement(f"OPTIMIZE {kind}", text)]


def vacuum(dice: random.Random, table: Table) -> list[Statement]:
    name = table.name
    choices = [
        ("plain", f"VACUUM {name}"),
        ("DRY RUN", f"VACUUM {name} DRY RUN"),
        ("RETAIN 200", f"VACUUM {name} RETAIN 200 HOURS"),
        ("too soon", f"VACUUM {name} RETAIN 0 HOURS"),
        ("negative", f"VACUUM {name} RETAIN -1 HOURS"),
        ("LITE", f"VACUUM {name} LITE"),
        ("unknown table", f"VACUUM {name}_none"),
        ("syntax", f"VACUUM {name} RETAIN HOURS"),
    ]
    if dice.random() < 0.4:
        mode = dice.choice(["", " DRY RUN"])
        return [
            Statement("SET", f"SET {CHECK}=false"),
            Statement(f"VACUUM all{mode}", f"VACUUM {name} RETAIN 0 HOURS{mode}"),
            Statement("SET", f"SET {CHECK}=true"),
        ]
    kind, text = dice.choice(choices)
    return [Statement(f"VACUUM {kind}", text)]


def restore(dice: random.Random, table: Table) -> Statement:
    name = table.name
    choices = [
        ("version", f"RESTORE TABLE {name} TO VERSION AS OF 1"),
        ("first version", f"RESTORE {name} VERSION AS OF 0"),
        ("another version", f"RESTORE TABLE {name} TO VERSION AS OF {dice.randrange(2, 5)}"),
        ("no such version", f"RESTORE TABLE {name} TO VERSION AS OF 99"),
        ("negative version", f"RESTORE TABLE {name} TO VERSION AS OF -1"),
        ("early time", f"RESTORE TABLE {name} TO TIMESTAMP AS OF '1999-01-01'"),
        ("no time", f"RESTORE TABLE {name} TO TIMESTAMP AS OF 'soon'"),
        ("unknown table", f"RESTORE TABLE {name}_none TO VERSION AS OF 0"),
    ]
    weights = [4, 2, 4, 1, 1, 1, 1, 1]
    kind, text = dice.choices(choices, weights)[0]
    return Statement(f"RESTORE {kind}", text)


def reorg(dice: random.Random, table: Table) -> Statement:
    where = dice.choice(["", " WHERE p < 3", " WHERE id < 3"])
    return Statement(f"REORG{where}", f"REORG TABLE {table.name}{where} APPLY (PURGE)")


def clone(dice: random.Random, table: Table) -> list[Statement]:
    name = f"db.clone{_new(dice)}"
    at = dice.choice(["", " VERSION AS OF 1", " VERSION AS OF 99"])
    verb = dice.choice(["CREATE TABLE", "CREATE OR REPLACE TABLE", "REPLACE TABLE", "CREATE TABLE IF NOT EXISTS"])
    return [
        Statement(f"{verb} CLONE{at}", f"{verb} {name} SHALLOW CLONE {table.name}{at}"),
        Statement("SELECT of a clone", f"SELECT * FROM {name}"),
        Statement("DELETE of a clone", f"DELETE FROM {name} WHERE id < 3"),
        Statement("DESCRIBE HISTORY of a clone", f"DESCRIBE HISTORY {name}"),
        Statement("DROP TABLE IF EXISTS", f"DROP TABLE IF EXISTS {name}"),
    ]


def convert(dice: random.Random, table: Table) -> list[Statement]:
    name = f"db.parquet{_new(dice)}"
    by = dice.choice(["", " PARTITIONED BY (k)"])
    partitioned = dice.choice([by, by, " PARTITIONED BY (k INT)"])
    return [
        Statement(
            "CREATE parquet",
            f"CREATE TABLE {name} USING parquet{by} AS SELECT id, CAST(id % 2 AS INT) AS k FROM range(0, 4, 1, 1)",
        ),
        Statement("CONVERT TO DELTA", f"CONVERT TO DELTA {name}{partitioned if '(k INT)' in partitioned else ''}"),
        Statement("SELECT of a converted table", f"SELECT * FROM {name}"),
        Statement("DESCRIBE HISTORY of a converted table", f"DESCRIBE HISTORY {name}"),
        Statement("DROP TABLE IF EXISTS", f"DROP TABLE IF EXISTS {name}"),
    ]


def generate(dice: random.Random, table: Table) -> Statement:
    mode = dice.choice(["symlink_format_manifest", "symlink_format_manifest", "nope"])
    return Statement(f"GENERATE {mode}", f"GENERATE {mode} FOR TABLE {table.name}")


def described(dice: random.Random, table: Table) -> Statement:
    name = table.name
    choices = [
        ("DESCRIBE HISTORY", f"DESCRIBE HISTORY {name}"),
        ("DESCRIBE HISTORY LIMIT", f"DESCRIBE HISTORY {name} LIMIT 2"),
        ("DESCRIBE HISTORY unknown", f"DESCRIBE HISTORY {name}_none"),
        ("DESCRIBE DETAIL", f"DESCRIBE DETAIL {name}"),
        ("SELECT: a version", f"SELECT * FROM {name} VERSION AS OF {dice.randrange(4)}"),
        ("SELECT: no such version", f"SELECT * FROM {name} VERSION AS OF 77"),
        ("SELECT: a future time", f"SELECT * FROM {name} TIMESTAMP AS OF '2999-01-01'"),
        ("SELECT: a past time", f"SELECT * FROM {name} TIMESTAMP AS OF '2001-01-01'"),
        ("SELECT: no time", f"SELECT * FROM {name} TIMESTAMP AS OF 'soon'"),
        ("SHOW PARTITIONS", f"SHOW PARTITIONS {name}"),
        ("CACHE TABLE", f"CACHE TABLE {name}"),
        ("UNCACHE TABLE", f"UNCACHE TABLE IF EXISTS {name}"),
        ("REFRESH TABLE", f"REFRESH TABLE {name}"),
    ]
    kind, text = dice.choice(choices)
    return Statement(kind, text)


MAKERS: list[tuple[int, Maker]] = [
    (6, change), (7, optimize), (5, vacuum), (6, restore), (2, reorg), (2, clone), (1, convert), (1, generate),
    (6, described),
]  # fmt: skip
