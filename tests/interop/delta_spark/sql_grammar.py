"""What the generated SQL statements are made of: columns, tables, and the values that go into them."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

# By the type of a column: its value as an expression over a number `id`.
TYPES: dict[str, str] = {
    "BIGINT": "CAST(id AS BIGINT)",
    "INT": "CAST(id % 7 AS INT)",
    "SMALLINT": "CAST(id % 9 AS SMALLINT)",
    "STRING": "concat('s', id % 5)",
    "VARCHAR(6)": "concat('v', id % 5)",
    "DATE": "date_add(DATE'2024-01-30', CAST(id % 3 AS INT))",
    "TIMESTAMP": "timestamp_seconds(1700000000 + id * 3600)",
    "DECIMAL(10,2)": "CAST(id * 1.25 AS DECIMAL(10,2))",
    "BOOLEAN": "id % 2 = 0",
    "DOUBLE": "CAST(id AS DOUBLE) / 4",
    "STRUCT<a: INT, b: STRING>": "named_struct('a', CAST(id AS INT), 'b', concat('b', id % 3))",
    "ARRAY<INT>": "array(CAST(id AS INT), NULL)",
    "MAP<STRING, INT>": "map('k', CAST(id AS INT))",
}
STRUCT = "STRUCT<a: INT, b: STRING>"
PLAIN = ["BIGINT", "INT", "SMALLINT", "STRING", "VARCHAR(6)", "DATE", "TIMESTAMP", "DECIMAL(10,2)", "BOOLEAN", "DOUBLE"]


class Statement(NamedTuple):
    """`kind` names what the statement tries, in words that the list of differences uses. `text` has `{root}` in it."""

    kind: str
    text: str


@dataclass
class Column:
    """`clause` follows the type: NOT NULL, DEFAULT, GENERATED, COMMENT."""

    name: str
    type: str
    clause: str = ""

    @property
    def computed(self) -> bool:
        """Whether the table makes the value itself."""
        return "GENERATED ALWAYS" in self.clause

    @property
    def definition(self) -> str:
        return f"{self.name} {self.type} {self.clause}".strip()

    def value(self) -> str:
        return TYPES[self.type]


@dataclass
class Table:
    """A table as the generator believes it to be; a statement that fails may leave it otherwise."""

    name: str
    columns: list[Column]
    partition_by: tuple[str, ...] = ()
    cluster_by: tuple[str, ...] = ()
    properties: dict[str, str] = field(default_factory=dict)
    versions: int = 0

    @property
    def written(self) -> list[Column]:
        return [column for column in self.columns if not column.computed]

    def column(self, dice: random.Random, *types: str) -> Column | None:
        """Any column that isn't computed, of one of the types if there are some."""
        fitting = [one for one in self.written if not types or one.type in types]
        return dice.choice(fitting) if fitting else None

    def create(self, verb: str = "CREATE TABLE", more: str = "") -> str:
        columns = ", ".join(column.definition for column in self.columns)
        return f"{verb} {self.name} ({columns}) USING delta{self.layout()}{more}{self.table_properties()}"

    def layout(self) -> str:
        if self.partition_by:
            return f" PARTITIONED BY ({', '.join(self.partition_by)})"
        return f" CLUSTER BY ({', '.join(self.cluster_by)})" if self.cluster_by else ""

    def table_properties(self) -> str:
        listed = ", ".join(f"'{key}' = '{value}'" for key, value in self.properties.items())
        return f" TBLPROPERTIES ({listed})" if listed else ""

    def rows(self, first: int, count: int, columns: list[Column] | None = None, **changed: str) -> str:
        """A query with `count` rows in one file. `changed` has other expressions for some columns."""
        chosen = self.written if columns is None else columns
        values = ", ".join(f"{changed.get(one.name, one.value())} AS {one.name}" for one in chosen)
        return f"SELECT {values} FROM range({first}, {first + count}, 1, 1)"

    def literals(self, number: int, columns: list[Column] | None = None) -> list[str]:
        """One row of VALUES."""
        chosen = self.written if columns is None else columns
        return [one.value().replace("id", str(number)) for one in chosen]


def any_columns(dice: random.Random) -> list[Column]:
    """A key and some columns of any types; among them a default, a comment, NOT NULL, a generated column."""
    columns = [Column("id", "BIGINT", dice.choice(["", "", "NOT NULL", "COMMENT 'the key'"]))]
    for name in ("p", "s", "v", "w")[: dice.randrange(2, 5)]:
        kind = {"p": "INT", "s": "STRING"}.get(name) or dice.choice(PLAIN)
        clause = dice.choice(["", "", "", f"COMMENT 'column {name}'"])
        columns.append(Column(name, kind, clause))
    for name, kind in (("st", STRUCT), ("li", "ARRAY<INT>"), ("ma", "MAP<STRING, INT>")):
        if dice.random() < 0.3:
            columns.append(Column(name, kind))
    if dice.random() < 0.25:
        columns.append(Column("g", "BIGINT", "GENERATED ALWAYS AS (id * 10)"))
    elif dice.random() < 0.2:
        columns.append(
            Column("k", "BIGINT", f"GENERATED {dice.choice(['ALWAYS', 'BY DEFAULT'])} AS IDENTITY (START WITH 5)")
        )
    return columns


PROPERTIES = (
    {"delta.enableDeletionVectors": "true"},
    {"delta.enableChangeDataFeed": "true"},
    {"delta.columnMapping.mode": "name"},
    {"delta.enableRowTracking": "true"},
    {"delta.enableTypeWidening": "true"},
    {"delta.appendOnly": "false"},
    {"owner.team": "sales"},
)


def any_table(dice: random.Random, name: str) -> Table:
    columns = any_columns(dice)
    table = Table(name, columns)
    names = [one.name for one in columns]
    layout = dice.random()
    if layout < 0.4:
        table.partition_by = dice.choice([("p",), ("p",), ("s",), ("p", "s")]) if "s" in names else ("p",)
    elif layout < 0.55:
        table.cluster_by = dice.choice([("id",), ("id", "p")])
    table.properties = {key: value for one in PROPERTIES if dice.random() < 0.25 for key, value in one.items()}
    if dice.random() < 0.3:
        plain = [one for one in columns if one.type in ("INT", "STRING") and one.name in ("s", "v", "w")]
        if plain:
            value = "7" if plain[0].type == "INT" else "'none'"
            plain[0].clause = f"DEFAULT {value} {plain[0].clause}".strip()
            table.properties["delta.feature.allowColumnDefaults"] = "supported"
    return table


Maker = Callable[[random.Random, Table], "Statement | list[Statement]"]


def chosen(dice: random.Random, makers: list[tuple[int, Maker]], table: Table) -> list[Statement]:
    """The statements of one maker; the number is how often it is chosen."""
    weights = [weight for weight, _ in makers]
    made = dice.choices([maker for _, maker in makers], weights)[0](dice, table)
    return made if isinstance(made, list) else [made]
