"""The grammar of Delta's own statements: each form, and the error for what doesn't fit, with its position."""

from dataclasses import fields, is_dataclass

import pytest

from tablelog.engine.jvm.statements import lexer
from tablelog.errors import InvalidArgumentError
from tablelog.spark.sql.grammar import nodes
from tablelog.spark.sql.grammar.parser import parse
from tablelog.spark.statement_words import leading_words


@pytest.fixture(scope="module")
def parsed(spark):
    return lambda text: parse(text, lexer.tokens(spark, text))


def plain(value):
    """A node without positions: spans as their text, strings and numbers marked by `=`."""
    if isinstance(value, nodes.Marker):
        return f":{value.name}" if value.name else f"?{value.ordinal}"
    if isinstance(value, nodes.Literal):
        return f"={value.text}"
    if isinstance(value, nodes.Span):
        return value.text
    if isinstance(value, tuple):
        return [plain(one) for one in value]
    if is_dataclass(value):
        shown = {f.name: getattr(value, f.name) for f in fields(value)}
        return {"": type(value).__name__} | {
            f.name: plain(shown[f.name]) for f in fields(value) if shown[f.name] != f.default
        }
    return value


FORMS = [
    ("VACUUM t", {"": "Vacuum", "table": "t"}),
    ("vacuum '/p'", {"": "Vacuum", "table": "='/p'"}),
    ("VACUUM \"/p\" '/q' DRY RUN", {"": "Vacuum", "table": "=\"/p\" '/q'", "dry_run": True}),
    ("VACUUM :path", {"": "Vacuum", "table": ":path"}),
    (
        "VACUUM delta.`/p ``x``` DRY RUN RETAIN 1.5 HOURS FULL",
        {"": "Vacuum", "table": "delta.`/p ``x```", "mode": "FULL", "hours": "=1.5", "dry_run": True},
    ),
    ("VACUUM a.b.c lite retain -1 hours;;", {"": "Vacuum", "table": "a.b.c", "mode": "LITE", "hours": "=-1"}),
    (
        "VACUUM t USING INVENTORY delta.`/i` RETAIN ? HOURS",
        {"": "Vacuum", "table": "t", "inventory": "delta.`/i`", "hours": "?0"},
    ),
    (
        "VACUUM t USING INVENTORY (SELECT f(')') FROM (VALUES 1)) DRY RUN",
        {"": "Vacuum", "table": "t", "inventory": "SELECT f(')') FROM (VALUES 1)", "dry_run": True},
    ),
    ("VACUUM retain RETAIN 168L HOURS", {"": "Vacuum", "table": "retain", "hours": "=168L"}),
    ("DESC DETAIL t", {"": "DescribeDetail", "table": "t"}),
    ("DESCRIBE DETAIL '/p'", {"": "DescribeDetail", "table": "='/p'"}),
    ("DESCRIBE HISTORY `a b`.t LIMIT 3", {"": "DescribeHistory", "table": "`a b`.t", "limit": "=3"}),
    ("DESC HISTORY identifier LIMIT 1", {"": "DescribeHistory", "table": "identifier", "limit": "=1"}),
    ("OPTIMIZE IDENTIFIER('a.' || f(:t)) FULL", {"": "Optimize", "table": "'a.' || f(:t)", "full": True}),
    ("desc history history", {"": "DescribeHistory", "table": "history"}),
    ("DESCRIBE HISTORY t LIMIT ?", {"": "DescribeHistory", "table": "t", "limit": "?0"}),
    (
        "GENERATE `symlink_format_manifest` FOR TABLE t",
        {"": "Generate", "mode": "symlink_format_manifest", "table": "t"},
    ),
    ("CONVERT TO DELTA parquet.`/p`", {"": "Convert", "table": "parquet.`/p`"}),
    (
        "CONVERT TO DELTA t NO STATISTICS PARTITIONED BY (a INT, `b,)` DECIMAL(3, 1))",
        {"": "Convert", "table": "t", "statistics": False, "partition_columns": "a INT, `b,)` DECIMAL(3, 1)"},
    ),
    ("RESTORE t VERSION AS OF 1", {"": "Restore", "table": "t", "at": {"": "AsOf", "version": "=1"}}),
    (
        "RESTORE TABLE t TO FOR SYSTEM_VERSION AS OF '1'",
        {"": "Restore", "table": "t", "at": {"": "AsOf", "version": "='1'"}},
    ),
    (
        "RESTORE TABLE a.t TO TIMESTAMP AS OF '2024-01-01'",
        {"": "Restore", "table": "a.t", "at": {"": "AsOf", "timestamp": "='2024-01-01'"}},
    ),
    (
        "RESTORE t FOR SYSTEM_TIME AS OF :at",
        {"": "Restore", "table": "t", "at": {"": "AsOf", "timestamp": ":at"}},
    ),
    ("ALTER TABLE t DROP FEATURE deletionVectors", {"": "DropFeature", "table": "t", "feature": "deletionVectors"}),
    (
        "ALTER TABLE a.t DROP FEATURE 'x-preview' TRUNCATE HISTORY",
        {"": "DropFeature", "table": "a.t", "feature": "='x-preview'", "truncate_history": True},
    ),
    ("ALTER TABLE t ALTER COLUMN id SYNC IDENTITY", {"": "SyncIdentity", "table": "t", "column": "id"}),
    ("ALTER TABLE t CHANGE `a b` SYNC IDENTITY", {"": "SyncIdentity", "table": "t", "column": "`a b`"}),
    ("ALTER TABLE t ALTER column SYNC IDENTITY", {"": "SyncIdentity", "table": "t", "column": "column"}),
    ("OPTIMIZE t", {"": "Optimize", "table": "t"}),
    ("OPTIMIZE '/p' FULL", {"": "Optimize", "table": "='/p'", "full": True}),
    (
        "OPTIMIZE t WHERE day >= '2024;' AND f(x, (1)) ZORDER BY (a, b.c)",
        {"": "Optimize", "table": "t", "where": "day >= '2024;' AND f(x, (1))", "zorder_by": ["a", "b.c"]},
    ),
    ("OPTIMIZE full ZORDER BY a, `b c`", {"": "Optimize", "table": "full", "zorder_by": ["a", "`b c`"]}),
    ("OPTIMIZE t WHERE p = :p", {"": "Optimize", "table": "t", "where": "p = :p"}),
    ("REORG TABLE t APPLY (PURGE)", {"": "Reorg", "table": "t", "apply": "PURGE"}),
    (
        "REORG TABLE t WHERE p = 1 apply ( purge );",
        {"": "Reorg", "table": "t", "apply": "PURGE", "where": "p = 1"},
    ),
    (
        "REORG TABLE t APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = 2))",
        {"": "Reorg", "table": "t", "apply": "UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = 2)"},
    ),
    ("CREATE TABLE c SHALLOW CLONE t", {"": "Clone", "table": "c", "source": "t"}),
    (
        "CREATE TABLE IF NOT EXISTS delta.`/c` SHALLOW CLONE delta.`/p` VERSION AS OF 1",
        {
            "": "Clone",
            "table": "delta.`/c`",
            "source": "delta.`/p`",
            "if_not_exists": True,
            "at": {"": "AsOf", "version": "=1"},
        },
    ),
    (
        "CREATE OR REPLACE TABLE c SHALLOW CLONE t TIMESTAMP AS OF '2024' TBLPROPERTIES (a.b = 'x', 'c' 1, d == TRUE, "
        "e = ?) LOCATION '/c'",
        {
            "": "Clone",
            "table": "c",
            "source": "t",
            "replaces": True,
            "at": {"": "AsOf", "timestamp": "='2024'"},
            "properties": [["a.b", "='x'"], ["='c'", "1"], ["d", "true"], ["e", "?0"]],
            "location": "='/c'",
        },
    ),
    (
        "REPLACE TABLE c CLONE t",
        {"": "Clone", "table": "c", "source": "t", "creates": False, "replaces": True, "deep": True},
    ),
    ("CREATE TABLE c DEEP CLONE t", {"": "Clone", "table": "c", "source": "t", "deep": True}),
]


