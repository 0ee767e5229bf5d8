"""The version checksum: written beside a commit, and compared with the replayed state."""

import json
from typing import Any

import pytest

from support.log_builder import LogBuilder, add, metadata, remove
from tablelog.core import CommitInfo, Operation, Protocol
from tablelog.core.log import checksum
from tablelog.core.log.replay import DELETED_BINS, SIZE_BINS
from tablelog.core.protocol.actions import DeletionVectorDescriptor, DomainMetadata, SetTransaction
from tablelog.core.protocol.paths import checkpoint_name, commit_name, crc_name
from tablelog.errors import ChecksumMismatchError, CorruptLogError, InvalidArgumentError
from tablelog.logstore import CountingLogStore
from tablelog.settings.declarations import CHECKSUM_LISTS_FILES, CHECKSUM_MAX_FILES


def table() -> LogBuilder:
    builder = LogBuilder().create(add("a", size=10), add("b", size=20_000), SetTransaction("app", 3))
    return builder.commit(remove("a", size=10), add("c", size=7), DomainMetadata("d", "{}", False))


def told(builder: LogBuilder) -> dict[str, Any]:
    snapshot = builder.log().snapshot()
    totals = snapshot.totals()
    assert totals is not None
    found: dict[str, Any] = json.loads(checksum.serialise(checksum.of(snapshot, totals, txn_id="token")))
    return found


def test_what_it_says() -> None:
    builder = table()
    snapshot = builder.log().snapshot()
    found = told(builder)
    assert found["txnId"] == "token"
    assert (found["numFiles"], found["tableSizeBytes"]) == (2, 20_007)
    assert (found["numMetadata"], found["numProtocol"]) == (1, 1)
    assert found["metadata"]["id"] == snapshot.metadata.id
    assert found["protocol"] == {"minReaderVersion": 1, "minWriterVersion": 2}
    assert found["setTransactions"] == [{"appId": "app", "version": 3}]
    assert found["domainMetadata"] == [{"domain": "d", "configuration": "{}", "removed": False}]
    histogram = found["fileSizeHistogram"]
    assert histogram["sortedBinBoundaries"] == list(SIZE_BINS)
    assert histogram["fileCounts"][:4] == [1, 0, 1, 0]
    assert histogram["totalBytes"][:4] == [7, 0, 20_000, 0]
    assert "inCommitTimestampOpt" not in found
    assert "numDeletionVectorsOpt" not in found
    assert "deletedRecordCountsHistogramOpt" not in found
    assert "allFiles" not in found


def alone(builder: LogBuilder) -> LogBuilder:
    """With no commit that tells what the checkpoint holds: the checksum is all that there is to compare."""
    builder.log().checkpoint()
    builder.delete(*(commit_name(version) for version in range(builder.version)))
    return builder


def test_it_survives() -> None:
    builder = table()
    snapshot = builder.log().snapshot()
    totals = snapshot.totals()
    assert totals is not None
    written = checksum.of(snapshot, totals, txn_id="token")
    assert checksum.parse(checksum.serialise(written)) == written


