"""The rules of a table read from its metadata, and where the high-water marks of identity columns go."""

import json
from dataclasses import replace

import pytest

from support.memory_table import new_log
from tablelog.core.protocol.actions import AddFile, Metadata, Protocol
from tablelog.core.protocol.codec import serialise
from tablelog.core.protocol.rules import Check, Identity, Rules, identity_of, moved_marks, without_leftovers
from tablelog.core.protocol.schema import LONG, STRING, StructField, StructType, indexed_leaves, to_json
from tablelog.core.txn.operation import Operation
from tablelog.errors import ConstraintViolationError, CorruptLogError

INVARIANT = {"delta.invariants": json.dumps({"expression": {"expression": "a > 0"}})}
GENERATED = {"delta.generationExpression": "a + 1"}
SCHEMA = StructType((StructField("a", LONG, True, INVARIANT), StructField("g", LONG, True, GENERATED)))


def identity(start: int = 1, step: int = 1, **more: object) -> dict[str, object]:
    keys = {"start": start, "step": step, "allowExplicitInsert": False, **more}
    return {f"delta.identity.{key}": value for key, value in keys.items()}


def rules(protocol: Protocol, **configuration: str) -> Rules:
    columns = StructType((*SCHEMA, StructField("i", LONG, True, identity(highWaterMark=9)), StructField("d", STRING)))
    found = {key.replace("_", "."): value for key, value in configuration.items()}
    return Rules.of(protocol, Metadata("id", to_json(columns), configuration=found))


def test_rules_are_those_that_the_protocol_enforces() -> None:
    found = rules(Protocol(1, 6), delta_constraints_c="a < 9", Delta_Constraints_D="true")
    assert found.checks == (
        Check("the CHECK constraint c", "a < 9"),
        Check("the CHECK constraint D", "true"),
        Check("the invariant of the column a", "a > 0"),
    )
    assert found.generated == {"g": "a + 1"}
    assert found.identity == {"i": Identity(1, 1, 9, False)}
    old = rules(Protocol(1, 2), delta_constraints_c="a < 9")
    assert [check.sql for check in old.checks] == ["a > 0"]
    assert (old.generated, old.identity) == ({}, {})
    listed = rules(Protocol(1, 7, None, frozenset({"generatedColumns"})), delta_constraints_c="a < 9")
    assert listed.generated
    assert not listed.identity


@pytest.mark.parametrize("damaged", [{"delta.identity.start": 1}, identity(step=0), identity(start="x")])  # type: ignore[arg-type]
def test_a_damaged_identity_column_is_named(damaged: dict[str, object]) -> None:
    with pytest.raises(CorruptLogError, match="the identity column i"):
        identity_of(StructField("i", LONG, True, damaged))


@pytest.mark.parametrize(
    ("column", "first"),
    [
        (Identity(1, 1), 1),
        (Identity(10, 3, 16), 19),
        (Identity(10, 3, 17), 22),  # another writer left a mark that is no value of the column
        (Identity(-5, -2, -9), -11),
        (Identity(0, 5, 0), 5),
    ],
)
def test_the_next_values_follow_the_mark(column: Identity, first: int) -> None:
    assert column.first == first


def test_a_column_that_is_used_up_says_so() -> None:
    with pytest.raises(ConstraintViolationError, match="no more values"):
        _ = Identity(1, 1, 2**63 - 1).first
    assert Identity(1, 1, 2**63 - 2).first == 2**63 - 1


@pytest.mark.parametrize(
    ("column", "furthest", "mark"),
    [
        (Identity(1, 1), 7, 7),
        (Identity(1, 1, 9), 7, None),
        (Identity(10, 3), 12, 13),
        (Identity(10, 3), 9, None),  # before the start: the column still begins there
        (Identity(10, -3), 5, 4),
        (Identity(10, -3, 7), 8, None),
    ],
)
def test_the_mark_moves_in_the_direction_of_the_step_only(column: Identity, furthest: int, mark: int | None) -> None:
    assert column.moved(furthest) == mark


def test_marks_are_told_by_the_statistics_of_the_files() -> None:
    down = {**identity(0, -1), "delta.columnMapping.physicalName": "col-1"}
    columns = StructType((StructField("up", LONG, True, identity()), StructField("down", LONG, True, down)))
    stats = [
        {"minValues": {"up": 1, "col-1": -4}, "maxValues": {"up": 5, "col-1": 0}},
        {"minValues": {"up": 2, "col-1": -3}, "maxValues": {"up": 4, "col-1": -1}},
        {"numRecords": 0},
    ]
    adds = [AddFile(f"f{i}", {}, 1, 1, True, stats=json.dumps(one)) for i, one in enumerate(stats)]
    moved = moved_marks(columns, ["up", "down"], adds)
    assert [f.metadata["delta.identity.highWaterMark"] for f in moved] == [5, -4]
    assert moved_marks(columns, ["up"], adds).fields[1] == columns.fields[1]
    assert moved_marks(columns, ["up", "down"], []) == columns


def test_statistics_are_kept_of_identity_columns_wherever_they_stand() -> None:
    columns = StructType((*SCHEMA, StructField("i", LONG, True, identity())))
    assert [name for name, _ in indexed_leaves(columns, (), 1)] == [("a",), ("i",)]
    assert [name for name, _ in indexed_leaves(columns, (), 32, [("g",)])] == [("g",), ("i",)]


def test_rules_that_nobody_enforced_are_taken_out_of_changed_metadata() -> None:
    columns = StructType((*SCHEMA, StructField("i", LONG, True, {**identity(), "comment": "kept"})))
    metadata = Metadata("id", to_json(columns))
    assert without_leftovers(metadata, Protocol(1, 6)) == metadata
    bare = StructType((SCHEMA.fields[0], StructField("g", LONG), StructField("i", LONG, True, {"comment": "kept"})))
    assert without_leftovers(metadata, Protocol(1, 2)).schema_string == to_json(bare)
    log = new_log()
    first = log.transaction()
    first.set_metadata(Metadata("id", to_json(StructType((StructField("a", LONG),)))))
    first.commit([], Operation("CREATE TABLE"))
    log.store.write(f"{log.log_path}/{1:020d}.json", serialise([metadata]))  # as a writer that knows no such rules
    second = log.transaction()
    second.set_metadata(replace(metadata, description="new"))
    second.commit([], Operation("SET TBLPROPERTIES"))
    assert log.snapshot().protocol == Protocol(1, 2)
    assert log.snapshot().metadata == replace(metadata, schema_string=to_json(bare), description="new")
