"""What a release must be: `make release-check` builds it, looks into it, and installs each extra alone.

The wheel is built from the sdist, as the workflow that publishes does. Each extra gets a virtual environment of its
own. The last environment, with all extras, gives the bill of materials.
"""

import argparse
import email
import re
import subprocess
import sys
import tarfile
import time
import tomllib
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / "release"
SOURCES = {"src": "tablelog", "conformance": "tablelog/conformance"}

USES = {
    "": "import tablelog.core, tablelog.logstore, tablelog.report, tablelog.observe",
    "spark": "import pyspark, pandas; from tablelog.spark import DeltaTable, enable",
    "connect": "import grpc, pandas, pyspark.sql.connect.session; from tablelog.spark import DeltaTable, enable",
    "s3": "import botocore, fsspec; fsspec.get_filesystem_class('s3')",
    "azure": "import azure.identity, azure.storage.blob, fsspec; fsspec.get_filesystem_class('abfss')",
    "gcs": "import google.auth, requests, fsspec; fsspec.get_filesystem_class('gs')",
    "hdfs": "import hdfs_native",
    "conformance": "import pytest, tablelog.conformance.plugin",
    "iceberg": "import pyiceberg, tablelog.core.iceberg.convert, tablelog.core.iceberg.manifests",
    "opentelemetry": "from tablelog.opentelemetry import OpenTelemetryObserver; OpenTelemetryObserver()",
}
"""What each extra is for, as a statement."""
USES["all"] = "\n".join(USES.values())
_ABSENT = {
    "pyspark": {"spark", "connect", "all"},
    "pytest": {"conformance", "all"},
    "pyiceberg": {"iceberg", "all"},
    "s3fs": {"s3", "all"},
}
"""Packages that only these extras may bring."""


def names_in(wheel: Iterable[str]) -> set[str]:
    """The files of the package in a wheel, without its metadata."""
    return {name for name in wheel if ".dist-info/" not in name}


def expected() -> set[str]:
    """The files that the wheel must have: all modules, the Java sources and the marker of types, and nothing else."""
    return {
        f"{package}/{path.relative_to(ROOT / folder).as_posix()}"
        for folder, package in SOURCES.items()
        for path in (ROOT / folder).rglob("*")
        if path.suffix in {".py", ".java"} or path.name == "py.typed"
    }


def check_contents(wheel: Path, sdist: Path) -> None:
    """Raise AssertionError if the files of the release aren't those that they should be."""
    found = names_in(zipfile.ZipFile(wheel).namelist())
    assert found == expected(), f"missing: {expected() - found}, unexpected: {found - expected()}"
    assert any(name.endswith(".java") for name in found)
    top = f"{sdist.name.removesuffix('.tar.gz')}/"
    with tarfile.open(sdist) as archive:
        packed = {name.removeprefix(top) for name in archive.getnames()}
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE", "src/py.typed", "conformance/__init__.py"):
        assert name in packed, f"{name} isn't in the sdist"
    unwanted = {name for name in packed if name.split("/")[0] in {"tests", "build", ".venv", "demo", "benchmarks"}}
    assert not unwanted, f"the sdist has {sorted(unwanted)[:5]}"


def check_description(wheel: Path) -> None:
    """Raise AssertionError if a package index would show dead links or pictures, or none of the README."""
    (metadata,) = (name for name in zipfile.ZipFile(wheel).namelist() if name.endswith(".dist-info/METADATA"))
    message = email.message_from_bytes(zipfile.ZipFile(wheel).read(metadata))
    shown = str(message.get_payload())
    assert message["Description-Content-Type"] == "text/markdown"
    assert (ROOT / "README.md").read_text(encoding="utf-8").partition("](")[0].rpartition("\n")[0] in shown
    dead = re.findall(r"\]\((?!https?://)[^)]*\)", shown)
    assert not dead, f"the description has links to files: {dead[:5]}"


def check_version(wheel: Path) -> str:
    """Raise AssertionError if the version isn't the same everywhere; returns it."""
    version: str = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert wheel.name.startswith(f"tablelog-{version}-"), wheel.name
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8"), "CITATION.cff"
    assert f"\n## {version}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), "CHANGELOG.md"
    return version


def check_extra(extra: str, wheel: Path, version: str) -> Path:
    """Install the wheel with one extra in a new environment, and use it; returns the environment's Python."""
    place = BUILD / f"venv-{extra or 'none'}"
    subprocess.run([sys.executable, "-m", "venv", "--clear", place], check=True)
    python = place / "bin" / "python"
    _run(
        python,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        f"{wheel}[{extra}]" if extra else wheel,
    )
    _run(python, "-m", "pip", "check", "--disable-pip-version-check")
    _run(python, "-c", USES[extra])
    for package, extras in _ABSENT.items():
        code = f"import importlib.util as u, sys; sys.exit((u.find_spec({package!r}) is not None) != {extra in extras})"
        _run(python, "-c", code)
    command = place / "bin" / "tablelog"
    assert version in _run(command, "--version")
    table = BUILD / f"table-{extra or 'none'}-{time.monotonic_ns()}"
    _run(command, "demo", table)
    assert "sound" in _run(command, "check", table)
    return python


def _run(*command: str | Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=BUILD)
    if done.returncode:
        raise AssertionError(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "extras", nargs="*", choices=[[], *filter(None, USES), "none"], help="only these (default: each)"
    )
    chosen = parser.parse_args(arguments).extras
    BUILD.mkdir(parents=True, exist_ok=True)
    for old in (*BUILD.glob("*.whl"), *BUILD.glob("*.tar.gz"), *BUILD.glob("*.json")):
        old.unlink()
    subprocess.run([sys.executable, "-m", "build", "--quiet", "--outdir", BUILD, ROOT], check=True)
    (wheel,), (sdist,) = BUILD.glob("*.whl"), BUILD.glob("*.tar.gz")
    subprocess.run([sys.executable, "-m", "twine", "check", "--strict", wheel, sdist], check=True)
    check_contents(wheel, sdist)
    check_description(wheel)
    version = check_version(wheel)
    print(f"{wheel.name} and {sdist.name}: contents and version are right", flush=True)
    for extra in [{"none": ""}.get(name, name) for name in chosen] or USES:
        started = time.monotonic()
        python = check_extra(extra, wheel, version)
        print(f"[{extra or 'no extra'}] installed and used, {time.monotonic() - started:.0f} s", flush=True)
        if extra == "all":
            bill = BUILD / f"tablelog-{version}.cdx.json"
            _run(
                sys.executable, "-m", "cyclonedx_py", "environment", "--output-reproducible", "--of", "JSON",
                "--pyproject", ROOT / "pyproject.toml", "-o", bill, python,
            )  # fmt: skip
            print(f"{bill.name}: the packages of all extras", flush=True)


if __name__ == "__main__":
    main()
