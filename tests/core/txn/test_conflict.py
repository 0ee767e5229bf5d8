"""Each cell of the conflict matrix, and Delta's fourteen scenarios, against the pure function."""

import datetime
from dataclasses import dataclass, field, replace
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tablelog.core.protocol.actions import (
    Action,
    AddCDCFile,
    AddFile,
    CommitInfo,
    DeletionVectorDescriptor,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
)
from tablelog.core.skipping.predicates import Compare, Opaque, Or, Predicate
from tablelog.core.txn.conflict import (
    IsolationLevel,
    ReadPredicate,
    ReadSet,
    Staged,
    Winner,
    check,
    level_for,
    only_adds,
)
from tablelog.errors import (
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    ConcurrentTransactionException,
    DeltaConcurrentModificationException,
    MetadataChangedException,
    ProtocolChangedException,
)

S, W, SI = IsolationLevel.SERIALIZABLE, IsolationLevel.WRITE_SERIALIZABLE, IsolationLevel.SNAPSHOT
SCHEMA = (
    '{"type":"struct","fields":['
    '{"name":"x","type":"integer","nullable":true,"metadata":{}},'
    '{"name":"v","type":"long","nullable":true,"metadata":{}}]}'
)
PARTITIONED = Metadata("id", SCHEMA, ("x",))
PLAIN = Metadata("id", SCHEMA)
V2, V3 = Protocol(1, 2), Protocol(1, 3)
FEATURES = Protocol(1, 7, None, frozenset({"appendOnly", "invariants", "domainMetadata"}))

Conflict = type[DeltaConcurrentModificationException]


def add(path: str, x: int | None = None, *, data_change: bool = True, table: Metadata = PARTITIONED) -> AddFile:
    values = {"x": None if x is None else str(x)} if table.partition_columns else {}
    return AddFile(path, values, 1, 1, data_change)


def remove(path: str, *, data_change: bool = True, dv: str | None = None) -> RemoveFile:
    vector = DeletionVectorDescriptor("u", dv, 1, 1) if dv else None
    return RemoveFile(path, 4, data_change, deletion_vector=vector)


def x_is(value: int) -> Predicate:
    return Compare("=", ("x",), pa.scalar(value, pa.int32()))


def by(*predicates: Predicate, time_zone: str = "UTC") -> tuple[ReadPredicate, ...]:
    return tuple(ReadPredicate(one, time_zone) for one in predicates)


def files(*paths: str) -> pa.Table:
    return pa.table({"path": list(paths)})


def staged(
    *actions: Action, reads: ReadSet, table: Metadata = PARTITIONED, protocol: Protocol = V2, read_version: int = 4
) -> Staged:
    changed = next((a for a in actions if isinstance(a, Metadata)), table)
    new_protocol = next((a for a in actions if isinstance(a, Protocol)), protocol)
    blind = not reads.depends_on_files and only_adds(actions)
    return Staged("file:///t", actions, changed, new_protocol, table, read_version, blind)


def winner(*actions: Action, blind: bool | None = False, operation: str = "WRITE") -> Winner:
    info = CommitInfo(operation=operation, is_blind_append=blind)
    return Winner.of(5, (info, *actions))


def verdict(mine: Staged, reads: ReadSet, other: Winner, level: IsolationLevel) -> Conflict | None:
    try:
        rebased = check(reads, mine, other, level)
    except DeltaConcurrentModificationException as error:
        conflict = error
    else:
        assert rebased.actions is mine.actions
        return None
    for part in ("file:///t", "version 5 (WRITE)", "nothing was committed"):
        assert part in str(conflict)
    return type(conflict)


# --- the fourteen scenarios of Delta's OptimisticTransactionSuite -------------------------------------------------


@dataclass
class Scenario:
    name: str
    concurrent: list[Action]
    mine: list[Action]
    reads: ReadSet = field(default_factory=ReadSet)
    table: Metadata = PLAIN
    conflict: Conflict | None = None
    changes_data: bool = True


