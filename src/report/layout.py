"""The sizes of files and partitions, the load of deletion vectors, and what OPTIMIZE makes of them; pure functions."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ..core.protocol.actions import RemoveFile
from ..core.protocol.partition_values import column_of
from .facts import FileFacts, Partition, PartitionFacts, SizeClass, TombstoneFacts, VectorFacts

if TYPE_CHECKING:
    import pyarrow as pa

_KIB = 1 << 10
_EDGES = (0, *(_KIB << power for power in range(4, 24, 2)))
"""Lower bounds of the classes of sizes: 16 KiB, and each four times the one before, to 4 GiB."""
SMALL_SHARE = 16
"""A file is small if it has less than the target size divided by this."""
_SHARES = (0.05, 0.1, 0.25, 0.5, 1.0)
HEAVY = 0.05
"""A larger share of deleted rows makes a file worth rewriting; the default of OPTIMIZE."""
_MOST = 12
_MOST_BYTES = 1 << 62
"""Half of what 64 bits hold, so that two such numbers can be added."""


def file_facts(files: "pa.Table", rows: "pa.Array", target: int, after: int) -> FileFacts:
    """The sizes of the live files.

    Args:
        files: The columns `size` and `deletionVector` of a snapshot's files.
        rows: The number of rows of each file; null is unknown.
        target: The size of the files that OPTIMIZE writes.
        after: The number of files after OPTIMIZE.
    """
    import pyarrow.compute as pc

    from ..core.log.columns import exact_sum

    sizes, small = files.column("size"), max(target // SMALL_SHARE, 1)
    count = files.num_rows
    deleted = exact_sum(pc.struct_field(files.column("deletionVector"), "cardinality"))
    below = sizes.filter(pc.less(sizes, small))
    return FileFacts(
        target,
        small,
        count,
        exact_sum(sizes),
        None if rows.null_count else exact_sum(rows) - deleted,
        deleted,
        median(sizes),
        tuple(_classes(sizes)),
        len(below),
        exact_sum(below),
        after,
    )


def _classes(sizes: "pa.ChunkedArray") -> list[SizeClass]:
    import pyarrow.compute as pc

    from ..core.log.columns import exact_sum

    found = []
    for lower, upper in zip(_EDGES, (*_EDGES[1:], None), strict=True):
        inside = pc.greater_equal(sizes, lower)
        if upper is not None:
            inside = pc.and_(inside, pc.less(sizes, upper))
        part = sizes.filter(inside)
        found.append(SizeClass(lower, upper, len(part), exact_sum(part)))
    return found


def partitions(
    files: "pa.Table", columns: tuple[str, ...], physical: tuple[str, ...], target: int
) -> tuple[PartitionFacts, int]:
    """The partitions, and the number of files in all of them after OPTIMIZE.

    A table without partitions has one, with all files.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    from ..core.log.columns import exact_sum

    sizes = _bounded(files.column("size").combine_chunks())
    target = min(target, _MOST_BYTES)
    is_small = pc.less(sizes, max(target // SMALL_SHARE, 1))
    is_open = pc.less(sizes, target)  # OPTIMIZE combines these files
    keys = {f"k{i}": column_of(files.column("partitionValues"), name) for i, name in enumerate(physical)}
    ones, zeros = pa.scalar(1, pa.int64()), pa.scalar(0, pa.int64())
    measures = {
        "files": pc.if_else(pc.is_valid(sizes), ones, ones),
        "size": sizes,
        "small_files": pc.if_else(is_small, ones, zeros),
        "small_size": pc.if_else(is_small, sizes, zeros),
        "open_files": pc.if_else(is_open, ones, zeros),
        "open_size": pc.if_else(is_open, sizes, zeros),
    }
    keys = keys or {"k0": pa.nulls(len(sizes), pa.string())}
    groups = pa.table({**keys, **measures}).group_by([*keys]).aggregate([(name, "sum") for name in measures])
    open_files, open_size = groups.column("open_files_sum"), groups.column("open_size_sum")
    # The files that OPTIMIZE writes for a partition: its bytes divided by the target, rounded up.
    combined = pc.divide(pc.add(open_size, target - 1), target)
    after = pc.add(pc.subtract(groups.column("files_sum"), open_files), pc.min_element_wise(open_files, combined))
    groups = groups.append_column("after", after)
    groups = groups.append_column("fewer", pc.subtract(groups.column("files_sum"), after))

    def first(column: str) -> tuple[Partition, ...]:
        rows = pc.select_k_unstable(groups, min(_MOST, len(groups)), [(column, "descending")])
        return tuple(_partition(row, columns) for row in groups.take(rows).to_pylist())

    facts = PartitionFacts(
        columns,
        len(groups) if columns else 0,
        median(groups.column("size_sum")),
        first("size_sum") if columns else (),
        tuple(partition for partition in first("fewer") if partition.fewer > 0),
    )
    return facts, exact_sum(after)


def _partition(row: dict[str, Any], columns: tuple[str, ...]) -> Partition:
    values = tuple((name, row[f"k{i}"]) for i, name in enumerate(columns))
    return Partition(
        values, row["files_sum"], row["size_sum"], row["small_files_sum"], row["small_size_sum"], row["after"]
    )


def vector_facts(files: "pa.Table", rows: "pa.Array") -> VectorFacts:
    """The load of deletion vectors; the arguments are as in `file_facts`."""
    import pyarrow.compute as pc

    from ..core.log.columns import exact_sum

    deleted = pc.struct_field(files.column("deletionVector"), "cardinality").combine_chunks()
    has = pc.is_valid(deleted)
    deleted, total = deleted.filter(has), rows.filter(has)
    sizes = _floats(files.column("size").combine_chunks().filter(has))
    # A file whose number of rows isn't known counts as fully deleted: OPTIMIZE rewrites it too.
    share = pc.divide(_floats(deleted), _floats(total))
    share = pc.fill_null(pc.min_element_wise(share, 1.0), 1.0)
    up_to = [_count(pc.less_equal(share, limit)) for limit in _SHARES]
    heavy = pc.greater(share, HEAVY)
    return VectorFacts(
        len(deleted),
        exact_sum(deleted),
        tuple(count - before for count, before in zip(up_to, [0, *up_to], strict=False)),
        _count(heavy),
        round(pc.sum(sizes.filter(heavy)).as_py() or 0),
        round(pc.sum(pc.multiply(sizes, share).filter(heavy)).as_py() or 0),
    )


def removed_files(tombstones: "pa.Table", removes: Iterable[RemoveFile], live: "pa.ChunkedArray") -> "pa.Table":
    """The removed files: one row each, with `path`, `time` in milliseconds, and `size`.

    A checkpoint drops expired tombstones, so that those of the commits are added. A file whose deletion vector was
    replaced is removed and live.

    Args:
        tombstones: The tombstones of a snapshot.
        removes: The `remove` actions of the commits.
        live: The paths of the live files.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    of_commits = [(file.path, file.deletion_timestamp, file.size) for file in removes]
    schema = pa.schema([("path", pa.string()), ("time", pa.int64()), ("size", pa.int64())])
    columns = zip(*of_commits, strict=True) if of_commits else ([], [], [])
    newer = pa.Table.from_arrays(
        [pa.array(list(c), f.type) for c, f in zip(columns, schema, strict=True)], schema=schema
    )
    older = tombstones.select(["path", "deletionTimestamp", "size"]).rename_columns(schema.names).cast(schema)
    both = pa.concat_tables([older, newer])
    both = both.filter(pc.invert(pc.is_in(both.column("path"), value_set=live.combine_chunks())))
    merged = both.group_by("path").aggregate([("time", "max"), ("size", "max")])
    return merged.select(["path", "time_max", "size_max"]).rename_columns(schema.names)


def tombstone_facts(removed: "pa.Table", now_ms: int, retention_ms: int, vacuum_ms: int | None) -> TombstoneFacts:
    """The removed files that are still in the log. Those that the last VACUUM could delete are left out.

    Args:
        removed: As of `removed_files`.
        now_ms: The time now.
        retention_ms: How long the table keeps removed files.
        vacuum_ms: When the last VACUUM began; `None`: never, as far as the log says.
    """
    import pyarrow.compute as pc

    from ..core.log.columns import exact_sum

    times = pc.fill_null(removed.column("time"), 0)
    if vacuum_ms is not None:
        kept = pc.greater_equal(times, vacuum_ms - retention_ms)
        removed, times = removed.filter(kept), times.filter(kept)
    sizes = removed.column("size")
    expired = pc.less(times, now_ms - retention_ms)
    return TombstoneFacts(
        removed.num_rows,
        exact_sum(sizes),
        _count(expired),
        exact_sum(sizes.filter(expired)),
        retention_ms,
        vacuum_ms,
    )


def median(sizes: "pa.ChunkedArray") -> int:
    """The median of sizes; 0 if there are none."""
    import pyarrow.compute as pc

    value = pc.quantile(sizes, 0.5, interpolation="lower")[0].as_py()
    return 0 if value is None else int(value)


def _count(mask: "pa.Array | pa.ChunkedArray") -> int:
    import pyarrow.compute as pc

    return pc.sum(mask).as_py() or 0


def _floats(numbers: "pa.Array") -> "pa.Array":
    """The numbers as floats, rounded: those above 2^53, which only a damaged log has, aren't all floats."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.cast(numbers, pa.float64(), safe=False)


def _bounded(sizes: "pa.Array") -> "pa.Array":
    """Sizes whose sum fits in 64 bits. Only a damaged log has larger ones; Arrow adds without a check for overflow."""
    import pyarrow as pa
    import pyarrow.compute as pc

    most = pa.scalar(_MOST_BYTES // max(len(sizes), 1), pa.int64())
    return pc.max_element_wise(pc.min_element_wise(sizes, most), pa.scalar(0, pa.int64()))
