"""Sequences of generated SQL statements: several tables one after the other, each with a number of statements."""

import random
import re
from typing import NamedTuple

from . import sql_maintenance_statements, sql_row_statements, sql_table_statements
from .sql_grammar import Statement, Table, any_table, chosen

SUBJECTS = {
    "rows": sql_row_statements.MAKERS,
    "tables": sql_table_statements.MAKERS,
    "maintenance": sql_maintenance_statements.MAKERS,
}
SETTINGS = (sql_row_statements.DYNAMIC, sql_maintenance_statements.CHECK)
"""The settings that statements change."""
_TABLES = 3
_STATEMENTS = 14


class Sequence(NamedTuple):
    """`tables`: the directory of each table, by its name in SQL."""

    database: str
    statements: list[Statement]
    tables: dict[str, str]


def sequence(subject: str, seed: int) -> Sequence:
    """The sequence of a seed. Its database has a name of its own: delta-spark keeps tables of a dropped one in mind."""
    dice = random.Random(f"{subject} {seed}")
    statements = [Statement("CREATE DATABASE", "CREATE DATABASE db LOCATION '{root}/db'")]
    directories: dict[str, str] = {}
    for number in range(_TABLES):
        name, directory = _place(dice, number)
        directories[name] = directory
        table = any_table(dice, name)
        statements += _create(dice, table)
        end = len(statements) + _STATEMENTS
        while len(statements) < end:
            statements += chosen(dice, SUBJECTS[subject], table)
    database = f"{subject}_{seed}"
    renamed = [one._replace(text=_in_database(one.text, database)) for one in statements]
    tables = {_in_database(name, database): _in_database(place, database) for name, place in directories.items()}
    return Sequence(database, renamed, tables)


def _in_database(text: str, database: str) -> str:
    return re.sub(r"\bdb\b", database, text)


def _place(dice: random.Random, number: int) -> tuple[str, str]:
    if dice.random() < 0.3:
        return f"delta.`{{root}}/paths/t{number}`", f"paths/t{number}"
    return f"db.t{number}", f"db/t{number}"


def _create(dice: random.Random, table: Table) -> list[Statement]:
    names = ", ".join(one.name for one in table.written)
    comment = dice.choice(["", " COMMENT 'a table'"])
    load = Statement("INSERT columns", f"INSERT INTO {table.name} ({names}) {table.rows(0, 20)}")
    return [Statement("CREATE", table.create(more=comment)), load]