def test_a_right_one_is_read_once_and_only_with_the_files() -> None:
    builder = table()
    builder.write(crc_name(1), json.dumps(told(builder)).encode())
    counting = CountingLogStore(builder.store)
    snapshot = builder.log(counting).snapshot()
    assert not [path for _, path in counting.log if path.endswith(".crc")]
    assert snapshot.files.num_rows == 2
    assert snapshot.files_with("stats").num_rows == 2
    assert len([path for _, path in counting.log if path.endswith(".crc")]) == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"numFiles": 3}, "the number of files is 2, the checksum says 3"),
        ({"tableSizeBytes": 1}, "their size in bytes is 20007, the checksum says 1"),
        ({"numMetadata": 2}, "the number of metaData actions"),
        ({"numProtocol": 0}, "the number of protocol actions"),
        ({"protocol": {"minReaderVersion": 1, "minWriterVersion": 5}}, "the protocol is"),
        ({"metadata": {"id": "x", "format": {"provider": "parquet", "options": {}}}}, "the metadata differs in id"),
        ({"setTransactions": []}, "the transactions are"),
        ({"domainMetadata": []}, "the domains are"),
        (
            {"histogramOpt": {"sortedBinBoundaries": SIZE_BINS, "fileCounts": [0] * 95, "totalBytes": [0] * 95}},
            "histogram",
        ),
    ],
)
def test_a_wrong_one_says_what_differs(change: dict[str, Any], message: str, caplog: pytest.LogCaptureFixture) -> None:
    builder = table()
    found = told(builder) | change
    if "histogramOpt" in change:
        del found["fileSizeHistogram"]
    builder.write(crc_name(1), json.dumps(found).encode())
    # The commits confirm what was read: it is read, with a warning, and a diagnosis tells of it.
    assert builder.log().snapshot().files.num_rows == 2
    assert message in caplog.text
    assert "The commits confirm the state: the checksum is wrong" in caplog.text
    health = builder.log().health()
    assert [(problem.severity, problem.files) for problem in health.problems] == [("warning", (crc_name(1),))]
    assert message in health.problems[0].message
    snapshot = alone(builder).log().snapshot()
    for _ in range(2):
        with pytest.raises(ChecksumMismatchError, match=message) as raised:
            _ = snapshot.files
    assert "version 1 of memory:///table" in str(raised.value)
    assert "It can't be verified" in str(raised.value)
    assert any(
        problem.severity == "error" and message in problem.message for problem in builder.log().health().problems
    )


def checkpoint_of(other: LogBuilder, builder: LogBuilder) -> None:
    """The checkpoint of another table in place of one's own."""
    other.log().checkpoint()
    builder.write(checkpoint_name(builder.version), other.read(checkpoint_name(builder.version)))


def test_a_checkpoint_that_is_wrong_is_an_error_however_the_commits_are() -> None:
    builder = table()
    builder.write(crc_name(1), json.dumps(told(builder)).encode())
    checkpoint_of(LogBuilder(root="memory:/other").create(add("z")).commit(add("y")), builder)
    with pytest.raises(ChecksumMismatchError, match="The state that was read doesn't match the commits either"):
        _ = builder.log().snapshot().files


def test_a_commit_that_was_replaced_is_an_error() -> None:
    """Another writer's commit over one's own, as a store without exclusion allows it: the log agrees with itself."""
    builder = table()
    log = builder.log()
    log.transaction().commit([add("mine")], Operation("WRITE"))
    assert json.loads(builder.read(crc_name(2)))["txnId"]
    builder.delete(commit_name(2))
    builder.write_commit(2, [CommitInfo(operation="WRITE", txn_id="theirs"), add("theirs")])
    with pytest.raises(ChecksumMismatchError, match=f"so {commit_name(2)} was replaced since"):
        _ = builder.log().snapshot().files
    assert not builder.log().health().ok


def test_a_table_of_another_writer_with_ten_files_claimed_and_none_there(caplog: pytest.LogCaptureFixture) -> None:
    builder = LogBuilder().create()
    builder.write(crc_name(0), json.dumps(told(builder) | {"numFiles": 10, "tableSizeBytes": 5259}).encode())
    assert builder.log().snapshot().files.num_rows == 0
    assert "the number of files is 0, the checksum says 10" in caplog.text
    log = builder.log()
    log.transaction().commit([add("a")], Operation("WRITE"))
    assert json.loads(builder.read(crc_name(1)))["numFiles"] == 1
    assert log.snapshot().num_files == 1


def test_commits_before_an_older_checkpoint_confirm_too(caplog: pytest.LogCaptureFixture) -> None:
    builder = table()
    builder.log().checkpoint()
    builder.commit(add("d")).commit(add("e"))
    builder.log().checkpoint()
    builder.delete(commit_name(0))
    builder.write(crc_name(3), json.dumps(told(builder) | {"numFiles": 9}).encode())
    assert builder.log().snapshot().base_version == 3
    assert builder.log().snapshot().files.num_rows == 4
    assert "The commits confirm the state" in caplog.text
    builder.delete(commit_name(2))
    with pytest.raises(ChecksumMismatchError, match="It can't be verified"):
        _ = builder.log().snapshot().files


