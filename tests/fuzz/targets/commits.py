"""Commits: their lines, and their replay against a model."""

from dataclasses import dataclass, field
from typing import Any

from fuzz.target import Target
from tablelog.core.log.columns import ADD_TYPES, FILE_SCHEMA, adds_of, table_of, totals_of
from tablelog.core.log.reader import whole
from tablelog.core.log.replay import NO_FILES, CommitOverlay, Header, unreconciled
from tablelog.core.log_maintenance.compaction import effect, reconciled
from tablelog.core.protocol.actions import (
    Action,
    AddFile,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
)
from tablelog.core.protocol.codec import parse_commit, serialise
from tablelog.core.protocol.paths import canonical

from . import examples

ROOT = "file:///t"
BETWEEN = b"\n\n"
"""Between the commits of a history."""


def commit(data: bytes) -> None:
    """What is parsed is written as what is parsed again."""
    actions = parse_commit(data)
    assert parse_commit(serialise(actions)) == actions


def blocks(data: bytes) -> list[bytes]:
    """The commits of a history."""
    return [block for block in data.split(BETWEEN) if block.strip()]


@dataclass
class Model:
    """What a history leads to: the last action of each key."""

    files: dict[Any, AddFile | RemoveFile] = field(default_factory=dict)
    transactions: dict[str, SetTransaction] = field(default_factory=dict)
    domains: dict[str, DomainMetadata] = field(default_factory=dict)
    protocol: Protocol | None = None
    metadata: Metadata | None = None

    def apply(self, action: Action, root: str) -> None:
        if isinstance(action, AddFile | RemoveFile):
            vector = action.deletion_vector
            self.files[canonical(action.path, root), vector and vector.unique_id] = action
        elif isinstance(action, SetTransaction):
            self.transactions[action.app_id] = action
        elif isinstance(action, DomainMetadata):
            self.domains[action.domain] = action
        elif isinstance(action, Protocol):
            self.protocol = action
        elif isinstance(action, Metadata):
            self.metadata = action

    @property
    def live(self) -> dict[Any, AddFile]:
        return {key: file for key, file in self.files.items() if isinstance(file, AddFile)}

    @property
    def live_domains(self) -> dict[str, DomainMetadata]:
        return {name: domain for name, domain in self.domains.items() if not domain.removed}


def replay(data: bytes) -> None:
    """The state after all commits is the model's, also through a compaction and through columns."""
    commits = [whole(block) for block in blocks(data)]
    model, header, overlay, totals = Model(), Header(), CommitOverlay(ROOT), NO_FILES
    for actions in commits:
        for action in actions:
            model.apply(action, ROOT)
        changed = overlay.changes(totals, actions, complete=True)
        assert changed is not None
        header, overlay, totals = header.after(actions), overlay.extend(actions), changed
    assert (header.protocol, header.metadata) == (model.protocol, model.metadata)
    assert dict(header.transactions) == model.transactions
    assert dict(header.domains) == model.live_domains
    assert dict(overlay.merged()) == model.files
    live = list(model.live.values())
    assert totals.num_files == len(live)
    assert totals.size_in_bytes == sum(file.size for file in live)

    compacted = parse_commit(serialise(reconciled(commits, ROOT)))
    assert unreconciled(compacted, ROOT) is None or _adds_twice(live)
    assert effect(compacted, ROOT) == (model.protocol, model.metadata, model.transactions, model.domains, model.files)
    if all(-(2**31) <= number < 2**31 for file in live for number in _of_vector(file)):
        columns = table_of(live, FILE_SCHEMA).append_column("stats", [[file.stats for file in live]])
        assert columns.schema.field("stats").type == ADD_TYPES["stats"] or not any(file.stats for file in live)
        assert adds_of(columns) == live
        if all(file.size >= 0 and _cardinality(file) >= 0 for file in live) and sum(f.size for f in live) < 2**63:
            assert totals_of(columns["size"], columns["deletionVector"]) == totals


def _adds_twice(live: list[AddFile]) -> bool:
    """Whether a path is there with two deletion vectors: no valid state, though each has a key of its own."""
    paths = [canonical(file.path, ROOT) for file in live]
    return len(set(paths)) != len(paths)


def _cardinality(file: AddFile) -> int:
    return file.deletion_vector.cardinality if file.deletion_vector else 0


def _of_vector(file: AddFile) -> tuple[int, int]:
    vector = file.deletion_vector
    return (vector.size_in_bytes, vector.offset or 0) if vector else (0, 0)


def _commit_seeds() -> list[bytes]:
    return [examples.lines(actions) for actions in [*examples.history(), examples.others()]]


def _history_seeds() -> list[bytes]:
    commits = [examples.lines(actions) for actions in examples.history()]
    return [BETWEEN.join(commits), BETWEEN.join(commits[:3]), BETWEEN.join(commits[::-1])]


TARGETS = (
    Target("commit", commit, _commit_seeds, "lines", examples.KEYS),
    Target("replay", replay, _history_seeds, "lines", examples.KEYS),
)
