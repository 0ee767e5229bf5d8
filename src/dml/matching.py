"""Which files a condition touches, and what is left of them: shared by DELETE and by overwrites with replaceWhere."""

import json
import logging
import re
import time
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql import functions

from ..core.protocol.actions import AddFile
from ..core.table import predicates
from ..core.txn.transaction import Transaction
from ..engine import scan, writer
from . import rows
from .job import Work

logger = logging.getLogger(__name__)

_COUNT_FIRST = re.compile(r'\{"numRecords":(\d+)[,}]')
_FILE_NUMBER = "__tablelog_file"


@dataclass
class Removal:
    """What goes out of a table, and the files with the rows that stay. `deleted_rows` is None where nobody counted."""

    removed: list[AddFile] = field(default_factory=list)
    added: list[AddFile] = field(default_factory=list)
    deleted_rows: int | None = 0
    copied_rows: int = 0
    scan_ms: int = 0
    rewrite_ms: int = 0


def remove_all(txn: Transaction) -> Removal:
    """Every file of the table goes; no data is read."""
    assert txn.snapshot is not None
    began = time.monotonic()
    txn.read_whole_table()
    return _whole(txn.snapshot.add_files(), began)


def remove_matching(work: Work, condition: scan.Condition, options: writer.WriteOptions) -> Removal:
    """The rows for which the condition is TRUE go.

    A condition on partition columns alone takes whole files, and no data is read. Otherwise one job over the columns
    of the condition finds the touched files, and another one rewrites those of them that keep rows.
    """
    snapshot, txn = work.snapshot, work.txn
    began = time.monotonic()
    if condition.data is None:
        numbers = scan.exact_partitions(work.spark, snapshot, condition)
        _record(txn, condition.predicate, snapshot.files.take(numbers))
        return _whole(snapshot.add_files(numbers), began)

    candidates = scan.candidates(work.spark, snapshot, condition)
    _record(txn, condition.predicate, snapshot.files.take(candidates))
    touched = _touched(work, candidates, condition)
    removal = Removal(deleted_rows=sum(touched.values()), scan_ms=_ms(began))
    if not touched:
        return removal

    began = time.monotonic()
    numbers = sorted(touched)
    removal.removed = snapshot.add_files(numbers)
    counts = [num_records(add) for add in removal.removed]
    kept = [number for number, count in zip(numbers, counts, strict=True) if count is None or touched[number] < count]
    if kept:
        frame = work.rows(pa.array(kept, pa.int64()))
        stay = ~condition.column(frame).eqNullSafe(functions.lit(True))
        written = rows.write_kept(work, frame.where(stay), options)
        removal.added, removal.copied_rows = written.adds, written.rows
    removal.rewrite_ms = _ms(began)
    return removal


def _touched(work: Work, candidates: pa.Array, condition: scan.Condition) -> dict[int, int]:
    """Rows of `snapshot.files` that hold matching rows, each with their number."""
    if len(candidates) == 0:
        return {}
    frame = work.rows(candidates, file_number=_FILE_NUMBER)
    counted = frame.where(condition.column(frame)).groupBy(_FILE_NUMBER).count().collect()
    places = candidates.to_pylist()
    return {places[number]: count for number, count in counted}


def _record(txn: Transaction, predicate: predicates.Predicate, files: pa.Table) -> None:
    txn.read_predicate(predicate)
    txn.read_table(files)


def _whole(removed: list[AddFile], began: float) -> Removal:
    counts = [num_records(add) for add in removed]
    known = [count for count in counts if count is not None]
    return Removal(removed=removed, deleted_rows=sum(known) if len(known) == len(counts) else None, scan_ms=_ms(began))


def num_records(add: AddFile) -> int | None:
    """How many rows a file has by its statistics, those that its deletion vector takes left out; None: unknown."""
    physical = _physical_records(add)
    if physical is None or add.deletion_vector is None:
        return physical
    return physical - add.deletion_vector.cardinality


def _physical_records(add: AddFile) -> int | None:
    if add.stats is None:
        return None
    if (match := _COUNT_FIRST.match(add.stats)) is not None:
        return int(match[1])
    try:
        count = json.loads(add.stats).get("numRecords")
    except (ValueError, AttributeError):
        return None
    return count if isinstance(count, int) else None


def _ms(since: float) -> int:
    return round((time.monotonic() - since) * 1000)