def test_each_form(parsed):
    for text, node in FORMS:
        found = parsed(text)
        assert found is not None, text
        assert plain(found.node) == node, text


def test_comments_and_white_space_are_no_part_of_names(parsed):
    text = "-- one\n/* two /* three */ */ VACUUM /* 'x' */ a -- b\n . b\n\tRETAIN -- 'c'\n 7 HOURS"
    node = parsed(text).node
    assert node.table.text == "a -- b\n . b"
    assert (node.hours.text, node.hours.start) == ("7", text.index("7"))


def test_positions_are_code_points(parsed):
    found = parsed("OPTIMIZE `😀\n` WHERE é = '\t😀' AND x = ?")
    assert found.node.table.text == "`😀\n`"
    assert found.node.where.text == "é = '\t😀' AND x = ?"
    assert [found.text[place] for place in found.questions] == ["?"]
    assert found.in_place(found.node.where) == f"{' ' * 11}\n{' ' * 8}é = '\t😀' AND x = ?"


# Text, the line and the position of the error, and what the message says.
WRONG = [
    ("VACUUM", 1, 6, "end of input: expected the name or, as a string, the path of a table"),
    ("VACUUM t RETAIN 7", 1, 17, "end of input: expected HOURS"),
    ("VACUUM t RETAIN x HOURS", 1, 16, "'x': expected a number of hours"),
    ("VACUUM t\n  DRY", 2, 5, "end of input: expected RUN"),
    ("VACUUM t x", 1, 9, "'x': expected LITE, FULL, USING INVENTORY, RETAIN, DRY RUN or the end of the statement"),
    ("VACUUM a. RETAIN 1 HOURS", 1, 17, "'1': expected LITE"),
    ("VACUUM t USING INVENTORY (SELECT 1", 1, 34, "end of input: expected ')'"),
    ("VACUUM t USING INVENTORY ()", 1, 26, "')': expected a query"),
    ("VACUUM t DRY RUN FULL DRY RUN", 1, 22, "the clause DRY RUN is repeated"),
    ("VACUUM t LITE FULL", 1, 14, "the clause LITE/FULL is repeated"),
    ("VACUUM t LITE USING INVENTORY i", 1, 14, "VACUUM LITE takes no inventory"),
    ("/* VACUUM t", 1, 0, "the comment has no end"),
    ("DESCRIBE HISTORY t LIMIT", 1, 24, "expected a number of versions"),
    ("DESCRIBE HISTORY t LIMIT 1.5", 1, 25, "'1.5': expected a number of versions"),
    ("DESCRIBE DETAIL t u", 1, 18, "'u': expected the end of the statement"),
    ("GENERATE m TABLE t", 1, 11, "'TABLE': expected FOR"),
    ("GENERATE m FOR TABLE '/p'", 1, 21, "expected the name of a table"),
    ("CONVERT TO DELTA '/p'", 1, 17, "expected parquet.`/path` or the name of a table"),
    ("CONVERT TO DELTA t PARTITIONED BY a INT", 1, 34, "'a': expected '('"),
    ("RESTORE t", 1, 9, "expected VERSION AS OF or TIMESTAMP AS OF"),
    ("RESTORE t TO VERSION 1", 1, 21, "'1': expected AS"),
    ("RESTORE t TO VERSION AS OF -1", 1, 27, "'-': expected the number of a version"),
    ("RESTORE t TO TIMESTAMP AS OF 5", 1, 29, "'5': expected a timestamp as a string"),
    ("ALTER TABLE t DROP FEATURE", 1, 26, "expected the name of a feature"),
    ("ALTER TABLE t DROP FEATURE f TRUNCATE", 1, 37, "expected HISTORY"),
    ("ALTER TABLE t ALTER COLUMN c SYNC x", 1, 34, "'x': expected IDENTITY"),
    ("OPTIMIZE WHERE p = 1", 1, 9, "'WHERE': expected the name or"),
    ("OPTIMIZE t WHERE ZORDER BY a", 1, 17, "'ZORDER': expected a condition"),
    ("OPTIMIZE t ZORDER BY (a,)", 1, 24, "')': expected the name of a column"),
    ("OPTIMIZE t, u", 1, 10, "',': expected FULL, WHERE, ZORDER BY or the end of the statement"),
    ("REORG t APPLY (PURGE)", 1, 6, "'t': expected TABLE"),
    ("REORG TABLE t APPLY PURGE", 1, 20, "'PURGE': expected '('"),
    ("CREATE TABLE c SHALLOW CLONE", 1, 28, "expected the name of a table"),
    ("CREATE TABLE c SHALLOW CLONE t TBLPROPERTIES (a)", 1, 47, "')': expected the value of the property"),
    ("CREATE TABLE c SHALLOW CLONE t LOCATION /p", 1, 40, "'/': expected a path as a string"),
    ("CREATE OR REPLACE TABLE IF NOT EXISTS c SHALLOW CLONE t", 1, 40, "IF NOT EXISTS and REPLACE exclude"),
]


