"""MinIO (S3), built from the last commit of its archived repository: release tags are no versions of the module."""

from pathlib import Path
from typing import ClassVar

from . import install, process
from .base import answers_http
from .s3 import ACCESS_KEY, SECRET_KEY, S3Server


class MinIO(S3Server):
    """One MinIO over one directory. It is under the AGPL: a server to test against, and nothing of it is shipped."""

    name: ClassVar[str] = "minio"
    keeps_data: ClassVar[bool] = True

    @classmethod
    def install(cls) -> Path:
        return install.go_program("minio", "github.com/minio/minio", "v0.0.0-20260212201848-7aac2a2c5b7c")

    def command(self) -> list[str]:
        address, console = f"127.0.0.1:{self.port}", f"127.0.0.1:{process.free_port()}"
        return [
            str(self.install()),
            "server",
            *("--address", address, "--console-address", console),
            *("--certs-dir", str(Path(self.home) / "certs")),
            str(self.data),
        ]

    def settings(self) -> dict[str, str]:
        return {
            "MINIO_ROOT_USER": ACCESS_KEY,
            "MINIO_ROOT_PASSWORD": SECRET_KEY,
            "MINIO_UPDATE": "off",
            "MINIO_BROWSER": "off",
            "MINIO_CI_CD": "on",
        }

    def answers(self) -> bool:
        return answers_http(self.port, "/minio/health/ready")
