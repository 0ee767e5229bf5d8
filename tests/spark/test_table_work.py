"""The whole work of a table where reads and writes go through Arrow, as on a store that Spark's JVM doesn't reach."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.table_work import STEPS, by_route, settings


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        # `every_route` tests the writes by tasks too, and tests/dml/test_slices.py what is done in slices.
        pytest.param(name, marks=[pytest.mark.slow] if name in ("by tasks", "in slices") else [])
        for name in STEPS
        if name != "commands"
    ],
)
def test_by_arrow(spark: SparkSession, tmp_path: Path, name: str) -> None:
    with settings(spark, by_route("arrow")):
        STEPS[name](spark, f"file://{tmp_path}/a table", {})


@pytest.fixture
def s3() -> Iterator[dict[str, str]]:
    """The settings that reach a bucket named `bucket`, in this process. It isn't atomic: for one writer."""
    import botocore.session
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    endpoint, keys = f"http://{host}:{port}", {"aws_access_key_id": "key", "aws_secret_access_key": "secret"}
    client = botocore.session.Session().create_client("s3", region_name="us-east-1", endpoint_url=endpoint, **keys)
    client.create_bucket(Bucket="bucket")
    client.close()
    yield {
        "fs.s3a.endpoint": endpoint,
        "fs.s3a.endpoint.region": "us-east-1",
        "fs.s3a.access.key": "key",
        "fs.s3a.secret.key": "secret",
        "fs.s3a.path.style.access": "true",
        "fs.s3a.connection.ssl.enabled": "false",
    }
    server.stop()


@pytest.mark.slow
def test_commands_on_a_store_that_the_jvm_does_not_reach(spark: SparkSession, s3: dict[str, str]) -> None:
    with settings(spark, s3):
        STEPS["commands"](spark, "s3a://bucket/a table", s3)
