"""Partition values: the strings in the log and typed values (PROTOCOL.md, "Partition Value Serialization").

A timestamp without a time zone was written in its writer's zone, which the log doesn't have. As Delta reads it in the
session's zone, callers pass it as `time_zone`. tablelog writes timestamps as ISO 8601 in UTC, as Delta does by default
and the protocol recommends: every engine reads the same value, in every time zone.

A binary value is the text whose UTF-8 encoding is the bytes, as in Spark's casts; bytes that aren't UTF-8 can't be a
partition value.
"""

import datetime
import math
import re
from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from ...errors import ConstraintViolationError, CorruptLogError, InvalidArgumentError
from .schema import PrimitiveType, StructType, arrow_type, type_text

if TYPE_CHECKING:
    import pyarrow as pa

NO_TEXT = "a partition value isn't UTF-8, so the log, which is JSON, can't contain it"
_DAY_US = 86_400_000_000
_DATE = r"([+-]?\d{4,7})-(\d{1,2})-(\d{1,2})"
_DATE_RE = re.compile(_DATE, re.ASCII)
_TIME_RE = re.compile(
    rf"{_DATE}(?:[ T](\d{{1,2}}):(\d{{1,2}}):(\d{{1,2}})(?:\.(\d{{1,9}}))?)?\s*(Z|UTC|[+-]\d{{2}}:?\d{{2}})?", re.ASCII
)
_OFFSET_RE = re.compile(r"((?:UTC|GMT|UT)?[+-])(\d{1,2})(?::?([0-5]?\d)(?::?([0-5]\d))?)?", re.ASCII)
_LARGEST_OFFSET = datetime.timedelta(hours=18)  # of java.time
_SHORT_ZONES = {
    "EST": "Etc/GMT+5", "MST": "Etc/GMT+7", "HST": "Etc/GMT+10", "ACT": "Australia/Darwin", "AET": "Australia/Sydney",
    "AGT": "America/Argentina/Buenos_Aires", "ART": "Africa/Cairo", "AST": "America/Anchorage",
    "BET": "America/Sao_Paulo", "BST": "Asia/Dhaka", "CAT": "Africa/Harare", "CNT": "America/St_Johns",
    "CST": "America/Chicago", "CTT": "Asia/Shanghai", "EAT": "Africa/Addis_Ababa", "ECT": "Europe/Paris",
    "IET": "America/Indiana/Indianapolis", "IST": "Asia/Kolkata", "JST": "Asia/Tokyo", "MIT": "Pacific/Apia",
    "NET": "Asia/Yerevan", "NST": "Pacific/Auckland", "PLT": "Asia/Karachi", "PNT": "America/Phoenix",
    "PRT": "America/Puerto_Rico", "PST": "America/Los_Angeles", "SST": "Pacific/Guadalcanal",
    "VST": "Asia/Ho_Chi_Minh",
}  # fmt: skip
"""The short names of time zones in `java.time`, which Spark accepts."""


