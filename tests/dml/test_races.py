"""Two commands at once with Spark, one held before its commit: the dangerous pairs, and all that make a table."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.commands import CLONED, KINDS, copy_of, made, rows_of, source_of, values
from support.races import Done, held, race
from support.spark_tables import Table
from tablelog.errors import ProtocolChangedException, TableAlreadyExistsError
from tablelog.spark import DeltaTable

DANGEROUS = [
    # The second one writes rows of files that the first one has replaced, or misses rows that it should have changed.
    ("delete", "update"),
    ("update", "optimize"),
    ("merge", "append"),
    ("merge", "delete a partition"),
    ("insert-only merge", "insert-only merge"),
    ("optimize", "delete"),
    ("optimize", "append"),
    ("reorg", "merge"),
    ("zorder", "restore"),
    ("replaceWhere", "update elsewhere"),
    ("dynamic overwrite", "append"),
    ("append", "add a column"),
    ("append", "overwrite"),
    ("update elsewhere", "update"),
    ("update", "vacuum"),
    ("restore", "update"),
    ("vacuum", "restore"),
    ("overwrite", "set properties"),
    ("clone", "append"),
    ("drop a feature", "append"),
]


@pytest.fixture(scope="module")
def table(spark, tmp_path_factory) -> Table:
    return made(spark, tmp_path_factory.mktemp("races"))


@pytest.fixture(scope="module")
def done(table) -> dict[str, Done]:
    return {first: Done.by(first, KINDS[first].run, table) for first in {first for _, first in DANGEROUS}}


@pytest.mark.slow
@pytest.mark.parametrize(("second", "first"), DANGEROUS, ids=lambda name: name)
def test_dangerous_pairs(table, done, second, first):
    race(table, second, first, done[first], "before committing")


# --- who makes the table ------------------------------------------------------------------------------------------


def created(builder, table):
    builder.location(table.path).addColumn("id", "long").addColumn("p", "int").partitionedBy("p").execute()


NEW = {
    "write": lambda t: t.write(values(t.spark, (20, 0)), by=("p",)),
    "write, or fail": lambda t: t.write(values(t.spark, (20, 0)), "error", by=("p",)),
    "create": lambda t: created(DeltaTable.create(t.spark), t),
    "create if not there": lambda t: created(DeltaTable.createIfNotExists(t.spark), t),
    "clone": lambda t: source_of(t).delta.clone(t.path, isShallow=True),
    "convert": lambda t: DeltaTable.convertToDelta(t.spark, f"parquet.`{t.path}`", "p int"),
}
ROWS_OF_NEW = {"write": ((20, 0),), "create": (), "clone": CLONED, "convert": ((7, 0),)}
TOO_LATE = {
    "write, or fail": TableAlreadyExistsError,
    "create": TableAlreadyExistsError,
    "clone": ProtocolChangedException,
    "convert": ProtocolChangedException,
}


def test_of_those_that_make_a_table_one_does(spark, tmp_path):
    Table(spark, tmp_path / "source").write(values(spark, *CLONED), by=("p",))
    directory = Table(spark, tmp_path / "directory")
    (directory.root / "p=0").mkdir(parents=True)
    pq.write_table(pa.table({"id": [7]}), directory.root / "p=0" / "a.parquet")
    for first, rows in ROWS_OF_NEW.items():
        done = Done.by(first, NEW[first], directory)
        for second, run in NEW.items():
            own = copy_of(directory, f"{second} after {first}")
            with held("before committing", lambda done=done, own=own: done.again(own), writes=False):
                if second in TOO_LATE:
                    with pytest.raises(TOO_LATE[second]):
                        run(own)
                else:
                    run(own)
            appended = second == "write"
            assert rows_of(own) == tuple(sorted((*rows, *([(20, 0)] if appended else [])))), (second, first)
            assert own.version == appended
