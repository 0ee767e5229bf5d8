"""A fake of S3, and a store on it."""

from collections.abc import Iterator

import pytest

from logstore.fake_s3 import FakeS3
from logstore.s3_paths import LOG
from tablelog.logstore.s3.conditional_put_store import S3LogStore


@pytest.fixture
def fake() -> Iterator[FakeS3]:
    with FakeS3() as service:
        yield service


@pytest.fixture
def store(fake: FakeS3) -> S3LogStore:
    """A store whose service has been probed."""
    found = fake.store()
    found.write(f"{LOG}/_probed", b"")
    fake.asked.clear()
    return found