def days_of(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01 of a date in the proleptic Gregorian calendar, in any year; `ValueError`: no such date."""
    # The calendar repeats every 400 years, so any year is computed by one that `date` supports.
    cycle, rest = divmod(year - 2000, 400)
    return (datetime.date(2000 + rest, month, day) - datetime.date(1970, 1, 1)).days + cycle * 146_097


def date_text(days: int) -> str:
    """The inverse of `days_of`, in Spark's form: `2024-01-31`, `+10000-01-01`, `-0001-12-31`."""
    cycle, rest = divmod(days - 10_957, 146_097)
    value = datetime.date(2000, 1, 1) + datetime.timedelta(days=rest)
    year = value.year + 400 * cycle
    sign = "+" if year > 9999 else "-" if year < 0 else ""
    return f"{sign}{abs(year):04d}-{value.month:02d}-{value.day:02d}"


def timestamp_text(micros: int, separator: str = " ", *, fraction: int = 0) -> str:
    """Microseconds since the epoch as text in UTC, with at least `fraction` digits and no further trailing zeros."""
    days, rest = divmod(micros, _DAY_US)
    seconds, part = divmod(rest, 1_000_000)
    text = f"{date_text(days)}{separator}{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    digits = f"{part:06d}".rstrip("0").ljust(fraction, "0")
    return f"{text}.{digits}" if digits else text


def parse_date(text: str) -> int:
    """Days since the epoch; `ValueError` if the text isn't a date."""
    match = _DATE_RE.fullmatch(text.strip())
    if match is None:
        raise ValueError("not a date")
    return days_of(int(match[1]), int(match[2]), int(match[3]))


def _zone_offset_us(days: int, rest: int, zone: datetime.tzinfo) -> int:
    """The difference between local time and UTC. A year that `datetime` lacks gets the rules of a similar one."""
    year_shift = 0
    if not -719_162 + 2 <= days <= 2_932_896 - 2:
        year_shift = 146_097 * ((days - 10_957) // 146_097)
    local = datetime.datetime(1970, 1, 1) + datetime.timedelta(days=days - year_shift, microseconds=rest)
    offset = local.replace(tzinfo=zone).utcoffset()
    assert offset is not None
    return offset // datetime.timedelta(microseconds=1)


def parse_timestamp(text: str, zone: datetime.tzinfo | None) -> int:
    """Microseconds since the epoch of either form; a text without a zone is in `zone` (`None`: UTC, or no zone).

    A local time that a clock change skips or repeats is interpreted as in Java and Spark. `ValueError` if the text
    isn't a timestamp.
    """
    match = _TIME_RE.fullmatch(text.strip())
    if match is None:
        raise ValueError("not a timestamp")
    days = days_of(int(match[1]), int(match[2]), int(match[3]))
    rest = 0
    if match[4] is not None:
        hour, minute, second = int(match[4]), int(match[5]), int(match[6])
        if hour > 23 or minute > 59 or second > 59:
            raise ValueError("no such time of day")
        rest = (hour * 3600 + minute * 60 + second) * 1_000_000 + int((match[7] or "0").ljust(6, "0")[:6])
    micros = days * _DAY_US + rest
    offset = match[8]
    if offset is None:
        return micros - (_zone_offset_us(days, rest, zone) if zone is not None else 0)
    if offset in ("Z", "UTC"):
        return micros
    shift = (int(offset[1:3]) * 60 + int(offset[-2:])) * 60_000_000
    return micros + (shift if offset[0] == "-" else -shift)


def _parse_boolean(text: str) -> bool:
    folded = text.strip().lower()
    if folded in ("true", "t", "yes", "y", "1"):
        return True
    if folded in ("false", "f", "no", "n", "0"):
        return False
    raise ValueError("not a boolean")


def _parse_integer(text: str) -> int:
    if not re.fullmatch(r"\s*[+-]?\d+\s*", text, re.ASCII):
        raise ValueError("not a whole number")
    return int(text)


def _parse_float(text: str) -> float:
    if "_" in text:
        raise ValueError("not a number")
    return float(text)


def _parse_decimal(text: str, scale: int) -> Decimal:
    try:
        value = Decimal(text.strip())
    except InvalidOperation:
        raise ValueError("not a decimal") from None
    if not value.is_finite():
        raise ValueError("not a decimal")
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    if exponent < -scale and any(digits[exponent + scale :]):
        raise ValueError("more digits after the point than the type has")
    return value


def _zone(time_zone: str) -> datetime.tzinfo | None:
    """The time zone for one of Spark's zone names; `None`: UTC. InvalidArgumentError for any other name."""
    if time_zone in ("UTC", "Z", "GMT", "Etc/UTC"):
        return None
    match = _OFFSET_RE.fullmatch(time_zone)
    if match is not None:
        hours, minutes, seconds = (int(part or 0) for part in match.group(2, 3, 4))
        offset = datetime.timedelta(hours=hours, minutes=minutes, seconds=seconds)
        if offset <= _LARGEST_OFFSET:
            return datetime.timezone(-offset if match[1].endswith("-") else offset)
    try:
        return ZoneInfo(_SHORT_ZONES.get(time_zone, time_zone))
    except (KeyError, ValueError, OSError):
        raise InvalidArgumentError(f"there is no time zone {time_zone!r}: correct the name") from None


def _parser(
    data_type: PrimitiveType, zone: datetime.tzinfo | None
) -> tuple[Callable[[str], Any], "pa.DataType | None"]:
    """(text -> value, the Arrow type of the values if it isn't the column's)."""
    import pyarrow as pa

    name = data_type.name
    if name == "date":
        return parse_date, pa.int32()
    if name == "timestamp":
        return lambda text: parse_timestamp(text, zone), pa.int64()
    if name == "timestamp_ntz":
        # A zone in the text is ignored: only the local time counts.
        return lambda text: parse_timestamp(
            re.sub(r"\s*(Z|UTC|(?<=:\d\d)[+-]\d{2}:?\d{2})$", "", text), None
        ), pa.int64()
    if data_type.is_integral:
        return _parse_integer, None
    if data_type.is_floating:
        return _parse_float, None
    if name == "boolean":
        return _parse_boolean, None
    if name == "binary":
        return lambda text: text.encode(), None
    bounds = data_type.decimal
    if bounds is not None:
        return lambda text: _parse_decimal(text, bounds[1]), None
    return lambda text: text, None


_VECTOR_INTEGER = r"^-?\d+$"
_VECTOR_DATE = r"^\d{4}-\d{2}-\d{2}$"
_VECTOR_LOCAL = r"^\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}:\d{2}(\.\d{1,6})?$"
_VECTOR_UTC = r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,6})?Z$"