def test_corruption_may_be_made_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    builder = table()
    builder.write(crc_name(1), json.dumps(told(builder) | {"numFiles": 9}).encode())
    snapshot = builder.log(conf={"spark.databricks.delta.state.corruptionIsFatal": "false"}).snapshot()
    assert snapshot.files.num_rows == 2
    assert "the checksum says 9" in caplog.text


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"numFiles":"2"}', b'{"numFiles":2}', b"\xff"])
def test_what_is_no_checksum_is_no_reason_not_to_read(data: bytes, caplog: pytest.LogCaptureFixture) -> None:
    builder = table()
    builder.write(crc_name(1), data)
    assert builder.log().snapshot().files.num_rows == 2
    assert "can't be used" in caplog.text
    with pytest.raises(CorruptLogError, match="not a version checksum"):
        checksum.parse(data)


@pytest.mark.parametrize(
    "change",
    [
        {"allFiles": 5}, {"allFiles": [None]}, {"allFiles": [{"path": 1}]}, {"setTransactions": [None]},
        {"deletedRecordCountsHistogramOpt": {"deletedRecordCounts": 5}}, {"domainMetadata": "d"}, {"metadata": []},
        {"numDeletedRecordsOpt": "3"}, {"numDeletionVectorsOpt": 1.5}, {"txnId": 5}, {"inCommitTimestampOpt": "1"},
        {"deletedRecordCountsHistogramOpt": {"deletedRecordCounts": ["0"] * len(DELETED_BINS)}},
        {"fileSizeHistogram": {"sortedBinBoundaries": SIZE_BINS, "fileCounts": [None] * len(SIZE_BINS)}},
        {"txnId": "\ud800"},
    ],
)  # fmt: skip
def test_a_field_that_is_damaged(change: dict[str, Any], caplog: pytest.LogCaptureFixture) -> None:
    builder = table()
    builder.write(crc_name(1), json.dumps(told(builder) | change).encode())
    assert builder.log().snapshot().files.num_rows == 2
    assert "can't be used" in caplog.text


def test_what_it_does_not_say_is_not_compared() -> None:
    builder = table()
    found = told(builder)
    kept = ("tableSizeBytes", "numFiles", "numMetadata", "numProtocol")
    builder.write(crc_name(1), json.dumps({name: found[name] for name in kept}).encode())
    assert builder.log().snapshot().files.num_rows == 2


def test_a_transaction_that_may_have_expired() -> None:
    builder = LogBuilder().create(SetTransaction("old", 1, 5), SetTransaction("new", 2, 10**13))
    builder.commit(metadata({"delta.setTransactionRetentionDuration": "interval 1 day"}))
    found = told(builder)
    found["setTransactions"] = [{"appId": "new", "version": 2, "lastUpdated": 10**13}]
    builder.write(crc_name(1), json.dumps(found).encode())
    assert builder.log().snapshot().files.num_rows == 0
    found["setTransactions"] = [{"appId": "new", "version": 1, "lastUpdated": 10**13}]
    builder.write(crc_name(1), json.dumps(found).encode())
    alone(builder)
    with pytest.raises(ChecksumMismatchError, match="transactions"):
        _ = builder.log().snapshot().files


def test_many_transactions_are_not_repeated() -> None:
    builder = LogBuilder().create(*(SetTransaction(f"app{number}", 1) for number in range(101)))
    assert "setTransactions" not in told(builder)


# --- fields that not every table has ----------------------------------------------------------------------------------


def vectors(*cardinalities: int) -> LogBuilder:
    features = frozenset({"deletionVectors"})
    builder = LogBuilder().commit(Protocol(3, 7, features, features), metadata(), add("none"))
    for number, cardinality in enumerate(cardinalities):
        vector = DeletionVectorDescriptor("u", "ab^-aqEH.-t@S}K{vb[*k^", 36, cardinality, 4)
        builder.commit(add(str(number), deletion_vector=vector))
    return builder


