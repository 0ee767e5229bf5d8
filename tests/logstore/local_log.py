"""The paths of a log on the local disk, and the type of the fixture `fail`."""

from collections.abc import Callable
from pathlib import Path

Failing = Callable[..., None]

UUID = "0c2b1f5e-1111-4222-8333-0123456789ab"
TEMPORARIES = [
    f".{0:020}.json.{UUID}.tmp",
    f"._last_checkpoint.{UUID}.tmp",
    f"..{0:020}.json.{UUID}.tmp.crc",
]


def commit(log: Path, version: int = 0) -> str:
    return f"{log}/{version:020}.json"
