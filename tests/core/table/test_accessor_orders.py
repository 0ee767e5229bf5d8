"""A snapshot answers the same whatever it was asked before, over every kind of checkpoint and form of statistics."""

import itertools
from collections.abc import Callable
from functools import cache
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import Corpus
from support.log_builder import LogBuilder, add, metadata, remove
from tablelog.core import DeltaLog
from tablelog.core.protocol.actions import DeletionVectorDescriptor, Protocol
from tablelog.core.skipping.predicates import Compare
from tablelog.core.table.snapshot import Snapshot

KINDS = ("classic", "parts", "v2")
STATISTICS = ("json", "struct", "both", "none")
TABLE_STATISTICS = {
    "json": {"delta.checkpoint.writeStatsAsJson": "true", "delta.checkpoint.writeStatsAsStruct": "false"},
    "struct": {"delta.checkpoint.writeStatsAsJson": "false", "delta.checkpoint.writeStatsAsStruct": "true"},
    "both": {"delta.checkpoint.writeStatsAsJson": "true", "delta.checkpoint.writeStatsAsStruct": "true"},
    "none": {"delta.checkpoint.writeStatsAsJson": "false", "delta.checkpoint.writeStatsAsStruct": "false"},
}
PART_SIZE = "spark.databricks.delta.checkpoint.partSize"
VECTOR = DeletionVectorDescriptor("u", "ab^-aqEH.-t@S}K{vb[*k^", 36, 2, 4)


def statistics(number: int) -> str:
    return (
        f'{{"numRecords":{number + 3},"minValues":{{"id":{number}}},"maxValues":{{"id":{number + 2}}},'
        '"nullCount":{"id":0}}'
    )


@cache
def table(kind: str, form: str) -> LogBuilder:
    """Files with and without statistics and deletion vectors, in a checkpoint and in the commits after it."""
    features = frozenset({"deletionVectors", *(["v2Checkpoint"] if kind == "v2" else [])})
    properties = TABLE_STATISTICS[form] | ({"delta.checkpointPolicy": "v2"} if kind == "v2" else {})
    builder = LogBuilder().commit(Protocol(3, 7, features, features), metadata(properties))
    for number in range(7):
        builder.commit(
            add(
                f"{number}.parquet",
                size=number + 1,
                stats=None if number == 3 else statistics(number),
                deletion_vector=VECTOR if number == 2 else None,
            )
        )
    builder.commit(remove("0.parquet", size=1))
    builder.log(conf={} if kind == "classic" else {PART_SIZE: "3"}).checkpoint()
    builder.commit(add("new.parquet", stats=statistics(50)), remove("1.parquet", size=2))
    return builder


def rows(column: Any) -> list[Any]:
    return column.to_pylist()  # type: ignore[no-any-return]


def texts(table: pa.Table) -> list[Any]:
    return [row | {"partitionValues": None, "tags": None} for row in table.to_pylist()]


ACCESSORS: dict[str, Callable[[Snapshot], Any]] = {
    "files": lambda s: rows(s.files.column("path")),
    "stats": lambda s: rows(s.files_with("stats").column("stats")),
    "stats_parsed": lambda s: rows(s.files_with("stats_parsed").column("stats_parsed")),
    "stats_text": lambda s: rows(s.files_with_stats_text().column("stats")),
    "num_records": lambda s: rows(s.num_records()),
    "add_files": lambda s: s.add_files(),
    "some_files": lambda s: s.add_files([4, 1]),
    "listed_files": lambda s: s.listed_files(),
    "prune": lambda s: rows(s.prune_mask(Compare("<", ("id",), pa.scalar(4)), time_zone="UTC")),
    "pieces": lambda s: [rows(p.column("stats")) for p in s.pieces(with_stats=True)],
    "vectors": lambda s: rows(s.files.column("deletionVector")),
    "keys": lambda s: [s.file_key(row) for row in range(s.files.num_rows)],
    "tombstones": lambda s: texts(s.tombstones),
    "totals": lambda s: (s.num_files, s.size_in_bytes),
    "verify": lambda s: s.verify(),
}


@cache
def expected(kind: str, form: str, name: str) -> Any:
    return ACCESSORS[name](table(kind, form).log().snapshot())


OF_STATISTICS = ("stats", "stats_parsed", "stats_text", "num_records", "add_files", "prune")


@pytest.mark.parametrize("form", STATISTICS)
@pytest.mark.thorough
def test_every_pair_of_accessors_that_read_statistics(form: str) -> None:
    for order in itertools.permutations(OF_STATISTICS, 2):
        snapshot = table("classic", form).log().snapshot()
        assert snapshot.base_version == 8
        for name in order:
            assert ACCESSORS[name](snapshot) == expected("classic", form, name), (order, name)


@pytest.mark.parametrize("form", STATISTICS)
@settings(max_examples=6)
@given(kind=st.sampled_from(KINDS), order=st.permutations(sorted(ACCESSORS)))
@pytest.mark.thorough
def test_any_order_of_accessors(form: str, kind: str, order: list[str]) -> None:
    snapshot = table(kind, form).log().snapshot()
    for name in order:
        assert ACCESSORS[name](snapshot) == expected(kind, form, name), (kind, order, name)


@pytest.mark.parametrize("kind", KINDS)
def test_what_the_forms_say_is_the_same(kind: str) -> None:
    """The statistics that a checkpoint holds, in whichever form, are those of the commits."""
    numbers = {f"{number}.parquet": number for number in (2, 4, 5, 6)} | {"3.parquet": None, "new.parquet": 50}
    for form in ("json", "struct", "both", "none"):
        paths = expected(kind, form, "files")
        known = {path: number for path, number in numbers.items() if form != "none" or path == "new.parquet"}
        texts = {path: statistics(number) for path, number in known.items() if number is not None}
        assert {file.path: file.stats for file in expected(kind, form, "add_files")} == {
            path: texts.get(path) for path in numbers
        }
        records = dict(zip(paths, expected(kind, form, "num_records"), strict=True))
        assert records == {path: numbers[path] + 3 if path in texts else None for path in numbers}  # type: ignore[operator]
        kept = dict(zip(paths, expected(kind, form, "prune"), strict=True))
        assert kept == {path: path not in texts or path == "2.parquet" for path in numbers}


def test_a_golden_table_with_vectors_and_statistics_as_json(golden: Corpus) -> None:
    path = str(golden("dv-partitioned-with-checkpoint") / "delta")
    wanted = {name: ACCESSORS[name](DeltaLog.for_path(path).snapshot()) for name in ("num_records", "add_files")}
    assert None not in wanted["num_records"]
    for order in itertools.permutations(wanted):
        snapshot = DeltaLog.for_path(path).snapshot()
        assert {name: ACCESSORS[name](snapshot) for name in order} == wanted
    assert sum(file.stats is not None for file in wanted["add_files"]) == len(wanted["num_records"])
