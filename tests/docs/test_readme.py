"""The first block of the README runs as it is pasted, in a process of its own, and prints what the README shows."""

import os
import subprocess
import sys
from pathlib import Path

from . import pages

README = Path(__file__).resolve().parents[2] / "README.md"


def test_the_first_block_prints_what_it_shows(tmp_path: Path) -> None:
    first = pages.blocks(README.read_text(encoding="utf-8"))[0]
    environment = {**os.environ, "TMPDIR": str(tmp_path), "SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": ""}
    done = subprocess.run(
        [sys.executable, "-"],
        input=first.code,
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert list(filter(None, done.stdout.splitlines())) == pages.shown(first.code)
