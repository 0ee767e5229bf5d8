"""Keys that only the executors have, or only the driver: an error says who lacks them, and the table is as it was."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from socket import gethostname

import pytest

from logstore.fake_sts import ROLE
from servers import MinIO, Moto
from support.table_work import Work, by_route, settings

from .conftest import Sessions, class_path
from .standalone import WORKERS, Cluster

pytestmark = pytest.mark.skipif(not class_path(), reason="the jars of s3a can't be installed")

_WRONG = {"AWS_ACCESS_KEY_ID": "nobody-knows-this-key", "AWS_SECRET_ACCESS_KEY": "nobody-knows-this-secret"}
_KEYS = ("fs.s3a.access.key", "fs.s3a.secret.key")
_SDK_CHAIN = {
    "spark.hadoop.fs.s3a.aws.credentials.provider": (
        "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider"
    )
}
"""With it, Hadoop's client reads profiles too, and doesn't use keys in its configuration."""
_TESTS = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Tried:
    """How a command ended; `error` is empty if it did its work."""

    command: str
    error: str
    text: str
    table: str | None


@dataclass(frozen=True)
class Program:
    """A driver in a process of its own, with `environment`, on a table of two files."""

    cluster: Cluster
    server: MinIO | Moto
    table: Work
    scratch: Path

    @property
    def keys(self) -> dict[str, str]:
        return {"AWS_ACCESS_KEY_ID": self.server.access_key, "AWS_SECRET_ACCESS_KEY": self.server.secret_key}

    def profile(self) -> dict[str, str]:
        """The keys in a file, which Spark doesn't send to executors as it does with those in variables."""
        file = self.scratch / "credentials"
        lines = [f"{name.lower()} = {value}\n" for name, value in self.keys.items()]
        file.write_text("[default]\n" + "".join(lines))
        return {"AWS_SHARED_CREDENTIALS_FILE": str(file)}

    def run(
        self, environment: Mapping[str, str], of_executors: Mapping[str, str], conf: Mapping[str, str] = _SDK_CHAIN
    ) -> list[Tried]:
        nothing = {"AWS_EC2_METADATA_DISABLED": "true", "AWS_SHARED_CREDENTIALS_FILE": str(self.scratch / "none")}
        conf = {
            **conf,
            "spark.driver.memory": "1g",
            "spark.executor.memory": "1g",
            "spark.executor.cores": "1",
            "spark.cores.max": str(WORKERS),
            "spark.task.maxFailures": "1",
            "spark.sql.warehouse.dir": str(self.scratch / "warehouse"),
            "spark.local.dir": str(self.scratch / "local"),
            **{f"spark.hadoop.{key}": value for key, value in self.server.conf.items() if key not in _KEYS},
            **{f"spark.executorEnv.{name}": value for name, value in {**nothing, **of_executors}.items()},
        }
        own = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        done = subprocess.run(
            [sys.executable, str(_TESTS / "cluster" / "tried.py"), self.cluster.url, self.table.url, json.dumps(conf)],
            env={**own, **nothing, **environment, "PYTHONPATH": str(_TESTS), "PYSPARK_PYTHON": sys.executable},
            cwd=self.scratch,
            capture_output=True,
            text=True,
            check=False,
            timeout=540,
        )
        assert done.returncode == 0, done.stdout + done.stderr[-4000:]
        tried = [Tried(**json.loads(line)) for line in done.stdout.splitlines()]
        assert len(tried) == 4
        return tried


def program_on(sessions: Sessions, cluster: Cluster, server: MinIO | Moto, scratch: Path) -> Program:
    spark = sessions.of({})
    table = Work(spark, server.url(), server.conf, by_job=True)
    with settings(spark, {**server.conf, **by_route("arrow")}):
        table.write(table.frame(0, 4))
    sessions.stop()  # the program needs its executors
    return Program(cluster, server, table, scratch)


