"""The error of a statement that doesn't fit the grammar: where, and what was expected."""

from ....errors import InvalidArgumentError


def syntax_error(text: str, start: int, near: str, problem: str, condition: str | None = None) -> InvalidArgumentError:
    """An error at a place in the statement, with line and position counted as Spark does (from 1, from 0).

    Its condition is PARSE_SYNTAX_ERROR, or one that says more.
    """
    before = text[:start]
    line, position = before.count("\n") + 1, start - (before.rfind("\n") + 1)
    shown = f"'{near}'" if near else "end of input"
    lines = text.split("\n")
    excerpt = "\n".join([*lines[:line], "-" * position + "^^^", *lines[line:]])
    return InvalidArgumentError(
        f"Syntax error at or near {shown}: {problem} (line {line}, pos {position})\n\n== SQL ==\n{excerpt}",
        condition=condition or "PARSE_SYNTAX_ERROR",
        parameters={"error": shown, "hint": f": {problem}"},
    )