SCENARIOS = [
    Scenario("append / append", [add("a", table=PLAIN)], [add("b", table=PLAIN)]),
    Scenario("disjoint txns", [SetTransaction("t2", 0, 1234)], [], ReadSet(app_ids=frozenset({"t1"}))),
    Scenario("disjoint delete / read", [remove("a")], [], ReadSet(predicates=by(x_is(1))), PARTITIONED),
    Scenario("disjoint add / read", [add("a", 2)], [], ReadSet(predicates=by(x_is(1))), PARTITIONED),
    Scenario("delete / delete", [remove("a")], [remove("a")], conflict=ConcurrentDeleteDeleteException),
    Scenario(
        "add / read + write", [add("a", 1)], [add("b", 1)], ReadSet(predicates=by(x_is(1))), PARTITIONED,
        ConcurrentAppendException,
    ),
    Scenario("add / read + no write", [add("a", 1)], [], ReadSet(predicates=by(x_is(1))), PARTITIONED),
    Scenario(
        "add in part=2 / read from part=1,2 and write to part=1", [add("a", 2)], [add("b", 1)],
        ReadSet(predicates=by(x_is(1), x_is(2))), PARTITIONED, ConcurrentAppendException,
    ),
    Scenario(
        "delete / read", [remove("a")], [], ReadSet(predicates=by(x_is(1)), files=(files("a"),)), PARTITIONED,
        ConcurrentDeleteReadException,
    ),
    Scenario("schema change", [Metadata("other", "")], [], conflict=MetadataChangedException),
    Scenario(
        "conflicting txns", [SetTransaction("t1", 0, 1234)], [], ReadSet(app_ids=frozenset({"t1"})),
        conflict=ConcurrentTransactionException,
    ),
    Scenario("upgrade / upgrade", [V3], [V3], conflict=ProtocolChangedException),
    Scenario(
        "taint whole table", [add("b", 3)], [add("c", 4)],
        ReadSet(predicates=by(x_is(1)), whole_table=True), PARTITIONED, ConcurrentAppendException,
    ),
    Scenario(
        "taint whole table + concurrent remove", [remove("a")], [add("b", table=PLAIN)], ReadSet(whole_table=True),
        conflict=ConcurrentDeleteReadException,
    ),
]  # fmt: skip


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_scenarios_of_delta(scenario: Scenario) -> None:
    level = level_for(scenario.mine, S, changes_data=scenario.changes_data)
    mine = staged(*scenario.mine, reads=scenario.reads, table=scenario.table)
    assert verdict(mine, scenario.reads, winner(*scenario.concurrent), level) is scenario.conflict


@pytest.mark.parametrize(
    ("partition", "expected"),
    [({"x": "1"}, ConcurrentDeleteReadException), ({"x": "2"}, None), (None, ConcurrentDeleteReadException)],
)
@pytest.mark.parametrize("level", IsolationLevel)
def test_a_removed_file_of_a_partition_of_which_every_file_was_read(
    partition: dict[str, str] | None, expected: Conflict | None, level: IsolationLevel
) -> None:
    """A `remove` without partition values may be of any partition."""
    reads = ReadSet(predicates=(ReadPredicate(x_is(1), "UTC", every_file=True),))
    removed = replace(remove("unnamed"), partition_values=partition)
    assert verdict(staged(remove("mine"), reads=reads), reads, winner(removed), level) is expected


# --- the matrix: one row for each check, one column for each level ------------------------------------------------

BLIND, NOTHING = ReadSet(), None
READ_X1 = ReadSet(predicates=by(x_is(1)), files=(files("r1"),))
READ_ALL = ReadSet(whole_table=True)
META = Metadata("id", SCHEMA, ("x",), {"delta.appendOnly": "true"})
DOMAIN = DomainMetadata("app.domain", "{}", removed=False)
A, D, DD = ConcurrentAppendException, ConcurrentDeleteReadException, ConcurrentDeleteDeleteException
P, M, T = ProtocolChangedException, MetadataChangedException, ConcurrentTransactionException

