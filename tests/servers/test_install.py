"""Installing: once, whole or not at all, outside of the repository; and a skip that says what was missing."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

from . import MinIO, install
from .process import DidNotStartError, launch


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache with nothing in it."""
    monkeypatch.setenv("TABLELOG_SERVERS", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_the_cache_is_the_users(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("TABLELOG_SERVERS")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert install.cache() == tmp_path / "tablelog-servers"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert install.cache() == tmp_path / "home" / ".cache" / "tablelog-servers"


def test_what_is_installed_is_not_installed_again() -> None:
    made: list[Path] = []
    assert install.installed("thing-1", made.append) == install.installed("thing-1", made.append)
    assert len(made) == 1


def test_two_who_install_at_once_install_it_once() -> None:
    second = Event()
    made: list[Path] = []

    def make(directory: Path) -> None:
        made.append(directory)
        if len(made) > 1:
            second.set()
        second.wait(0.3)  # time for the other to come in, if it could
        (directory / "program").touch()

    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda _: (install.installed("thing-1", make) / "program").exists(), range(2)))
    assert found == [True, True]
    assert len(made) == 1


def test_what_was_interrupted_is_made_anew() -> None:
    def interrupted(directory: Path) -> None:
        (directory / "half").touch()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        install.installed("thing-1", interrupted)
    whole = install.installed("thing-1", lambda directory: (directory / "whole").touch())
    assert [file.name for file in whole.iterdir()] == ["whole"]


def test_an_installer_that_fails_says_why() -> None:
    with pytest.raises(install.InstallationError, match=r"(?s)failed with 3:.*no such version"):
        install.run([sys.executable, "-c", "print('no such version'); raise SystemExit(3)"])


def test_a_missing_toolchain_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(install.CannotInstallError, match="can't be installed here: no go"):
        MinIO.install()


@pytest.mark.parametrize("required", ["0", "1"], ids=["is skipped", "fails in CI"])
def test_a_test_whose_server_is_missing(required: str, tmp_path: Path, empty_cache: Path) -> None:
    test = tmp_path / "test_it.py"
    test.write_text("def test_it(minio): pass\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-ra", "-p", "servers.fixtures", "-p", "no:cacheprovider", str(test)],
        cwd=tmp_path,
        env={
            "PATH": "",
            "PYTHONPATH": str(Path(__file__).parents[1]),
            "TABLELOG_SERVERS": str(empty_cache),
            "TABLELOG_REQUIRE_SERVERS": required,
        },
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert "minio: can't be installed here: no go" in done.stdout
    assert done.returncode == int(required)
    assert ("1 skipped" in done.stdout) is (required == "0")


def test_a_server_that_ends_at_once_shows_its_log(tmp_path: Path) -> None:
    with pytest.raises(DidNotStartError, match=r"(?s)ended with 4.*out of luck"):
        launch(tmp_path, ["sh", "-c", "echo out of luck; exit 4"], {}, lambda: False, seconds=10)
    assert not (tmp_path / "pid").exists()


def test_a_server_that_does_not_answer_is_ended(tmp_path: Path) -> None:
    with pytest.raises(DidNotStartError, match=r"(?s)didn't answer.*still warming up"):
        launch(tmp_path, ["sh", "-c", "echo still warming up; exec sleep 100"], {}, lambda: False, seconds=0.3)
    assert not (tmp_path / "pid").exists()
