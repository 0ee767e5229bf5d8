"""The difference between two versions of a table: files, rows, columns, properties and features."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..protocol import features, paths
from ..protocol.actions import AddFile, RemoveFile
from ..protocol.column_mapping import physical_name
from ..protocol.schema import StructType, dotted, type_text
from ..protocol.schema.lookup import all_fields

if TYPE_CHECKING:
    import pyarrow as pa

    from .readable_log import ReadableLog
    from .snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class FileGroup:
    """Some files: their rows in `snapshot.files`, their number, bytes, and live rows (`None`: unknown)."""

    indices: "pa.Array"
    num_files: int
    size_in_bytes: int
    num_records: int | None


@dataclass(frozen=True, slots=True)
class Change:
    """A value that was added (`before` is None), removed (`after` is None) or replaced."""

    name: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class Difference:
    """What the later of two versions has that the earlier hasn't, and the reverse."""

    added: FileGroup
    removed: FileGroup
    columns: tuple[Change, ...]
    properties: tuple[Change, ...]
    features: tuple[Change, ...]
    partitioning: Change | None

    @property
    def is_empty(self) -> bool:
        """Whether the two versions are the same table."""
        return not (
            self.added.num_files
            or self.removed.num_files
            or self.columns
            or self.properties
            or self.features
            or self.partitioning
        )


def difference(then: "Snapshot", now: "Snapshot") -> Difference:
    """Compare two versions.

    Args:
        then: The version to compare with.
        now: The version whose additions count as added.

    Returns:
        The difference.
    """
    only_then, only_now = differing_files(then, now)
    before, after = ", ".join(then.partition_columns), ", ".join(now.partition_columns)
    return Difference(
        added=_group(now, only_now),
        removed=_group(then, only_then),
        columns=column_changes(then.schema, now.schema),
        properties=_changes(then.metadata.configuration, now.metadata.configuration),
        features=_changes(
            dict.fromkeys(features.supported(then.protocol), "supported"),
            dict.fromkeys(features.supported(now.protocol), "supported"),
        ),
        partitioning=None if before == after else Change("partitioning", before or None, after or None),
    )


def differing_files(then: "Snapshot", now: "Snapshot") -> tuple[list[int], list[int]]:
    """Indexes of the files that only `then` has, and of the files that only `now` has."""
    keys_then, keys_now = _keys(then), _keys(now)
    return (
        [row for key, row in keys_then.items() if key not in keys_now],
        [row for key, row in keys_now.items() if key not in keys_then],
    )


def changed_paths(log: "ReadableLog", then: "Snapshot", now: "Snapshot", most_bytes: int) -> set[str] | None:
    """The canonical paths of the files that may differ between two versions, by the commits after the earlier one.

    `None` if a commit is missing, or the commits have more than `most_bytes`.
    """
    listed = log.reader.list(then.version + 1).commits
    versions = range(then.version + 1, now.version + 1)
    if any(version not in listed for version in versions):
        return None
    if sum(listed[version].size for version in versions) > most_bytes:
        return None
    changed: set[str] = set()
    for version, data in zip(versions, log.reader.each([listed[version] for version in versions]), strict=True):
        if data is None:
            return None
        actions = log.reader.parsed(version, data)
        changed.update(paths.canonical(a.path, now.table) for a in actions if isinstance(a, AddFile | RemoveFile))
    return changed


@dataclass(frozen=True)
class OfPaths:
    """Selects the files of these canonical paths, in pieces of `Snapshot.files`."""

    table: str
    paths: "pa.Array"

    def __call__(self, files: "pa.Table") -> "tuple[pa.Table, int]":
        """The selected rows, and the number of rows before."""
        import pyarrow.compute as pc

        names = paths.canonical_column(files.column("path"), self.table)
        return files.filter(pc.is_in(names, value_set=self.paths)), files.num_rows


def _keys(snapshot: "Snapshot") -> dict[tuple[str, str | None], int]:
    """The row of each logical file by its canonical path and the id of its deletion vector."""
    from ..log.replay import vector_id

    files = snapshot.files
    names = paths.canonical_column(files.column("path"), snapshot.table).to_pylist()
    vectors = files.column("deletionVector")
    ids: list[str | None] = [None] * len(names)
    if vectors.null_count < len(vectors):
        ids = [vector_id(value) for value in vectors.to_pylist()]
    return {key: row for row, key in enumerate(zip(names, ids, strict=True))}


def _group(snapshot: "Snapshot", rows: list[int]) -> FileGroup:
    import pyarrow as pa
    import pyarrow.compute as pc

    from ..log.columns import exact_sum

    indices = pa.array(rows, pa.int64())
    files = snapshot.files.take(indices)
    records = snapshot.num_records().take(indices) if rows else pa.array([], pa.int64())
    deleted = exact_sum(pc.struct_field(files.column("deletionVector"), "cardinality"))
    known = None if records.null_count else exact_sum(records) - deleted
    return FileGroup(indices, len(rows), exact_sum(files.column("size")), known)


def column_changes(then: StructType, now: StructType) -> tuple[Change, ...]:
    """The changed columns at every depth; a column that keeps its physical name under another name was renamed."""
    before = dict(_described(then))
    after = dict(_described(now))
    changes: list[Change] = []
    for physical in [*before, *(name for name in after if name not in before)]:
        old, new = before.get(physical), after.get(physical)
        if old == new:
            continue
        if old is not None and new is not None and old[0] != new[0]:
            changes.append(Change(new[0], f"{old[0]} {old[1]}", f"{new[0]} {new[1]}"))
        else:
            name = (old or new or ("", ""))[0]
            changes.append(Change(name, old and old[1], new and new[1]))
    return tuple(changes)


def _described(schema: StructType) -> list[tuple[tuple[str, ...], tuple[str, str]]]:
    """(physical name, (logical name, type and nullability)) of each column, without the inner fields of a struct."""
    return [
        (
            (*column[:-1], physical_name(f)),
            (dotted(column), type_text(f.data_type) + ("" if f.nullable else " not null")),
        )
        for column, f in all_fields(schema)
        if len(column) == 1
    ]


def _changes(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[Change, ...]:
    return tuple(
        Change(name, before.get(name), after.get(name))
        for name in sorted({*before, *after})
        if before.get(name) != after.get(name)
    )
