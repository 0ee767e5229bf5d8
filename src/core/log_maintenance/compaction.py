"""Log compactions: one file that replaces several commits for readers (PROTOCOL.md, "Log Compaction Files")."""

import logging
from collections.abc import Iterable, Sequence
from typing import Any

from ...errors import InvalidArgumentError
from ...logstore.base import LogStore
from ..log.reader import LogReader
from ..log.replay import CommitOverlay, Header
from ..protocol.actions import Action, DomainMetadata
from ..protocol.codec import serialise
from ..protocol.paths import compacted_name

_log = logging.getLogger(__name__)


def reconciled(commits: Iterable[Sequence[Action]], table: str) -> list[Action]:
    """The combined effect of consecutive commits, with each key once (PROTOCOL.md, "Action Reconciliation").

    Unlike in a checkpoint, removed domains are included, because they must hide domains that earlier commits set.
    """
    header, tail = Header(), CommitOverlay(table)
    domains: dict[str, DomainMetadata] = {}
    for actions in commits:
        header, tail = header.after(actions), tail.extend(actions)
        domains.update({action.domain: action for action in actions if isinstance(action, DomainMetadata)})
    head: list[Action] = [action for action in (header.protocol, header.metadata) if action is not None]
    return [*head, *header.transactions.values(), *domains.values(), *tail.merged().values()]


def effect(actions: Sequence[Action], table: str) -> Any:
    """The effect of reconciled actions, in a form that can be compared regardless of their order."""
    header = Header().after(actions)
    domains = {action.domain: action for action in actions if isinstance(action, DomainMetadata)}
    return header.protocol, header.metadata, header.transactions, domains, CommitOverlay(table).extend(actions).merged()


def window(version: int, interval: int, checkpoint: int) -> tuple[int, int] | None:
    """The versions to compact after the commit of `version`; `None` if there are none.

    As in Delta, windows of `interval` commits don't overlap, and none starts before the newest checkpoint.
    """
    if version <= 0 or version % interval:
        return None
    first = max(version - interval + 1, checkpoint + 1)
    return (first, version) if first < version else None


def compact(
    store: LogStore,
    log_path: str,
    table: str,
    reader: LogReader,
    first: int,
    last: int,
    *,
    most_bytes: int | None = None,
) -> str | None:
    """Write the compaction of the versions `first` to `last`; its name, or `None` if the commits are too large.

    An existing one has the same content and is kept. `most_bytes` limits the size of the commits, which are all in
    memory at once. Raises VersionNotFoundError if a commit is missing.
    """
    if not 0 <= first < last:
        raise InvalidArgumentError(
            f"the versions {first} to {last} of {table} can't be compacted: give at least two versions in order"
        )
    commits = []
    size = 0
    for version in range(first, last + 1):
        data = reader.commit_bytes(version)
        size += len(data)
        if most_bytes is not None and size > most_bytes:
            return None
        commits.append(reader.parsed(version, data))
    name = compacted_name(first, last)
    try:
        store.write(f"{log_path}/{name}", serialise(reconciled(commits, table)))
    except FileExistsError:
        _log.info("%s: %s exists already", table, name)
    return name
