"""The words at the beginning of a statement, by which most statements are known not to be Delta's own.

This runs for every statement of an enabled session, so it asks the JVM for nothing.
"""

OWN = frozenset({"VACUUM", "OPTIMIZE", "RESTORE", "GENERATE", "CONVERT", "REORG"})
"""With these, no statement of Spark's begins."""
SHARED = frozenset({"ALTER", "CREATE", "REPLACE"})
"""For these Spark's parser comes first, and the statement is Delta's own only if Spark's parser refuses it."""
DESCRIBE = frozenset({"DESC", "DESCRIBE"})
DESCRIBED = frozenset({"HISTORY", "DETAIL"})
"""`DESCRIBE HISTORY t` is Delta's, though Spark's parser takes it for the column t of a table named HISTORY."""


def leading_words(text: str, count: int) -> list[str]:
    """The first words of a statement in upper case, at most `count`; fewer where something else than a word comes."""
    words: list[str] = []
    at = 0
    while len(words) < count:
        at = _after_blanks(text, at)
        end = at
        while end < len(text) and _in_word(text[end]):
            end += 1
        if end == at:
            break
        words.append(text[at:end].upper())
        at = end
    return words


def _in_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def _after_blanks(text: str, at: int) -> int:
    """The first place from `at` on with neither white space nor a comment."""
    while at < len(text):
        if text[at].isspace():
            at += 1
        elif text.startswith("--", at):
            at = _after_line(text, at)
        elif text.startswith("/*", at) and not text.startswith("/*+", at):
            at = _after_comment(text, at)
        else:
            break
    return at


def _after_line(text: str, at: int) -> int:
    """The end of a line; a backslash before the line break continues the comment, as in Spark's lexer."""
    while at < len(text) and text[at] not in "\r\n":
        at += 2 if text.startswith("\\\n", at) else 1
    return at


def _after_comment(text: str, at: int) -> int:
    """The end of a comment in brackets, which may have others inside."""
    depth = 0
    while at < len(text):
        if text.startswith("/*", at):
            depth, at = depth + 1, at + 2
        elif text.startswith("*/", at):
            depth, at = depth - 1, at + 2
            if depth == 0:
                return at
        else:
            at += 1
    return at


def code_of(text: str) -> str:
    """A statement without comments, with '' for each string, and without the text of quoted names but `delta`.

    It takes a time that grows with the length of the text only.
    """
    parts: list[str] = []
    at = 0
    while at < len(text):
        after = _after_blanks(text, at)
        if after > at:
            parts.append(" ")
        elif text[at] == "`":
            after = _after_quote(text, at, escapes=False)
            name = text[at:after]
            parts.append(name if name.lower() == "`delta`" else "`x`")
        elif text[at] in "'\"":
            raw = text[at - 1 : at] in ("r", "R") and not _in_word(text[at - 2 : at - 1])
            after = _after_quote(text, at, escapes=not raw)
            parts.append("''")
        else:
            after = at + 1
            parts.append(text[at])
        at = after
    return "".join(parts)


def _after_quote(text: str, at: int, *, escapes: bool) -> int:
    """The end of what the quotation mark at this place opens; that of the text if nothing closes it."""
    mark, at = text[at], at + 1
    while at < len(text) and text[at] != mark:
        at += 2 if escapes and text[at] == "\\" else 1
    return min(at + 1, len(text))
