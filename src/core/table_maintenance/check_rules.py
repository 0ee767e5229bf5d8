"""Rules of the check of a table, without input and output: what agrees with the log, and what doesn't."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ..protocol import features, row_tracking
from ..protocol.column_mapping import field_id, physical_name
from ..protocol.schema import ArrayType, DataType, MapType, PrimitiveType, StructField, StructType, type_text

if TYPE_CHECKING:
    import pyarrow as pa

    from ..table.snapshot import Snapshot

MOST_PROBLEMS = 100
"""The most problems of one check that are kept; the others are counted."""

Severity = Literal["error", "warning"]

_PARQUET_ID = b"PARQUET:field_id"


@dataclass(frozen=True, slots=True)
class DataProblem:
    """Something wrong with a file (`None`: with the table), as a sentence about it."""

    severity: Severity
    path: str | None
    message: str


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One check: how many things it looked at, its first problems, and the number of all of them."""

    name: str
    examined: int
    problems: tuple[DataProblem, ...]
    num_errors: int
    num_warnings: int


class Problems:
    """Collects the problems of one check in bounded memory."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._kept: list[DataProblem] = []
        self._counts: dict[Severity, int] = {"error": 0, "warning": 0}

    def add(self, severity: Severity, path: str | None, message: str) -> None:
        """Count a problem, and keep it if there is room."""
        self._counts[severity] += 1
        if len(self._kept) < MOST_PROBLEMS:
            self._kept.append(DataProblem(severity, path, message))

    def result(self, examined: int) -> CheckResult:
        """The check, completed."""
        return CheckResult(self._name, examined, tuple(self._kept), self._counts["error"], self._counts["warning"])


def count_problems(expected: int | None, actual: int) -> Iterator[str]:
    """What is wrong with the number of rows of a file."""
    if expected is not None and expected != actual:
        yield f"it has {actual} rows, and {expected} by the log"


# --- row ids ------------------------------------------------------------------------------------------------------


def row_id_problems(snapshot: "Snapshot", names: Sequence[str]) -> CheckResult | None:
    """Whether each row has an id of its own, up to the high-water mark; `None`: the table has no row ids."""
    if not row_tracking.supported(snapshot.protocol):
        return None
    problems = Problems("row ids")
    highest = row_tracking.high_water_mark(snapshot.domain_metadata)
    suspended = snapshot.metadata.configuration.get(row_tracking.SUSPENDED, "").lower() == "true"
    bases, counts = snapshot.files.column("baseRowId").to_pylist(), snapshot.num_records().to_pylist()
    ranges: list[tuple[int, int, int]] = []
    for row, (base, count) in enumerate(zip(bases, counts, strict=True)):
        if base is None:
            if not suspended and row_tracking.enabled(snapshot.protocol, snapshot.metadata):
                problems.add("error", names[row], "it has no baseRowId")
        elif count:
            ranges.append((base, base + count - 1, row))
    ranges.sort()
    reached, owner = -1, -1
    for first, last, row in ranges:
        if first <= reached:
            problems.add("error", names[row], f"its row ids {first} to {last} overlap those of {names[owner]}")
        if last > highest:
            problems.add("error", names[row], f"its row ids reach {last}, above the high-water mark {highest}")
        if last > reached:
            reached, owner = last, row
    return problems.result(len(names))


# --- the schema of a data file ------------------------------------------------------------------------------------


def schema_problems(snapshot: "Snapshot", stored: "pa.Schema") -> Iterator[str]:
    """What is wrong with the schema of a data file: columns that don't fit the table's."""
    by_id = snapshot.mapping.mode == "id"
    mapped = snapshot.mapping.active
    for f in snapshot.schema:
        if f.name in snapshot.partition_columns:
            continue
        at = _place(list(stored), f, mapped=mapped, by_id=by_id)
        if at is None:
            if not f.nullable and "columnMapping" not in features.supported(snapshot.protocol):
                yield f"it lacks the column {f.name}, which may not be null"
        elif not fits(stored.field(at).type, f.data_type, mapped=mapped, by_id=by_id):
            yield f"its column {f.name} is {stored.field(at).type}, and {type_text(f.data_type)} by the schema"


def _place(stored: "Sequence[pa.Field]", f: StructField, *, mapped: bool, by_id: bool) -> int | None:
    wanted = field_id(f) if by_id else None
    if wanted is not None:
        mark = str(wanted).encode()
        return next((i for i, one in enumerate(stored) if (one.metadata or {}).get(_PARQUET_ID) == mark), None)
    name = (physical_name(f) if mapped else f.name).lower()
    return next((i for i, one in enumerate(stored) if one.name.lower() == name), None)


def fits(stored: "pa.DataType", data_type: DataType, *, mapped: bool = False, by_id: bool = False) -> bool:
    """Whether values of a stored type can be read as the type of a column, also after the column was widened."""
    import pyarrow as pa

    if pa.types.is_dictionary(stored):
        stored = stored.value_type
    if isinstance(data_type, StructType):
        if not pa.types.is_struct(stored):
            return False
        places = [(f, _place(list(stored), f, mapped=mapped, by_id=by_id)) for f in data_type]
        return all(
            at is None or fits(stored.field(at).type, f.data_type, mapped=mapped, by_id=by_id) for f, at in places
        )
    if isinstance(data_type, ArrayType):
        lists = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list, pa.types.is_list_view)
        inside = any(is_kind(stored) for is_kind in (*lists, pa.types.is_large_list_view))
        return inside and fits(stored.value_type, data_type.element_type, mapped=mapped, by_id=by_id)
    if isinstance(data_type, MapType):
        return (
            pa.types.is_map(stored)
            and fits(stored.key_type, data_type.key_type, mapped=mapped, by_id=by_id)
            and fits(stored.item_type, data_type.value_type, mapped=mapped, by_id=by_id)
        )
    if isinstance(data_type, PrimitiveType):
        return _fits_primitive(stored, data_type)
    return fits(stored, data_type.sql_type, mapped=mapped, by_id=by_id)


_BITS = {"byte": 8, "short": 16, "integer": 32, "long": 64}


def _fits_primitive(stored: "pa.DataType", column: PrimitiveType) -> bool:
    import pyarrow as pa

    types, name, decimal = pa.types, column.name, column.decimal
    if types.is_integer(stored):
        # Parquet stores bytes and shorts as 32 bits, and some writers leave out the annotation.
        width = 8 if stored.bit_width <= 32 else stored.bit_width
        return name == "double" or decimal is not None or bool(width <= _BITS.get(name, 0))
    if types.is_decimal(stored):
        whole = stored.precision - stored.scale
        return decimal is not None and bool(stored.scale <= decimal[1] and whole <= decimal[0] - decimal[1])
    if types.is_timestamp(stored):
        return name in ("timestamp", "timestamp_ntz")
    texts = types.is_string(stored) or types.is_large_string(stored) or types.is_string_view(stored)
    bytes_ = types.is_binary(stored) or types.is_large_binary(stored) or types.is_binary_view(stored)
    checks = {
        "float": types.is_float32(stored),
        "double": types.is_floating(stored),
        "boolean": types.is_boolean(stored),
        "date": types.is_date(stored),
        "timestamp_ntz": types.is_date(stored),
        "string": texts or bytes_,
        "binary": texts or bytes_,
        "variant": types.is_struct(stored),
    }
    return bool(checks.get(name, name not in _BITS and decimal is None))
