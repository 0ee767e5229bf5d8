"""The cache in which servers are installed, outside of the repository, and the toolchains that install them.

`$TABLELOG_SERVERS` names the cache; without it, it is `tablelog-servers` in the user's cache directory. What is there
is complete: an installation is made beside its place, under a lock, and renamed into it.
"""

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path


class CannotInstallError(Exception):
    """This machine lacks what the installation needs, such as a toolchain; the message says what."""


class InstallationError(Exception):
    """The toolchain is there and failed; the message has the end of what it said."""


def cache() -> Path:
    """The directory that holds everything that was installed."""
    named = os.environ.get("TABLELOG_SERVERS")
    if named:
        return Path(named).absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").absolute() / "tablelog-servers"


def installed(name: str, make: Callable[[Path], None]) -> Path:
    """The directory `name` of the cache; where it is absent, `make` fills it first. Two processes may ask at once."""
    target = cache() / name
    if target.exists():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.with_name(f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if target.exists():
            return target
        print(f"installing {name} into {target}", file=sys.stderr, flush=True)
        unfinished = target.with_name(f"{name}.unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir()
        make(unfinished)
        unfinished.rename(target)
    return target


def all_required() -> bool:
    """Whether a server that can't be installed is a failure, as in CI, and not a reason to skip."""
    return os.environ.get("TABLELOG_REQUIRE_SERVERS") == "1"


def tool(name: str) -> str:
    """Where the program `name` is; CannotInstallError where it isn't."""
    found = shutil.which(name)
    if found is None:
        raise CannotInstallError(f"can't be installed here: no {name}")
    return found


def java() -> str:
    """The Java that `JAVA_HOME` names, else the one on the path."""
    home = os.environ.get("JAVA_HOME")
    return str(Path(home) / "bin" / "java") if home else tool("java")


def run(command: Sequence[str], environment: Mapping[str, str] | None = None, directory: Path | None = None) -> None:
    """Run an installer, in `directory`; its words are shown only if it fails."""
    done = subprocess.run(
        command,
        env={**os.environ, **(environment or {})},
        cwd=directory,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode:
        raise InstallationError(f"{Path(command[0]).name} failed with {done.returncode}:\n{done.stdout[-3000:]}")


def go_program(name: str, module: str, version: str) -> Path:
    """The program `name` that Go builds from `module` at `version`."""

    def make(directory: Path) -> None:
        run([tool("go"), "install", f"{module}@{version}"], {"GOBIN": str(directory)})

    return installed(f"{name}-{version.removeprefix('v')}", make) / name


def npm_package(name: str, version: str) -> Path:
    """The directory of the npm package `name`, with what it depends on beside it."""

    def make(directory: Path) -> None:
        tool("node")
        run([tool("npm"), "install", "--no-audit", "--no-fund", "--prefix", str(directory), f"{name}@{version}"])

    return installed(f"{name}-{version}", make) / "node_modules" / name


def python_packages(name: str, version: str, extra: str = "") -> Path:
    """A directory for `PYTHONPATH` with a package and what it needs, apart from the environment that runs the tests."""

    def make(directory: Path) -> None:
        requirement = f"{name}{extra}=={version}"
        run([sys.executable, "-m", "pip", "install", "--quiet", "--target", str(directory), requirement])

    return installed(f"{name}-{version}-py{sys.version_info.major}.{sys.version_info.minor}", make)


def maven_jar(group: str, artifact: str, version: str) -> Path:
    """One jar of Maven's, without what it depends on. PySpark's own Ivy brings it: only Java is needed."""

    def make(directory: Path) -> None:
        command = [java(), "-cp", str(spark_jars_directory() / "*"), "org.apache.ivy.Main"]
        command += ["-cache", str(directory / "ivy"), "-dependency", group, artifact, version, "-confs", "master"]
        run([*command, "-retrieve", str(directory / "[artifact]-[revision].[ext]")])
        shutil.rmtree(directory / "ivy")
        if not (directory / jar).is_file():
            raise InstallationError(f"Ivy brought no {jar}")

    jar = f"{artifact}-{version}.jar"
    return installed(f"{artifact}-{version}", make) / jar


def spark_jars_directory() -> Path:
    """The jars of the installed PySpark."""
    try:
        import pyspark
    except ImportError as error:
        raise CannotInstallError("can't be installed here: no pyspark") from error
    return Path(pyspark.__file__).parent / "jars"
