"""What makes the core quick, and the same at each replay, for the time of many schedules."""

import contextlib
import functools
import gc
import logging
import uuid
from collections.abc import Callable, Iterable, Iterator
from typing import Any
from unittest import mock

from tablelog.core.log import checkpoint, reader, segment
from tablelog.core.log_maintenance import cleanup
from tablelog.core.protocol import codec, features, paths
from tablelog.core.protocol.actions import Action


class Names:
    """Unique names, the same ones at each replay of a seed."""

    def __init__(self) -> None:
        self.seed, self.given = 0, 0

    def begin(self, seed: int) -> None:
        self.seed, self.given = seed, 0

    def __call__(self) -> uuid.UUID:
        self.given += 1
        return uuid.UUID(int=(self.seed % (1 << 64) << 64) + self.given)


names = Names()


class _InTurn:
    """An executor whose work is done by who asks for it: a schedule has one thread for each writer and no more."""

    def __init__(self, *args: Any) -> None:
        pass

    def __enter__(self) -> "_InTurn":
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def map(self, function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
        return [function(item) for item in items]


@contextlib.contextmanager
def quick_core() -> Iterator[None]:
    """No thread but the writers'; each commit is parsed once, not once for each reader; no name is random."""
    collecting = gc.isenabled()
    gc.disable()  # `run` collects now and then: a tenth of the time otherwise
    silent = logging.root.manager.disable
    logging.disable(logging.WARNING)  # a store that fails after a commit, a checkpoint that vanished: expected here
    parsed: dict[bytes, list[Action]] = {}
    parse = codec.parse_commit

    def parse_once(data: bytes) -> list[Action]:
        if len(parsed) > 500:
            parsed.clear()
        found = parsed.get(data)
        if found is None:
            found = parsed[data] = parse(data)
        return found

    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.object(codec, "parse_commit", parse_once))
        stack.enter_context(mock.patch.object(features, "implied", functools.cache(features.implied)))
        for module in (paths, segment):
            stack.enter_context(mock.patch.object(module, "parse_log_name", functools.cache(paths.parse_log_name)))
        stack.enter_context(mock.patch.object(uuid, "uuid4", names))
        for module in (reader, checkpoint, cleanup):
            stack.enter_context(mock.patch.object(module, "ThreadPoolExecutor", _InTurn))
        for module in (reader, checkpoint):
            stack.enter_context(mock.patch.object(module, "parse_commit", parse_once))
        try:
            yield
        finally:
            logging.disable(silent)
            if collecting:
                gc.enable()
