"""Several threads on one table, each as if it were alone; every order forced, none awaited by sleeping."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from tablelog.core.txn.transaction import Transaction
from tablelog.errors import DeltaConcurrentModificationException, TableAlreadyExistsError
from tablelog.spark.conf import delta_log, forget


@pytest.fixture
def together(monkeypatch):
    """`together(n)`: the next n commits begin at the same moment."""
    commit = Transaction.commit

    def arrange(count):
        barrier = threading.Barrier(count)
        waiting = threading.Semaphore(count)

        def wait_and_commit(self, *args, **kwargs):
            if waiting.acquire(blocking=False):
                barrier.wait(60)
            return commit(self, *args, **kwargs)

        monkeypatch.setattr(Transaction, "commit", wait_and_commit)

    return arrange


def run(count, function):
    """What `function(0)` to `function(count - 1)` gave, or the exceptions they raised."""

    def outcome(i):
        try:
            return function(i)
        except Exception as error:
            return error

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(outcome, range(count)))


def test_appends_never_conflict(spark, table, together):
    table.write(spark.range(1))
    together(4)
    assert run(4, lambda i: table.write(spark.range(10 * i, 10 * i + 3))) == [None] * 4
    assert table.version == 4
    assert table.read().count() == 13
    assert table.data_files() == table.logged_files()


def test_appends_that_race_to_make_the_table(spark, table, together):
    together(3)
    assert run(3, lambda i: table.write(spark.range(i, i + 1))) == [None] * 3
    assert table.rows() == [0, 1, 2]
    assert table.version == 2
    assert table.data_files() == table.logged_files()


def test_of_those_that_race_to_make_a_new_table_one_wins(spark, table, together):
    together(3)
    outcomes = run(3, lambda i: table.write(spark.range(i, i + 1), "error"))
    assert outcomes.count(None) == 1
    assert sum(isinstance(outcome, TableAlreadyExistsError) for outcome in outcomes) == 2
    assert table.read().count() == 1
    assert table.data_files() == table.logged_files()


def test_ignoring_writers_that_race_leave_one_table(spark, table, together):
    together(3)
    assert run(3, lambda i: table.write(spark.range(i, i + 1), "ignore")) == [None] * 3
    assert table.version == 0
    assert table.data_files() == table.logged_files()


def test_deletes_of_one_file_conflict_and_the_table_is_as_after_some_order(spark, table, together):
    table.write(spark.range(6).coalesce(1))
    together(3)
    outcomes = run(3, lambda i: table.delta.delete(f"id = {i}"))
    lost = [outcome for outcome in outcomes if outcome is not None]
    assert len(lost) == 2
    assert all(isinstance(outcome, DeltaConcurrentModificationException) for outcome in lost)
    gone = [i for i, outcome in enumerate(outcomes) if outcome is None]
    assert table.rows() == [i for i in range(6) if i not in gone]
    assert table.data_files() == table.logged_files()


def test_deletes_in_partitions_of_their_own_do_not(spark, table, together):
    table.write(spark.range(9).selectExpr("id", "id % 3 as p"), by=("p",))
    together(3)
    assert run(3, lambda i: table.delta.delete(f"p = {i} and id < 3")) == [None] * 3
    assert table.rows("id") == [3, 4, 5, 6, 7, 8]


def test_one_handle_and_one_frame_serve_many_threads(spark, table):
    table.write(spark.range(10))
    frame = table.read()

    def work(i):
        if i % 2:
            table.write(spark.range(100 + i, 101 + i))
            return 0
        return frame.where("id < 10").count() + table.read().where("id < 10").count()

    assert run(8, work) == [20, 0] * 4
    assert frame.count() == 14


def test_handles_are_shared_by_path_and_configuration(tmp_path):
    path = str(tmp_path)
    forget()
    one = delta_log(path, {"spark.databricks.delta.maxCommitAttempts": "3", "spark.app.name": "x"})
    assert one.conf == {"spark.databricks.delta.maxCommitAttempts": "3"}
    assert delta_log(path, {"spark.databricks.delta.maxCommitAttempts": "3", "spark.app.name": "y"}) is one
    assert delta_log(path, {"spark.databricks.delta.maxCommitAttempts": "3"}) is one
    assert delta_log(path, {"spark.databricks.delta.commitInfo.userMetadata": "u"}).conf == {}
    assert delta_log(path, {}) is not one
    forget(path)
    assert delta_log(path, {}) is not delta_log(path, {"delta.x": "1"})
