"""Results of a query on two sets of tables, and whether they are the same.

- Values are equal exactly, but for floating point (`stddev_samp` and averages), whose sums depend on the order of the
  rows: `TOLERANCE`, relative.
- Rows are in the same order as far as ORDER BY says: by those of its columns that are in the result, up to the first
  that isn't. Rows with the same values there may be in any order.
- With LIMIT, of the rows that tie with the last one any may be in the result.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from pyspark.sql import DataFrame, SparkSession

TOLERANCE = 1e-9
_LIMIT = re.compile(r"\s+LIMIT\s+\d+\s*$", re.IGNORECASE)
Row: TypeAlias = tuple[Any, ...]


@dataclass(frozen=True)
class Answer:
    """The rows of a result. `ordered` are the indices of the columns by which the query orders it."""

    schema: str
    rows: list[Row]
    ordered: tuple[int, ...]

    def keys(self) -> list[Row]:
        return [self.key(row) for row in self.rows]

    def key(self, row: Row) -> Row:
        return tuple(row[index] for index in self.ordered)


def answer(spark: SparkSession, database: str, text: str) -> Answer:
    """The result of a query on the tables of a database."""
    spark.catalog.setCurrentDatabase(database)
    try:
        frame = spark.sql(text)
        return Answer(frame.schema.simpleString(), [tuple(row) for row in frame.collect()], ordered_columns(frame))
    finally:
        spark.catalog.setCurrentDatabase("default")


def ordered_columns(frame: DataFrame) -> tuple[int, ...]:
    """The indices of the columns of a frame by which its outermost Sort orders, up to the first that isn't there."""
    plan = frame._jdf.queryExecution().analyzed()
    output = [plan.output().apply(index) for index in range(plan.output().size())]
    places = {attribute.exprId().id(): index for index, attribute in enumerate(output)}
    while plan.getClass().getSimpleName() in ("GlobalLimit", "LocalLimit", "Project"):
        plan = plan.child()
    if plan.getClass().getSimpleName() != "Sort":
        return ()
    found: list[int] = []
    for index in range(plan.order().size()):
        expression = plan.order().apply(index).child()
        name = expression.getClass().getSimpleName()
        place = places.get(expression.exprId().id()) if name == "AttributeReference" else None
        if place is None:
            break
        found.append(place)
    return tuple(found)


def assert_same(ours: Answer, theirs: Answer) -> None:
    """The results have the same columns and rows."""
    assert ours.schema == theirs.schema
    assert len(ours.rows) == len(theirs.rows)
    assert ours.ordered == theirs.ordered
    assert first_difference(ours.keys(), theirs.keys()) is None, "the order differs"


def first_difference(ours: Sequence[Row], theirs: Sequence[Row]) -> tuple[Row | None, Row | None] | None:
    """The first rows that differ, of two lists in the same order."""
    for mine, other in zip(ours, theirs, strict=True):
        if not all(map(_same, mine, other)):
            return mine, other
    return None


def difference(ours: Sequence[Row], theirs: Sequence[Row]) -> tuple[Row | None, Row | None] | None:
    """The first rows that differ, whatever the order of the lists."""
    return first_difference(sorted(ours, key=_sortable), sorted(theirs, key=_sortable))


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=TOLERANCE) or (math.isnan(one) and math.isnan(other))
    return bool(one == other)


def _sortable(row: Row) -> tuple[Any, ...]:
    """What is compared exactly comes first, so that rounding can't change the order of the rows."""
    exact = [str(value) for value in row if not isinstance(value, float)]
    return exact, [value for value in row if isinstance(value, float)]


def assert_same_answers(spark: SparkSession, text: str, ours_in: str, theirs_in: str) -> None:
    """Run a query on the tables of two databases: the results are the same, and they aren't empty."""
    ours, theirs = answer(spark, ours_in, text), answer(spark, theirs_in, text)
    assert any(value not in (None, 0) for row in theirs.rows for value in row), "a result that shows nothing"
    assert_same(ours, theirs)
    found = difference(ours.rows, theirs.rows)
    if found is not None and ours.ordered and _LIMIT.search(text):
        last = ours.key(ours.rows[-1])
        found = difference(_before(ours, last), _before(theirs, last))
        assert found is None, found
        # Any of the rows that tie with the last one are right.
        whole = answer(spark, theirs_in, _LIMIT.sub("", text))
        tied = [row for row in whole.rows if all(map(_same, whole.key(row), last))]
        for row in ours.rows[len(_before(ours, last)) :]:
            match = next((other for other in tied if all(map(_same, row, other))), None)
            assert match is not None, f"no such row without LIMIT: {row}"
            tied.remove(match)
    else:
        assert found is None, found


def _before(answer_: Answer, last: Row) -> list[Row]:
    return [row for row in answer_.rows if not all(map(_same, answer_.key(row), last))]
