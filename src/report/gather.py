"""Reads what a report needs from the log of a table, without Spark. No data file is opened or listed."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import suppress

from ..core.deltalog import DeltaLog
from ..core.log.large_commits import is_large
from ..core.log.replay import in_commit_timestamp
from ..core.log.segment import Listing
from ..core.protocol.actions import Action, RemoveFile
from ..core.protocol.features import FEATURES, supported
from ..core.protocol.paths import SIDECAR_DIRECTORY
from ..core.protocol.schema import PrimitiveType, has_min_max, indexed_leaves
from ..core.table import clustering, version_times
from ..core.table.snapshot import Snapshot
from ..errors import CorruptLogError
from ..logstore.base import FileStatus
from ..logstore.common.uri import local_path, scheme_of, shown
from ..progress import stage
from ..settings.declarations import OPTIMIZE_MAX_FILE_SIZE
from . import growth, layout, skipping
from .facts import Column, Commit, Feature, LogFacts, Point, SkippingFacts, TableFacts

_log = logging.getLogger(__name__)

_COMMIT_BYTES = 64 << 20
"""The most bytes of commits to read: newer commits come first, and at least one is read."""
_CHECKED_BYTES = 64 << 20
"""A larger log isn't checked: a check reads each of its files, and that takes longer than all the rest."""
_MOST_COLUMNS = 64
_CHECKED_COMMITS = 1_000
_COMMITS_AT_ONCE = 100
"""The commits between two reports of the progress."""


def gather(log: DeltaLog, *, commits: int, check_log: bool | None, target: int | None) -> TableFacts:
    """Read the facts of the newest version of a table.

    Args:
        log: The log of the table.
        commits: The most commits to read, the newest ones first.
        check_log: Whether to read and compare all files of the log; `None`: only if it is small.
        target: The wanted size of a file in bytes; `None`: that of OPTIMIZE.

    Raises:
        TableNotFoundError: There is no table.
        CorruptLogError: The newest version can't be read.
    """
    snapshot = log.snapshot()
    listing = log.reader.list(0)
    now_ms = log.clock.now_ms()
    actions_of = _commits(log, snapshot, listing, commits)
    history_ = list(growth.changes(actions_of))
    described = tuple(commit for _, commit in history_)
    files, rows = snapshot.files, snapshot.num_records()
    wanted = OPTIMIZE_MAX_FILE_SIZE.of(log.conf) if target is None else target
    mapping = snapshot.mapping
    partitions, after = layout.partitions(files, snapshot.partition_columns, mapping.physical_partition_columns, wanted)
    of_files = layout.file_facts(files, rows, wanted, after)
    newest = Point(snapshot.version, snapshot.timestamp_ms, of_files.rows, of_files.size, of_files.count)
    vacuum_ms = max((commit.time_ms for commit in described if commit.operation == "VACUUM START"), default=None)
    removes = (action for _, _, actions in actions_of for action in actions if isinstance(action, RemoveFile))
    metadata, protocol = snapshot.metadata, snapshot.protocol
    return TableFacts(
        location=local_path(log.table) if scheme_of(log.table) == "file" else shown(log.table),
        name=metadata.name,
        description=metadata.description,
        version=snapshot.version,
        time_ms=snapshot.timestamp_ms,
        created_ms=metadata.created_time,
        now_ms=now_ms,
        num_columns=len(snapshot.schema),
        protocol=(protocol.min_reader_version, protocol.min_writer_version),
        features=tuple(_features(snapshot)),
        properties=tuple(sorted(metadata.configuration.items())),
        growth=growth.points(newest, [change for change, _ in history_]),
        commits=described,
        files=of_files,
        partitions=partitions,
        skipping=_skipping(snapshot, described),
        vectors=layout.vector_facts(files, rows),
        tombstones=layout.tombstone_facts(
            layout.removed_files(snapshot.tombstones, removes, files.column("path")),
            now_ms,
            snapshot.properties.deleted_file_retention_ms,
            vacuum_ms,
        ),
        log=_log_facts(log, snapshot, listing, check_log),
    )


def _commits(log: DeltaLog, snapshot: Snapshot, listing: Listing, most: int) -> list[tuple[int, int, Sequence[Action]]]:
    """The newest commits that can be read without a hole, ascending, with their times.

    They end at a commit that has too many actions for the memory of a report.
    """
    statuses: list[tuple[int, FileStatus]] = []
    size, version = 0, snapshot.version
    while (
        version in listing.commits
        and len(statuses) < most
        and size < _COMMIT_BYTES
        and not is_large(listing.commits[version])
    ):
        statuses.append((version, listing.commits[version]))
        size, version = size + listing.commits[version].size, version - 1
    statuses.reverse()
    times = dict(version_times.monotonic([(version, status.modification_time_ms) for version, status in statuses]))
    in_commit_from = version_times.in_commit_from(snapshot.properties)
    commits: list[tuple[int, int, Sequence[Action]]] = []
    for (version, _), data in zip(statuses, _contents(log, [status for _, status in statuses]), strict=True):
        try:
            actions = None if data is None else log.reader.parsed(version, data)
        except CorruptLogError as error:
            # The check of the log reports it; the newest version doesn't need this commit.
            _log.info("%s: the history begins after version %d: %s", log.table, version, error)
            actions = None
        if actions is None:
            commits.clear()
            continue
        time_ms = times[version]
        if in_commit_from is not None and version >= in_commit_from:
            time_ms = in_commit_timestamp(actions) or time_ms
        commits.append((version, time_ms, actions))
    return commits


