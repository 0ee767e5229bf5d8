"""Credentials that expire in the midst of a command: the log's requests and the workers' take new ones and go on."""

import os
import re
import sys
from collections import Counter
from pathlib import Path

import pytest

from logstore.fake_s3 import Asked, FakeS3, Reply

from .programs import run_program

COMMANDS = ("UPDATE", "OPTIMIZE")
MIDST = {("log", "list"): 1, ("log", "PUT"): 1, ("data", "list"): 1, ("data", "GET"): 3, ("data", "PUT"): 2}
"""At the how many-th request of its kind in each command the credentials expire that signed it."""
_CREDENTIALS = """
import json, uuid
key = f"AK{uuid.uuid4().hex}"
print(json.dumps({"Version": 1, "AccessKeyId": key, "SecretAccessKey": "s3cret", "SessionToken": "t"}))
"""


class Expiring:
    """Refuses each request with expired credentials. It notes what it refused in which command."""

    def __init__(self) -> None:
        self.command = ""
        self.asked: Counter[tuple[str, ...]] = Counter()
        self.expired: set[str] = set()
        self.refused: set[tuple[str, ...]] = set()

    def __call__(self, asked: Asked) -> Reply | None:
        if asked.key.startswith("/now/"):  # the program says what comes next
            self.command = asked.key.removeprefix("/now/")
            return Reply(404)
        listing = "list-type" in asked.query
        where = "log" if "/_delta_log/" in (asked.query["prefix"] if listing else asked.key) else "data"
        kind = where, "list" if listing else asked.method
        self.asked[self.command, *kind] += 1
        if self.command in COMMANDS and self.asked[self.command, *kind] == MIDST.get(kind):
            self.expired.add(asked.signer)
        if asked.signer not in self.expired:
            return None
        self.refused.add((self.command, *kind))
        return Reply(400, "ExpiredToken")


@pytest.fixture
def profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment's credentials come from a program that gives another key each time."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    program, config = tmp_path / "credentials.py", tmp_path / "config"
    program.write_text(_CREDENTIALS)
    config.write_text(f"[profile renewing]\ncredential_process = {sys.executable} {program}\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", os.devnull)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_PROFILE", "renewing")


class InThisProcess:
    """What `run_program` asks of a server that needs no publishing."""

    def published(self) -> dict[str, str]:
        return {}


@pytest.mark.timeout(300)
@pytest.mark.usefixtures("profile")
def test_commands_go_on_with_new_credentials(tmp_path: Path) -> None:
    expiring = Expiring()
    with FakeS3() as service:
        service.refused = expiring
        program = "support.expiring_work", service.endpoint, "s3a://bucket/t"
        assert run_program(InThisProcess(), tmp_path, *program) == "all done"
    assert expiring.refused >= {(command, *kind) for command in COMMANDS for kind in MIDST}
    commits = [key for key in service.objects if re.fullmatch(r"/bucket/t/_delta_log/\d+\.json", key)]
    assert len(commits) == 6 + len(COMMANDS)
