"""What every server is: installed, started on a free port of 127.0.0.1, described by a value, killed and restarted."""

import http.client
import json
import os
import shutil
import tempfile
import uuid
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

from . import process

BUCKET = "tablelog"
"""The bucket or container that exists on every server that has such."""


@dataclass(frozen=True)
class Server(ABC):
    """A running server. It is a plain value: a copy in any other process reaches, kills and restarts the same one.

    It lives until `stop`, or as long as the process that (re)started it.
    """

    port: int
    home: str

    name: ClassVar[str]
    keeps_data: ClassVar[bool] = False
    """Whether what it acknowledged is still there after `kill` and `restart`."""
    optional: ClassVar[bool] = False
    """Whether its tests may be skipped even where all servers are required."""
    apart: ClassVar[bool] = False
    """Whether it is installed only where it is named, and tested only where it is installed: that takes minutes."""
    start_seconds: ClassVar[float] = 60.0

    @classmethod
    @abstractmethod
    def install(cls) -> Path:
        """What is run, installed where it wasn't. Raises CannotInstallError."""

    @classmethod
    def is_here(cls) -> bool:
        """Whether tests may start it: one that is `apart` has to be installed before."""
        return not cls.apart

    @classmethod
    def start(cls, **settings: Any) -> Self:
        """Install it if need be, start it with empty data, and wait until it serves."""
        cls.install()
        try:
            return cls._started(settings)
        except process.EndedError:  # somebody may have taken the port in between
            return cls._started(settings)

    @classmethod
    def _started(cls, settings: Mapping[str, Any]) -> Self:
        home = tempfile.mkdtemp(prefix=f"tablelog-{cls.name}-")
        server = cls(port=process.free_port(), home=home, **settings)
        server.data.mkdir()
        server._launch()
        return server

    def _launch(self) -> None:
        process.launch(Path(self.home), self.command(), self.settings(), self.answers, self.start_seconds)
        try:
            self.prepare()
        except BaseException:
            process.kill(Path(self.home))
            raise

    @abstractmethod
    def command(self) -> list[str]:
        """The program and its arguments."""

    def settings(self) -> dict[str, str]:
        """The environment that the program itself needs."""
        return {}

    def prepare(self) -> None:  # noqa: B027 - most need something, and none must
        """Make what tests expect to be there, if it isn't."""

    def answers(self) -> bool:
        """Whether it serves."""
        return answers_http(self.port, "/")

    @property
    def data(self) -> Path:
        """Where it keeps its data, if it does so in files."""
        return Path(self.home) / "data"

    @property
    def log(self) -> Path:
        """What it wrote to its output since it was last started."""
        return Path(self.home) / "log"

    @property
    def endpoint(self) -> str:
        """Where it answers, as a URL."""
        return f"http://127.0.0.1:{self.port}"

    @property
    @abstractmethod
    def conf(self) -> dict[str, str]:
        """The Hadoop keys with which Spark and tablelog reach it, as a user writes them."""

    @property
    @abstractmethod
    def storage_options(self) -> dict[str, Any]:
        """The options with which fsspec's implementation reaches it."""

    @property
    @abstractmethod
    def environment(self) -> dict[str, str]:
        """The variables with which its SDK reaches it."""

    def kill(self) -> None:
        """End it at once, as a power cut would; its data stays for `restart` where it `keeps_data`."""
        process.kill(Path(self.home))
        process.wait_until_closed(self.port)

    def restart(self) -> None:
        """Start it again after `kill`: same port, same data."""
        if not self.keeps_data:
            raise TypeError(f"{self.name} loses its data when it is killed: it can't be restarted")
        self._launch()

    def stop(self, *, keep_log: bool = False) -> None:
        """End it and remove what it left, but its log if `keep_log`."""
        self.kill()
        shutil.rmtree(self.data if keep_log else self.home)

    def published(self) -> dict[str, str]:
        """The environment variable by which `of_environment` finds this server in another process."""
        return {_variable(self.name): json.dumps(asdict(self))}

    @classmethod
    def of_environment(cls) -> Self | None:
        """The server that was `published` to this process, if one was."""
        details = os.environ.get(_variable(cls.name))
        return cls(**json.loads(details)) if details else None


class StorageServer(Server):
    """A server that holds files or objects."""

    @property
    @abstractmethod
    def root(self) -> str:
        """The URL of the bucket, container or directory that everything goes to."""

    def url(self, name: str = "table") -> str:
        """A URL under which there is nothing yet, and nobody else will write."""
        return f"{self.root}/{uuid.uuid4().hex}/{name}"


def answers_http(port: int, path: str) -> bool:
    """Whether something at `port` answers a GET, and not with an error of its own (5xx)."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", path)
        return connection.getresponse().status < 500
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _variable(name: str) -> str:
    return f"TABLELOG_SERVER_{name.upper()}"
