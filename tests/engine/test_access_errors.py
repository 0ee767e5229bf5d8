"""Errors about a storage that a part of a Spark program can't access, from the messages of Java's exceptions."""

import pytest

from tablelog.engine.read import read_errors
from tablelog.engine.storage import access_errors
from tablelog.errors import StorageAccessError, UnsupportedEnvironmentError
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


def test_a_certificate_that_java_does_not_trust(monkeypatch: pytest.MonkeyPatch) -> None:
    runs_on(monkeypatch, "spark://m:7077")
    cause = (
        "a.AWSClientIOException: PUT on t/x: b.SdkClientException: Unable to execute HTTP request\n"
        "javax.net.ssl.SSLHandshakeException: PKIX path building failed: c.SunCertPathBuilderException: no path"
    )
    for task in ("", "Lost task 0.0: "):
        error = access_errors.of_job(failed(cause, task), "writing data files")
        assert str(error).startswith("writing data files: Java doesn't trust the certificate of the service.")
        assert "-Djavax.net.ssl.trustStore=FILE" in str(error)


NO_TOKEN = (
    "java.nio.file.AccessDeniedException: s3a://b/t: a.NoAuthWithAWSException: No AWS Credentials : "
    "b.SdkClientException: Unable to load credentials : [EnvironmentVariableCredentialsProvider(): no key., "
    "WebIdentityTokenCredentialsProvider(): java.nio.file.NoSuchFileException: /var/a token, "
    "ProfileCredentialsProvider(profileName=default): no profile]"
)


def test_the_token_of_a_web_identity_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    runs_on(monkeypatch, "spark://m:7077")
    text = failed(NO_TOKEN, "Lost task 0.0 in stage 1.0 (TID 1) (10.1.2.3 executor 0): ")
    told = "writing: the file of AWS_WEB_IDENTITY_TOKEN_FILE, /var/a token, can't be read on the host 10.1.2.3. Spark's"
    for of in (access_errors.of_task, access_errors.of_job):
        assert str(of(text, "writing")).startswith(told + " executors have no access there")
    on_driver = str(access_errors.of_job(failed(NO_TOKEN, ""), "writing"))
    assert on_driver.startswith(told.replace(" on the host 10.1.2.3", "") + " JVM and")


@pytest.mark.parametrize("reader", ["v2.python.PythonPartitionReaderFactory$$anon$1.next", "MapInBatchExec"])
def test_executors_with_another_python_that_read(reader: str) -> None:
    """A user's function has the same error, which stays PySpark's."""
    text = (
        "org.apache.spark.SparkException: Job aborted: Lost task 0.0: Traceback (most recent call last):\n"
        "  raise PySparkRuntimeError(\npyspark.errors.PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python in worker "
        "has different version: 3.12 than that in driver: 3.11, PySpark cannot run with different minor versions.\n"
        f"\tat org.apache.spark.sql.execution.datasources.{reader}(A.scala:1)\n"
    )
    error = read_errors.translate(text)
    if reader == "MapInBatchExec":
        assert error is None
    else:
        assert isinstance(error, UnsupportedEnvironmentError)
        assert "the Python of Spark's executors is Python 3.12, and the driver's is 3.11" in str(error)
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
