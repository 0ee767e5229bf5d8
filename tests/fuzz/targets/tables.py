"""Whole logs in memory: one of their JSON files is replaced, or all of their commits are."""

from collections.abc import Mapping
from functools import cache
from typing import Any

import pyarrow as pa

from fuzz.target import Target, allowed
from support.log_builder import LogBuilder
from tablelog.core import DeltaLog
from tablelog.core.protocol.paths import commit_name
from tablelog.core.skipping.predicates import Compare
from tablelog.core.table.snapshot import Snapshot
from tablelog.errors import CorruptLogError, TablelogError

from . import examples
from .commits import BETWEEN, Model, blocks
from .schemas import use_properties

KINDS = ("none", "classic", "v2-json")


def opened(files: Mapping[str, bytes]) -> DeltaLog:
    """A new handle on a log of these files."""
    builder = LogBuilder()
    for name, data in files.items():
        builder.write(name, data)
    return builder.log()


def use(snapshot: Snapshot, question: int) -> None:
    """Ask for one part of a version, which may be damaged, and then raises a typed error."""
    PARTS[question % len(PARTS)](snapshot)


def _files(snapshot: Snapshot) -> None:
    use_properties(snapshot.properties)
    allowed(lambda: snapshot.schema)
    allowed(lambda: list(snapshot.add_files()))
    allowed(snapshot.totals)


def _tombstones(snapshot: Snapshot) -> None:
    allowed(lambda: list(snapshot.tombstones.to_pylist()))
    allowed(lambda: snapshot.timestamp_ms)


def _statistics(snapshot: Snapshot) -> None:
    allowed(lambda: snapshot.num_records().to_pylist())
    allowed(lambda: snapshot.prune_mask(Compare("<", ("id",), pa.scalar(4)), time_zone="UTC"))


def _pieces(snapshot: Snapshot) -> None:
    allowed(lambda: [piece.nbytes for piece in snapshot.pieces(with_stats=True)])


PARTS = (_files, _tombstones, _statistics, _pieces)


def log(data: bytes) -> None:
    """One JSON file of a log is replaced: what is asked gives an answer or a typed error.

    The first byte says which file, and what is asked: a part of the state, the health or the history.
    """
    places = _places()
    question, place = divmod(data[0] if data else 0, len(places))
    kind, name = places[place]
    handle = opened({**examples.table(kind), name: data[1:]})
    snapshot = handle.snapshot()
    question %= _QUESTIONS
    if question < len(PARTS):
        PARTS[question](snapshot)
    elif question == len(PARTS):
        allowed(handle.health)
    else:
        allowed(lambda: handle.history(3))


_QUESTIONS = len(PARTS) + 2


@cache
def _places() -> list[tuple[str, str]]:
    """Each JSON file of each log."""
    return [(kind, name) for kind in KINDS for name in sorted(examples.table(kind)) if not name.endswith(".parquet")]


def _log_seeds() -> list[bytes]:
    places = _places()
    return [
        bytes([question * len(places) + at]) + examples.table(kind)[name].rstrip(b"\n")
        for at, (kind, name) in enumerate(places)
        for question in range(_QUESTIONS)
    ]


def table(data: bytes) -> None:
    """All commits are given: what a handle reads is the model, from the commits and from a checkpoint.

    The first byte says of which version the checkpoint is, whether the commits before it are gone, and what is asked.
    """
    commits = blocks(data[1:])
    if not 1 <= len(commits) <= 10:
        raise CorruptLogError("no history of up to ten commits")
    builder = LogBuilder()
    for version, commit in enumerate(commits):
        builder.write(commit_name(version), commit)
    handle = builder.log()
    snapshot = handle.snapshot()
    model = Model()
    for version in range(len(commits)):
        for action in handle.reader.commit(version):
            model.apply(action, handle.table)
    agree(snapshot, model)
    use(snapshot, data[0] >> 5)
    version = (data[0] & 15) % len(commits)
    try:
        handle.write_checkpoint(handle.snapshot(version))
    except TablelogError:
        return
    if data[0] & 16:
        builder.delete(*(commit_name(number) for number in range(version)))
    from_checkpoint = builder.log().snapshot()
    agree(from_checkpoint, model)
    use(from_checkpoint, data[0] >> 5)


def agree(snapshot: Snapshot, model: Model) -> None:
    """The snapshot holds what the model does, except for statistics, which a checkpoint writes in its own way."""
    assert snapshot.protocol == model.protocol
    assert snapshot.metadata == model.metadata
    assert dict(snapshot.domain_metadata) == model.live_domains
    assert dict(snapshot.transactions) == model.transactions
    files = allowed(lambda: list(snapshot.add_files()))
    if files is not None:
        assert sorted(map(_plain, files), key=repr) == sorted(map(_plain, model.live.values()), key=repr)


def _plain(file: Any) -> Any:
    values = dict(file.partition_values)
    return file.path, file.size, file.deletion_vector, values, file.base_row_id, file.modification_time


def _table_seeds() -> list[bytes]:
    commits = [examples.lines(actions) for actions in examples.history()]
    return [bytes([flags]) + BETWEEN.join(commits) for flags in (0, 2 + 32, 4 + 64, 18 + 96, 20 + 64)]


TARGETS = (
    Target("log", log, _log_seeds, "lines", examples.KEYS, keep=1),
    Target("table", table, _table_seeds, "lines", examples.KEYS, keep=1, megabytes=128),
)
