"""Statistics as JSON text, for files from checkpoints with structs only (PROTOCOL.md, "Per-file Statistics")."""

import base64
import json
from collections.abc import Mapping
from decimal import Decimal
from math import isfinite
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..protocol.partition_values import date_text
from .stats_writer import timestamp_bound


def stats_texts(texts: pa.ChunkedArray, parsed: pa.ChunkedArray) -> pa.ChunkedArray:
    """`texts`, with nulls replaced by the JSON of the struct in the same row, if there is one."""
    if not texts.null_count or not pa.types.is_struct(parsed.type):
        return texts
    mask = pa.concat_arrays([pa.array([], pa.bool_()), *pc.and_(pc.is_null(texts), pc.is_valid(parsed)).chunks])
    structs = [struct for chunk in parsed.filter(mask).chunks for struct in _dates_as_text(chunk).to_pylist()]
    if not structs:
        return texts
    new_texts = [stats_text(struct) if struct.get("numRecords") is not None else None for struct in structs]
    chunks, row, start = [], 0, 0
    for chunk in texts.chunks:
        chunk_mask = mask.slice(row, len(chunk))
        count = pc.sum(chunk_mask).as_py() or 0
        chunks.append(pc.replace_with_mask(chunk, chunk_mask, pa.array(new_texts[start : start + count], pa.string())))
        row, start = row + len(chunk), start + count
    return pa.chunked_array(chunks, texts.type)


def _dates_as_text(array: pa.Array) -> pa.Array:
    """The array with dates and times as text, because Python has only the years 1 to 9999."""
    if pa.types.is_struct(array.type):
        fields = [array.type.field(i) for i in range(array.type.num_fields)]
        children = [_dates_as_text(child) for child in array.flatten()]
        if not fields:
            return array
        fields = [pa.field(f.name, child.type) for f, child in zip(fields, children, strict=True)]
        return pa.StructArray.from_arrays(children, fields=fields, mask=array.is_null())
    if pa.types.is_date32(array.type):
        return pa.array(
            [None if days is None else date_text(days) for days in array.cast(pa.int32()).to_pylist()], pa.string()
        )
    if pa.types.is_timestamp(array.type):
        micros = array.cast(pa.timestamp("us", array.type.tz), safe=False).cast(pa.int64()).to_pylist()
        texts = [None if at is None else timestamp_bound(at) for at in micros]
        zone = "" if array.type.tz is None else "Z"
        return pa.array([None if text is None else text + zone for text in texts], pa.string())
    return array


def stats_text(struct: Mapping[str, Any]) -> str:
    """The JSON text of one file's statistics; as in Delta, null fields are left out."""
    items = ((name, value) for name, value in struct.items() if _is_known(value))
    return "{" + ",".join(f"{json.dumps(name, ensure_ascii=False)}:{_text(value)}" for name, value in items) + "}"


def _is_known(value: Any) -> bool:
    return value is not None and not (isinstance(value, float) and not isfinite(value))


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        return stats_text(value)
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, bytes):
        return f'"{base64.b64encode(value).decode()}"'
    return json.dumps(value, ensure_ascii=False)
