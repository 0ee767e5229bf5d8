"""A Spark Connect server on loopback, without an extra jar, and one client session of it: `spark`.

Nothing here may start a classic session: it can't be in one process with a Connect session.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from support import connect_server


@pytest.fixture(scope="session")
def remote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server."""
    with connect_server.running(tmp_path_factory.mktemp("connect")) as address:
        yield address


@pytest.fixture(scope="session")
def spark(remote: str) -> Iterator[Any]:
    """A session of Spark Connect, enabled for Delta tables."""
    from pyspark.sql import SparkSession

    from tablelog.spark import enable

    session = SparkSession.builder.remote(remote).getOrCreate()
    enable(session)
    yield session
    session.stop()
