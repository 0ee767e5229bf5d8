"""A place in the tokens of a statement, and what the rules of the grammar ask of the tokens from there on."""

from collections.abc import Callable, Sequence

from ....core.protocol.schema import unquoted
from ....engine.jvm.statements.lexer import Token
from ....errors import InvalidArgumentError
from .errors import syntax_error
from .nodes import Literal, Marker, Name, Span, Value

_STRINGS = frozenset({"STRING_LITERAL", "DOUBLEQUOTED_STRING"})
_INTEGER = "INTEGER_VALUE"
_NUMBERS = frozenset(
    {
        _INTEGER,
        "DECIMAL_VALUE",
        "EXPONENT_VALUE",
        "BIGINT_LITERAL",
        "SMALLINT_LITERAL",
        "TINYINT_LITERAL",
        "FLOAT_LITERAL",
        "DOUBLE_LITERAL",
        "BIGDECIMAL_LITERAL",
    }
)
_QUOTED = "BACKQUOTED_IDENTIFIER"
_NO_NAMES = frozenset({"WHERE"})


class Cursor:
    """Moves through the visible tokens of a statement, from the first to the last.

    Methods that begin with `accept` return None or False, and don't move, if the tokens are others than they look for;
    those that begin with `expect` raise InvalidArgumentError.
    """

    def __init__(self, text: str, tokens: Sequence[Token]) -> None:
        self.text = text
        for token in tokens:
            if token.hidden and token.text.startswith("/*") and not token.text.endswith("*/"):
                raise syntax_error(text, token.start, "/*", "the comment has no end", "UNCLOSED_BRACKETED_COMMENT")
        self._tokens = [token for token in tokens if not token.hidden]
        while self._tokens and self._tokens[-1].text == ";":
            self._tokens.pop()
        self._end = Token("EOF", "", len(text), len(text))
        self._at = 0
        self.questions = tuple(token.start for token in self._tokens if token.text == "?")

    # --- words and symbols ----------------------------------------------------------------------------------------

    def token(self, offset: int = 0) -> Token:
        """The token at the cursor, or `offset` tokens behind it."""
        place = self._at + offset
        return self._tokens[place] if place < len(self._tokens) else self._end

    def fail(self, expected: str) -> InvalidArgumentError:
        """The error for the token at the cursor."""
        token = self.token()
        return syntax_error(self.text, token.start, token.text, f"expected {expected}")

    def sees(self, *words: str) -> bool:
        """Whether these words or symbols, in upper case, come next."""
        return all(
            self.token(i).text.upper() == word and self.token(i).kind not in _STRINGS for i, word in enumerate(words)
        )

    def accept(self, *words: str) -> bool:
        """Move behind these words or symbols if they come next."""
        if not self.sees(*words):
            return False
        self._at += len(words)
        return True

    def expect(self, *words: str) -> None:
        """Move behind these words or symbols."""
        for word in words:
            if not self.accept(word):
                raise self.fail(word if word.isalpha() else f"'{word}'")

    def expect_end(self, expected: str) -> None:
        """Raise InvalidArgumentError unless the statement ends here. `expected`: what else could come."""
        if self.token() is not self._end:
            raise self.fail(f"{expected}the end of the statement")

    # --- names ----------------------------------------------------------------------------------------------------

    def expect_word(self, what: str) -> str:
        """The text of an identifier, without its quotes."""
        token = self.token()
        if not _is_word(token):
            raise self.fail(what)
        self._at += 1
        return unquoted(token.text)

    def expect_name(self, what: str) -> Name:
        """A name of one or more parts."""
        first = self.token()
        if first.kind != _QUOTED and first.text.upper() in _NO_NAMES:
            raise self.fail(what)
        self.expect_word(what)
        while self.accept("."):
            self.expect_word(f"the next part of {what}")
        last = self._tokens[self._at - 1]
        return Name(self.text[first.start : last.stop], first.start)

    # --- values ---------------------------------------------------------------------------------------------------

    def accept_marker(self) -> Marker | None:
        """A parameter marker."""
        token = self.token()
        if token.text == "?":
            self._at += 1
            return Marker(None, self.questions.index(token.start), token.start)
        if token.text == ":" and _is_word(self.token(1)):
            self._at += 1
            return Marker(self.expect_word("a name"), -1, token.start)
        return None

    def accept_string(self) -> Value | None:
        """A string, which may be several literals in a row, or a marker."""
        first = last = self.token()
        if first.kind not in _STRINGS:
            return self.accept_marker()
        while self.token().kind in _STRINGS:
            last = self.token()
            self._at += 1
        return Literal(self.text[first.start : last.stop], first.start)

    def expect_string(self, what: str) -> Value:
        """A string, or a marker."""
        text = self.accept_string()
        if text is None:
            raise self.fail(f"{what} as a string")
        return text

    def accept_integer(self) -> Value | None:
        """A whole number without a sign, or a marker."""
        token = self.token()
        if token.kind != _INTEGER:
            return self.accept_marker()
        self._at += 1
        return Literal(token.text, token.start)

    def expect_number(self, what: str) -> Value:
        """A number, which may have a minus, or a marker."""
        first, last = self.token(), self.token(1 if self.sees("-") else 0)
        if last.kind not in _NUMBERS:
            number = self.accept_marker()
            if number is None:
                raise self.fail(what)
            return number
        self._at += 1 if first is last else 2
        return Literal(self.text[first.start : last.stop], first.start)

    # --- parts that Spark's parser parses -------------------------------------------------------------------------

    def expect_in_brackets(self, what: str) -> Span:
        """Move behind `( ... )`; returns what is between the brackets."""
        self.expect("(")
        span = self.expect_until(lambda: self.sees(")"), what)
        self.expect(")")
        return span

    def expect_until(self, is_end: Callable[[], bool], what: str) -> Span:
        """Everything up to where `is_end` says so outside of brackets that open here, or to the end."""
        first, depth = self.token(), 0
        while self.token() is not self._end and (depth or not is_end()):
            depth += {"(": 1, ")": -1}.get(self.token().text, 0)
            self._at += 1
        if self.token() is first:
            raise self.fail(what)
        return Span(self.text[first.start : self._tokens[self._at - 1].stop], first.start)


def _is_word(token: Token) -> bool:
    if token.kind in (_QUOTED, "IDENTIFIER"):
        return True
    return token.kind not in _STRINGS and (token.text[:1].isalpha() or token.text[:1] == "_")
