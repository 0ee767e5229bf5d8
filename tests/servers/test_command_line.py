"""The command line on MinIO, reached by `--option` alone."""

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from support.arrow_table import ArrowTable
from support.command_line import Ran, in_process

from . import MinIO

READING = [
    ("history", "\tCREATE TABLE\t"),
    ("detail", "rows\t9"),
    ("schema", "id\tbigint"),
    ("files", "day=2024-05-02/part-00001.parquet"),
    ("log 3", "add\tday=2024-05-01/part-00002.parquet"),
    ("log 1 3", "files\t+2  -0"),
    ("cat --where id=4", "4\tuser 1\t1.5\t2024-05-02"),
    ("export", "day=2024-05-01/part-00000.parquet"),
    ("doctor", "a Delta table"),
]


@dataclasses.dataclass(frozen=True)
class OnMinIO:
    """A table on the server, and the command on it."""

    server: MinIO
    uri: str

    def run(self, command: str, *words: str) -> Ran:
        name, *more = command.split()
        options = [word for pair in self.options.items() for word in ("--option", "=".join(pair))]
        nowhere = {"AWS_SHARED_CREDENTIALS_FILE": "/nowhere", "AWS_CONFIG_FILE": "/nowhere"}
        return in_process(name, self.uri, *more, *words, *options, environment=nowhere)

    @property
    def options(self) -> Mapping[str, str]:
        given: dict[str, Any] = self.server.storage_options
        return {name: value if isinstance(value, str) else json.dumps(value) for name, value in given.items()}

    def keys(self) -> set[str]:
        """The objects of the table, relative to its root."""
        client = self.server.client()
        prefix = self.uri.split("/", 3)[3] + "/"
        listed = client.list_objects_v2(Bucket=self.server.bucket, Prefix=prefix)["Contents"]
        return {one["Key"].removeprefix(prefix) for one in listed}

    def delete(self, key: str) -> None:
        self.server.client().delete_object(Bucket=self.server.bucket, Key=f"{self.uri.split('/', 3)[3]}/{key}")


@pytest.fixture
def table(minio: MinIO, tmp_path: Path) -> OnMinIO:
    """A table of three files, copied from the local disk."""
    local = ArrowTable(tmp_path / "events").with_rows()
    place = OnMinIO(minio, minio.url("events"))
    prefix = place.uri.split("/", 3)[3]
    for path in local.root.rglob("*"):
        if path.is_file():
            key = f"{prefix}/{path.relative_to(local.root)}"
            minio.client().put_object(Bucket=minio.bucket, Key=key, Body=path.read_bytes())
    return place


@pytest.mark.parametrize(("command", "said"), READING, ids=[command for command, _ in READING])
def test_reading(command: str, said: str, table: OnMinIO) -> None:
    ran = table.run(command)
    assert (ran.code, ran.err) == (0, "")
    assert said in ran.out
    assert table.server.secret_key not in ran.out


def test_check_and_repair(table: OnMinIO) -> None:
    assert table.run("check").out.splitlines()[-1] == "sound"
    gone = "day=2024-05-02/part-00001.parquet"
    table.delete(gone)
    found = table.run("check", "--json")
    assert found.code == 1
    assert [p["files"] for check in found.json["checks"] for p in check["problems"]] == [[gone]]
    assert table.run("repair", "--json").json["applied"] is False
    repaired = table.run("repair", "--yes")
    assert (repaired.code, repaired.err) == (0, "")
    assert table.run("check").code == 0
    assert table.run("detail", "--json").json["numRecords"] == 6


def test_vacuum(table: OnMinIO) -> None:
    assert table.run("restore", "1", "--yes").code == 0
    before = table.keys()
    short = ("--retain-hours", "0", "--no-retention-check")
    dry = table.run("vacuum", *short, "--json").json
    assert dry["applied"] is False
    assert len(dry["files"]) == 2
    assert table.keys() == before
    assert table.run("vacuum", *short, "--yes").code == 0
    assert not {*dry["files"]} & table.keys()
    assert table.run("cat", "--json").json["rows"][0]["id"] == 0
