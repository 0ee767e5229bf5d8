"""Parses the JSON texts of statistics (PROTOCOL.md, "Per-file Statistics") into Arrow columns.

An invalid text or value becomes null: statistics are only an optimisation, and null means unknown. A million texts are
parsed at a time, by Arrow's JSON reader; texts that it refuses are parsed one by one.
"""

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, TypeAlias

from ..protocol.partition_values import parse_date, parse_timestamp
from ..protocol.schema import Column, DataType, PrimitiveType, arrow_type, has_min_max

if TYPE_CHECKING:
    import pyarrow as pa

Tree: TypeAlias = dict[str, "Tree | DataType"]
"""The leaves of a schema by name; a struct is a dict."""

_CHUNK_BYTES = 256 << 20
_LARGEST_EXPONENT = 400
"""No number of a type has more digits before or after its point: a double has up to 324."""
_ROUNDED_FROM = 2**53
"""A number with a point or an exponent was a double in its writer, which rounds integers from here on."""
_STRING = r'(?s)"(?:[^"\\]|\\.)*"'
_WORD = r"(?:NaN|[+-]?Infinity|[+-]?INF)"
_BARE_NON_FINITE = rf":\s*{_WORD}"
_NON_FINITE = rf':\s*(?:{_WORD}|"{_WORD}")\s*([,}}])'


def tree(leaves: Iterable[tuple[Column, DataType]]) -> Tree:
    """Build a tree from leaves with full names, in their order."""
    root: Tree = {}
    for column, data_type in leaves:
        node = root
        for part in column[:-1]:
            child = node.setdefault(part, {})
            assert isinstance(child, dict)
            node = child
        node[column[-1]] = data_type
    return root


def _pruned(node: Tree, keep: Callable[[DataType], bool]) -> Tree:
    result: Tree = {}
    for name, child in node.items():
        if isinstance(child, dict):
            inner = _pruned(child, keep)
            if inner:
                result[name] = inner
        elif keep(child):
            result[name] = child
    return result


def _arrow(node: Tree, leaf: Callable[[DataType], "pa.DataType"]) -> "pa.DataType":
    import pyarrow as pa

    return pa.struct([(n, _arrow(c, leaf) if isinstance(c, dict) else leaf(c)) for n, c in node.items()])


def _raw_type(data_type: DataType) -> "pa.DataType":
    """The type of a bound in the JSON parser, before `_converted`."""
    import pyarrow as pa

    assert isinstance(data_type, PrimitiveType)
    if data_type.is_integral:
        return pa.int64()
    if data_type.is_floating:
        return pa.float64()
    return arrow_type(data_type) if data_type.decimal else pa.string()


def struct_type(columns: Tree) -> "pa.DataType":
    """The Arrow type of parsed statistics of these columns: the checkpoint's `stats_parsed`, plus `tightBounds`."""
    return _struct_type(columns, arrow_type)


def _struct_type(columns: Tree, bound_type: Callable[[DataType], "pa.DataType"]) -> "pa.DataType":
    """`struct_type` with another type for the bounds of each column."""
    import pyarrow as pa

    bounds = _pruned(columns, has_min_max)
    fields = [("numRecords", pa.int64()), ("tightBounds", pa.bool_())]
    if bounds:
        fields += [("minValues", _arrow(bounds, bound_type)), ("maxValues", _arrow(bounds, bound_type))]
    if columns:
        fields.append(("nullCount", _arrow(columns, lambda _: pa.int64())))
    return pa.struct(fields)


