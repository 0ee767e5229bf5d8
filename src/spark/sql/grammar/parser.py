"""The rules of the grammar: one function for each statement of Delta's own."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from ....engine.jvm.statements.lexer import Token
from ....errors import InvalidArgumentError
from .cursor import Cursor
from .errors import syntax_error
from .nodes import (
    AsOf,
    Clone,
    Convert,
    DescribeDetail,
    DescribeHistory,
    DropFeature,
    Generate,
    Literal,
    Name,
    NameExpression,
    Node,
    Optimize,
    Parsed,
    Reorg,
    Restore,
    SyncIdentity,
    Target,
    Vacuum,
    Value,
)

_T = TypeVar("_T")

_TABLE = "the name of a table"
_TARGET = "the name or, as a string, the path of a table"


class _NotOwnError(Exception):
    """The statement is none of Delta's own, though it begins like one."""


def parse(text: str, tokens: Sequence[Token]) -> Parsed | None:
    """Parse a statement; None if it is none of Delta's own.

    Raises:
        InvalidArgumentError: it doesn't fit the grammar; the message has the position and what was expected.
    """
    cursor = Cursor(text, tokens)
    leading = cursor.token()
    rule = _RULES.get(leading.text.upper())
    if rule is None:
        return None
    try:
        node = rule(cursor)
    except _NotOwnError:
        return None
    return Parsed(text, node, cursor.questions)


# --- VACUUM, OPTIMIZE, REORG --------------------------------------------------------------------------------------


def _vacuum(cursor: Cursor) -> Vacuum:
    cursor.expect("VACUUM")
    table = _target(cursor)
    starts: dict[str, int] = {}
    mode, inventory, hours = None, None, None
    while True:
        start = cursor.token().start
        if cursor.accept("LITE") or cursor.accept("FULL"):
            clause = "LITE/FULL"
            mode = cursor.text[start : start + 4].upper()
        elif cursor.accept("USING"):
            clause = "INVENTORY"
            cursor.expect("INVENTORY")
            inventory = cursor.expect_in_brackets("a query") if cursor.sees("(") else _table(cursor)
        elif cursor.accept("RETAIN"):
            clause = "RETAIN"
            hours = cursor.expect_number("a number of hours")
            cursor.expect("HOURS")
        elif cursor.accept("DRY"):
            clause = "DRY RUN"
            cursor.expect("RUN")
        else:
            break
        if clause in starts:
            problem = f"the clause {clause} is repeated"
            raise syntax_error(cursor.text, start, clause, problem, "DUPLICATE_CLAUSES")
        starts[clause] = start
    cursor.expect_end("LITE, FULL, USING INVENTORY, RETAIN, DRY RUN or ")
    if inventory is not None and mode == "LITE":
        start = starts["INVENTORY"]
        problem = "VACUUM LITE takes no inventory: leave out one of them"
        raise syntax_error(cursor.text, start, "USING", problem, "INVALID_STATEMENT_OR_CLAUSE")
    return Vacuum(table, "LITE" if mode == "LITE" else "FULL" if mode else None, inventory, hours, "DRY RUN" in starts)


def _optimize(cursor: Cursor) -> Optimize:
    cursor.expect("OPTIMIZE")
    table = _target(cursor)
    full = cursor.accept("FULL")
    where = None
    if cursor.accept("WHERE"):
        where = cursor.expect_until(lambda: cursor.sees("ZORDER", "BY"), "a condition")
    columns: list[Name] = []
    if cursor.accept("ZORDER"):
        cursor.expect("BY")
        bracket = cursor.accept("(")
        columns.append(cursor.expect_name("the name of a column"))
        while cursor.accept(","):
            columns.append(cursor.expect_name("the name of a column"))
        if bracket:
            cursor.expect(")")
        cursor.expect_end("")
    else:
        cursor.expect_end("FULL, WHERE, ZORDER BY or " if where is None else "")
    return Optimize(table, full, where, tuple(columns))


def _reorg(cursor: Cursor) -> Reorg:
    cursor.expect("REORG", "TABLE")
    table = _table(cursor)
    where = None
    if cursor.accept("WHERE"):
        where = cursor.expect_until(lambda: cursor.sees("APPLY", "("), "a condition")
    cursor.expect("APPLY")
    applied = cursor.expect_in_brackets("PURGE")
    cursor.expect_end("")
    return Reorg(table, " ".join(applied.text.upper().split()), where)


