"""Where a node of a parsed statement is in the text."""

from dataclasses import dataclass

from ..connection.gateway import JavaObject


@dataclass(frozen=True)
class Position:
    """The places of the first and the last character, from 0; the part of the text; and Spark's description of it."""

    start: int
    stop: int
    fragment: str
    summary: str


def position_of(node: JavaObject) -> Position | None:
    """The position of an expression or a plan; None if the parser didn't note it."""
    for context in node.origin().getQueryContext():
        if str(context.contextType()) == "SQL" and context.startIndex() >= 0:
            start, stop = int(context.startIndex()), int(context.stopIndex())
            return Position(start, stop, str(context.fragment()), str(context.summary()).strip())
    return None