@pytest.fixture
def program(sessions: Sessions, cluster: Cluster, minio: MinIO, tmp_path: Path) -> Program:
    return program_on(sessions, cluster, minio, tmp_path)


def check_refused(program: Program, tried: list[Tried], before: set[str], who: str) -> None:
    """Each command ended with one line which names who lacks access, and nothing is changed."""
    for each in tried:
        assert each.error == "StorageAccessError", each
        assert who in each.text, each
        assert "Give the credentials in Spark's configuration" in each.text
        assert "\n" not in each.text
        assert len(each.text) < 1_000
        assert each.table == program.table.url, each
        assert program.table.url in each.text
        for key in (*program.keys.values(), *_WRONG.values()):
            assert key not in each.text.replace(program.table.url, "")
    assert program.table.log.snapshot().version == 0
    assert program.table.files() == before


@pytest.mark.timeout(900)
@pytest.mark.parametrize("driver", [{}, _WRONG], ids=["none", "wrong ones"])
def test_only_the_executors_have_keys(program: Program, driver: Mapping[str, str]) -> None:
    before = program.table.files()
    tried = program.run(driver, program.keys)
    check_refused(program, tried, before, "Spark's driver has no access there")


@pytest.mark.timeout(900)
@pytest.mark.parametrize("executors", [{}, _WRONG], ids=["none", "wrong ones"])
def test_only_the_driver_has_keys(program: Program, executors: Mapping[str, str]) -> None:
    before = program.table.files()
    tried = program.run(program.profile(), executors)
    check_refused(program, tried, before, "Spark's executors have no access there, and the driver has")


@pytest.mark.timeout(900)
def test_keys_in_variables_of_the_driver_reach_executors(program: Program) -> None:
    """Spark puts them in the Hadoop configuration, where they take precedence over variables of executors."""
    tried = program.run(program.keys, _WRONG, {})
    assert [each.error for each in tried] == ["", "", "", ""], tried
    assert program.table.log.snapshot().version == 2


def _identity(moto_server: Moto, token: Path) -> dict[str, str]:
    """The variables of a web identity, whose token is in a new file."""
    token.write_text("a token")
    return {
        "AWS_WEB_IDENTITY_TOKEN_FILE": str(token),
        "AWS_ROLE_ARN": ROLE,
        "AWS_ENDPOINT_URL_STS": moto_server.endpoint,
        "AWS_REGION": "us-east-1",
    }


@pytest.mark.timeout(900)
def test_a_web_identity(sessions: Sessions, cluster: Cluster, moto_server: Moto, tmp_path: Path) -> None:
    """Of the driver and of executors, as in pods on AWS: STS gives each process keys, by both routes."""
    program = program_on(sessions, cluster, moto_server, tmp_path)
    identity = _identity(moto_server, tmp_path / "token")
    tried = program.run(identity, identity)
    assert [each.error for each in tried] == ["", "", "", ""], tried
    assert program.table.log.snapshot().version == 2


@pytest.mark.timeout(900)
def test_executors_without_the_token_of_their_web_identity(
    sessions: Sessions, cluster: Cluster, moto_server: Moto, tmp_path: Path
) -> None:
    """The variables reach the executors and the file doesn't: the error names them, and the host if it is known."""
    program = program_on(sessions, cluster, moto_server, tmp_path)
    before = program.table.files()
    identity = _identity(moto_server, tmp_path / "token")
    tried = program.run(identity, {**identity, "AWS_WEB_IDENTITY_TOKEN_FILE": "/no/such/token"})
    check_refused(program, tried, before, "Spark's executors have no access there, and the driver has")
    for each in tried:
        assert "AWS_WEB_IDENTITY_TOKEN_FILE" in each.text, each
        if each.command != "read by native":  # Spark's error doesn't say where the task ran
            assert re.search(rf"can't be read on the host (127\.0\.0\.1|localhost|{gethostname()})\.", each.text), each
