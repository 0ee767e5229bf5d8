"""Delta's own statements with the tokens of Spark's lexer, in the JVM."""

from typing import TYPE_CHECKING

import pytest

from fuzz.choices import Choices
from fuzz.mutation import mutant
from fuzz.targets import TARGETS
from fuzz.targets.sql import STATEMENTS, check_error, check_parsed
from tablelog.engine.jvm.statements import lexer
from tablelog.errors import InvalidArgumentError
from tablelog.spark.sql.grammar.parser import parse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CASES = 5_000

pytestmark = pytest.mark.slow


def test_each_statement_is_parsed_or_has_an_error_with_its_place(spark: "SparkSession") -> None:
    outcomes = {"parsed": 0, "others": 0, "errors": 0}
    for text in [*STATEMENTS, *_texts(CASES)]:
        tokens = lexer.tokens(spark, text)
        assert "".join(token.text for token in tokens) == text
        try:
            parsed = parse(text, tokens)
        except InvalidArgumentError as error:
            check_error(text, error)
            outcomes["errors"] += 1
            continue
        outcomes["others" if parsed is None else "parsed"] += 1
        if parsed is not None:
            check_parsed(parsed, text)
    assert min(outcomes.values()) > CASES // 50, outcomes


def _texts(count: int) -> list[str]:
    target = TARGETS["statement"]
    texts = []
    for seed in range(count):
        try:
            texts.append(mutant(Choices.seeded(seed), target).decode())
        except UnicodeDecodeError:
            continue
    return texts
