"""Checks the data files of a version: that they are there, that they are what the log says, and what else is there.

What is wrong is decided by functions without input or output: `check_rules`. This module reads the files.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from ...errors import CorruptLogError, MissingDataFileError, StorageError, TablelogError, UntrustedTableError
from ...progress import stage
from ..protocol import change_data, deletion_vectors, paths
from ..protocol.actions import DeletionVectorDescriptor
from ..protocol.partition_values import column_of, typed
from ..protocol.schema import PrimitiveType
from . import check_rules, unneeded_files
from .check_rules import MOST_PROBLEMS, CheckResult, Problems
from .data_files import TableData, refused
from .table_files import TableFiles, counted

if TYPE_CHECKING:
    import pyarrow as pa

    from ..deltalog import DeltaLog
    from ..table.snapshot import Snapshot

_Item = TypeVar("_Item")

_THREADS = 8
_AT_ONCE = 256


@dataclass(frozen=True, slots=True)
class Orphans:
    """The files below the table's directory that no version in the log refers to; VACUUM removes the old ones.

    Files of other tables below this one aren't counted, as VACUUM ignores them; nor are change files: only the commits
    name them, so that a snapshot can't say which of them are needed.
    """

    num_files: int
    size_in_bytes: int
    examples: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DataCheck:
    """The results of all checks of the data files, and the orphans."""

    results: tuple[CheckResult, ...]
    orphans: Orphans
    missing: tuple[str, ...]
    """The paths in the log of all live files that don't exist."""


def check_data(log: "DeltaLog", snapshot: "Snapshot", files: TableFiles, *, reads_files: bool = True) -> DataCheck:
    """Check the data files of a version. It changes nothing.

    Args:
        log: The table's log.
        snapshot: The version.
        files: The table's directory.
        reads_files: Whether to open each data file and read its footer; else only listings and the log are used.

    Returns:
        The results, in the order in which they are shown.

    Raises:
        StorageError: The directory can't be listed.
    """
    table = snapshot.files
    names: list[str] = table.column("path").to_pylist()
    listed = _listed(files, snapshot)
    presence, missing = _check_presence(log, names, table, listed.sizes, files)
    results = [presence, _check_values(snapshot, names)]
    data = TableData(log)
    if reads_files:
        results.append(_check_footers(snapshot, data, names, missing))
    results.append(_check_vectors(snapshot, data, names))
    rows = check_rules.row_id_problems(snapshot, names)
    if rows is not None:
        results.append(rows)
    return DataCheck(tuple(results), _orphans(snapshot, listed), tuple(sorted(missing)))


def missing_files(log: "DeltaLog", snapshot: "Snapshot", files: TableFiles) -> list[str]:
    """The paths in the log of the live files that don't exist.

    Args:
        log: The table's log.
        snapshot: The version.
        files: The table's directory.

    Raises:
        StorageError: The directory can't be listed.
    """
    names = snapshot.files.column("path").to_pylist()
    return sorted(_check_presence(log, names, snapshot.files, _listed(files, snapshot).sizes, files)[1])


@dataclass(frozen=True, slots=True)
class _Listed:
    """What is below the table's directory: the size of each file by its name, and the directories of other tables."""

    sizes: dict[str, int]
    other_tables: tuple[str, ...]


def _listed(files: TableFiles, snapshot: "Snapshot") -> _Listed:
    columns = {*snapshot.partition_columns, *snapshot.mapping.physical_partition_columns}

    def hidden(name: str) -> bool:
        return unneeded_files.is_hidden(name, columns)

    sizes: dict[str, int] = {}
    other_tables: list[str] = []
    for directory in counted(files.walk(hidden), snapshot.files.num_rows):
        if unneeded_files.is_other_table(directory):
            other_tables.append(f"{directory.name}/")
        sizes.update((directory.path_of(file.name), file.size) for file in directory.files)
    return _Listed(sizes, tuple(other_tables))


def _check_presence(
    log: "DeltaLog", names: Sequence[str], table: "pa.Table", listed: dict[str, int], files: TableFiles
) -> tuple[CheckResult, set[str]]:
    """Whether each file exists with the size that the log has."""
    problems = Problems("files")
    elsewhere: list[str] = []
    missing: set[str] = set()
    for name, size in zip(names, table.column("size").to_pylist(), strict=True):
        place = next((one for one in unneeded_files.names_of(log.table, name) if one in listed), None)
        if place is None and refused(log, [name]) is not None:
            problems.add("warning", name, "it is outside of the table, and the settings don't allow to look at it")
        elif place is None:
            elsewhere.append(name)
        elif listed[place] != size:
            problems.add("error", name, f"it has {listed[place]} bytes, and {size} by the log")
    # Files outside of the directory, behind links, or with a name that listings leave out: each is asked for.
    for name in files.absent(elsewhere):
        missing.add(name)
        problems.add("error", name, "it doesn't exist")
    return problems.result(len(names)), missing


def _check_values(snapshot: "Snapshot", names: Sequence[str]) -> CheckResult:
    """Whether the log says what it should about each file: partition values, numbers of rows; and says it once."""
    problems = Problems("actions")
    for name, times in Counter(names).items():
        if times > 1:
            message = f"the log has it {times} times, with different deletion vectors: its rows are read more than once"
            problems.add("error", name, message)
    columns = set(snapshot.mapping.physical_partition_columns)
    values = snapshot.files.column("partitionValues").to_pylist()
    for name, pairs in zip(names, values, strict=True):
        keys = {key for key, _ in pairs or ()}
        if keys != columns:
            problems.add(
                "error", name, f"it has values of the partition columns {sorted(keys)}, not of {sorted(columns)}"
            )
    for row, message in _wrong_values(snapshot):
        problems.add("error", names[row], message)
    records = snapshot.num_records()
    if records.null_count:
        problems.add("warning", None, f"{records.null_count} files have no number of rows in their statistics")
    return problems.result(len(names))


