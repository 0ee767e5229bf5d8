"""What to do about a table, and what it is expected to gain: pure functions from facts to advice.

A rule advises only what is worth its cost: each has a threshold, which docs/guide/report.md names.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from ..units import size
from . import commands
from .facts import Column, Partition, PartitionFacts, TableFacts
from .text import count, number, percent

_MIB = 1 << 20
_FEWEST_FILES = 8
_WORST_PARTITIONS = 8
_STREAM_COMMITS = 20
_OVERLAP = 0.3
_MOST_ZORDER = 2


class Severity(StrEnum):
    """How much a problem costs."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Advice:
    """One thing to do. `command` is empty where there is no single command for it.

    Args:
        severity: How much the problem costs.
        title: The action in a few words.
        why: The problem, with its numbers.
        gain: What the action is expected to gain.
        command: SQL, Python, or lines for a shell.
        section: The id of the section with the details.
    """

    severity: Severity
    title: str
    why: str
    gain: str
    command: str
    section: str


def advice(facts: TableFacts) -> tuple[Advice, ...]:
    """Everything that is worth doing, the most important first."""
    rules = (_log_problems, _checkpoint, _compaction, _auto_compaction, _order, _purge, _vacuum, _bounds, _partitioning)
    found = [item for rule in rules for item in rule(facts)]
    return tuple(sorted(found, key=lambda item: [*Severity].index(item.severity)))


def _log_problems(facts: TableFacts) -> Iterator[Advice]:
    problems = facts.log.problems or ()
    for severity, title in ((Severity.ERROR, "Repair the log"), (Severity.WARNING, "Tidy the log")):
        some = [problem for problem in problems if problem.severity == severity]
        if some:
            yield Advice(
                severity,
                title,
                f"The log has {count(len(some), 'problem')}. The first one: {some[0].message}",
                "Every version that the log should have can be read."
                if severity is Severity.ERROR
                else "Reading the table takes fewer requests.",
                commands.repair(facts.location),
                "log",
            )


def _checkpoint(facts: TableFacts) -> Iterator[Advice]:
    log = facts.log
    if log.since_checkpoint > max(2 * log.checkpoint_interval, 20):
        since = f"since the checkpoint of version {log.checkpoints[-1]}" if log.checkpoints else "and no checkpoint"
        yield Advice(
            Severity.WARNING,
            "Write a checkpoint",
            f"There are {count(log.since_checkpoint, 'commit')} {since}, although the table wants a checkpoint after "
            f"each {log.checkpoint_interval}. A reader that opens the table reads all of them.",
            f"A reader opens the table with 1 checkpoint instead of {count(log.since_checkpoint, 'commit')}.",
            commands.checkpoint(facts.location),
            "log",
        )


def _compaction(facts: TableFacts) -> Iterator[Advice]:
    files = facts.files
    fewer = files.count - files.after
    small_enough = files.small_files >= _FEWEST_FILES and files.small_files > 0.1 * files.count
    if not small_enough or fewer < _FEWEST_FILES or files.after > 0.5 * files.count:
        return
    worst, where = _worst(facts.partitions, fewer)
    after = files.count - (sum(partition.fewer for partition in worst) if where else fewer)
    read = sum(partition.size for partition in worst) if where else files.size
    yield Advice(
        Severity.WARNING,
        f"Combine small files in {count(len(worst), 'partition')}" if where else "Combine small files",
        f"{count(files.small_files, 'file')} of {number(files.count)} are smaller than {size(files.small)}. To open a "
        "file takes longer than to read that much.",
        f"About {count(files.count - after, 'file')} fewer: {number(files.count)} become {number(after)}. It rewrites "
        f"at most {size(read)}.",
        commands.optimize(facts.location, where),
        "files" if not where else "partitions",
    )


def _worst(partitions: PartitionFacts, fewer: int) -> tuple[Sequence[Partition], str]:
    """The partitions to restrict OPTIMIZE to, and the condition; no condition if a few aren't most of the problem."""
    worst = partitions.fragmented[:_WORST_PARTITIONS]
    for some in (worst[:number_of] for number_of in range(1, len(worst) + 1)):
        if sum(partition.fewer for partition in some) >= 0.6 * fewer:
            whole = len(some) >= partitions.count
            return ((), "") if whole else (some, commands.partitions([partition.values for partition in some]))
    return (), ""


def _auto_compaction(facts: TableFacts) -> Iterator[Advice]:
    properties = dict(facts.properties)
    if "delta.autoOptimize.autoCompact" in properties or "delta.autoOptimize" in properties:
        return
    writes = [c for c in facts.commits[-200:] if c.added and c.operation.upper() in ("WRITE", "STREAMING UPDATE")]
    small = [c for c in writes if c.added_size / c.added < facts.files.small]
    if len(small) < _STREAM_COMMITS or len(small) < 0.8 * len(writes):
        return
    each = sum(commit.added for commit in small) / len(small)
    yield Advice(
        Severity.NOTE,
        "Compact after writes",
        f"{len(small)} of the last {len(writes)} writes added small files, {number(each)} each. They fragment the "
        "table again after each OPTIMIZE.",
        "Once a partition has 50 small files, the writer combines them.",
        commands.set_property(facts.location, "delta.autoOptimize.autoCompact", "true"),
        "operations",
    )


