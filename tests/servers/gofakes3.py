"""gofakes3 (S3), a fake for the tests of Go programs, with its objects in memory; built by Go."""

from pathlib import Path
from typing import ClassVar

from . import install
from .s3 import S3Server


class GoFakeS3(S3Server):
    """One gofakes3. It takes any credentials."""

    name: ClassVar[str] = "gofakes3"
    optional: ClassVar[bool] = True

    @classmethod
    def install(cls) -> Path:
        return install.go_program("gofakes3", "github.com/johannesboyne/gofakes3/cmd/gofakes3", "v1.2.0")

    def command(self) -> list[str]:
        return [str(self.install()), "-host", f"127.0.0.1:{self.port}", "-backend", "memory", "-quiet"]