# --- DESCRIBE, GENERATE, CONVERT, RESTORE -------------------------------------------------------------------------


def _describe(cursor: Cursor) -> DescribeDetail | DescribeHistory:
    if not cursor.accept("DESC"):
        cursor.expect("DESCRIBE")
    if cursor.accept("DETAIL"):
        table = _target(cursor)
        cursor.expect_end("")
        return DescribeDetail(table)
    if not cursor.accept("HISTORY"):
        raise _NotOwnError
    table = _target(cursor)
    limit = None
    if cursor.accept("LIMIT"):
        limit = cursor.accept_integer()
        if limit is None:
            raise cursor.fail("a number of versions")
        cursor.expect_end("")
    else:
        cursor.expect_end("LIMIT or ")
    return DescribeHistory(table, limit)


def _generate(cursor: Cursor) -> Generate:
    cursor.expect("GENERATE")
    mode = cursor.expect_word("symlink_format_manifest")
    cursor.expect("FOR", "TABLE")
    table = _table(cursor)
    cursor.expect_end("")
    return Generate(mode, table)


def _convert(cursor: Cursor) -> Convert:
    cursor.expect("CONVERT", "TO", "DELTA")
    table = _table(cursor, f"parquet.`/path` or {_TABLE}")
    statistics, columns = True, None
    if cursor.accept("NO"):
        cursor.expect("STATISTICS")
        statistics = False
    if cursor.accept("PARTITIONED"):
        cursor.expect("BY")
        columns = cursor.expect_in_brackets("a column with its type")
        cursor.expect_end("")
    else:
        cursor.expect_end("NO STATISTICS, PARTITIONED BY or " if statistics else "PARTITIONED BY or ")
    return Convert(table, statistics, columns)


def _restore(cursor: Cursor) -> Restore:
    cursor.expect("RESTORE")
    cursor.accept("TABLE")
    table = _table(cursor)
    cursor.accept("TO")
    at = _accept_as_of(cursor)
    if at is None:
        raise cursor.fail("VERSION AS OF or TIMESTAMP AS OF")
    cursor.expect_end("")
    return Restore(table, at)


def _accept_as_of(cursor: Cursor) -> AsOf | None:
    words = ("VERSION", "SYSTEM_VERSION", "TIMESTAMP", "SYSTEM_TIME")
    if not any(cursor.sees("FOR", word) or cursor.sees(word) for word in words):
        return None
    cursor.accept("FOR")
    if cursor.accept("VERSION") or cursor.accept("SYSTEM_VERSION"):
        cursor.expect("AS", "OF")
        version = cursor.accept_integer() or cursor.accept_string()
        if version is None:
            raise cursor.fail("the number of a version")
        return AsOf(version=version)
    if not cursor.accept("TIMESTAMP"):
        cursor.expect("SYSTEM_TIME")
    cursor.expect("AS", "OF")
    return AsOf(timestamp=cursor.expect_string("a timestamp"))


# --- ALTER TABLE --------------------------------------------------------------------------------------------------


def _alter(cursor: Cursor) -> DropFeature | SyncIdentity:
    table = _own_or_not(cursor, _altered_table)
    if cursor.accept("DROP", "FEATURE"):
        feature = cursor.accept_string() or cursor.expect_word("the name of a feature")
        truncate = cursor.accept("TRUNCATE")
        if truncate:
            cursor.expect("HISTORY")
        cursor.expect_end("" if truncate else "TRUNCATE HISTORY or ")
        return DropFeature(table, feature, truncate)
    column = _own_or_not(cursor, _altered_column)
    cursor.expect("IDENTITY")
    cursor.expect_end("")
    return SyncIdentity(table, column)


def _altered_table(cursor: Cursor) -> Name:
    cursor.expect("ALTER", "TABLE")
    return _table(cursor)


def _altered_column(cursor: Cursor) -> Name:
    if not cursor.accept("ALTER"):
        cursor.expect("CHANGE")
    if not cursor.sees("COLUMN", "SYNC"):
        cursor.accept("COLUMN")
    column = cursor.expect_name("the name of a column")
    cursor.expect("SYNC")
    return column


