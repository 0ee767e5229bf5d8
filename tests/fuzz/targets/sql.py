"""SQL that tablelog parses itself: Delta's own statements, and conditions on Spark Connect.

The tokens of a statement come from the lexer of Spark's parser, in the JVM. Here a lexer in a few lines stands for it,
so that the grammar can be reached without a JVM; `test_with_spark` runs the lexer of Spark on the same statements.
"""

import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from itertools import pairwise
from typing import Any

from fuzz.target import Target
from tablelog.core.protocol.schema import unquoted
from tablelog.engine.connect import sql_text
from tablelog.engine.jvm.statements.lexer import Token, read_printed
from tablelog.errors import CorruptLogError, InvalidArgumentError
from tablelog.spark.sql.grammar import nodes
from tablelog.spark.sql.grammar.parser import parse
from tablelog.spark.statement_words import leading_words

_TOKENS = re.compile(
    r"""(?P<hidden>\s+|--[^\n]*|/\*(?:[^*]|\*(?!/))*(?:\*/)?)
    | (?P<STRING_LITERAL>'(?:[^'\\]|\\.)*')
    | (?P<DOUBLEQUOTED_STRING>"(?:[^"\\]|\\.)*")
    | (?P<BACKQUOTED_IDENTIFIER>`(?:[^`]|``)*`)
    | (?P<DECIMAL_VALUE>\d+\.\d*|\.\d+)
    | (?P<BIGINT_LITERAL>\d+L)
    | (?P<INTEGER_VALUE>\d+)
    | (?P<IDENTIFIER>[^\W\d]\w*)
    | (?P<symbol>.)""",
    re.VERBOSE | re.DOTALL,
)
_KINDS = ["hidden", "STRING_LITERAL", "DOUBLEQUOTED_STRING", "BACKQUOTED_IDENTIFIER", "DECIMAL_VALUE", "BIGINT_LITERAL",
          "INTEGER_VALUE", "IDENTIFIER", "symbol"]  # fmt: skip
_PRINTED = str.maketrans({"\n": "\\n", "\r": "\\r", "\t": "\\t"})


def lexed(text: str) -> list[Token]:
    """The tokens of a statement, nearly as Spark has them."""
    return [
        Token(match.lastgroup or "", match[0], match.start(), match.end(), match.lastgroup == "hidden")
        for match in _TOKENS.finditer(text)
    ]


def statement(data: bytes) -> None:
    """A statement is one of Delta's own, one of others, or has a syntax error at a place in it."""
    text = _text(data)
    words = leading_words(text, 3)
    assert all(word.upper() == word and word.strip() for word in words)
    tokens = lexed(text)
    printed = "[" + ", ".join(_as_antlr(token) for token in tokens) + "]"
    read = list(read_printed(printed, text))
    assert read == [(_KINDS.index(t.kind), t.start, t.stop, t.hidden) for t in tokens]
    try:
        parsed = parse(text, tokens)
    except InvalidArgumentError as error:
        check_error(text, error)
        raise
    if parsed is None:
        raise CorruptLogError("not one of Delta's own statements")
    check_parsed(parsed, text)


def check_error(text: str, error: InvalidArgumentError) -> None:
    """The error shows the statement, with a mark below one of its lines."""
    excerpt = str(error).partition("== SQL ==\n")[2]
    marked = [line for line in excerpt.split("\n") if line.endswith("^^^")]
    assert marked
    assert text.split("\n", maxsplit=1)[0] == excerpt.split("\n")[0]


def check_parsed(parsed: nodes.Parsed, text: str) -> None:
    """Each part is at its place in the statement."""
    for span in _spans(parsed.node):
        assert text[span.start : span.start + len(span.text)] == span.text
        placed = parsed.in_place(span)
        assert placed.endswith(span.text)
        assert placed.count("\n") == text[: span.start + len(span.text)].count("\n")
    for start in parsed.questions:
        assert text[start] == "?"


def _spans(value: Any) -> Iterator[nodes.Span]:
    if isinstance(value, nodes.Span):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from _spans(item)
    elif is_dataclass(value):
        for field in fields(value):
            yield from _spans(getattr(value, field.name))


def _as_antlr(token: Token) -> str:
    channel = ",channel=1" if token.hidden else ""
    kind = _KINDS.index(token.kind)
    return f"[@-1,{token.start}:{token.stop - 1}='{token.text.translate(_PRINTED)}',<{kind}>{channel},1:{token.start}]"


