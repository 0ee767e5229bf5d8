"""Checks the text of an SQL expression without Spark's parser, which a Connect client can't reach.

It accepts less than Spark does. An accepted text is an expression over one row: it has only columns of the table,
literals, operators and functions of `DETERMINISTIC`. So evaluating it twice gives the same result, and it runs no code
of another writer. A text that isn't valid SQL may be accepted: Spark refuses it later.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from .functions import DETERMINISTIC

_TOKEN = re.compile(
    r"""
    (?P<space>\s+)
    | (?P<text>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")
    | (?P<quoted>`(?:[^`]|``)+`)
    | (?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?:BD|[LSYDF])?(?![A-Za-z_0-9]))
    | (?P<word>[A-Za-z_][A-Za-z_0-9]*)
    | (?P<symbol><=>|<>|!=|==|<=|>=|\|\||[-+*/%=<>!&|^~(),.\[\]])
    """,
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_COMMENT = re.compile(r"--|/\*")
_KEYWORDS = frozenset(
    "and or not is null true false in between like ilike rlike regexp case when then else end escape div "
    "interval".split()
)
_QUERY = frozenset("select from with values table lateral over union".split())
"""Words of queries. A column with such a name must be quoted."""
_BEFORE_PARENTHESIS = frozenset("and or not in is like ilike rlike regexp between when then else case end div".split())
_LITERALS = frozenset("date timestamp timestamp_ntz timestamp_ltz x".split())
_UNITS = frozenset(
    f"{unit}{plural}"
    for unit in "year month week day hour minute second millisecond microsecond quarter".split()
    for plural in ("", "s")
)
_TYPES = frozenset(
    "boolean byte tinyint short smallint int integer long bigint float real double string binary date timestamp "
    "timestamp_ntz timestamp_ltz decimal dec numeric char varchar".split()
)


@dataclass(frozen=True)
class Text:
    """The result of a check. `refused`: why the expression isn't evaluated, or `None`.

    `columns` are the parts of each name in it, without an alias of the table.
    """

    refused: str | None
    columns: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class ExpressionToken:
    """A token. `kind` is text, quoted (a name in backticks), number, word or symbol."""

    kind: str
    text: str

    @property
    def word(self) -> str:
        """A word in lower case; empty for other kinds."""
        return self.text.lower() if self.kind == "word" else ""

    @property
    def name(self) -> str:
        """The name without backticks."""
        return self.text[1:-1].replace("``", "`") if self.kind == "quoted" else self.text

    @property
    def is_name(self) -> bool:
        return self.kind in ("word", "quoted")


class Refused(Exception):
    """The text can't be checked; the message says why."""


def check(sql: str, columns: Collection[str], qualifiers: Collection[str] = (), trusted: Collection[str] = ()) -> Text:
    """Check an expression over the top-level `columns`, which it may qualify by `qualifiers` (aliases of tables).

    `trusted` are more functions that it may call, in lower case.
    """
    try:
        return Text(None, tuple(_names(tokens_of(sql), columns, qualifiers, frozenset(trusted))))
    except Refused as error:
        return Text(str(error))


def name_parts(name: str) -> tuple[str, ...] | None:
    """The parts of a column's name; `None` if the text isn't a name."""
    try:
        tokens = tokens_of(name)
    except Refused:
        return None
    names = tokens[::2]
    if len(tokens) % 2 == 0 or not all(token.is_name for token in names):
        return None
    if any(token.text != "." for token in tokens[1::2]):
        return None
    return tuple(token.name for token in names)


def names_in(sql: str) -> Iterator[tuple[str, ...]]:
    """The names in an expression that may be those of columns: rather too many than too few. Raises Refused."""
    tokens = tokens_of(sql)
    at = 0
    while at < len(tokens):
        if not tokens[at].is_name:
            at += 1
            continue
        path, end = _path(tokens, at)
        if end == len(tokens) or tokens[end].text != "(":
            yield path
        at = end


def tokens_of(sql: str) -> list[ExpressionToken]:
    """The tokens of a text, without spaces. Raises Refused."""
    tokens, at = [], 0
    while at < len(sql):
        if _COMMENT.match(sql, at):
            raise Refused("it has a comment")
        match = _TOKEN.match(sql, at)
        if match is None:
            raise Refused(f"it has {sql[at : at + 10]!r}, which tablelog can't check without Spark's parser")
        at = match.end()
        if match.lastgroup != "space":
            tokens.append(ExpressionToken(str(match.lastgroup), match[0]))
    return tokens