# --- CLONE --------------------------------------------------------------------------------------------------------


def _clone(cursor: Cursor) -> Clone:
    creates, replaces, if_not_exists, table = _own_or_not(cursor, _clone_header)
    shallow = cursor.accept("SHALLOW")
    if not shallow:
        cursor.accept("DEEP")
    cursor.expect("CLONE")
    source = _table(cursor)
    at = _accept_as_of(cursor)
    properties: tuple[tuple[str | Literal, str | Value], ...] = ()
    following = "VERSION AS OF, TIMESTAMP AS OF, TBLPROPERTIES, LOCATION or " if at is None else "LOCATION or "
    if cursor.accept("TBLPROPERTIES"):
        properties, following = _properties(cursor), "LOCATION or "
    location = None
    if cursor.accept("LOCATION"):
        location, following = cursor.expect_string("a path"), ""
    cursor.expect_end(following)
    return Clone(table, source, creates, replaces, if_not_exists, not shallow, at, properties, location)


def _clone_header(cursor: Cursor) -> tuple[bool, bool, bool, Name]:
    creates = cursor.accept("CREATE")
    replaces = cursor.accept("OR", "REPLACE") if creates else cursor.accept("REPLACE")
    cursor.expect("TABLE")
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    table = _table(cursor)
    if not (cursor.sees("SHALLOW", "CLONE") or cursor.sees("DEEP", "CLONE") or cursor.sees("CLONE")):
        raise _NotOwnError
    if if_not_exists and replaces:
        raise syntax_error(
            cursor.text,
            cursor.token().start,
            cursor.token().text,
            "IF NOT EXISTS and REPLACE exclude each other: leave out one of them",
            "DELTA_PARSING_MUTUALLY_EXCLUSIVE_CLAUSES",
        )
    return creates, replaces, if_not_exists, table


def _properties(cursor: Cursor) -> tuple[tuple[str | Literal, str | Value], ...]:
    cursor.expect("(")
    properties = [_property(cursor)]
    while cursor.accept(","):
        properties.append(_property(cursor))
    cursor.expect(")")
    return tuple(properties)


def _property(cursor: Cursor) -> tuple[str | Literal, str | Value]:
    key: str | Literal
    name = cursor.accept_string()
    if isinstance(name, Literal):
        key = name
    elif name is not None:
        raise syntax_error(cursor.text, name.start, ":" if name.name else "?", "expected the key of a property")
    else:
        words = [cursor.expect_word("the key of a property")]
        while cursor.accept("."):
            words.append(cursor.expect_word("the next part of the key"))
        key = ".".join(words)
    if not cursor.accept("="):
        cursor.accept("==")
    if cursor.sees("TRUE") or cursor.sees("FALSE"):
        return key, cursor.expect_word("a value").lower()
    value = cursor.accept_string()
    if value is not None:
        return key, value
    number = cursor.expect_number("the value of the property")
    return key, number.text if isinstance(number, Literal) else number


# --- helpers ------------------------------------------------------------------------------------------------------


def _target(cursor: Cursor) -> Target:
    return cursor.accept_string() or _table(cursor, _TARGET)


def _table(cursor: Cursor, what: str = _TABLE) -> Name:
    if not cursor.sees("IDENTIFIER", "("):
        return cursor.expect_name(what)
    cursor.expect("IDENTIFIER")
    expression = cursor.expect_in_brackets(f"{_TABLE} as a string")
    return NameExpression(expression.text, expression.start)


def _own_or_not(cursor: Cursor, rule: Callable[[Cursor], _T]) -> _T:
    """What the rule gives; the statement is none of Delta's own if it doesn't fit, and Spark's error says more."""
    try:
        return rule(cursor)
    except InvalidArgumentError as error:
        if error.condition != "PARSE_SYNTAX_ERROR":
            raise
        raise _NotOwnError from None


_RULES: Mapping[str, Callable[[Cursor], Node]] = {
    "VACUUM": _vacuum,
    "OPTIMIZE": _optimize,
    "REORG": _reorg,
    "DESC": _describe,
    "DESCRIBE": _describe,
    "GENERATE": _generate,
    "CONVERT": _convert,
    "RESTORE": _restore,
    "ALTER": _alter,
    "CREATE": _clone,
    "REPLACE": _clone,
}
