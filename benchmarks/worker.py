"""A process that is told by JSON lines what to do: one line in, one line out. Both ends of the line are here."""

import json
import os
import subprocess
import sys
import traceback
from pathlib import Path
from typing import IO, Any


class Worker:
    """A started process; calling it does one piece of work there and gives back its result.

    `command` is the process to start, `log` the file that takes what it prints to its standard error.
    Raises `RuntimeError` with the words of the process when the work fails or the process dies.
    """

    def __init__(self, command: list[str], log: Path) -> None:
        self._log: IO[str] = log.open("w")
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, text=True
        )
        self._answer("start")

    def _answer(self, what: str) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the process died at {what!r}; what it printed is in {self._log.name}")
        answer = json.loads(line)
        if "error" in answer:
            raise RuntimeError(f"{what}: {answer['error']}")
        return answer["result"]

    def __call__(self, do: str, **arguments: Any) -> Any:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": do, **arguments}) + "\n")
        self._process.stdin.flush()
        try:
            return self._answer(do)
        except RuntimeError:
            raise
        except BaseException:
            self._process.kill()  # not waited for any more: its answer would be taken for that of the next question
            raise

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)
        self._log.close()


def serve(make: Any) -> None:
    """Answer each line from standard input with the method of `make()` that it names, until the input ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what Spark prints must not be taken for an answer
    target = make()
    print(json.dumps({"result": "ready"}), file=answers, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = {"result": getattr(target, request.pop("do"))(**request)}
        except Exception:  # whoever asked is told, and fails with these words
            answer = {"error": traceback.format_exc()[-4000:]}
        print(json.dumps(answer), file=answers, flush=True)