def _names(
    tokens: Sequence[ExpressionToken], columns: Collection[str], qualifiers: Collection[str], trusted: frozenset[str]
) -> Iterator[tuple[str, ...]]:
    known = {name.lower() for name in columns}
    tables = {name.lower() for name in qualifiers}
    last = ExpressionToken("", "")
    at = 0
    while at < len(tokens):
        token = tokens[at]
        following = tokens[at + 1] if at + 1 < len(tokens) else last
        if token.kind == "text" and following.text == "(":
            raise Refused("it has a parenthesis after a text")
        if not token.is_name:
            at += 1
            continue
        if token.word in ("cast", "try_cast") and following.text == "(":
            _check_cast(tokens, at + 1)
            at += 2
            continue
        if token.word == "as":  # `_check_cast` has checked the type that follows
            at = _end_of_type(tokens, at + 1)
            continue
        if token.word == "is" and [one.word for one in tokens[at + 1 : at + 4]][-3:] == ["not", "distinct", "from"]:
            at += 4
            continue
        if token.word == "is" and [one.word for one in tokens[at + 1 : at + 3]] == ["distinct", "from"]:
            at += 3
            continue
        if (token.word in _LITERALS and following.kind == "text") or _is_unit(tokens, at):
            at += 1
            continue
        if token.word in _QUERY:
            raise Refused(f"it has the word {token.text}, as in a query: quote a column with this name by backticks")
        path, end = _path(tokens, at)
        after = tokens[end] if end < len(tokens) else last
        if after.text == "(":
            called = ".".join(path).lower()
            known_word = called in _BEFORE_PARENTHESIS and token.kind == "word"
            if not known_word and called not in DETERMINISTIC and called not in trusted:
                raise Refused(
                    f"it calls {'.'.join(path)}, which isn't one of Spark's functions that tablelog knows to give the "
                    "same result each time"
                )
            at = end
            continue
        if len(path) == 1 and token.kind == "word" and path[0].lower() not in known and token.word in _KEYWORDS:
            at = end
            continue
        if len(path) > 1 and path[0].lower() in tables:
            path = path[1:]
        if path[0].lower() not in known:
            raise Refused(f"{'.'.join(path)} in it is no column")
        yield path
        at = end


def _path(tokens: Sequence[ExpressionToken], at: int) -> tuple[tuple[str, ...], int]:
    """The parts of the name that starts here, and the position after it."""
    parts = [tokens[at].name]
    at += 1
    while at + 1 < len(tokens) and tokens[at].text == "." and tokens[at + 1].is_name:
        parts.append(tokens[at + 1].name)
        at += 2
    return tuple(parts), at


def _is_unit(tokens: Sequence[ExpressionToken], at: int) -> bool:
    """Whether the word is the unit of an interval literal: `interval 3 days`, `interval '3' day`."""
    before = tokens[max(at - 3, 0) : at]
    if tokens[at].word not in _UNITS:
        return False
    return len(before) >= 2 and before[-1].kind in ("number", "text") and any(one.word == "interval" for one in before)


def _check_cast(tokens: Sequence[ExpressionToken], at: int) -> None:
    """Raise unless the parentheses that open here have `... AS type)` with a simple type."""
    depth = 0
    for i in range(at, len(tokens)):
        text = tokens[i].text
        depth += (text == "(") - (text == ")")
        if depth == 1 and tokens[i].word == "as":
            end = _end_of_type(tokens, i + 1)
            if end < len(tokens) and tokens[end].text == ")":
                return
            raise Refused("it has a cast to a type that tablelog can't check without Spark's parser")
        if depth == 0:
            break
    raise Refused("it has a cast without AS")


def _end_of_type(tokens: Sequence[ExpressionToken], at: int) -> int:
    if at >= len(tokens) or tokens[at].word not in _TYPES:
        raise Refused("it has AS, but no simple type follows")
    at += 1
    if at < len(tokens) and tokens[at].text == "(":
        while at < len(tokens) and tokens[at].text != ")":
            if tokens[at].kind not in ("number", "symbol"):
                raise Refused("it has a type that tablelog can't check without Spark's parser")
            at += 1
        at += 1
    return at
