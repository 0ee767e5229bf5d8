"""Errors that programs written for Delta catch: each is PySpark's too, with Delta's condition."""

import inspect
import pickle
import re
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyspark.errors
import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession

import tablelog.spark
from support.spark_tables import Table
from tablelog import error_conditions, errors
from tablelog.core.log.checkpoint_file import DamagedCheckpointError
from tablelog.core.txn.transaction import Transaction
from tablelog.engine.read import read_errors
from tablelog.spark import DeltaTable, enable, exceptions
from tablelog.spark.boundary import is_covered

SOURCE = Path(error_conditions.__file__).parent

KINDS = sorted(
    {one for one in vars(errors).values() if isinstance(one, type) and issubclass(one, errors.TablelogError)},
    key=lambda one: one.__name__,
)


def made(kind: type[errors.TablelogError]) -> errors.TablelogError:
    """An error as the core raises it."""
    match kind.__name__:
        case "CommitStateUnknownError":
            return errors.CommitStateUnknownError("/t", 3, "token", "no answer")
        case "WriteOutcomeUnknown":
            return errors.WriteOutcomeUnknown("/t", "no answer")
        case "UnsupportedFeatureError":
            return errors.UnsupportedFeatureError(
                "no", ("x",), condition="DELTA_PATH_EXISTS", parameters={"path": "/t"}
            )
        case "DamagedCheckpointError":
            return DamagedCheckpointError("damaged", ("a.parquet",))
    return kind("what happened", parameters={"tableName": "/t"})


@pytest.mark.parametrize("kind", [*KINDS, DamagedCheckpointError], ids=lambda kind: kind.__name__)
def test_an_error_is_of_both_trees_and_pickles_in_either(kind: type[errors.TablelogError]) -> None:
    error = made(kind)
    plain = str(error)
    for _ in range(2):  # as the core has it, then as a user of Spark gets it
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again), again.args, vars(again)) == (type(error), str(error), error.args, vars(error))
        assert exceptions.as_spark(error) is error
    assert isinstance(error, kind)
    assert isinstance(error, PySparkException)
    assert type(error).__name__ == kind.__name__
    condition = error.getCondition()
    assert isinstance(error, getattr(pyspark.errors, error_conditions.of(condition).raises))
    assert str(error) == error.getMessage() == f"[{condition}] {plain}"
    assert plain in repr(error) or repr(plain) in repr(error)
    assert error.getMessageParameters() == error.message_parameters
    assert re.fullmatch("[0-9A-Z]{5}", error.getSqlState() or "")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # getErrorClass is the older name
        for name in dir(PySparkException):
            if name.startswith("get"):
                getattr(error, name)()
        assert error.getErrorClass() == condition


def test_the_trees_have_the_same_branches() -> None:
    for kind in KINDS:
        twin = getattr(exceptions, kind.__name__)
        assert twin.__name__ in exceptions.__all__
        assert issubclass(twin, kind)
        for parent in kind.__mro__:
            if parent in KINDS:
                assert issubclass(twin, getattr(exceptions, parent.__name__))
    names = set(inspect.getmembers(errors, inspect.isclass)) - set(inspect.getmembers(object))
    assert {name for name, one in names if one.__module__ == errors.__name__} == set(exceptions.__all__)


def test_other_errors_stay_as_they_are() -> None:
    for other in (ValueError("no"), KeyboardInterrupt(), errors.CommitInterrupted("/t", 1, "token", None)):
        kind = type(other)
        assert exceptions.as_spark(other) is other
        assert type(other) is kind


# --- each public entry point is covered ----------------------------------------------------------------------------


def entry_points() -> Iterator[tuple[str, Any]]:
    for name in tablelog.spark.__all__:
        exported = getattr(tablelog.spark, name)
        if not isinstance(exported, type):
            yield name, exported
            continue
        for member in vars(exported):
            if not member.startswith("_") and callable(getattr(exported, member)):
                yield f"{name}.{member}", getattr(exported, member)


def test_each_entry_point_raises_errors_of_pyspark(spark: SparkSession) -> None:
    enable(spark)
    found = dict(entry_points())
    assert {"enable", "DeltaTable.forPath", "DeltaMergeBuilder.execute", "DeltaOptimizeBuilder.where"} <= found.keys()
    assert "DeltaTableBuilder.execute" in found
    replaced = sys.modules["tablelog.spark.sessions.enable"]._applied._replaced
    assert len(replaced) > 20
    found |= {f"{one.owner.__name__}.{one.attribute}": getattr(one.owner, one.attribute) for one in replaced}
    assert [name for name, function in found.items() if not is_covered(function)] == []


