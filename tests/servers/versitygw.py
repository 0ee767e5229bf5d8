"""versitygw (S3), a gateway over a directory of a POSIX file system; built by Go."""

from pathlib import Path
from typing import ClassVar

from . import install
from .s3 import ACCESS_KEY, REGION, SECRET_KEY, S3Server

_VERSION = "v1.8.0"


class VersityGW(S3Server):
    """One versitygw. It keeps its metadata in files beside the data: some file systems have no extended attributes."""

    name: ClassVar[str] = "versitygw"
    keeps_data: ClassVar[bool] = True
    optional: ClassVar[bool] = True
    apart: ClassVar[bool] = True
    start_seconds: ClassVar[float] = 120.0

    @classmethod
    def install(cls) -> Path:
        return install.go_program("versitygw", "github.com/versity/versitygw/cmd/versitygw", _VERSION)

    @classmethod
    def is_here(cls) -> bool:
        return (install.cache() / f"versitygw-{_VERSION.removeprefix('v')}").exists()

    def command(self) -> list[str]:
        metadata = Path(self.home) / "metadata"
        metadata.mkdir(exist_ok=True)
        return [
            str(self.install()),
            *("--port", f"127.0.0.1:{self.port}", "--region", REGION, "--quiet", "--keep-alive"),
            *("posix", "--sidecar", str(metadata), str(self.data)),
        ]

    def settings(self) -> dict[str, str]:
        return {"ROOT_ACCESS_KEY": ACCESS_KEY, "ROOT_SECRET_KEY": SECRET_KEY}
