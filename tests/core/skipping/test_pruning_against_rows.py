"""Generated tables: no file that is pruned has a row that matches."""

import datetime
import json
import math
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from core.skipping.row_oracle import DATA, LEAVES, PARTITIONS, POOLS, SCHEMA, evaluate, literal
from tablelog.core.protocol import partition_values
from tablelog.core.protocol.schema import DOUBLE, STRING, TIMESTAMP, arrow_schema
from tablelog.core.skipping import stats
from tablelog.core.skipping.predicates import (
    And,
    Compare,
    Constant,
    In,
    IsNotNull,
    IsNull,
    Not,
    Or,
    Predicate,
    StartsWith,
)
from tablelog.core.skipping.pruning import may_match


def maybe(values: list[Any]) -> st.SearchStrategy[Any]:
    return st.none() | st.sampled_from(values)


rows = st.fixed_dictionaries(
    {name: maybe(POOLS[(name,)]) for name in ("a", "s", "d", "f", "t", "day", "m", "big", "b")}
    | {"n": st.none() | st.fixed_dictionaries({"x": maybe(POOLS["n", "x"]), "l": st.none() | st.just([1])})}
)
zones = st.sampled_from(["UTC", "America/New_York", "Asia/Kolkata", "Pacific/Apia"])
files = st.lists(
    st.tuples(
        st.fixed_dictionaries(
            {
                "p": maybe(POOLS[("p",)]),
                "q": maybe(POOLS[("q",)]),
                "z": maybe(POOLS[("z",)]),
                "zone named": st.booleans(),
            }
        ),
        st.lists(rows, max_size=3),
        st.sampled_from(["ours", "short strings", "spark", "no NaN seen", "wide", "rounded", "none", "broken"]),
    ),
    min_size=1,
    max_size=4,
)


def statistics(kind: str, held: list[dict[str, Any]]) -> str | None:
    """Statistics of one file as different writers leave them."""
    data = pa.Table.from_pylist(held, schema=arrow_schema(DATA))
    ours = stats.collect(data, LEAVES, prefix=3 if kind == "short strings" else 32)
    if kind == "none":
        return None
    if kind == "broken":
        return ours[: len(ours) // 2]
    value = json.loads(ours, parse_float=Decimal)
    if kind == "wide":
        value["tightBounds"] = False
        value["nullCount"] = {
            name: count if isinstance(count, dict) or count == 0 or count + 1 >= value["numRecords"] else count + 1
            for name, count in value["nullCount"].items()
        }
        value["nullCount"]["n"] = {}
    for name in ("d", "f"):
        numbers = [row[name] for row in held if row[name] is not None and not math.isnan(row[name])]
        if kind == "no NaN seen" and numbers and all(map(math.isfinite, numbers)):
            value.setdefault("maxValues", {})[name] = max(numbers)
        if kind == "spark" and any(row[name] is not None and math.isnan(row[name]) for row in held):
            value.setdefault("maxValues", {})[name] = "NaN"
    text = json.dumps(value, default=lambda number: f"#{number:f}#")
    if kind == "rounded":
        text = json.dumps(value, default=lambda number: f"#{float(number)!r}#")
    return text.replace('"#', "").replace('#"', "")


def text_of(values: dict[str, Any], name: str, zone: str) -> str | None:
    """A partition value as the log spells it; a timestamp names no zone unless `zone named` says so."""
    if name == "z" and values["z"] is not None and not values["zone named"]:
        local: datetime.datetime = values["z"].astimezone(ZoneInfo(zone))
        return local.strftime("%Y-%m-%d %H:%M:%S")
    types = {"p": STRING, "q": DOUBLE, "z": TIMESTAMP}
    return partition_values.serialise_value(values[name], types[name])


def table(generated: list[tuple[dict[str, Any], list[dict[str, Any]], str]], form: str, zone: str) -> pa.Table:
    texts = pa.array([statistics(kind, held) for _, held, kind in generated], pa.string())
    partitions = [[(name, text_of(values, name, zone)) for name in PARTITIONS] for values, _, _ in generated]
    columns = {"partitionValues": pa.array(partitions, pa.map_(pa.string(), pa.string()))}
    if form in ("text", "both"):
        columns["stats"] = texts
    if form in ("struct", "both"):
        tree = stats.tree([(name, f.data_type) for name, f in LEAVES])
        columns["stats_parsed"] = stats.parse_json(texts, tree).combine_chunks()
    return pa.table(columns)


def compares() -> st.SearchStrategy[Predicate]:
    return st.sampled_from(sorted(POOLS)).flatmap(
        lambda column: st.one_of(
            st.builds(
                Compare,
                st.sampled_from(["=", "!=", "<", "<=", ">", ">=", "<=>"]),
                st.just(column),
                maybe(POOLS[column]).map(lambda value: literal(column, value)),
            ),
            st.builds(
                In,
                st.just(column),
                st.lists(maybe(POOLS[column]), max_size=3).map(
                    lambda values: tuple(literal(column, value) for value in values)
                ),
            ),
            st.builds(IsNull, st.just(column)),
            st.builds(IsNotNull, st.just(column)),
        )
    )


starts = st.builds(StartsWith, st.sampled_from([("s",), ("p",)]), st.sampled_from(["", "a", "abc", "abcd", "é", "z"]))
leaf = compares() | starts | st.builds(Constant, st.sampled_from([True, False, None]))
predicates = st.recursive(
    leaf,
    lambda inner: (
        st.builds(And, st.lists(inner, max_size=3).map(tuple))
        | st.builds(Or, st.lists(inner, max_size=3).map(tuple))
        | st.builds(Not, inner)
    ),
    max_leaves=5,
)


@settings(max_examples=100)
@given(files, predicates, st.sampled_from(["text", "struct", "both", "neither"]), zones)
def test_a_pruned_file_holds_no_row_that_matches(generated: Any, predicate: Predicate, form: str, zone: str) -> None:
    kept = may_match(table(generated, form, zone), predicate, SCHEMA, PARTITIONS, time_zone=zone).to_pylist()
    for keep, (values, held, kind) in zip(kept, generated, strict=True):
        # The log can't tell the empty string from null.
        values = {"p": values["p"] or None, "q": values["q"], "z": values["z"]}
        matching = [row for row in held if evaluate(predicate, values | row) is True]
        assert keep or not matching, (kind, statistics(kind, held), matching)


@settings(max_examples=120)
@given(files, predicates, zones)
def test_partition_predicates_are_decided_exactly(generated: Any, predicate: Predicate, zone: str) -> None:
    def only_partitions(node: Predicate) -> Predicate:
        match node:
            case And(children):
                return And(tuple(only_partitions(child) for child in children))
            case Or(children):
                return Or(tuple(only_partitions(child) for child in children))
            case Not(child):
                return Not(only_partitions(child))
            case Constant():
                return node
            case _:
                return node if node.column[0] in PARTITIONS else Constant(None)

    chosen = only_partitions(predicate)
    files = table(generated, "neither", zone)
    found = may_match(files, chosen, SCHEMA, PARTITIONS, use_stats=False, time_zone=zone).to_pylist()
    rows = [{"p": values["p"] or None, "q": values["q"], "z": values["z"]} for values, _, _ in generated]
    expected = [evaluate(chosen, row) is True for row in rows]
    assert found == expected