def _order(facts: TableFacts) -> Iterator[Advice]:
    files, skipping = facts.files, facts.skipping
    if skipping.clustering is not None or files.count < _FEWEST_FILES or files.size < 64 * _MIB:
        return
    used = dict(skipping.used)
    poor = [
        column
        for column in skipping.columns
        if not column.is_partition and column.known > 0.5 and column.lookup > max(_OVERLAP * files.count, 4)
    ]
    chosen = sorted((column for column in poor if column.name in used), key=lambda column: -used[column.name])
    chosen = chosen[:_MOST_ZORDER]
    if not chosen and poor and not any(column.lookup < 2 for column in skipping.columns):
        chosen = poor[:1]
    if not chosen:
        return
    names = " and ".join(column.name for column in chosen)
    after = expected_lookup(max(facts.partitions.count, 1), min(files.after, files.count), len(chosen))
    if after > 0.5 * files.after or after > 0.5 * min(column.lookup for column in chosen):
        return
    known = any(column.name in used for column in chosen)
    yield Advice(
        Severity.WARNING if known else Severity.NOTE,
        f"Order the rows by {names}" if known else f"Order the rows, for example by {names}",
        f"Past commands filter by {names}, but the ranges of the files overlap: {_lookups(chosen, files.count)}."
        if known
        else f"No file can be skipped well: {_lookups(chosen, files.count)}. The log doesn't say by which columns "
        "queries filter: put the most frequent ones into the command.",
        f"A search for one value reads about {number(round(after))} of {number(files.after)} files."
        + (" The same command combines small files." if files.after <= 0.5 * files.count else ""),
        commands.optimize(facts.location, zorder_by=[column.path for column in chosen]),
        "skipping",
    )


def _lookups(columns: Sequence[Column], files: int) -> str:
    return "; ".join(
        f"a search for one value of {column.name} reads {number(column.lookup)} of {number(files)} files"
        for column in columns
    )


def expected_lookup(partitions: int, files: int, columns: int) -> float:
    """The files that a search for one value of one of the Z-order columns reads afterwards.

    A partition of n files, ordered by k columns, is divided into the k-th root of n ranges of each column, so that a
    search reads n divided by that.
    """
    each = max(files / partitions, 1.0)
    ranges = math.pow(each, 1 / columns)
    return partitions * max(each / ranges, 1.0)


def _purge(facts: TableFacts) -> Iterator[Advice]:
    vectors, files = facts.vectors, facts.files
    if vectors.heavy_files and (vectors.heavy_files >= 0.1 * files.count or vectors.freed > 0.05 * files.size):
        yield Advice(
            Severity.WARNING,
            "Rewrite files with deleted rows",
            f"Deletion vectors delete {number(vectors.rows)} rows, but readers still read and then drop them. In "
            f"{count(vectors.heavy_files, 'file')} more than 5 % of the rows are deleted.",
            f"Readers read about {size(vectors.freed)} less. It rewrites {size(vectors.heavy_size)}.",
            commands.purge(facts.location),
            "vectors",
        )


def _vacuum(facts: TableFacts) -> Iterator[Advice]:
    tombstones = facts.tombstones
    live = max(facts.files.size, 1)
    if tombstones.expired_files and (tombstones.expired_size > 0.1 * live or tombstones.expired_files > 1_000):
        large = tombstones.expired_size > live
        yield Advice(
            Severity.WARNING if large else Severity.NOTE,
            "Delete files that no version needs",
            f"{count(tombstones.expired_files, 'removed file')} are older than the retention, and no VACUUM deleted "
            "them since, as far as the log says.",
            f"It frees about {size(tombstones.expired_size)}, {percent(tombstones.expired_size / live)} of the size of "
            "the table, and files of failed writes, which the log doesn't know.",
            commands.vacuum(facts.location),
            "debt",
        )


def _bounds(facts: TableFacts) -> Iterator[Advice]:
    columns = [c for c in facts.skipping.columns if not c.is_partition]
    unknown = [c for c in columns if c.known < 0.5]
    if facts.files.count >= _FEWEST_FILES and columns and len(unknown) == len(columns):
        yield Advice(
            Severity.WARNING,
            "Rewrite files without statistics",
            f"Most of the {count(facts.files.count, 'file')} have no minimum and maximum of any column, so that no "
            "file can be skipped.",
            "A query that filters reads only the files that may match. OPTIMIZE writes statistics for each file that "
            "it combines.",
            commands.optimize(facts.location),
            "skipping",
        )


def _partitioning(facts: TableFacts) -> Iterator[Advice]:
    partitions = facts.partitions
    if partitions.count >= 200 and partitions.median < 16 * _MIB and facts.files.size < partitions.count * 128 * _MIB:
        names = ", ".join(partitions.columns)
        yield Advice(
            Severity.NOTE,
            "Use fewer partitions",
            f"The table has {number(partitions.count)} partitions by {names}, and half of them have less than "
            f"{size(partitions.median or 1)}. OPTIMIZE can't combine files of different partitions.",
            f"A copy without partitions, clustered by {names}, needs about "
            f"{count(max(1, -(-facts.files.size // facts.files.target)), 'file')} instead of "
            f"{number(facts.files.after)} after OPTIMIZE.",
            "",
            "partitions",
        )