def test_what_does_not_fit_says_where_and_what_was_expected(parsed):
    for text, line, position, problem in WRONG:
        with pytest.raises(InvalidArgumentError) as refused:
            parsed(text)
        message = str(refused.value)
        assert problem in message, (text, message)
        assert f"(line {line}, pos {position})\n\n== SQL ==\n" in message, (text, message)
        assert message.split("\n")[3 + line] == "-" * position + "^^^", text


def test_the_conditions_of_the_errors(parsed):
    for text, condition in [
        ("VACUUM", "PARSE_SYNTAX_ERROR"),
        ("VACUUM t FULL FULL", "DUPLICATE_CLAUSES"),
        ("VACUUM t LITE USING INVENTORY i", "INVALID_STATEMENT_OR_CLAUSE"),
        ("VACUUM t /*", "UNCLOSED_BRACKETED_COMMENT"),
        ("REPLACE TABLE IF NOT EXISTS c SHALLOW CLONE t", "DELTA_PARSING_MUTUALLY_EXCLUSIVE_CLAUSES"),
    ]:
        with pytest.raises(InvalidArgumentError) as refused:
            parsed(text)
        assert refused.value.condition == condition, text


def test_what_is_none_of_delta_s_own_is_left_to_spark(parsed):
    for text in [
        "SELECT 1",
        "ALTER TABLE t ADD COLUMNS (x INT)",
        "ALTER TABLE t ALTER COLUMN x TYPE BIGINT",
        "ALTER TABLE t DROP COLUMN feature",
        "ALTER VIEW v AS SELECT 1",
        "CREATE TABLE t (a INT",
        "CREATE TABLE shallow",
        "CREATE VIEW v AS SELECT 1",
        "REPLACE TABLE t USING delta",
        "DESCRIBE EXTENDED t",
        "",
    ]:
        assert parsed(text) is None, text


def test_the_first_words_of_a_statement():
    for text, words in [
        ("VACUUM t", ["VACUUM", "T"]),
        ("\n -- a\n--b\\\n vacuum\n/* c /* d */ */desc/**/history", ["DESC", "HISTORY"]),
        ("/*+ hint */ VACUUM t", []),
        ("(SELECT 1)", []),
        ("describe `history` t", ["DESCRIBE"]),
        ("-- only", []),
        ("/* open", []),
        ("", []),
    ]:
        assert leading_words(text, 2) == words, text


def test_tokens_are_read_from_the_list_that_antlr_prints():
    text = "a,\n']',<1>,1:0]"
    printed = "[[@-1,0:0='a',<7>,1:0], [@-1,1:1=',',<8>,1:1], [@-1,2:2='\\n',<9>,channel=1,1:2], "
    printed += "[@-1,3:14='']',<1>,1:0]',<7>,2:0]]"
    assert list(lexer.read_printed(printed, text)) == [
        (7, 0, 1, False),
        (8, 1, 2, False),
        (9, 2, 3, True),
        (7, 3, 15, False),
    ]
    assert list(lexer.read_printed("[]", "")) == []
