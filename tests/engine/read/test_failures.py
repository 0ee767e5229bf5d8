"""What comes out of Spark when a callback fails or a file is gone."""

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tablelog.engine.read import read_errors, scan
from tablelog.errors import CorruptLogError, MissingDataFileError

from .conftest import Make
from .tables import HandMade


def test_a_file_that_is_gone_is_named(spark: SparkSession, clustered: HandMade) -> None:
    frame = scan.frame(spark, clustered.log)
    (clustered.root / "part-00006.parquet").unlink()
    actions = (
        lambda: frame.selectExpr("sum(id)").collect(),
        frame.toArrow,
        lambda: list(frame.toLocalIterator()),
        lambda: frame.write.mode("overwrite").parquet(str(clustered.root.parent / "copy")),
    )
    for action in actions:
        with pytest.raises(MissingDataFileError) as caught:
            action()
        text = str(caught.value)
        assert "part-00006.parquet" in text
        assert "version 1 of file:///" in text
        assert clustered.root.name.replace(" ", "%20").replace("% ", "%25%20")[:8] in text
    assert frame.where("id < 50").count() == 50


def test_the_version_is_the_one_that_lists_the_file(spark: SparkSession, make: Make) -> None:
    table = make({"id": "long"})
    add = table.append(pa.table({"id": pa.array([1], pa.int64())}))
    log = table.log
    old = scan.frame(spark, log, snapshot=log.snapshot())
    table.remove(add)
    new = scan.frame(spark, log)
    assert old.count() == 1
    (table.root / add.path).unlink()
    assert new.count() == 0
    with pytest.raises(MissingDataFileError, match="version 1 of"):
        old.selectExpr("max(id)").collect()


def test_an_error_in_a_callback_is_raised_as_it_is(spark: SparkSession, make: Make) -> None:
    table = make({"id": "long", "p": "date"}, ["p"])
    table.append(pa.table({"id": pa.array([1], pa.int64())}), {"p": "no date"})
    frame = scan.frame(spark, table.log)
    with pytest.raises(CorruptLogError, match="'no date' is not valid for the type date"):
        frame.collect()
    with pytest.raises(CorruptLogError, match="'no date' is not valid for the type date"):
        frame.groupBy("p").count().collect()


def test_an_error_of_spark_in_a_partition_filter_stays_spark_s(spark: SparkSession, make: Make) -> None:
    table = make({"id": "long", "p": "string"}, ["p"])
    table.append(pa.table({"id": pa.array([1], pa.int64())}), {"p": "x"})
    with pytest.raises(PySparkException, match="CAST_INVALID_INPUT"):
        scan.frame(spark, table.log).where("cast(p as int) = 1").collect()


def test_other_errors_pass_untouched(spark: SparkSession) -> None:
    assert read_errors.translate("java.lang.IllegalStateException: no") is None
    gone = "[FAILED_READ_FILE.FILE_NOT_EXIST] Encountered error while reading file file:///elsewhere/x. File does not"
    assert read_errors.translate(gone) is None
    with pytest.raises(PySparkException, match="PATH_NOT_FOUND"):
        spark.read.parquet("/no/such/directory/at/all")


def test_what_another_library_puts_in_front_of_ours_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    from pyspark.errors.exceptions import captured

    text = "FAILED_READ_FILE.FILE_NOT_EXIST"
    translation = read_errors.Translation(lambda said: ValueError(said) if said == text else None)
    monkeypatch.setattr(captured, "convert_exception", lambda error: ("Spark's", error))

    class JavaError:
        def toString(self) -> str:
            return text

        def getCause(self) -> None:
            return None

    error = JavaError()
    translation.install()
    ours = captured.convert_exception
    assert isinstance(ours(error), ValueError)  # type: ignore[arg-type]
    captured.convert_exception = theirs = lambda error: ("theirs", ours(error))  # type: ignore[assignment, misc]
    translation.uninstall()
    assert captured.convert_exception is theirs
    assert captured.convert_exception(error) == ("theirs", ("Spark's", error)), "and ours does nothing any more"
    translation.install()
    assert isinstance(captured.convert_exception(error), ValueError)
    translation.uninstall()
    assert captured.convert_exception is theirs


def test_installing_twice_and_taking_it_back_once_keeps_it() -> None:
    from pyspark.errors.exceptions import captured

    translation = read_errors.Translation()
    before = captured.convert_exception
    translation.install()
    within = captured.convert_exception
    translation.install()
    translation.uninstall()
    assert captured.convert_exception is within
    translation.uninstall()
    assert captured.convert_exception is before
