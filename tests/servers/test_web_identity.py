"""A table written with the token of a web identity only: moto's STS gives the keys for it."""

import os
from pathlib import Path

import pytest

from logstore.fake_sts import ROLE
from servers import Moto
from servers.s3_writers import create
from tablelog.core.deltalog import DeltaLog
from tablelog.errors import StorageAccessError
from tablelog.logstore.data_files import DataFiles


def without_keys(server: Moto) -> dict[str, str]:
    return {key: value for key, value in server.conf.items() if not key.endswith(".key")}


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, os.devnull)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


def test_the_log_and_the_data_files_of_a_table(
    moto_server: Moto, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    table, conf = moto_server.url(), without_keys(moto_server)
    with pytest.raises(StorageAccessError, match="no usable credentials"):
        create(table, conf)
    (tmp_path / "token").write_text("a token")
    monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(tmp_path / "token"))
    monkeypatch.setenv("AWS_ROLE_ARN", ROLE)
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", moto_server.endpoint)
    create(table, {**conf, "fs.s3a.endpoint.region": "us-west-2"})  # another store than the one without credentials
    assert DeltaLog.for_path(table, conf={**conf, "fs.s3a.endpoint.region": "us-west-2"}).snapshot().version == 0
    files = DataFiles.of(table, conf, {"skip_instance_cache": True})
    files.write("a", b"content")
    assert files.read_range("a", 0, 3) == b"con"
    assert "a" in files.list("")
    assert files.exists("a")