# name, what I read, what I write, what won (and whether it is a blind append), expected at (S, W, SI)
MATRIX: list[tuple[str, ReadSet, list[Action], Winner, tuple[Any, Any, Any]]] = [
    ("protocol changed, I write none", BLIND, [add("m", 1)], winner(V3), (None, None, None)),
    ("protocol changed, I write one", BLIND, [V3], winner(V3), (P, P, P)),
    ("protocol drops a feature", BLIND, [add("m", 1)], winner(Protocol(1, 1)), (P, P, P)),
    ("metadata changed, blind append", BLIND, [add("m", 1)], winner(META), (M, M, M)),
    ("metadata changed, metadata change", BLIND, [META], winner(META), (M, M, M)),
    ("the same metadata written again", BLIND, [add("m", 1)], winner(PARTITIONED), (None, None, None)),
    ("the same metadata, and I change it", BLIND, [META], winner(PARTITIONED), (M, M, M)),
    ("the same domain", BLIND, [DOMAIN], winner(DOMAIN), (T, T, T)),
    ("another domain", BLIND, [DOMAIN], winner(DomainMetadata("else", "{}", False)), (None, None, None)),
    ("txn that I read", ReadSet(app_ids=frozenset({"q"})), [], winner(SetTransaction("q", 1)), (T, T, T)),
    ("txn that I write unread", BLIND, [SetTransaction("q", 2)], winner(SetTransaction("q", 1)), (T, T, T)),
    ("txn of another application", BLIND, [SetTransaction("q", 2)], winner(SetTransaction("r", 1)), (None,) * 3),
    ("blind append after blind append", BLIND, [add("m", 1)], winner(add("w", 1), blind=True), (None,) * 3),
    ("blind append after a rewrite", BLIND, [add("m", 1)], winner(add("w", 1), remove("z")), (None,) * 3),
    ("rewrite, append to what it read", READ_X1, [remove("r1")], winner(add("w", 1), blind=True), (A, NOTHING, None)),
    ("rewrite, rewrite adds to what it read", READ_X1, [remove("r1")], winner(add("w", 1)), (A, A, None)),
    ("rewrite, winner doesn't say", READ_X1, [remove("r1")], winner(add("w", 1), blind=None), (A, A, None)),
    ("rewrite, append elsewhere", READ_X1, [remove("r1")], winner(add("w", 2), blind=True), (None, None, None)),
    ("rewrite, rewrite elsewhere", READ_X1, [remove("r1")], winner(add("w", 2), remove("z")), (None, None, None)),
    ("null partition, compared", READ_X1, [remove("r1")], winner(add("w", None)), (None, None, None)),
    (
        "an opaque condition may match any partition",
        ReadSet(predicates=by(Opaque("f(x)", frozenset({("x",)})))), [remove("r1")], winner(add("w", 9)),
        (A, A, None),
    ),
    (
        "a condition on data reads every partition",
        ReadSet(predicates=by(Compare("=", ("v",), pa.scalar(1, pa.int64())))), [remove("r1")], winner(add("w", 9)),
        (A, A, None),
    ),
    (
        "either partition or data: any partition",
        ReadSet(predicates=by(Or((x_is(1), Compare("=", ("v",), pa.scalar(1, pa.int64())))))), [remove("r1")],
        winner(add("w", 9)), (A, A, None),
    ),
    ("metadata change with a read, append", READ_X1, [META], winner(add("w", 1), blind=True), (A, A, None)),
    ("metadata change, nothing read", BLIND, [META], winner(add("w", 1), blind=True), (None, None, None)),
    ("whole table read, append", READ_ALL, [add("m", 1)], winner(add("w", 7), blind=True), (A, NOTHING, None)),
    ("whole table read, rewrite", READ_ALL, [add("m", 1)], winner(add("w", 7), remove("z")), (A, A, D)),
    ("whole table read, remove", READ_ALL, [add("m", 1)], winner(remove("z")), (D, D, D)),
    ("a file read was removed", READ_X1, [add("m", 1)], winner(remove("r1")), (D, D, D)),
    ("a file read was compacted away", READ_X1, [add("m", 1)], winner(remove("r1", data_change=False)), (D, D, D)),
    ("a file read got a deletion vector", READ_X1, [add("m", 1)], winner(remove("r1", dv="abc")), (D, D, D)),
    ("a key read was removed", ReadSet(paths=frozenset({"k"})), [add("m", 1)], winner(remove("k")), (D, D, D)),
    ("another file was removed", READ_X1, [add("m", 1)], winner(remove("other")), (None, None, None)),
    ("both remove", BLIND, [remove("m")], winner(remove("m")), (DD, DD, DD)),
    ("both remove, other spelling", BLIND, [remove("m n")], winner(remove("m%20n")), (DD, DD, DD)),
    ("read under another spelling", ReadSet(files=(files("p=%20/a"),)), [], winner(remove("p= /a")), (D, D, D)),
    ("only commitInfo", READ_ALL, [add("m", 1)], winner(), (None, None, None)),
]  # fmt: skip

CELLS = [
    pytest.param(reads, mine, other, level, expected, id=f"{name} at {level.value}")
    for name, reads, mine, other, expecteds in MATRIX
    for level, expected in zip((S, W, SI), expecteds, strict=True)
]


