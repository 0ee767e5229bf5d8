"""Writing symlink manifests: after a commit to a table that keeps them up to date, or all at once."""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from ..protocol.actions import Action
from ..table import manifest

if TYPE_CHECKING:
    from ..table.snapshot import Snapshot
    from .writable_log import WritableLog

_THREADS = 8


def after(log: "WritableLog", read: "Snapshot | None", snapshot: "Snapshot", actions: Sequence[Action]) -> None:
    """Update the manifests to the version just committed: those of the partitions that it changed.

    All of them, if the commit is the one that enables manifests. `read` is the snapshot of the transaction.
    """
    if not manifest.enabled(snapshot.metadata):
        return
    changed = manifest.touched(snapshot, actions)
    if read is None or not manifest.enabled(read.metadata) or read.partition_columns != snapshot.partition_columns:
        changed = None
    if changed is not None and not changed:
        return
    manifest.check(snapshot)
    written = write(log, snapshot, changed)
    if changed is not None:
        _each(lambda directory: log.store.delete(manifest.uri(log.table, directory)), changed - written)


def write(log: "WritableLog", snapshot: "Snapshot", only: "set[str] | None" = None) -> set[str]:
    """Write the manifests of a version, or of `only` some partitions; return the directories of those written."""
    texts = manifest.contents(snapshot, only)

    def put(directory: str) -> None:
        log.store.write(manifest.uri(log.table, directory), texts[directory], overwrite=True)

    _each(put, texts)
    return set(texts)


def _each(function: Callable[[str], None], directories: Iterable[str]) -> None:
    items = list(directories)
    if len(items) < 2:
        for item in items:
            function(item)
        return
    with ThreadPoolExecutor(min(_THREADS, len(items)), thread_name_prefix="tablelog-manifest") as pool:
        list(pool.map(function, items))
