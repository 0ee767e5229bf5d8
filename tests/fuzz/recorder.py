"""Runs cases within bounds, and records what they find where it outlives the process.

A case may end the process: by memory that isn't there, a fault in native code, or an endless loop. So the input of the
running case and the counters are in a file that is mapped to memory, and each finding is appended to another file.
"""

import json
import mmap
import os
import resource
import struct
import time
import traceback
from pathlib import Path
from typing import NamedTuple

from .mutation import LONGEST
from .target import Target, is_valid

MEMORY = 3 << 30
"""The most address space of a process that runs cases."""
_HEAD = struct.Struct("<4Q")
_MOST_OF_ONE_KIND = 3


class Counters(NamedTuple):
    """`cases` that were run, how many were `valid` inputs, `findings`, and the length of the input that runs."""

    cases: int = 0
    valid: int = 0
    findings: int = 0
    length: int = 0


class Recorder:
    """Args:
    target: What is run.
    directory: Where the files of this run are.
    """

    def __init__(self, target: Target, directory: Path) -> None:
        self.target = target
        self._findings = directory / "findings.jsonl"
        self._map = _mapped(directory)
        self._cases, self._valid, self._found, _ = _HEAD.unpack_from(self._map)
        self._of_kind: dict[str, int] = {}

    @property
    def cases(self) -> int:
        return self._cases

    def run_all(self, inputs: list[bytes]) -> None:
        for data in inputs:
            self.run(data)

    def run(self, data: bytes) -> None:
        """Run one case; a finding is recorded and not raised."""
        data = bytes(data[:LONGEST])
        self._save(len(data))
        self._map[_HEAD.size : _HEAD.size + len(data)] = data
        kilobytes, started = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
        try:
            self._valid += is_valid(self.target, data)
        except (Exception, RecursionError) as error:
            self._add(_kind_of(error), traceback.format_exc(limit=-12), data)
        seconds = time.process_time() - started
        kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - kilobytes
        if seconds > self.target.seconds:
            self._add("too slow", f"{seconds:.1f} s", data)
        if kilobytes > self.target.megabytes << 10:
            self._add("too much memory", f"{kilobytes >> 10} MB", data)
        self._cases += 1
        self._save(0)

    def _add(self, kind: str, text: str, data: bytes) -> None:
        self._found += 1
        self._of_kind[kind] = self._of_kind.get(kind, 0) + 1
        if self._of_kind[kind] <= _MOST_OF_ONE_KIND:
            record(self._findings, self.target.name, kind, text, data)

    def _save(self, length: int) -> None:
        _HEAD.pack_into(self._map, 0, self._cases, self._valid, self._found, length)


def _kind_of(error: BaseException) -> str:
    """The exception and the place in our code that it comes from: two cases of one kind have one cause."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "site-packages" not in f.filename]
    return f"{type(error).__name__} in {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else repr(error)


def record(path: Path, target: str, kind: str, text: str, data: bytes) -> None:
    with path.open("a") as file:
        file.write(json.dumps({"target": target, "kind": kind, "text": text, "input": data.hex()}) + "\n")


def limit_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def _mapped(directory: Path) -> mmap.mmap:
    path, size = directory / "running", _HEAD.size + LONGEST
    if not path.exists():
        path.write_bytes(b"\0" * size)
    descriptor = os.open(path, os.O_RDWR)
    try:
        return mmap.mmap(descriptor, size)
    finally:
        os.close(descriptor)


class Watch:
    """The counters and the running input of another process."""

    def __init__(self, directory: Path) -> None:
        self._map = _mapped(directory)

    def counters(self) -> Counters:
        return Counters(*_HEAD.unpack_from(self._map))

    def running(self) -> bytes:
        length = self.counters().length
        return bytes(self._map[_HEAD.size : _HEAD.size + length])

    def skip(self, findings: int) -> None:
        """Count the running case, which ended its process."""
        counters = self.counters()
        _HEAD.pack_into(self._map, 0, counters.cases + 1, counters.valid, counters.findings + findings, 0)
