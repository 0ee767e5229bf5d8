"""One server's process: started in a process group of its own, found again by its directory, ended by its id.

A directory of a server holds `pid` (also the id of its group), `log`, and `data`. The group has a watcher, which ends
the server when the process that started it is gone, however that ended: its standard input is then at its end.
"""

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

_WITH_WATCHER = 'exec 3<&0; (read _ <&3; kill -9 0) >/dev/null 2>&1 & exec "$@" 3<&- </dev/null'
_STOP_SECONDS = 10.0
_children: dict[int, subprocess.Popen[bytes]] = {}


class DidNotStartError(Exception):
    """The server didn't come to answer; the message has the end of its log."""


class EndedError(DidNotStartError):
    """The server's process ended by itself before it answered: perhaps another took its port."""


def free_port() -> int:
    """A port of 127.0.0.1 on which nobody listens at this moment."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def free_ports(number: int) -> list[int]:
    """So many ports of 127.0.0.1 on which nobody listens at this moment; no two are the same."""
    with contextlib.ExitStack() as stack:
        listeners = [stack.enter_context(socket.socket()) for _ in range(number)]
        for listener in listeners:
            listener.bind(("127.0.0.1", 0))
        return [int(listener.getsockname()[1]) for listener in listeners]


def launch(
    home: Path, command: Sequence[str], environment: Mapping[str, str], answers: Callable[[], bool], seconds: float
) -> None:
    """Start `command` and wait until `answers()`; its log is `home/log`, that of an earlier run `home/log.before`."""
    log = home / "log"
    if log.exists():
        log.replace(home / "log.before")
    with log.open("wb") as out:
        child = subprocess.Popen(
            ["/bin/sh", "-c", _WITH_WATCHER, "sh", *command],
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=subprocess.STDOUT,
            env={**os.environ, **environment},
            cwd=home,
            start_new_session=True,
        )
    _children[child.pid] = child
    (home / "pid").write_text(str(child.pid))
    deadline = time.monotonic() + seconds
    while True:
        if child.poll() is not None:
            kill(home)
            raise EndedError(f"{command[0]} ended with {child.returncode}; {log} ends:\n{_end_of(log)}")
        if answers():
            return
        if time.monotonic() > deadline:
            kill(home)
            raise DidNotStartError(f"{command[0]} didn't answer in {seconds:.0f} s; {log} ends:\n{_end_of(log)}")
        time.sleep(0.05)


def kill(home: Path) -> None:
    """End the server in `home` with SIGKILL, and its watcher; nothing if there is none. Any process may."""
    try:
        group = int((home / "pid").read_text())
    except FileNotFoundError:
        return
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)
    child = _children.pop(group, None)
    if child is not None:
        child.wait()
        assert child.stdin is not None
        child.stdin.close()
    (home / "pid").unlink(missing_ok=True)


def wait_until_closed(port: int) -> None:
    """Return when nobody listens on `port` any more."""
    deadline = time.monotonic() + _STOP_SECONDS
    while True:
        with socket.socket() as client:
            if client.connect_ex(("127.0.0.1", port)) != 0:
                return
        if time.monotonic() > deadline:
            raise TimeoutError(f"port {port} is still served {_STOP_SECONDS:.0f} s after its server was killed")
        time.sleep(0.02)


def _end_of(log: Path) -> str:
    return log.read_text(errors="replace")[-3000:]