def _vectorised(values: "pa.Array", data_type: PrimitiveType, zone: datetime.tzinfo | None) -> "pa.Array | None":
    """Convert all values at once if all have the usual form; else `None`."""
    import pyarrow as pa
    import pyarrow.compute as pc

    def all_match(pattern: str) -> bool:
        return bool(pc.all(pc.match_substring_regex(values, pattern)).as_py())

    target = arrow_type(data_type)
    try:
        if data_type.name == "binary":
            return values.cast(pa.binary())
        if data_type.name == "boolean":
            return values.cast(target) if all_match("^(?i:true|false)$") else None
        if data_type.name == "date":
            return values.cast(target) if all_match(_VECTOR_DATE) else None
        if data_type.name == "timestamp" and all_match(_VECTOR_UTC):
            return values.cast(target)
        if data_type.name.startswith("timestamp"):
            if (data_type.name == "timestamp_ntz" or zone is None) and all_match(_VECTOR_LOCAL):
                return values.cast(pa.timestamp("us")).cast(pa.int64()).cast(target)
            return None
        if data_type.is_integral and not all_match(_VECTOR_INTEGER):  # Arrow takes 0x1 for a number
            return None
        return values.cast(target)
    except pa.ArrowInvalid:
        return None


def typed(column: "pa.Array | pa.ChunkedArray", data_type: PrimitiveType, *, time_zone: str) -> "pa.Array":
    """The typed values of one partition column, from the strings of the log.

    `column` has strings; null and "" are null, for every type. The result has `schema.arrow_type(data_type)`.
    `time_zone` is the time zone of timestamps that name none. `CorruptLogError` for a text that isn't a value of the
    type. PROTOCOL.md, "Partition Value Serialization".
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    target = arrow_type(data_type)
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if isinstance(column, pa.DictionaryArray):
        column = column.cast(pa.string())
    if column.type != pa.string():
        column = column.cast(pa.string())
    column = pc.if_else(pc.equal(column, ""), pa.scalar(None, pa.string()), column)
    if target == pa.string():
        return column
    # There are few distinct values, so each is parsed once.
    encoded = column.dictionary_encode()
    distinct = encoded.dictionary
    zone = _zone(time_zone)
    values = _vectorised(distinct, data_type, zone)
    if values is None:
        parse, physical = _parser(data_type, zone)
        parsed: list[Any] = []
        for text in distinct.to_pylist():
            try:
                value = parse(text)
                parsed.append(pa.scalar(value, physical or target).as_py())
            except (ValueError, OverflowError, pa.ArrowInvalid) as error:
                raise CorruptLogError(
                    f"the partition value {text[:80]!r} is not valid for the type {type_text(data_type)}: {error}"
                ) from None
        values = pa.array(parsed, physical or target)
        if physical is not None:
            values = values.cast(target)
    return values.take(encoded.indices)


def typed_value(text: str | None, data_type: PrimitiveType, *, time_zone: str) -> "pa.Scalar":
    """One partition value; see `typed`."""
    import pyarrow as pa

    return typed(pa.array([text], pa.string()), data_type, time_zone=time_zone)[0]


def column_of(partition_values: "pa.Array | pa.ChunkedArray", name: str) -> "pa.Array":
    """The strings of one partition column, from the column `partitionValues` of a files table; null if missing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(partition_values, pa.ChunkedArray):
        partition_values = partition_values.combine_chunks()
    return pc.map_lookup(partition_values, name, "last")


