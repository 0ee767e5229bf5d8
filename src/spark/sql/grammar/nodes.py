"""What the parser makes of Delta's own statements: one class for each statement."""

from dataclasses import dataclass
from typing import Literal as OneOf
from typing import TypeAlias


@dataclass(frozen=True)
class Span:
    """A part of a statement that Spark's parser parses. `start` is its place in the statement."""

    text: str
    start: int


@dataclass(frozen=True)
class Name(Span):
    """The name of a table or a column, of one or more parts."""


@dataclass(frozen=True)
class NameExpression(Name):
    """`IDENTIFIER(expression)`: the value of the expression is the name."""


@dataclass(frozen=True)
class Literal(Span):
    """A string, or a number."""


@dataclass(frozen=True)
class Marker:
    """A parameter marker: `:name`, or `?` as the one with the number `ordinal`, counted from 0."""

    name: str | None
    ordinal: int
    start: int


Value: TypeAlias = Literal | Marker
Target: TypeAlias = Name | Value
"""A table by its name, or by its path as a string."""


@dataclass(frozen=True)
class Vacuum:
    """VACUUM. `inventory` is a table or a query in brackets."""

    table: Target
    mode: OneOf["FULL", "LITE"] | None = None
    inventory: Name | Span | None = None
    hours: Value | None = None
    dry_run: bool = False


@dataclass(frozen=True)
class DescribeDetail:
    """DESCRIBE DETAIL."""

    table: Target


@dataclass(frozen=True)
class DescribeHistory:
    """DESCRIBE HISTORY."""

    table: Target
    limit: Value | None = None


@dataclass(frozen=True)
class Generate:
    """GENERATE mode FOR TABLE."""

    mode: str
    table: Name


@dataclass(frozen=True)
class Convert:
    """CONVERT TO DELTA. `partition_columns`: the list of columns with types."""

    table: Name
    statistics: bool = True
    partition_columns: Span | None = None


@dataclass(frozen=True)
class AsOf:
    """A version or a timestamp, one of them."""

    version: Value | None = None
    timestamp: Value | None = None


@dataclass(frozen=True)
class Restore:
    """RESTORE TABLE."""

    table: Name
    at: AsOf


@dataclass(frozen=True)
class DropFeature:
    """ALTER TABLE ... DROP FEATURE."""

    table: Name
    feature: str | Value
    truncate_history: bool = False


@dataclass(frozen=True)
class SyncIdentity:
    """ALTER TABLE ... ALTER COLUMN ... SYNC IDENTITY."""

    table: Name
    column: Name


@dataclass(frozen=True)
class Optimize:
    """OPTIMIZE."""

    table: Target
    full: bool = False
    where: Span | None = None
    zorder_by: tuple[Name, ...] = ()


@dataclass(frozen=True)
class Reorg:
    """REORG TABLE. `apply`: the words in the brackets after APPLY, such as PURGE."""

    table: Name
    apply: str
    where: Span | None = None


@dataclass(frozen=True)
class Clone:
    """CREATE TABLE or REPLACE TABLE ... SHALLOW CLONE. Properties that are numbers or booleans have their text."""

    table: Name
    source: Name
    creates: bool = True
    replaces: bool = False
    if_not_exists: bool = False
    deep: bool = False
    at: AsOf | None = None
    properties: tuple[tuple[str | Literal, str | Value], ...] = ()
    location: Value | None = None


Node: TypeAlias = (
    Vacuum
    | DescribeDetail
    | DescribeHistory
    | Generate
    | Convert
    | Restore
    | DropFeature
    | SyncIdentity
    | Optimize
    | Reorg
    | Clone
)


@dataclass(frozen=True)
class Parsed:
    """A statement: its text, its node, and the places of the `?` in it."""

    text: str
    node: Node
    questions: tuple[int, ...] = ()

    def in_place(self, part: Span) -> str:
        """The part with white space before it, so that it lies where it does in the statement.

        So Spark's parser counts lines and positions as the user does.
        """
        before = self.text[: part.start]
        return "".join(char if char in "\r\n" else " " for char in before) + part.text
