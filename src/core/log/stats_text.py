"""Stats as JSON text of files whose checkpoint has them only as a struct (PROTOCOL.md, "Per-file Statistics")."""

import base64
import json
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from math import isfinite
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


def stats_texts(texts: pa.ChunkedArray, parsed: pa.ChunkedArray) -> pa.ChunkedArray:
    """`texts`, with those that are null made from the struct of the same row where that has one."""
    if not texts.null_count or not pa.types.is_struct(parsed.type):
        return texts
    mask = pa.concat_arrays([pa.array([], pa.bool_()), *pc.and_(pc.is_null(texts), pc.is_valid(parsed)).chunks])
    structs = parsed.filter(mask).to_pylist()
    if not structs:
        return texts
    made = [stats_text(struct) if struct.get("numRecords") is not None else None for struct in structs]
    chunks, row, at = [], 0, 0
    for chunk in texts.chunks:
        own = mask.slice(row, len(chunk))
        count = pc.sum(own).as_py() or 0
        chunks.append(pc.replace_with_mask(chunk, own, pa.array(made[at : at + count], pa.string())))
        row, at = row + len(chunk), at + count
    return pa.chunked_array(chunks, texts.type)


def stats_text(struct: Mapping[str, Any]) -> str:
    """The JSON text of one file's stats; null fields are left out, as Delta does."""
    items = ((name, value) for name, value in struct.items() if _told(value))
    return "{" + ",".join(f"{json.dumps(name, ensure_ascii=False)}:{_text(value)}" for name, value in items) + "}"


def _told(value: Any) -> bool:
    return value is not None and not (isinstance(value, float) and not isfinite(value))


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        return stats_text(value)
    if isinstance(value, datetime):
        # Milliseconds, as Delta's stats have them.
        text = value.strftime("%Y-%m-%dT%H:%M:%S") + f".{value.microsecond // 1000:03d}"
        return f'"{text}"' if value.tzinfo is None else f'"{text}Z"'
    if isinstance(value, date):
        return f'"{value.isoformat()}"'
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, bytes):
        return f'"{base64.b64encode(value).decode()}"'
    return json.dumps(value, ensure_ascii=False)
