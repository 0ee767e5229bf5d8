"""The tokens of a statement, by the lexer of Spark's own parser."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from ..connection.gateway import Gateway

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


@dataclass(frozen=True, slots=True)
class Token:
    """A token; `kind` is its name in Spark's lexer, such as IDENTIFIER. It is `statement[start:stop]`.

    `hidden`: a comment or white space.
    """

    kind: str
    text: str
    start: int
    stop: int
    hidden: bool = False


def tokens(spark: "SparkSession", text: str) -> list[Token]:
    """All tokens of a statement, with comments and white space. It takes few calls, whatever the length."""
    gateway = Gateway.of(spark)
    parser = gateway.jvm.org.apache.spark.sql.catalyst.parser
    stream = parser.UpperCaseCharStream(gateway.jvm.org.antlr.v4.runtime.CharStreams.fromString(text))
    lexer = parser.SqlBaseLexer(stream)
    printed = str(lexer.getAllTokens().toString())
    known = _kinds(gateway)
    result = []
    for number, start, stop, hidden in read_printed(printed, text):
        if number not in known:
            known[number] = str(lexer.getVocabulary().getSymbolicName(number))
        result.append(Token(known[number], text[start:stop], start, stop, hidden))
    return result


def substituted(spark: "SparkSession", text: str) -> str:
    """The statement with values for the variables in it, such as `${name}`, as Spark's parser puts them in."""
    if "${" not in text:
        return text
    return str(Gateway.of(spark).jvm.org.apache.spark.sql.internal.VariableSubstitution().substitute(text))


def read_printed(printed: str, text: str) -> Iterator[tuple[int, int, int, bool]]:
    """The number of the kind, the start, the stop and whether it is hidden, of each token in ANTLR's list as text.

    A token is printed as `[@-1,0:5='VACUUM',<331>,1:0]`, or with `,channel=1` if it is hidden. The statement gives the
    length of the text between the quotes, so that a quote or a bracket in this text isn't taken for the end of a token.
    """
    at = 1
    while printed[at] != "]":
        colon = printed.index(":", at)
        start = int(printed[printed.index(",", at) + 1 : colon])
        equals = printed.index("=", colon)
        stop = int(printed[colon + 1 : equals]) + 1
        kind = equals + 2 + sum(len(_ESCAPES.get(char, char)) for char in text[start:stop]) + len("',<")
        end = printed.index(">", kind)
        yield int(printed[kind:end]), start, stop, printed.startswith(",channel=", end + 1)
        at = printed.index("]", end) + 1
        if printed.startswith(", ", at):
            at += 2


@lru_cache(maxsize=4)
def _kinds(gateway: Gateway) -> dict[int, str]:
    """The names of kinds of tokens by their numbers in one version of Spark, filled on demand."""
    return {}