def test_deleted_rows_by_class() -> None:
    builder = vectors(1, 9, 10, 99_999, 2**31 - 2, 2**31 - 1)
    expected = [1, 2, 1, 0, 0, 1, 0, 0, 1, 1]
    found = told(builder)
    assert found["deletedRecordCountsHistogramOpt"] == {"deletedRecordCounts": expected}
    assert found["numDeletionVectorsOpt"] == 6
    assert list(DELETED_BINS) == [0, 1, 10, 100, 1000, 10_000, 100_000, 1_000_000, 10_000_000, 2**31 - 1]
    builder.log().checkpoint()  # counted in columns
    assert told(builder)["deletedRecordCountsHistogramOpt"] == {"deletedRecordCounts": expected}
    expected[0] = 2
    builder.write(
        crc_name(6), json.dumps(found | {"deletedRecordCountsHistogramOpt": {"deletedRecordCounts": expected}}).encode()
    )
    alone(builder)
    with pytest.raises(ChecksumMismatchError, match="the histogram of deleted rows differs"):
        _ = builder.log().snapshot().files


def test_a_small_table_is_listed_whole() -> None:
    builder = table()
    log = builder.log()
    log.transaction().commit([add("d", stats='{"numRecords":1}')], Operation("WRITE"))
    found = json.loads(builder.read(crc_name(2)))
    assert [(file["path"], file["dataChange"]) for file in found["allFiles"]] == [
        ("b", False),
        ("c", False),
        ("d", False),
    ]
    assert found["allFiles"][2]["stats"] == '{"numRecords":1}'
    assert builder.log().snapshot().files.num_rows == 3
    written = checksum.parse(builder.read(crc_name(2)))
    assert checksum.parse(checksum.serialise(written)) == written
    found["allFiles"][0]["path"] = "z"
    builder.write(crc_name(2), json.dumps(found).encode())
    alone(builder)
    with pytest.raises(ChecksumMismatchError, match="1 files aren't in its list, and 1 more are: b"):
        _ = builder.log().snapshot().files


@pytest.mark.parametrize(
    ("conf", "listed"),
    [
        ({CHECKSUM_LISTS_FILES.key: "false"}, False),
        ({CHECKSUM_MAX_FILES.key: "2"}, False),
        ({CHECKSUM_MAX_FILES.key: "3"}, True),
    ],
)
def test_up_to_how_many_files(conf: dict[str, str], listed: bool) -> None:
    builder = table()
    builder.log(conf=conf).transaction().commit([add("d")], Operation("WRITE"))
    assert ("allFiles" in json.loads(builder.read(crc_name(2)))) == listed
    with pytest.raises(InvalidArgumentError, match="thresholdNumFiles"):
        checksum.most_files({CHECKSUM_MAX_FILES.key: "x"})


def test_the_in_commit_timestamp() -> None:
    builder = LogBuilder().commit(
        Protocol(1, 7, None, frozenset({"inCommitTimestamp"})),
        metadata({"delta.enableInCommitTimestamps": "true"}),
        in_commit_timestamp=77,
    )
    builder.write(crc_name(0), json.dumps(told(builder) | {"inCommitTimestampOpt": 77}).encode())
    assert builder.log().snapshot().files.num_rows == 0
    builder.write(crc_name(0), json.dumps(told(builder) | {"inCommitTimestampOpt": 78}).encode())
    assert builder.log().snapshot().files.num_rows == 0
    [problem] = builder.log().health().problems
    assert (problem.severity, problem.files) == ("warning", (crc_name(0),))
    assert "the in-commit timestamp is 77, the checksum says 78" in problem.message
    builder.write(crc_name(0), json.dumps(told(builder) | {"inCommitTimestampOpt": 77}).encode())
    assert not builder.log().health().problems