def _contents(log: DeltaLog, statuses: Sequence[FileStatus]) -> Iterator[bytes | None]:
    for start in range(0, len(statuses), _COMMITS_AT_ONCE):
        stage("reading commits", start, len(statuses))
        yield from log.reader.each(statuses[start : start + _COMMITS_AT_ONCE])
    stage("reading commits", len(statuses), len(statuses))


def _skipping(snapshot: Snapshot, commits: Sequence[Commit]) -> SkippingFacts:
    mapping, files = snapshot.mapping, snapshot.files
    properties = snapshot.properties
    leaves = [
        (name, field.data_type)
        for name, field in indexed_leaves(
            snapshot.schema,
            snapshot.partition_columns,
            properties.data_skipping_num_indexed_cols,
            properties.data_skipping_stats_columns,
        )
    ]
    bounded = [
        (mapping.to_physical(name), kind)
        for name, kind in leaves
        if isinstance(kind, PrimitiveType) and has_min_max(kind)
    ]
    chosen = bounded[:_MOST_COLUMNS]
    rows = skipping.sample(files.num_rows)
    columns: list[Column] = []
    for name, physical in zip(snapshot.partition_columns, mapping.physical_partition_columns, strict=True):
        field = mapping.physical.get(physical, case_sensitive=True)
        kind_name = field.data_type.name if field and isinstance(field.data_type, PrimitiveType) else "?"
        columns.append(Column((name,), kind_name, True, 1.0, skipping.partition_lookup(files, physical)))
    if chosen and files.num_rows:
        stats = snapshot.file_stats([name for name, _ in chosen], rows)
        for physical_name, kind in chosen:
            leaf = stats.leaves.get(physical_name)
            if leaf is None or leaf.min is None:
                continue
            known, read = skipping.overlap(leaf, kind)
            logical = mapping.to_logical(physical_name)
            columns.append(Column(logical, kind.name, False, known, read * files.num_rows))
    clustered = None
    if "clustering" in supported(snapshot.protocol):
        physical_names = clustering.columns_of(snapshot.domain_metadata)
        clustered = None if physical_names is None else tuple(".".join(mapping.to_logical(c)) for c in physical_names)
    used = growth.named_columns(
        (predicate for commit in commits for predicate in commit.predicates), [column.path for column in columns]
    )
    sampled = files.num_rows if rows is None else len(rows)
    return SkippingFacts(tuple(columns), sampled, len(bounded) - len(chosen), clustered, tuple(used))


def _log_facts(log: DeltaLog, snapshot: Snapshot, listing: Listing, check: bool | None) -> LogFacts:
    checkpoint_files = [status for checkpoint in listing.checkpoints for status in checkpoint.files]
    with suppress(FileNotFoundError):
        checkpoint_files += log.store.list_from(f"{log.log_path}/{SIDECAR_DIRECTORY}/0")
    compacted = [entry.status for entries in listing.compacted.values() for entry in entries]
    checkpoint_size = sum(status.size for status in checkpoint_files)
    others = [*listing.commits.values(), *compacted, *listing.checksums.values()]
    size = checkpoint_size + sum(status.size for status in others)
    if check is None:
        check = size <= _CHECKED_BYTES and len(listing.commits) <= _CHECKED_COMMITS
    versions = sorted({checkpoint.version for checkpoint in listing.checkpoints})
    first = listing.earliest
    newest_checkpoint = versions[-1] if versions else -1
    return LogFacts(
        oldest=snapshot.version if first is None else first,
        commits=len(listing.commits),
        size=size,
        checkpoints=tuple(versions),
        checkpoint_size=checkpoint_size,
        checkpoint_interval=snapshot.properties.checkpoint_interval,
        since_checkpoint=snapshot.version - newest_checkpoint,
        compactions=len(compacted),
        checksums=len(listing.checksums),
        retention_ms=snapshot.properties.log_retention_ms,
        problems=log.health().problems if check else None,
    )


def _features(snapshot: Snapshot) -> Iterator[Feature]:
    protocol, metadata = snapshot.protocol, snapshot.metadata
    for name in sorted(supported(protocol)):
        known = FEATURES.get(name)
        if known is None:
            needed_by = "readers and writers" if name in (protocol.reader_features or ()) else "writers"
            yield Feature(name, needed_by, active=True, supported=False)
            continue
        active = known.active is None or known.active(metadata)
        yield Feature(name, "readers and writers" if known.reader else "writers", active, known.read and known.write)
