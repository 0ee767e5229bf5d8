"""Errors about a storage that a part of a Spark program can't access, from the messages of Java's exceptions."""

import pytest

from tablelog.engine.read import read_errors
from tablelog.engine.storage import access_errors
from tablelog.errors import StorageAccessError
from tablelog.spark.exceptions import as_spark

CAUSES = {
    "java.nio.file.AccessDeniedException: s3a://b/t: getFileStatus on s3a://b/t: a.b.S3Exception: (Code: 403):null": (
        "S3Exception: (Code: 403):null"
    ),
    "java.nio.file.AccessDeniedException: s3a://b/t: a.NoAuthWithAWSException: No credentials : b.SdkException: None": (
        "NoAuthWithAWSException: No credentials"
    ),
    "org.apache.hadoop.security.AccessControlException: Permission denied: user=stranger": (
        "Permission denied: user=stranger"
    ),
}


def failed(cause: str, task: str = "Lost task 0.0: ") -> str:
    return f"org.apache.spark.SparkException: Job aborted: {task}{cause}\n\tat x"


def runs_on(monkeypatch: pytest.MonkeyPatch, master: str | None) -> None:
    monkeypatch.setattr(access_errors, "master", lambda: master)


@pytest.mark.parametrize("cause", CAUSES)
def test_denied_access_of_a_task(cause: str, monkeypatch: pytest.MonkeyPatch) -> None:
    runs_on(monkeypatch, "spark://m:7077")
    for of in (access_errors.of_task, access_errors.of_job):
        error = of(failed(cause), "writing data files")
        assert str(error).startswith(f"writing data files: {CAUSES[cause]}. Spark's executors have no access there")
        assert "\n" not in str(error)


@pytest.mark.parametrize("master", ["spark://m:7077", "local[2]"])
def test_denied_access_of_a_job_before_its_tasks(master: str, monkeypatch: pytest.MonkeyPatch) -> None:
    runs_on(monkeypatch, master)
    error = access_errors.of_job(failed(next(iter(CAUSES)), ""), "writing")
    assert "Spark's JVM and its Python workers have no access there, and the driver's Python has" in str(error)


@pytest.mark.parametrize(
    ("master", "lacking"),
    [
        ("local", "JVM"),
        ("local[*]", "JVM"),
        ("local-cluster[2,1,512]", "executors"),
        ("yarn", "executors"),
        (None, "executors"),
    ],
)
def test_where_tasks_run(master: str | None, lacking: str, monkeypatch: pytest.MonkeyPatch) -> None:
    runs_on(monkeypatch, master)
    assert access_errors.remedy().startswith(f"Spark's {lacking} ")


def test_other_errors_are_not() -> None:
    for of in (access_errors.of_task, access_errors.of_job):
        assert of(failed("java.io.IOException: disk full"), "writing") is None


def test_an_error_that_names_no_part_is_about_the_driver_of_a_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    runs_on(monkeypatch, "spark://m:7077")
    error = as_spark(StorageAccessError("reading x: no credentials"))
    assert "reading x: no credentials. Spark's driver has no access there" in str(error)
    assert str(as_spark(error)).count("driver") == str(error).count("driver")
    of_task = as_spark(StorageAccessError(f"reading x: none. {access_errors.remedy()}"))
    assert "Spark's driver has no access" not in str(of_task)
    runs_on(monkeypatch, "local[2]")
    assert str(as_spark(StorageAccessError("reading x: none"))).endswith("reading x: none")


def test_an_error_of_a_users_own_task_is_about_executors(monkeypatch: pytest.MonkeyPatch) -> None:
    runs_on(monkeypatch, "spark://m:7077")
    error = read_errors.translate("PythonException: tablelog.errors.StorageAccessError: reading x: none\n more")
    assert isinstance(error, StorageAccessError)
    assert str(error).startswith("reading x: none. Spark's executors have no access there")