def condition(data: bytes) -> None:
    """A condition that is accepted names only columns of the table, and calls only functions that are allowed."""
    text = _text(data)
    columns = ["id", "s", "day", "odd `name", "select"]
    checked = sql_text.check(text, columns, ["t"], ["mine"])
    name = sql_text.name_parts(text)
    if name is not None:
        assert all(name)
        assert sql_text.name_parts(".".join("`" + part.replace("`", "``") + "`" for part in name)) == name
    if checked.refused is not None:
        raise CorruptLogError(checked.refused)
    tokens = sql_text.tokens_of(text)
    assert "".join(token.text for token in tokens) == "".join(_without_space(text))
    for path in checked.columns:
        assert path[0].lower() in {column.lower() for column in columns}
    before = ""
    for token, following in pairwise(tokens):
        if following.text == "(" and token.is_name and before != "distinct":  # not IS DISTINCT FROM (...)
            assert unquoted(token.text).lower() not in ("reflect", "java_method", "try_reflect", "from", "select")
        assert following.word not in ("from", "union") or token.text == "." or token.word == "distinct"
        before = token.word


def _without_space(text: str) -> Iterator[str]:
    """The text without white space outside of quotes."""
    for match in re.finditer(r"""(?s)'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*"|`(?:[^`]|``)+`|\s+|.""", text):
        if not match[0].isspace():
            yield match[0]


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise CorruptLogError("not UTF-8") from None


STATEMENTS = [
    "VACUUM t", "VACUUM delta.`/p ``x``` DRY RUN RETAIN 1.5 HOURS FULL",
    "VACUUM t USING INVENTORY (SELECT f(')')) DRY RUN",
    "VACUUM \"/p\" '/q' LITE RETAIN ? HOURS", "DESCRIBE DETAIL '/p'", "DESC HISTORY `a b`.t LIMIT 3",
    "GENERATE symlink_format_manifest FOR TABLE t",
    "CONVERT TO DELTA t NO STATISTICS PARTITIONED BY (a INT, `b,)` DATE)",
    "RESTORE TABLE t TO FOR SYSTEM_VERSION AS OF '1'", "RESTORE a.t TO TIMESTAMP AS OF :at",
    "ALTER TABLE t DROP FEATURE deletionVectors TRUNCATE HISTORY", "ALTER TABLE t ALTER COLUMN a.b SYNC IDENTITY",
    "OPTIMIZE t FULL WHERE day = '2024' AND (x > 3) ZORDER BY (a, `b c`)", "REORG TABLE t WHERE a = 1 APPLY ( PURGE )",
    "CREATE OR REPLACE TABLE a.t SHALLOW CLONE b.s VERSION AS OF 3 TBLPROPERTIES ('k' = 'v', a.b = 1) LOCATION '/x'",
    "CREATE TABLE IF NOT EXISTS t DEEP CLONE s", "/* a /* b */ */ -- c\nvacuum t;;",
    "ALTER TABLE t ADD COLUMNS (a INT)",
]  # fmt: skip
_STATEMENT_WORDS = [
    *sorted({word for text in STATEMENTS for word in re.findall(r"\w+|[^\w\s]", text)}),
    "/*", "*/", "--", "\n", "\\", "'", '"', "`", "``", "?", ":", "é", "\U0001f600", "\r", "\t", "=", "==", "/*+",
    "1L", "]",
    ">", "true",
]  # fmt: skip
_CONDITIONS = [
    "id = 1 AND s LIKE 'a%' OR day IS NOT NULL", "t.id IN (1, 2.5e3, .5) AND NOT `odd ``name` = ''", "abs(id) > -1L",
    "day < DATE '2024-01-31' + INTERVAL '3' DAY", "CAST(id AS DECIMAL(10, 2)) <=> 5BD", "id IS NOT DISTINCT FROM 3",
    "CASE WHEN id % 2 = 0 THEN upper(s) ELSE concat(s, \"x\") END = 'A'", "mine(id)", "s.a.b", "`id`", "reflect('a')",
]  # fmt: skip
_CONDITION_WORDS = [
    *sorted({word for text in _CONDITIONS for word in re.findall(r"\w+|[^\w\s]", text)}),
    "select", "from", "union", "java_method", "rand", "try_cast", "''", "\\'", "/*", "--", "(", ")", "é", "\0", "{",
    ";",
    "distinct",
]  # fmt: skip

TARGETS = (
    Target("statement", statement, lambda: [text.encode() for text in STATEMENTS], "text", _STATEMENT_WORDS),
    Target("condition", condition, lambda: [text.encode() for text in _CONDITIONS], "text", _CONDITION_WORDS),
)
