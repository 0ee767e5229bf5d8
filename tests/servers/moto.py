"""moto's server (S3 and DynamoDB): quick, and not atomic. Its race lets two win about once in 100 keys."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from . import install
from .base import answers_http
from .s3 import S3Server

_MAIN = "import sys; sys.setswitchinterval(float(sys.argv.pop(1))); from moto.server import main; main(sys.argv[1:])"


@dataclass(frozen=True)
class Moto(S3Server):
    """One moto server; its threads are switched every `switch_interval` seconds. 1e-5 makes its race a frequent one."""

    switch_interval: float = 0.005

    name: ClassVar[str] = "moto_server"

    @classmethod
    def install(cls) -> Path:
        return install.python_packages("moto", "5.2.5", "[server]")

    def command(self) -> list[str]:
        return [sys.executable, "-c", _MAIN, str(self.switch_interval), "-H", "127.0.0.1", "-p", str(self.port)]

    def settings(self) -> dict[str, str]:
        return {"PYTHONPATH": str(self.install()), "PYTHONUNBUFFERED": "1"}

    def answers(self) -> bool:
        return answers_http(self.port, "/moto-api/")
