"""versitygw (S3): a gateway over a directory of a POSIX file system, built from the Go module proxy."""

from pathlib import Path
from typing import ClassVar

from . import install
from .base import answers_http
from .s3 import ACCESS_KEY, REGION, SECRET_KEY, S3Server


class VersityGW(S3Server):
    """One versitygw over one directory. Its metadata are files beside it: not each file system has attributes."""

    name: ClassVar[str] = "versitygw"
    keeps_data: ClassVar[bool] = True

    @classmethod
    def install(cls) -> Path:
        return install.go_program("versitygw", "github.com/versity/versitygw/cmd/versitygw", "v1.8.0")

    def command(self) -> list[str]:
        metadata = Path(self.home) / "metadata"
        metadata.mkdir(exist_ok=True)
        return [
            str(self.install()),
            *("--port", f"127.0.0.1:{self.port}", "--region", REGION, "--health", "/health"),
            *("posix", "--sidecar", str(metadata), str(self.data)),
        ]

    def settings(self) -> dict[str, str]:
        return {"ROOT_ACCESS_KEY": ACCESS_KEY, "ROOT_SECRET_KEY": SECRET_KEY}

    def answers(self) -> bool:
        return answers_http(self.port, "/health")
