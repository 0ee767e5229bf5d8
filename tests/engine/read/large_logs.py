"""Logs with a checkpoint and commits after it, drawn by Hypothesis: what their readers have in common."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from support.log_builder import LogBuilder, metadata, remove
from support.log_builder import add as add_file
from tablelog.core import Protocol
from tablelog.core.log_maintenance import checkpoint_rows
from tablelog.core.protocol.actions import Action, DeletionVectorDescriptor
from tablelog.logstore import LocalLogStore
from tablelog.settings.declarations import CHECKPOINT_PART_SIZE

SCHEMA = (
    '{"type":"struct","fields":['
    '{"name":"p","type":"string","nullable":true,"metadata":{}},'
    '{"name":"a","type":"long","nullable":true,"metadata":{}},'
    '{"name":"x","type":"double","nullable":true,"metadata":{}}]}'
)


bounds = st.none() | st.tuples(st.integers(0, 9), st.integers(0, 5), st.sampled_from([0, 1, 3]))
numbers = st.integers(0, 30)
changes = st.lists(
    st.tuples(st.sampled_from(["add", "add", "add", "remove", "mark"]), numbers, st.sampled_from("abc"), bounds),
    max_size=12,
)
V2_KINDS = ("sidecars", "sidecars with texts")
KINDS = st.sampled_from(["classic", "structs", "parts", *V2_KINDS])


def actions_of(drawn: list[tuple[str, int, str, Any]], live: dict[int, Action]) -> list[Action]:
    """Commits' worth of changes; a path with a character to escape, statistics that may be missing, and vectors."""
    found: dict[int, list[Action]] = {}
    for kind, number, value, told in drawn:
        if number in found or (kind != "add" and number not in live) or (kind == "add" and number in live):
            continue
        path = f"p={value}/é%20{number}.parquet"
        if kind == "add":
            stats = None
            if told is not None:
                low, more, nulls = told
                ends = f'{{"a":{low},"x":{low}.5}}', f'{{"a":{low + more},"x":{low + more}.5}}'
                counts = f'{{"a":{nulls},"x":0}}'
                stats = f'{{"numRecords":3,"minValues":{ends[0]},"maxValues":{ends[1]},"nullCount":{counts}}}'
            live[number] = add_file(path, size=number, partition_values={"p": value}, stats=stats)
            found[number] = [live[number]]
            continue
        before: Any = live.pop(number)
        gone = remove(before.path, deletion_vector=before.deletion_vector)
        found[number] = [gone]
        if kind == "mark":
            vector = DeletionVectorDescriptor("u", "ab^-aqEH.-t@S}K{vb[*k^", 36, number + 1, number)
            if before.deletion_vector is None:
                live[number] = add_file(
                    before.path,
                    size=number,
                    partition_values=before.partition_values,
                    stats=before.stats,
                    deletion_vector=vector,
                )
                found[number].append(live[number])
    return [action for actions in found.values() for action in actions]


def made(root: Path, before: Any, after: Any, kind: str, live: dict[int, Action]) -> LogBuilder:
    """A log with a checkpoint of several row groups after `before`, and two commits with `after`."""
    features = frozenset({"deletionVectors", *(["v2Checkpoint"] if kind in V2_KINDS else [])})
    configuration = {"delta.checkpointPolicy": "v2"} if kind in V2_KINDS else {}
    if kind in ("structs", "sidecars"):
        configuration["delta.checkpoint.writeStatsAsStruct"] = "true"
        configuration["delta.checkpoint.writeStatsAsJson"] = "false"
    builder = LogBuilder(LocalLogStore(), str(root / "a table"))
    described = metadata(configuration, schema=SCHEMA, partition_columns=("p",), table_id="t")
    builder.commit(Protocol(3, 7, features, features), described, *actions_of(before, live))
    sizes = {CHECKPOINT_PART_SIZE.key: "3"} if kind in ("parts", *V2_KINDS) else {}
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(checkpoint_rows, "PIECE_ROWS", 2)  # several row groups
        builder.log(conf=sizes).checkpoint()
    for some in (after[:6], after[6:]):
        builder.commit(*actions_of(some, live))
    return builder
