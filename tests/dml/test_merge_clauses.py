"""The rules of MERGE's clauses, without Spark."""

import pytest

from tablelog.core.protocol.schema import LONG, STRING, StructField, StructType
from tablelog.dml.merge.clauses import Clause, assigned_columns, check_clauses, only_delete
from tablelog.errors import InvalidArgumentError

INNER = StructType((StructField("a", LONG), StructField("b", STRING)))
COLUMNS = StructType((StructField("id", LONG), StructField("n", INNER), StructField("t", INNER)))


def test_only_the_last_of_a_kind_may_have_no_condition():
    delete, update = Clause("matched", "delete"), Clause("matched", "update", "x")
    insert = Clause("not matched", "insert")
    check_clauses([update, insert, delete])
    check_clauses([delete, insert])
    for wrong in ([], [delete, update], [insert, delete, insert]):
        with pytest.raises(InvalidArgumentError):
            check_clauses(wrong)
    assert only_delete([delete, insert])
    assert only_delete([Clause("matched", "delete", "x"), Clause("matched", "delete", "y")])
    assert not only_delete([update, delete])
    assert not only_delete([insert])


def test_what_clauses_bring_to_the_schema():
    def names(*paths, star=False):
        return assigned_columns(COLUMNS, paths, star=star, case_sensitive=False)

    assert names().names == ()
    assert names(("ID",), ("nope",)).names == ("id",)
    assert names(("n", "a")) == StructType((StructField("n", StructType((StructField("a", LONG),))),))
    assert names(("n",)) == StructType((StructField("n", INNER),))
    assert names(star=True) == COLUMNS
