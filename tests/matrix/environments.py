"""Pythons of this machine, and a virtual environment for each pair of a Python and a Spark, with tablelog's wheel."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "matrix"
TOOLS = ("pytest", "pytest-timeout", "hypothesis")
_PACKAGE = ("pyproject.toml", "setup.py", "README.md", "LICENSE", "src", "conformance")
_VENV_CHECK = "import ensurepip, sys, venv; print('{}.{}'.format(*sys.version_info))"


class NotHereError(Exception):
    """A cell can't run on this machine; the message says what is missing."""


@dataclass(frozen=True)
class Environment:
    """A virtual environment."""

    root: Path

    @property
    def python(self) -> Path:
        return self.root / "bin" / "python"

    def versions(self, *packages: str) -> dict[str, str]:
        """The full versions of its Python and of these packages."""
        code = (
            "import platform; from importlib.metadata import version\n"
            f"print(platform.python_version(), *map(version, {packages!r}))"
        )
        answer = subprocess.run([self.python, "-c", code], capture_output=True, text=True, check=True).stdout
        return dict(zip(("python", *packages), answer.split(), strict=True))


def python_of(version: str) -> str:
    """The program of this minor version of Python: `$PYTHON_3_12`, else a `python3.12` of the PATH or of pyenv.

    Raises:
        NotHereError: There is none that runs and can make virtual environments.
    """
    variable = f"PYTHON_{version.replace('.', '_')}"
    for program in _candidates(version, os.environ.get(variable)):
        asked = subprocess.run([program, "-c", _VENV_CHECK], capture_output=True, text=True, check=False)
        if asked.returncode == 0 and asked.stdout.strip() == version:
            return program
    raise NotHereError(f"no python{version} (set {variable})")


def _candidates(version: str, configured: str | None) -> Iterator[str]:
    if configured:
        yield configured
        return
    for folder in os.get_exec_path():
        program = shutil.which(f"python{version}", path=folder)
        if program:
            yield program
    # pyenv's own programs on the PATH run only those versions that its user has chosen.
    pyenv = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser()
    yield from map(str, sorted(pyenv.glob(f"versions/{version}.*/bin/python{version}")))


def build_wheel() -> Path:
    """The wheel of this tree, built from a copy of it, so that nothing of an earlier build gets into it."""
    target = BUILD / "wheel"
    shutil.rmtree(target, ignore_errors=True)
    with tempfile.TemporaryDirectory() as scratch:
        for name in _PACKAGE:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, Path(scratch, name), ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, scratch)
        _pip(Path(sys.executable), "wheel", "--no-deps", "--wheel-dir", str(target), scratch)
    (wheel,) = target.glob("*.whl")
    return wheel


def prepare(python: str, pyspark: str, wheel: Path) -> Environment:
    """An environment of a Python (a minor version) with `pyspark`, a requirement, and the wheel.

    One of an earlier run is used again if its requirements were the same; the wheel is installed anew.

    Raises:
        NotHereError: This Python isn't on the machine.
    """
    program = python_of(python)
    environment = Environment(BUILD / "environments" / f"{python}-{re.sub(r'[^0-9a-z.]', '', pyspark)}")
    requirements = [f"{wheel}[spark,connect]", pyspark, *TOOLS]
    ready = environment.root / "ready"
    wanted = f"{program} {requirements}\n{(ROOT / 'pyproject.toml').read_text()}"
    if not ready.exists() or ready.read_text() != wanted:
        subprocess.run([program, "-m", "venv", "--clear", environment.root], check=True)
        _pip(environment.python, "install", *requirements)
        ready.write_text(wanted)
    else:
        _pip(environment.python, "install", "--no-deps", "--force-reinstall", str(wheel))
    return environment


def newest_preview() -> str | None:
    """The version of PySpark's newest preview in the package index, if it has one."""
    command = [sys.executable, "-m", "pip", "index", "versions", "pyspark", "--pre", "--disable-pip-version-check"]
    answer = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    listed = re.search(r"^Available versions: (.*)$", answer, re.MULTILINE)
    versions = listed[1].split(", ") if listed else []
    return next((version for version in versions if re.search(r"[a-z]", version.replace(".post", ""))), None)


def _pip(python: Path, *arguments: str) -> None:
    command = [str(python), "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments]
    answer = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if answer.returncode:
        print(answer.stdout, file=sys.stderr)
        answer.check_returncode()