def parse_json(texts: "pa.Array | pa.ChunkedArray", columns: Tree) -> "pa.ChunkedArray":
    """The JSON texts of `add.stats` as a column of `struct_type(columns)`.

    A text that is null or isn't a JSON object becomes null; a value of a wrong type becomes null, and values that
    aren't in `columns` are ignored. The order of rows is kept.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    bounds = _pruned(columns, has_min_max)
    raw_type, target = _struct_type(columns, _raw_type), struct_type(columns)
    chunks: list[pa.Array] = []
    pieces = texts.chunks if isinstance(texts, pa.ChunkedArray) else [texts]
    for piece in pieces:
        whole = piece.cast(pa.large_string())
        for part in _by_size(whole):
            start = pc.starts_with(part, "{")
            is_object = pc.fill_null(pc.and_(start, pc.ends_with(part, "}")), False)
            if not pc.all(pc.or_(is_object, pc.is_null(part))).as_py():
                is_object = pc.fill_null(pc.match_substring_regex(part, r"(?s)^\s*\{.*\}\s*$"), False)
            parsed = _parse(pc.if_else(is_object, part, pa.scalar("{}", part.type)), raw_type)
            typed = _converted(parsed, {"minValues": bounds, "maxValues": bounds})
            chunks.append(_masked(typed.cast(target), pc.invert(is_object)))
    return pa.chunked_array(chunks, target)


def _by_size(texts: "pa.Array") -> list["pa.Array"]:
    import pyarrow.compute as pc

    if len(texts) == 0:
        return []
    total = pc.sum(pc.binary_length(texts)).as_py() or 0
    rows = max(1, len(texts) * _CHUNK_BYTES // max(total, 1))
    return [texts.slice(at, rows) for at in range(0, len(texts), rows)]


def _masked(array: "pa.StructArray", mask: "pa.BooleanArray") -> "pa.StructArray":
    import pyarrow as pa

    fields = [array.type.field(i) for i in range(array.type.num_fields)]
    return pa.StructArray.from_arrays(array.flatten(), fields=fields, mask=mask)


def _parse(texts: "pa.Array", raw_type: "pa.DataType") -> "pa.StructArray":
    import pyarrow.compute as pc

    parsed = _parse_block(texts, raw_type)
    if parsed is None and pc.any(pc.match_substring(texts, "\n")).as_py():
        texts = pc.replace_substring(texts, "\n", " ")  # a JSON string can't contain one
        parsed = _parse_block(texts, raw_type)
    if parsed is None:
        # Spark writes NaN as text: unknown. Text that only looks like it is part of a bound, which must not change.
        replaced = pc.replace_substring_regex(texts, _NON_FINITE, r":null\1")
        strings = pc.replace_substring_regex(texts, _STRING, '""')
        outside = pc.count_substring_regex(strings, _BARE_NON_FINITE)
        safe = pc.equal(pc.count_substring_regex(texts, _BARE_NON_FINITE), outside)
        parsed = _parse_block(pc.if_else(safe, replaced, texts), raw_type)
    return parsed if parsed is not None else _bisect(texts, raw_type)


def _bisect(texts: "pa.Array", raw_type: "pa.DataType") -> "pa.StructArray":
    """Parse halves of a block separately until the invalid texts are isolated: one of them fails a whole block."""
    import pyarrow as pa

    parsed = _parse_block(texts, raw_type)
    if parsed is not None:
        return parsed
    if len(texts) <= 16:
        return pa.array([_parse_one(text, raw_type) for text in texts.to_pylist()], raw_type)
    half = len(texts) // 2
    return pa.concat_arrays([_bisect(texts.slice(0, half), raw_type), _bisect(texts.slice(half), raw_type)])


def _parse_block(texts: "pa.Array", raw_type: "pa.DataType") -> "pa.StructArray | None":
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.json as pj

    if len(texts) == 0:
        return pa.array([], raw_type)
    longest = pc.max(pc.binary_length(texts)).as_py()
    # Each text with a line feed: the data buffer of the array is the content of a file.
    lines = pc.binary_join_element_wise(texts, pa.scalar("", texts.type), pa.scalar("\n", texts.type))
    joined = lines.buffers()[2].slice(0, pc.sum(pc.binary_length(lines)).as_py())
    schema = pa.schema([raw_type.field(i) for i in range(raw_type.num_fields)])
    try:
        table = pj.read_json(
            pa.BufferReader(joined),
            read_options=pj.ReadOptions(use_threads=joined.size > 1 << 20, block_size=max(4 << 20, longest + 2)),
            parse_options=pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
        )
    except pa.ArrowInvalid:
        return None
    if table.num_rows != len(texts):
        return None
    arrays = [table[name].combine_chunks() for name in schema.names]
    return pa.StructArray.from_arrays(arrays, fields=list(schema))


def _parse_one(text: str, raw_type: "pa.DataType") -> Any:
    try:
        value = json.loads(text, parse_float=_number, parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        return None
    return _fit(value, raw_type)


def _number(text: str) -> Decimal | None:
    """A number; None if its exponent is beyond those of all types, which would make an integer of any size."""
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    return number if number.is_finite() and abs(number.adjusted()) <= _LARGEST_EXPONENT else None


def _fit(value: Any, target: "pa.DataType") -> Any:
    """The part of a JSON `value` that fits the type; None for what doesn't fit."""
    import pyarrow as pa

    if pa.types.is_struct(target):
        if not isinstance(value, dict):
            return None
        return {
            field.name: _fit(value.get(field.name), field.type)
            for field in (target.field(i) for i in range(target.num_fields))
        }
    if value is None or isinstance(value, dict | list):
        return None
    try:
        if pa.types.is_string(target) or pa.types.is_boolean(target):
            expected_type: type = str if pa.types.is_string(target) else bool
            if isinstance(value, expected_type):
                return pa.scalar(value, target).as_py()
            return None
        if isinstance(value, bool):
            return None
        number = _number(str(value))  # also from text, as the vectorised parser does
        if number is None:
            return None
        if pa.types.is_integer(target):
            if isinstance(value, Decimal) and abs(number) >= _ROUNDED_FROM:
                return None
            return pa.scalar(int(number), target).as_py() if number == number.to_integral_value() else None
        if pa.types.is_floating(target):
            return float(number) if math.isfinite(float(number)) else None
        return pa.scalar(number, target).as_py()
    except (ArithmeticError, ValueError, OverflowError, UnicodeError, pa.ArrowInvalid):
        return None


