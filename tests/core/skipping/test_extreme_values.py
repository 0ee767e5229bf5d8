"""Pruning with values at the ends of their types."""

import json
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from core.skipping.row_oracle import one_file
from tablelog.core.protocol.schema import (
    DATE,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    PrimitiveType,
    StructField,
    StructType,
    arrow_type,
    indexed_leaves,
)
from tablelog.core.skipping import stats
from tablelog.core.skipping.predicates import Compare, In, Predicate
from tablelog.core.skipping.pruning import may_match

ENDS: dict[PrimitiveType, tuple[pa.DataType, list[int]]] = {
    DATE: (pa.int32(), [-(2**31), -719_163, 0, 2_932_897, 2**31 - 1]),
    TIMESTAMP: (pa.int64(), [-(2**63), -(2**63) + 1, -62_135_596_800_000_001, 0, 2**62, 2**63 - 1000, 2**63 - 1]),
    TIMESTAMP_NTZ: (pa.int64(), [-(2**63), -(2**63) + 999, 0, 253_402_300_800_000_000, 2**63 - 1]),
}


@settings(max_examples=150)
@given(
    st.sampled_from(list(ENDS)).flatmap(
        lambda kind: st.tuples(
            st.just(kind),
            st.lists(st.none() | st.sampled_from(ENDS[kind][1]), max_size=3),
            st.lists(st.sampled_from(ENDS[kind][1]), min_size=1, max_size=40),
        )
    ),
    st.sampled_from(["=", "!=", "<", "<=", ">", ">=", "in"]),
    st.sampled_from(["text", "struct"]),
)
def test_no_year_is_too_far(case: Any, op: Any, form: str) -> None:
    kind, held, literals = case
    raw = ENDS[kind][0]
    schema = StructType((StructField("v", kind),))
    data = pa.table({"v": pa.array(held, raw).cast(arrow_type(kind))})
    texts = pa.array([stats.collect(data, indexed_leaves(schema, ()))], pa.string())
    columns: dict[str, Any] = {"partitionValues": pa.array([[]], pa.map_(pa.string(), pa.string()))}
    if form == "text":
        columns["stats"] = texts
    else:
        columns["stats_parsed"] = stats.parse_json(texts, stats.tree([(("v",), kind)])).combine_chunks()
    scalars = tuple(pa.array(literals, raw).cast(arrow_type(kind)))
    predicate: Predicate = In(("v",), scalars) if op == "in" else Compare(op, ("v",), scalars[0])
    first = literals[0]
    holds = {
        "=": lambda v: v == first, "!=": lambda v: v != first, "<": lambda v: v < first, "<=": lambda v: v <= first,
        ">": lambda v: v > first, ">=": lambda v: v >= first, "in": lambda v: v in literals,
    }[op]  # fmt: skip
    kept = may_match(pa.table(columns), predicate, schema, (), time_zone="UTC")[0].as_py()
    assert kept or not any(holds(value) for value in held if value is not None)


@settings(max_examples=150)
@given(
    st.lists(st.sampled_from([b"a", b"b", b"\xff", b"\xc0", b"b\xff", "à".encode(), "\ufffd".encode()]), min_size=1),
    st.sampled_from(["a", "b", "à", "c", "\ufffd"]),
    st.sampled_from(["=", "<", ">", "<=", ">=", "!="]),
    st.booleans(),
)
def test_strings_that_are_no_text(held: list[bytes], literal_text: str, op: Any, foreign: bool) -> None:
    """Spark lets any bytes be a string; other writers put U+FFFD into the statistics for what is no UTF-8."""
    schema = StructType((StructField("s", STRING),))
    if foreign:
        low, high = (bound.decode(errors="replace") for bound in (min(held), max(held)))
        text = json.dumps(
            {"numRecords": len(held), "minValues": {"s": low}, "maxValues": {"s": high}, "nullCount": {"s": 0}}
        )
    else:
        data = pa.table({"s": pa.array(held, pa.binary()).view(pa.string())})
        text = stats.collect(data, indexed_leaves(schema, ()))
    other = literal_text.encode()
    holds = {
        "=": lambda v: v == other, "!=": lambda v: v != other, "<": lambda v: v < other, "<=": lambda v: v <= other,
        ">": lambda v: v > other, ">=": lambda v: v >= other,
    }[op]  # fmt: skip
    predicate = Compare(op, ("s",), pa.scalar(literal_text))
    kept = may_match(one_file(text, schema), predicate, schema, (), time_zone="UTC")[0].as_py()
    assert kept or not any(map(holds, held))