def typed_columns(
    files: "pa.Table", schema: StructType, partition_columns: Sequence[str], *, time_zone: str
) -> "pa.Table":
    """The typed partition columns of a files table: one row for each file, one column for each partition column."""
    import pyarrow as pa

    arrays = []
    for name in partition_columns:
        field = schema.get(name, case_sensitive=True)
        if field is None or not isinstance(field.data_type, PrimitiveType):
            raise CorruptLogError(f"the partition column {name!r} isn't a column of a primitive type in the schema")
        try:
            arrays.append(typed(column_of(files["partitionValues"], name), field.data_type, time_zone=time_zone))
        except CorruptLogError as error:
            raise CorruptLogError(f"the partition column {name!r}: {error}") from None
    return pa.Table.from_arrays(arrays, names=list(partition_columns))


# --- writing ------------------------------------------------------------------------------------------------------


def float_text(shortest: str) -> str:
    """A number in its shortest decimal form, written like a float in Java: `1.0`, `1.0E10`, `NaN`, `-Infinity`."""
    value = float(shortest)
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    sign, digits, exponent = Decimal(shortest).as_tuple()
    assert isinstance(exponent, int)
    text = "".join(map(str, digits)).lstrip("0")
    minus = "-" if sign else ""
    if not text:
        return f"{minus}0.0"
    point = len(text) + exponent  # digits before the decimal point
    text = text.rstrip("0")
    if -3 < point <= 7:
        if point <= 0:
            return f"{minus}0.{'0' * -point}{text}"
        return f"{minus}{text[:point].ljust(point, '0')}.{text[point:] or '0'}"
    return f"{minus}{text[0]}.{text[1:] or '0'}E{point - 1}"


def _writer(data_type: PrimitiveType) -> Callable[[Any], str]:
    name = data_type.name
    if name == "date":
        return date_text
    if name == "timestamp":
        return lambda micros: timestamp_text(micros, "T", fraction=6) + "Z"
    if name == "timestamp_ntz":
        return timestamp_text
    if name == "boolean":
        return lambda value: "true" if value else "false"
    if data_type.decimal is not None:
        return lambda value: f"{value:f}"
    if data_type.is_floating:
        return float_text
    return str


def serialise(column: "pa.Array | pa.ChunkedArray", data_type: PrimitiveType) -> "pa.Array":
    """The strings of the log for the values of one partition column; null and the empty string are null.

    `ConstraintViolationError` for a string or binary that isn't UTF-8. PROTOCOL.md, "Partition Value Serialization".
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    column = column.cast(arrow_type(data_type))
    if data_type.name in ("string", "binary"):
        try:
            texts = column.cast(pa.binary()).cast(pa.string())  # validates UTF-8: a string in Spark may have any bytes
        except pa.ArrowInvalid:
            raise ConstraintViolationError(NO_TEXT) from None
    else:
        encoded = column.dictionary_encode()
        distinct = encoded.dictionary
        if data_type.name == "date":
            distinct = distinct.cast(pa.int32())
        elif data_type.name.startswith("timestamp"):
            distinct = distinct.cast(pa.int64())
        elif data_type.name == "float":
            # Arrow has the shortest digits of a float; Python has only doubles.
            distinct = distinct.cast(pa.string())
        write = _writer(data_type)
        texts = pa.array(
            [write(repr(v) if isinstance(v, float) else v) for v in distinct.to_pylist()], pa.string()
        ).take(encoded.indices)
    return pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.string()), texts)


def serialise_value(value: Any, data_type: PrimitiveType) -> str | None:
    """The string of one value: a Python value or an Arrow scalar of the column's type; see `serialise`."""
    import pyarrow as pa

    # A scalar isn't converted to Python, which has no year after 9999.
    array = pa.repeat(value, 1) if isinstance(value, pa.Scalar) else pa.array([value], arrow_type(data_type))
    text: str | None = serialise(array, data_type)[0].as_py()
    return text