@pytest.mark.parametrize(("reads", "mine", "other", "level", "expected"), CELLS)
def test_matrix(
    reads: ReadSet, mine: list[Action], other: Winner, level: IsolationLevel, expected: Conflict | None
) -> None:
    assert verdict(staged(*mine, reads=reads), reads, other, level) is expected


ZONES = ("UTC", "America/New_York", "Asia/Kolkata", "Pacific/Apia", "+05:30", "PST")
TIMES = Metadata(
    "id", '{"type":"struct","fields":[{"name":"x","type":"timestamp","nullable":true,"metadata":{}}]}', ("x",)
)


@settings(max_examples=60)
@given(st.sampled_from(ZONES), st.integers(0, 40), st.integers(0, 40), st.booleans())
def test_a_partition_that_names_no_zone_is_met_in_the_zone_in_which_it_was_read(
    zone: str, hour: int, other: int, named: bool
) -> None:
    text = f"2024-03-{1 + other // 24:02}{'T' if named else ' '}{other % 24:02}:00:00{'.000000Z' if named else ''}"
    known = ZoneInfo({"+05:30": "Asia/Kolkata", "PST": "America/Los_Angeles"}.get(zone, zone))
    start = datetime.datetime(2024, 3, 1, tzinfo=known)
    read = start + datetime.timedelta(hours=hour)
    added = datetime.datetime.fromisoformat(text).replace(tzinfo=datetime.UTC if named else known)
    literal = pa.scalar(read.astimezone(datetime.UTC), pa.timestamp("us", "UTC"))
    reads = ReadSet(predicates=by(Compare("<=", ("x",), literal), time_zone=zone))
    mine = staged(remove("r", data_change=True), reads=reads, table=TIMES)
    found = verdict(mine, reads, winner(AddFile("w", {"x": text}, 1, 1, True)), S)
    assert found is (ConcurrentAppendException if added <= read else None)


def test_unpartitioned_any_append_matters_to_who_read_by_a_condition() -> None:
    reads = ReadSet(predicates=by(Compare("=", ("v",), pa.scalar(1, pa.int64()))))
    mine = staged(remove("r"), reads=reads, table=PLAIN)
    with pytest.raises(ConcurrentAppendException, match="partition the table"):
        check(reads, mine, winner(add("w", table=PLAIN)), S)


def test_the_message_names_the_partition() -> None:
    reads = READ_X1
    with pytest.raises(ConcurrentAppendException, match=r"\[x=1\]"):
        check(reads, staged(remove("r1"), reads=reads), winner(add("w", 2), add("w2", 1)), S)


def test_two_writers_who_create_the_table() -> None:
    mine = staged(V2, PLAIN, add("a", table=PLAIN), reads=BLIND, table=PLAIN, read_version=-1)
    created = Winner.of(0, [CommitInfo(operation="CREATE TABLE"), V2, PLAIN])
    with pytest.raises(ProtocolChangedException, match="created the table"):
        check(BLIND, mine, created, S)


def test_rebased_onto_the_newer_protocol() -> None:
    mine = staged(add("m", 1), reads=BLIND)
    assert check(BLIND, mine, winner(V3), S).protocol == V3
    assert check(BLIND, mine, winner(add("w", 1)), S).protocol == V2


def test_a_domain_conflict_needs_both_to_write_it() -> None:
    mine = staged(add("m", 1), reads=BLIND, protocol=FEATURES)
    assert check(BLIND, mine, winner(DOMAIN), S) is mine


ROW_TRACKING = DomainMetadata("delta.rowTracking", "{}", removed=False)


@pytest.mark.parametrize(
    ("actions", "changes_data", "at_serializable", "at_write_serializable"),
    [
        ([], True, SI, W),
        ([], False, SI, SI),
        ([add("a", data_change=False), remove("b", data_change=False)], False, SI, SI),
        ([add("a", data_change=False), remove("b", data_change=False)], True, SI, W),
        ([add("a", data_change=False), remove("b", data_change=True)], False, S, W),
        ([add("a")], False, S, W),
        ([AddCDCFile("c", {}, 1)], False, SI, SI),
        ([ROW_TRACKING], False, SI, SI),
        ([DOMAIN], False, S, W),
        ([META], False, S, W),
        ([SetTransaction("q", 1)], False, S, W),
    ],
)
def test_level(
    actions: list[Action],
    changes_data: bool,
    at_serializable: IsolationLevel,
    at_write_serializable: IsolationLevel,
) -> None:
    assert level_for(actions, S, changes_data=changes_data) is at_serializable
    assert level_for(actions, W, changes_data=changes_data) is at_write_serializable
