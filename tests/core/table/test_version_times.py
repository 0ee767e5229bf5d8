"""Which version was the newest at a time, and what is said of each commit."""

import pytest

from support.log_builder import LogBuilder, add
from tablelog.core.protocol.actions import CommitInfo, Protocol
from tablelog.core.protocol.paths import commit_name
from tablelog.core.table.version_times import monotonic, travel_times
from tablelog.errors import CorruptLogError, InvalidArgumentError, TimestampOutOfRangeError
from tablelog.logstore import CountingLogStore

T = 1_700_000_000_000


def table(*times: int) -> LogBuilder:
    """A version for each time (milliseconds after T), which its file bears."""
    builder = LogBuilder()
    builder.clock.now = T + times[0] - 1000
    builder.create(add("0"))
    for number, time in enumerate(times[1:], 1):
        builder.commit(add(str(number)), at=T + time)
    return builder


def test_times_are_made_to_rise() -> None:
    assert monotonic([(0, 5), (1, 5), (2, 3), (3, 9), (4, 9)]) == [(0, 5), (1, 6), (2, 7), (3, 9), (4, 10)]
    assert monotonic([]) == []


@pytest.mark.parametrize(
    ("time", "version"), [(0, 0), (1, 0), (9_999, 0), (10_000, 1), (10_001, 1), (20_000, 2), (20_001, 3), (30_000, 4)]
)
def test_the_newest_at_or_before(time: int, version: int) -> None:
    log = table(0, 10_000, 20_000, 20_000, 30_000).log()
    assert log.version_at(T + time) == version
    assert log.snapshot(timestamp=T + time).version == version


def test_times_that_go_back_mean_one_version_each() -> None:
    log = table(5_000, 1_000, 2_000, 9_000).log()
    assert [log.version_at(T + time) for time in (5_000, 5_001, 5_002, 8_999, 9_000)] == [0, 1, 2, 2, 3]
    assert [entry.timestamp_ms - T for entry in log.history()] == [9_000, 5_002, 5_001, 5_000]


def test_outside_of_the_range_is_an_error_that_names_it() -> None:
    log = table(0, 10_000).log()
    there = "version 0 of 2023-11-14 22:13:20.000\\+00:00 to version 1 of 2023-11-14 22:13:30.000\\+00:00"
    with pytest.raises(TimestampOutOfRangeError, match=f"before the first version .*{there}"):
        log.snapshot(timestamp=T - 1)
    with pytest.raises(TimestampOutOfRangeError, match=f"after the last version .*{there}"):
        log.snapshot(timestamp=T + 10_001)
    assert log.version_at(T - 1, can_return_first=True) == 0
    assert log.version_at(T + 99_999, can_return_last=True) == 1
    with pytest.raises(TimestampOutOfRangeError):
        log.version_at(10**18)
    with pytest.raises(InvalidArgumentError, match="not both"):
        log.snapshot(version=0, timestamp=T)


def test_only_versions_that_can_be_made_up_count() -> None:
    builder = table(0, 10_000, 20_000, 30_000)
    builder.log().checkpoint(builder.log().snapshot(2))
    builder.delete(commit_name(0), commit_name(1))
    log = builder.log()
    with pytest.raises(TimestampOutOfRangeError, match="version 2 of"):
        log.version_at(T + 19_999)
    assert log.version_at(T + 20_000) == 2
    assert [entry.version for entry in log.history()] == [3, 2]


def test_history_newest_first_with_a_limit() -> None:
    builder = table(0, 10_000, 20_000)
    builder.write_commit(3, [add("x")], at=T + 30_000)
    entries = builder.log().history()
    assert [entry.version for entry in entries] == [3, 2, 1, 0]
    assert [entry.timestamp_ms - T for entry in entries] == [30_000, 20_000, 10_000, 0]
    assert entries[0].commit_info is None
    assert entries[1].commit_info is not None
    assert entries[1].commit_info.operation == "WRITE"
    assert [entry.version for entry in builder.log().history(2)] == [3, 2]
    assert [entry.version for entry in builder.log().history(99)] == [3, 2, 1, 0]
    with pytest.raises(InvalidArgumentError, match="limit"):
        builder.log().history(0)


def test_history_costs_a_list_and_a_read_for_each() -> None:
    builder = table(*range(0, 50_000, 1000))
    counting = CountingLogStore(builder.store)
    log = builder.log(counting)
    log.snapshot()
    counting.reset()
    assert len(log.history(5)) == 5
    assert counting.calls == {"list_from": 2, "read": 5}


# --- in-commit timestamps ---------------------------------------------------------------------------------------------

ICT = {"delta.enableInCommitTimestamps": "true"}
FEATURE = Protocol(1, 7, None, frozenset({"inCommitTimestamp"}))


def stamped(*times: int, enabled_from: int = 0) -> LogBuilder:
    """Files' own times are nonsense from `enabled_from` on; the commits tell theirs."""
    properties = dict(ICT)
    if enabled_from:
        properties["delta.inCommitTimestampEnablementVersion"] = str(enabled_from)
        properties["delta.inCommitTimestampEnablementTimestamp"] = str(T + times[enabled_from])
    builder = LogBuilder()
    for version, time in enumerate(times):
        actions = [FEATURE] if version == 0 else []
        if version == 0:
            from support.log_builder import metadata

            actions.append(metadata(properties))
        told = T + time if version >= enabled_from else None
        at = T + time if version < enabled_from else T + 10**9 - version
        builder.write_commit(version, [CommitInfo(in_commit_timestamp=told, txn_id=str(version)), *actions], at)
    builder.version = len(times) - 1
    return builder


@pytest.mark.parametrize("enabled_from", [0, 2, 4])
def test_in_commit_timestamps_are_the_time(enabled_from: int) -> None:
    log = stamped(0, 10, 20, 30, 40, enabled_from=enabled_from).log()
    assert [log.version_at(T + time) for time in (0, 9, 10, 19, 20, 35, 40)] == [0, 0, 1, 1, 2, 3, 4]
    assert [entry.timestamp_ms - T for entry in log.history()] == [40, 30, 20, 10, 0]
    assert log.snapshot().timestamp_ms == T + 40
    with pytest.raises(TimestampOutOfRangeError, match=r"version 0 of .* to version 4 of"):
        log.version_at(T + 41)
    with pytest.raises(TimestampOutOfRangeError):
        log.version_at(T - 1)


def test_few_commits_are_read_to_find_a_timestamp() -> None:
    builder = stamped(*range(0, 6400, 100))
    counting = CountingLogStore(builder.store)
    log = builder.log(counting)
    log.snapshot()
    counting.reset()
    assert log.version_at(T + 3_250) == 32
    assert counting.calls["read"] <= 10


def test_a_commit_without_its_timestamp_is_corrupt() -> None:
    builder = stamped(0, 10)
    builder.commit()
    with pytest.raises(CorruptLogError, match=r"version 2 of .* has no in-commit timestamp"):
        builder.log().history()
    with pytest.raises(CorruptLogError, match=r"version 2 of .* has no in-commit timestamp"):
        builder.log().version_at(T + 5)


def test_files_times_later_than_the_first_in_commit_timestamp_do_not_count() -> None:
    times = travel_times([(0, 10), (1, 99), (2, 0), (3, 0)], 2, 25, {2: 20, 3: 30}.__getitem__)
    assert times == [(0, 10), (2, 20), (3, 30)]


def test_the_time_of_a_snapshot_is_that_of_its_file() -> None:
    builder = table(0, 10_000)
    assert builder.log().snapshot(0).timestamp_ms == T
    assert builder.log().snapshot().timestamp_ms == T + 10_000