# --- the conditions ----------------------------------------------------------------------------------------------


def test_each_condition_is_listed_and_used() -> None:
    texts = [path.read_text() for path in SOURCE.rglob("*.py") if path.name != "error_conditions.py"]
    named = set(re.findall(r'"([A-Z][A-Z0-9]*_[A-Z0-9_]+)(?:\.[A-Z_]+)?"', "\n".join(texts)))
    listed = error_conditions.CONDITIONS.keys()
    assert listed - named == set()
    assert {name for name in named if name.startswith(("DELTA_", "TABLELOG_"))} - listed == set()
    raised = set(re.findall(r'condition="([A-Z0-9_]+)', "\n".join(texts)))
    assert raised - listed == set()
    for condition in error_conditions.CONDITIONS.values():
        assert issubclass(getattr(pyspark.errors, condition.raises), PySparkException)
    assert error_conditions.of("OF_ANOTHER_STORE").raises == "PySparkException"


def test_errors_need_no_spark() -> None:
    code = "import sys, tablelog.errors; sys.exit('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# --- the fields ----------------------------------------------------------------------------------------------------


def test_an_error_of_a_command_has_the_table(table: Table) -> None:
    table.write(table.spark.range(3))
    uri = table.root.resolve().as_uri()
    with pytest.raises(exceptions.InvalidArgumentError) as raised:
        table.delta.dropColumn("nothing")
    assert raised.value.table == uri
    with pytest.raises(exceptions.TableNotFoundError) as absent:
        DeltaTable.forPath(table.spark, table.path + "/below")
    assert absent.value.table == uri + "/below"
    with pytest.raises(exceptions.VersionNotFoundError) as restored:
        table.delta.restoreToVersion(9)
    assert (restored.value.table, restored.value.version) == (uri, 9)


def test_an_error_of_a_python_worker_has_the_fields() -> None:
    gone = read_errors.translate(
        "java: tablelog.errors.MissingDataFileError: the file file:///t/a b.parquet, which is part of version 3 of "
        "file:///t, doesn't exist. Restore it, or remove it from the table."
    )
    assert isinstance(gone, errors.MissingDataFileError)
    assert (gone.table, gone.version, gone.path) == ("file:///t", 3, "file:///t/a b.parquet")
    refused = read_errors.translate(
        "java: tablelog.errors.StorageAccessError: reading bucket/t/a.parquet: no permission"
    )
    assert isinstance(refused, errors.StorageAccessError)
    assert refused.path == "bucket/t/a.parquet"


def test_a_conflict_of_a_command_has_the_winner(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    table.write(table.spark.range(3))
    commit = Transaction.commit

    def commit_second(self: Transaction, *args: Any, **kwargs: Any) -> Any:
        monkeypatch.setattr(Transaction, "commit", commit)
        table.delta.delete()
        return commit(self, *args, **kwargs)

    monkeypatch.setattr(Transaction, "commit", commit_second)
    with pytest.raises(exceptions.DeltaConcurrentModificationException) as raised:
        table.delta.delete("id = 1")
    error = raised.value
    assert (error.table, error.version, error.winner) == (table.root.resolve().as_uri(), 0, 1)
    again = pickle.loads(pickle.dumps(error))
    assert (again.table, again.version, again.winner) == (error.table, 0, 1)


# --- as they arrive ------------------------------------------------------------------------------------------------


def test_an_error_keeps_its_traceback_and_cause(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(AnalysisException) as raised:
        DeltaTable.forPath(spark, str(tmp_path))
    error = raised.value
    assert isinstance(error, errors.TableNotFoundError)
    assert isinstance(error, exceptions.TableNotFoundError)
    assert isinstance(error, FileNotFoundError)
    assert error.__cause__ is None
    assert error.__context__ is None
    assert raised.traceback[-1].name == "forPath"


def test_an_error_that_arrives_when_a_frame_is_executed(table: Table) -> None:
    table.write(table.spark.range(3))
    frame = table.read()
    next(table.root.glob("*.parquet")).unlink()
    with pytest.raises(PySparkException) as raised:
        frame.collect()
    assert isinstance(raised.value, errors.MissingDataFileError)
    assert isinstance(raised.value, exceptions.MissingDataFileError)
    assert (raised.value.table, raised.value.version) == (table.root.resolve().as_uri(), 0)
    assert str(raised.value.path).endswith(".parquet")
    another = table.read()
    table.write(table.spark.sql("select 'x' id"), "overwrite", overwriteSchema="true")
    with pytest.raises(AnalysisException) as changed:
        another.collect()
    assert isinstance(changed.value, exceptions.SchemaChangedError)
    assert changed.value.getCondition() == "DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS"
