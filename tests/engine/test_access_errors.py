"""The error of a task without access, from the messages of Java's exceptions."""

import pytest

from tablelog.engine.storage import access_errors

FAILED = "org.apache.spark.SparkException: Job aborted due to stage failure: Task 0: Lost task 0.0: {}\n\tat x"


@pytest.mark.parametrize(
    "cause",
    [
        "java.nio.file.AccessDeniedException: s3a://b/t: getFileStatus on s3a://b/t: 403",
        "org.apache.hadoop.security.AccessControlException: Permission denied: user=stranger, access=WRITE",
        "org.apache.hadoop.fs.s3a.auth.NoAwsCredentialsException: no credentials",
    ],
)
def test_denied_access_is_recognized(cause: str) -> None:
    error = access_errors.of_task(FAILED.format(cause), "writing data files")
    assert error is not None
    assert str(error).startswith(
        f"writing data files: {cause.partition(': ')[2]}. Spark's executors have no access there"
    )
    assert "\n" not in str(error)


def test_other_errors_are_not() -> None:
    assert access_errors.of_task(FAILED.format("java.io.IOException: disk full"), "writing") is None
