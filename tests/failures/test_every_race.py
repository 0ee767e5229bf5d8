"""Two commands of every kind with Spark, held at both points: each pair ends as the conflict matrix says."""

import pytest

from support.commands import KINDS, made
from support.races import POINTS, Done, race
from support.spark_tables import Table


@pytest.fixture(scope="module")
def table(spark, tmp_path_factory) -> Table:
    return made(spark, tmp_path_factory.mktemp("races"))


@pytest.fixture(scope="module")
def done(table) -> dict[str, Done]:
    return {name: Done.by(name, kind.run, table) for name, kind in KINDS.items()}


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("second", KINDS)
def test_every_pair(table, done, second, point):
    wrong = []
    for first in KINDS:
        try:
            race(table, second, first, done[first], point, again=point == "before committing")
        except Exception as error:  # the others are worth knowing too
            wrong.append(f"after {first}: {type(error).__name__}: {error}")
    assert not wrong, "\n".join(wrong)
