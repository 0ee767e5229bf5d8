"""The position in the text of a statement that an error is about, as PySpark's errors have it (`getQueryContext`)."""

from dataclasses import dataclass

from pyspark.errors import QueryContext, QueryContextType

from ...engine.jvm.statements.positions import Position
from ...errors import TablelogError
from ..exceptions import as_spark


@dataclass(frozen=True)
class StatementContext(QueryContext):
    """A part of the text that the user gave to `spark.sql`. The positions are those of its characters, from 0."""

    position: Position

    def contextType(self) -> QueryContextType:
        """Always SQL."""
        return QueryContextType.SQL

    def objectType(self) -> str:
        """Always empty: the text is no view's."""
        return ""

    def objectName(self) -> str:
        """Always empty: the text is no view's."""
        return ""

    def startIndex(self) -> int:
        """The position of the first character."""
        return self.position.start

    def stopIndex(self) -> int:
        """The position of the last character."""
        return self.position.stop

    def fragment(self) -> str:
        """The part of the text."""
        return self.position.fragment

    def callSite(self) -> str:
        """Always empty: the part is one of a text."""
        return ""

    def summary(self) -> str:
        """The part of the text with its line and its position, as Spark shows it."""
        return self.position.summary


def at(error: TablelogError, position: Position | None) -> TablelogError:
    """Add a position to an error and to its message, and return the error."""
    if position is not None:
        error.args = (f"{error.args[0]}\n{position.summary}", *error.args[1:])
        as_spark(error).query_context = (StatementContext(position),)  # type: ignore[attr-defined]
    return error
