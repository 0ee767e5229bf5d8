"""Finds the directories and tables that an SQL statement would write to, without Spark's parser.

It looks for words of Spark's grammar, also inside scripts and the texts of EXECUTE IMMEDIATE. It may find a directory
that the statement doesn't write to; the caller refuses only directories of Delta tables.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

_TOKEN = re.compile(
    r"""
    (?P<space>\s+|--(?:\\\n|[^\n])*)
    | (?P<raw>[rR](?:'[^']*'|"[^"]*"))
    | (?P<text>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")
    | (?P<quoted>`(?:[^`]|``)*`)
    | (?P<marker>:\w+|\?)
    | (?P<word>\w+)
    | (?P<symbol>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_BEFORE_DIRECTORY = ("location", "directory", "inpath")
_OPTION_OF_DIRECTORY = ("path", "location")
_DROP_SCHEMA = (["drop", "schema"], ["drop", "database"], ["drop", "namespace"])
_DEEPEST = 5  # of texts of EXECUTE IMMEDIATE inside each other


@dataclass(frozen=True)
class StatementToken:
    """A token. `kind` is raw or text (a literal), quoted (a name), marker (of a parameter), word or symbol."""

    kind: str
    text: str

    @property
    def word(self) -> str:
        return self.text.lower() if self.kind == "word" else ""

    @property
    def is_literal(self) -> bool:
        return self.kind in ("raw", "text", "marker")

    @property
    def values(self) -> set[str]:
        """What a literal may mean, by Spark's settings for escapes and repeated quotes."""
        inner = self.text[2:-1] if self.kind == "raw" else self.text[1:-1]
        if self.kind == "raw":
            return {inner}
        quote = self.text[0]
        spelled = {inner.replace(quote * 2, quote), inner.replace(quote * 2, "")}
        return spelled | {_ESCAPE.sub(r"\1", value) for value in spelled}


@dataclass(frozen=True)
class Written:
    """What a statement names: directories, and tables as SQL names them.

    `overwritten`: those of the directories whose files it deletes. `unknown`: it has an INSERT OVERWRITE DIRECTORY
    whose directory the text doesn't say. `dropped_schemas`: those of a DROP SCHEMA without CASCADE.
    """

    directories: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    unknown: bool = False
    overwritten: frozenset[str] = frozenset()
    dropped_schemas: tuple[str, ...] = ()


NOTHING = Written()


Arguments: TypeAlias = Mapping[str, Any] | Sequence[Any] | None


def written(sql: str, arguments: Arguments = None, *, formatted: bool = False) -> Written:
    """What a statement may write to.

    Args:
        sql: The statement.
        arguments: The values of its parameters.
        formatted: Whether PySpark replaces names in braces before the server gets the text.
    """
    return _Search(arguments, formatted).of(tokens_of(sql))


class _Search:
    def __init__(self, arguments: Arguments, formatted: bool) -> None:
        self._arguments = arguments
        self._changed = ("${", "{") if formatted else ("${",)

    def of(self, tokens: Sequence[StatementToken], depth: int = 0) -> Written:
        directories: set[str] = set()
        overwritten: set[str] = set()
        tables: list[str] = []
        schemas: list[str] = []
        unknown = False
        for at, token in enumerate(tokens):
            before = [one.word for one in tokens[max(at - 2, 0) : at]]
            is_written = before[-1:] == ["overwrite"] or before == ["overwrite", "local"]
            overwrites = token.word == "directory" and is_written
            if token.word in _BEFORE_DIRECTORY:
                found = self._literal(tokens, at + 1)
                if overwrites and not found:
                    found = self._option(tokens, at + 1)
                directories |= found
                overwritten |= found if overwrites else set()
                unknown |= overwrites and not found
            elif token.word == "options":
                directories |= self._option(tokens, at)
            elif token.word == "immediate" and before[-1:] == ["execute"] and depth < _DEEPEST:
                for text in self._literal(tokens, at + 1):
                    inner = self.of(tokens_of(text), depth + 1)
                    directories |= set(inner.directories)
                    overwritten |= inner.overwritten
                    schemas += inner.dropped_schemas
                    tables += inner.tables
                    unknown |= inner.unknown
            else:
                tables += _table(tokens, at)
                schemas += _dropped_schema(tokens, at)
        return Written(
            tuple(sorted(directories)), tuple(dict.fromkeys(tables)), unknown, frozenset(overwritten), tuple(schemas)
        )

    def _literal(self, tokens: Sequence[StatementToken], at: int) -> set[str]:
        """The values of the literals here, which Spark joins; empty if there are none or they can't be known."""
        found = {""}
        end = at
        while end < len(tokens) and tokens[end].is_literal:
            values = self._values(tokens, end)
            if not values:
                return set()
            found = {before + value for before in found for value in values}
            end += 1
        return found if end > at else set()

    def _values(self, tokens: Sequence[StatementToken], at: int) -> set[str]:
        token = tokens[at]
        if token.kind != "marker":
            values = token.values
            return set() if any(mark in value for mark in self._changed for value in values) else values
        value: Any = None
        if isinstance(self._arguments, Mapping):
            value = self._arguments.get(token.text[1:])
        elif self._arguments is not None and token.text == "?":
            index = sum(one.text == "?" and one.kind == "marker" for one in tokens[:at])
            value = self._arguments[index] if index < len(self._arguments) else None
        return {value} if isinstance(value, str) else set()

    def _option(self, tokens: Sequence[StatementToken], at: int) -> set[str]:
        """The values of the options `path` and `location` in the parentheses after the next word OPTIONS."""
        ends = ("options", "select", "from")
        start = next((i for i in range(at, len(tokens)) if tokens[i].word in ends), len(tokens))
        if start + 1 >= len(tokens) or tokens[start].word != "options" or tokens[start + 1].text != "(":
            return set()
        found: set[str] = set()
        for i in range(start + 2, len(tokens)):
            if tokens[i].text == ")":
                break
            key = tokens[i].word or (tokens[i].text[1:-1].lower() if tokens[i].kind in ("text", "quoted") else "")
            if key in _OPTION_OF_DIRECTORY and tokens[i - 1].text in ("(", ","):
                found |= self._literal(
                    tokens, i + 2 if tokens[i + 1 : i + 2] == [StatementToken("symbol", "=")] else i + 1
                )
        return found


def tokens_of(sql: str) -> list[StatementToken]:
    """The tokens of a text, without spaces and comments."""
    return list(_tokens(sql))


def _tokens(sql: str) -> Iterator[StatementToken]:
    at = 0
    while at < len(sql):
        if sql.startswith("/*", at):
            at = _end_of_comment(sql, at)
            continue
        match = _TOKEN.match(sql, at)
        assert match is not None  # any character is a symbol
        at = match.end()
        if match.lastgroup != "space":
            yield StatementToken(str(match.lastgroup), match[0])


def _end_of_comment(sql: str, at: int) -> int:
    """The position after a bracketed comment, which may have others inside it."""
    depth = 0
    for match in re.compile(r"/\*|\*/").finditer(sql, at):
        depth += 1 if match[0] == "/*" else -1
        if depth == 0:
            return match.end()
    return len(sql)


def _table(tokens: Sequence[StatementToken], at: int) -> list[str]:
    """The name of the table that an INSERT or a TRUNCATE that begins here changes, if it says one."""
    words = [token.word for token in tokens[at : at + 3]]
    if words[:1] == ["insert"] and words[1:2] in (["into"], ["overwrite"]):
        start = at + (3 if words[2:] == ["table"] else 2)
    elif words[:2] == ["truncate", "table"]:
        start = at + 2
    else:
        return []
    parts, end = _name(tokens, start)
    after = tokens[end].text if end < len(tokens) else ""
    if not parts or (parts[-1].lower() == "identifier" and after == "(") or parts[0].lower() in ("directory", "local"):
        return []
    return [".".join(parts)]


def _dropped_schema(tokens: Sequence[StatementToken], at: int) -> list[str]:
    """The name of the schema that a DROP SCHEMA without CASCADE that begins here drops."""
    if [tokens[at].word, *(token.word for token in tokens[at + 1 : at + 2])] not in _DROP_SCHEMA:
        return []
    exists = [token.word for token in tokens[at + 2 : at + 4]] == ["if", "exists"]
    parts, end = _name(tokens, at + (4 if exists else 2))
    cascades = end < len(tokens) and tokens[end].word == "cascade"
    return [".".join(parts)] if parts and not cascades else []


def _name(tokens: Sequence[StatementToken], at: int) -> tuple[list[str], int]:
    """The parts of the name that begins here, as they are written, and the position after it."""
    parts: list[str] = []
    while at < len(tokens) and (tokens[at].word or tokens[at].kind == "quoted"):
        parts.append(tokens[at].text)
        at += 1
        if at >= len(tokens) or tokens[at].text != ".":
            break
        at += 1
    return parts, at
