"""Delta's own statements, which Spark's parser doesn't know: when they are looked for, and who runs each of them."""

from typing import Any

from pyspark.sql import DataFrame, SparkSession

from ...engine.jvm.statements import lexer
from ...errors import InvalidArgumentError
from .. import statement_words
from .grammar import nodes
from .grammar.nodes import Parsed
from .grammar.parser import parse
from .statements import clone, maintenance
from .values import Values


def before_spark(spark: SparkSession, text: Any) -> Parsed | None:
    """Parse a statement that Spark's parser mustn't get; None for all others, by their first words and no call.

    Raises InvalidArgumentError with the position if the statement doesn't fit the grammar.
    """
    if not isinstance(text, str):
        return None
    words = statement_words.leading_words(text, 2)
    if words[:1] and words[0] in statement_words.OWN:
        return _parsed(spark, text)
    if _is_described(words):
        try:
            return _parsed(spark, text)
        except InvalidArgumentError:
            return None  # it may be a description of a table named HISTORY or DETAIL
    return None


def after_spark(spark: SparkSession, text: Any) -> Parsed | None:
    """Parse a statement that Spark's parser refused; None if it is none of Delta's own.

    Raises InvalidArgumentError with the position if the statement is Delta's own and doesn't fit the grammar.
    """
    if not isinstance(text, str):
        return None
    words = statement_words.leading_words(text, 2)
    return _parsed(spark, text) if words[:1] and (words[0] in statement_words.SHARED or _is_described(words)) else None


def run(spark: SparkSession, parsed: Parsed, args: Any) -> DataFrame:
    """Run a statement. `args`: its parameters, by name or by position."""
    values = Values(spark, parsed, args)
    match parsed.node:
        case nodes.Vacuum() as node:
            return maintenance.vacuum(values, node)
        case nodes.Optimize() as node:
            return maintenance.optimize(values, node)
        case nodes.Reorg() as node:
            return maintenance.reorg(values, node)
        case nodes.Restore() as node:
            return maintenance.restore(values, node)
        case nodes.DescribeHistory() as node:
            return maintenance.describe_history(values, node)
        case nodes.DescribeDetail() as node:
            return maintenance.describe_detail(values, node)
        case nodes.Generate() as node:
            return maintenance.generate(values, node)
        case nodes.Convert() as node:
            return maintenance.convert(values, node)
        case nodes.DropFeature() as node:
            return maintenance.drop_feature(values, node)
        case nodes.SyncIdentity() as node:
            return maintenance.sync(values, node)
        case nodes.Clone() as node:
            return clone.clone(values, node)


def _is_described(words: list[str]) -> bool:
    return len(words) == 2 and words[0] in statement_words.DESCRIBE and words[1] in statement_words.DESCRIBED


def _parsed(spark: SparkSession, text: str) -> Parsed | None:
    whole = lexer.substituted(spark, text)
    return parse(whole, lexer.tokens(spark, whole))
