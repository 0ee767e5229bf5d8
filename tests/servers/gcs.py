"""fake-gcs-server (the JSON API of Google Cloud Storage)."""

import json
import urllib.request
from pathlib import Path
from typing import Any, ClassVar

from . import install
from .base import BUCKET, StorageServer, answers_http

PROJECT = "tablelog"


class FakeGCS(StorageServer):
    """One fake-gcs-server with its objects in memory. It asks for no credentials."""

    name: ClassVar[str] = "gcs_server"

    @classmethod
    def install(cls) -> Path:
        return install.go_program("fake-gcs-server", "github.com/fsouza/fake-gcs-server", "v1.56.1")

    def command(self) -> list[str]:
        return [
            str(self.install()),
            *("-scheme", "http", "-host", "127.0.0.1", "-port", str(self.port)),
            *("-backend", "memory", "-public-host", f"127.0.0.1:{self.port}"),
        ]

    def answers(self) -> bool:
        return answers_http(self.port, f"/storage/v1/b?project={PROJECT}")

    @property
    def root(self) -> str:
        return f"gs://{BUCKET}"

    @property
    def conf(self) -> dict[str, str]:
        return {
            "fs.gs.storage.root.url": f"{self.endpoint}/",
            "fs.gs.project.id": PROJECT,
            "fs.gs.auth.type": "UNAUTHENTICATED",
        }

    @property
    def storage_options(self) -> dict[str, Any]:
        return {"endpoint_url": self.endpoint, "project": PROJECT, "token": "anon"}

    @property
    def environment(self) -> dict[str, str]:
        return {"STORAGE_EMULATOR_HOST": self.endpoint, "GOOGLE_CLOUD_PROJECT": PROJECT}

    def prepare(self) -> None:
        request = urllib.request.Request(
            f"{self.endpoint}/storage/v1/b?project={PROJECT}",
            json.dumps({"name": BUCKET}).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=10):
            pass
