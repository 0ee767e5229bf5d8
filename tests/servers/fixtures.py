"""The servers as fixtures: each is started when the first test of the run asks for it, and stopped at the end.

Elsewhere than here: `pytest -p servers.fixtures`. A server that `python -m servers run` published in the environment is
used as it is. Where one can't be installed, its tests are skipped with the reason; with `TABLELOG_REQUIRE_SERVERS=1`,
as in CI, they fail.
"""

from collections.abc import Callable, Iterator
from typing import TypeVar

import pytest

from . import (
    HDFS,
    Azurite,
    CannotInstallError,
    Ceph,
    Dynalite,
    FakeGCS,
    GoFakeS3,
    MinIO,
    Moto,
    S3rver,
    SeaweedFS,
    Server,
    VersityGW,
    install,
)

_AnyServer = TypeVar("_AnyServer", bound=Server)
_LOGS = pytest.StashKey[list[str]]()


def _fixture(kind: type[_AnyServer]) -> Callable[[pytest.FixtureRequest], Iterator[_AnyServer]]:
    def running(request: pytest.FixtureRequest) -> Iterator[_AnyServer]:
        published = kind.of_environment()
        if published is not None:
            yield published
            return
        if not kind.is_here():
            pytest.skip(f"{kind.name}: `python -m servers install {kind.name}` installs it")
        try:
            server = kind.start()
        except CannotInstallError as error:
            if install.all_required() and not kind.optional:
                pytest.fail(f"{kind.name}: {error}")
            pytest.skip(f"{kind.name}: {error}")
        failed_before = request.session.testsfailed
        yield server
        failed = request.session.testsfailed > failed_before
        server.stop(keep_log=failed)
        if failed:
            request.config.stash.setdefault(_LOGS, []).append(f"{kind.name}: {server.log}")

    running.__doc__ = f"{kind.name}, for the whole run."
    return pytest.fixture(scope="session", name=kind.name)(running)


minio = _fixture(MinIO)
azurite = _fixture(Azurite)
gcs_server = _fixture(FakeGCS)
hdfs = _fixture(HDFS)
moto_server = _fixture(Moto)
dynalite = _fixture(Dynalite)
ceph = _fixture(Ceph)
versitygw = _fixture(VersityGW)
seaweedfs = _fixture(SeaweedFS)
gofakes3 = _fixture(GoFakeS3)
s3rver = _fixture(S3rver)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say where the logs of servers are that ran while tests failed."""
    logs = config.stash.get(_LOGS, [])
    if logs:
        terminalreporter.section("logs of servers")
        terminalreporter.write_line("\n".join(logs))