def _wrong_values(snapshot: "Snapshot") -> Iterator[tuple[int, str]]:
    """The rows of the files whose partition values aren't of the column's type, with what is wrong."""
    physical = {snapshot.mapping.to_physical((name,))[0]: name for name in snapshot.partition_columns}
    for key, name in physical.items():
        field = snapshot.schema.get(name)
        if field is None or not isinstance(field.data_type, PrimitiveType):
            continue
        texts = column_of(snapshot.files.column("partitionValues"), key)
        distinct = texts.unique()
        if _reason(distinct, field.data_type) is None:
            continue
        wrong = {
            text.as_py(): reason
            for row, text in enumerate(distinct)
            if (reason := _reason(distinct.slice(row, 1), field.data_type))
        }
        for row, text in enumerate(texts.to_pylist()):
            if text in wrong:
                yield row, f"its value of the partition column {name} can't be read: {wrong[text]}"


def _reason(texts: "pa.Array", data_type: PrimitiveType) -> str | None:
    """Why one of the texts isn't a value of the type."""
    try:
        typed(texts, data_type, time_zone="UTC")
    except CorruptLogError as error:
        return str(error)
    return None


def _check_footers(snapshot: "Snapshot", data: TableData, names: Sequence[str], missing: set[str]) -> CheckResult:
    """Whether the footer of each file agrees with the schema and with numRecords."""
    problems = Problems("footers")
    expected = snapshot.num_records()
    wanted = [row for row, name in enumerate(names) if name not in missing]

    def examine(row: int) -> list[str]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            with data.open(names[row]) as stream, pq.ParquetFile(stream) as parquet:
                found = check_rules.schema_problems(snapshot, parquet.schema_arrow)
                return [*check_rules.count_problems(expected[row].as_py(), parquet.metadata.num_rows), *found]
        except MissingDataFileError:
            return ["it was removed since the directory was listed"]
        except (pa.ArrowException, CorruptLogError, NotImplementedError) as error:
            return [f"it can't be read as Parquet: {' '.join(str(error).split())}"]
        except (StorageError, UntrustedTableError, OSError) as error:
            return [str(error)]

    done = 0
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="tablelog-check") as pool:
        for part in _parts(wanted):
            for row, sentences in zip(part, pool.map(examine, part), strict=True):
                for sentence in sentences:
                    problems.add("error", names[row], sentence)
            done += len(part)
            stage("reading footers", done, len(wanted))
    return problems.result(len(wanted))


def _check_vectors(snapshot: "Snapshot", data: TableData, names: Sequence[str]) -> CheckResult:
    """Whether each deletion vector can be read, and deletes only rows that its file has."""
    from ..log.columns import deletion_vector_of

    problems = Problems("vectors")
    column = snapshot.files.column("deletionVector")
    if column.null_count == len(column):
        return problems.result(0)
    records = snapshot.num_records()
    by_file: dict[str, list[tuple[int, DeletionVectorDescriptor]]] = {}
    for row, value in enumerate(column.to_pylist()):
        descriptor = deletion_vector_of(value)
        if descriptor is None:
            continue
        try:
            place = "" if descriptor.storage_type == "i" else deletion_vectors.path_of(descriptor)
            by_file.setdefault(place, []).append((row, descriptor))
        except CorruptLogError as error:
            problems.add("error", names[row], str(error))

    def examine(place: str) -> list[tuple[int, str]]:
        found: list[tuple[int, str]] = []
        for row, descriptor in by_file[place]:
            try:
                rows = data.deleted_rows(descriptor)
            except (TablelogError, OSError) as error:
                found.append((row, str(error)))
                continue
            assert rows is not None
            count = records[row].as_py()
            if count is not None and rows.last >= count:
                found.append((row, f"its deletion vector deletes row {rows.last}, and it has {count} rows"))
        return found

    total = done = 0
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="tablelog-check") as pool:
        for part in _parts(sorted(by_file)):
            for place, found in zip(part, pool.map(examine, part), strict=True):
                total += len(by_file[place])
                for row, sentence in found:
                    problems.add("error", names[row], sentence)
            done += len(part)
            stage("reading deletion vectors", done, len(by_file))
    return problems.result(total)


def _orphans(snapshot: "Snapshot", listed: _Listed) -> Orphans:
    """The listed files, without change files, that neither the version nor a tombstone refers to."""
    needed = unneeded_files.Needed(snapshot.table)
    needed.add_files(snapshot.files)
    needed.add_files(snapshot.tombstones)
    others = (f"{change_data.DIRECTORY}/", *listed.other_tables)
    lost = sorted(name for name in listed.sizes if name not in needed and not name.startswith(others))
    examples = tuple(paths.encode(name) for name in lost[:MOST_PROBLEMS])
    return Orphans(len(lost), sum(listed.sizes[name] for name in lost), examples)


def _parts(items: Sequence[_Item]) -> Iterator[Sequence[_Item]]:
    for start in range(0, len(items), _AT_ONCE):
        yield items[start : start + _AT_ONCE]
