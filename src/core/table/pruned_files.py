"""Which files of a snapshot may hold rows that satisfy a predicate: by partition values first, then by statistics."""

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from ..protocol.column_mapping import ColumnMapping

if TYPE_CHECKING:
    import pyarrow as pa

    from ..skipping.predicates import Column, Predicate


def prune_mask(
    files: "pa.Table",
    with_statistics: "Callable[[Collection[Column]], pa.Table]",
    mapping: ColumnMapping,
    predicate: "Predicate",
    *,
    time_zone: str,
) -> "pa.BooleanArray":
    """For each file, whether it may hold a row that satisfies the predicate.

    Args:
        files: The live files.
        with_statistics: Returns `files` with the statistics of some columns (physical names); called only if the
            partition values leave a file to decide about.
        mapping: The table's columns.
        predicate: A predicate on logical column names.
        time_zone: The time zone of partition timestamps that name none.
    """
    import pyarrow.compute as pc

    from ..log.columns import mask_of
    from ..skipping.predicates import columns, split, with_columns
    from ..skipping.pruning import may_match

    schema, partition_columns = mapping.physical, mapping.physical_partition_columns
    if mapping.active:
        predicate = with_columns(predicate, mapping.to_physical)
    of_partition, of_data = split(predicate, partition_columns)
    mask = may_match(files, of_partition, schema, partition_columns, use_stats=False, time_zone=time_zone)
    if of_data is None or not columns(of_data):
        return mask
    rows = pc.indices_nonzero(mask)
    if len(rows) == 0:
        return mask
    undecided = with_statistics(columns(of_data)).take(rows)
    hits = may_match(undecided, predicate, schema, partition_columns, time_zone=time_zone)
    flags = bytearray(files.num_rows)
    for row in rows.filter(hits).to_pylist():
        flags[row] = 1
    return mask_of(flags)
