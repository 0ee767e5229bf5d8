"""s3rver (S3), a fake for the tests of Node programs, with its objects in files. It doesn't know conditional writes."""

from pathlib import Path
from typing import ClassVar

from . import install
from .s3 import S3Server


class S3rver(S3Server):
    """One s3rver, with the one pair of keys that it knows."""

    name: ClassVar[str] = "s3rver"
    keeps_data: ClassVar[bool] = True
    optional: ClassVar[bool] = True
    access_key: ClassVar[str] = "S3RVER"
    secret_key: ClassVar[str] = "S3RVER"

    @classmethod
    def install(cls) -> Path:
        return install.npm_package("s3rver", "3.7.1") / "bin" / "s3rver.js"

    def command(self) -> list[str]:
        return [
            install.tool("node"),
            str(self.install()),
            *("--directory", str(self.data), "--address", "127.0.0.1", "--port", str(self.port), "--silent"),
        ]