def _converted(array: "pa.Array", spec: "Mapping[str, Tree | DataType]") -> "pa.StructArray":
    """The raw struct with each leaf converted to its type; names that aren't in `spec` are kept."""
    import pyarrow as pa

    arrays, fields = [], []
    for i, child in enumerate(array.flatten()):
        name = array.type.field(i).name
        inner = spec.get(name)
        if isinstance(inner, dict):
            child = _converted(child, inner)
        elif isinstance(inner, PrimitiveType):
            child = _leaf(child, inner)
        arrays.append(child)
        fields.append(pa.field(name, child.type))
    if not fields:
        return array
    return pa.StructArray.from_arrays(arrays, fields=fields, mask=array.is_null())


def _leaf(array: "pa.Array", data_type: PrimitiveType) -> "pa.Array":
    import pyarrow as pa

    target = arrow_type(data_type)
    if array.type == target:
        return array
    try:
        if not pa.types.is_string(array.type):
            return array.cast(target)
    except pa.ArrowInvalid:
        return _one_by_one(array, lambda value: pa.scalar(value, target).as_py(), target)
    if data_type.name == "date":
        return _texts(array, r"^\d{4}-\d{2}-\d{2}$", parse_date, pa.int32(), target)
    if data_type.name == "timestamp":
        pattern = r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,6})?(Z|[+-]\d{2}:(00|15|30|45))$"
        return _texts(array, pattern, _zoned, pa.int64(), target)
    pattern = r"^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(\.\d{1,6})?$"
    return _texts(array, pattern, lambda text: parse_timestamp(text.rstrip("Zz"), None), pa.int64(), target)


def _zoned(text: str) -> int:
    match = re.search(r"(?:Z|UTC|[+-]\d{2}:?(\d{2}))$", text)
    if match is None:
        raise ValueError("a bound without a time zone can't be used")
    if match[1] not in (None, "00", "15", "30", "45"):
        # A historical local mean time such as -07:52:58: Spark writes it without its seconds.
        raise ValueError("the offset was probably truncated")
    return parse_timestamp(text, None)


def _texts(
    array: "pa.Array", pattern: str, parse: Callable[[str], int], physical: "pa.DataType", target: "pa.DataType"
) -> "pa.Array":
    import pyarrow as pa
    import pyarrow.compute as pc

    if pc.all(pc.fill_null(pc.match_substring_regex(array, pattern), True)).as_py():
        try:
            return array.cast(target)
        except pa.ArrowInvalid:
            pass  # an invalid date: handled below
    return _one_by_one(array, parse, physical).cast(target)


def _one_by_one(array: "pa.Array", convert: Callable[[Any], Any], target: "pa.DataType") -> "pa.Array":
    import pyarrow as pa

    def tolerant(value: Any) -> Any:
        try:
            return None if value is None else pa.scalar(convert(value), target).as_py()
        except (ValueError, OverflowError, pa.ArrowInvalid):
            return None

    return pa.array([tolerant(value) for value in array.to_pylist()], target)
