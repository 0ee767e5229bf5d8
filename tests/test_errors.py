"""The fields of errors: which a class has, that they are kept, and that core and stores set them."""

import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from support.clocks import NO_PAUSES
from support.memory_table import QUICK, SCHEMA, WRITE, Patient, add, create, new_log, other, table
from tablelog.core.deltalog import DeltaLog
from tablelog.core.log.checkpoint_file import DamagedCheckpointError
from tablelog.core.protocol.actions import Metadata, RemoveFile, SetTransaction
from tablelog.core.protocol.paths import checkpoint_name, commit_name, crc_name
from tablelog.core.txn.operation import Operation
from tablelog.core.txn.transaction import Transaction
from tablelog.error_context import error_context, sets_table
from tablelog.errors import (
    ChecksumMismatchError,
    CommitStateUnknownError,
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    ConcurrentTransactionException,
    ConcurrentWriteException,
    CorruptLogError,
    DeltaConcurrentModificationException,
    InvalidArgumentError,
    MetadataChangedException,
    MissingCommitError,
    ProtocolChangedException,
    StorageAccessError,
    StorageError,
    StorageUnavailableError,
    TablelogError,
    TableNotFoundError,
    TimestampOutOfRangeError,
    UnsupportedFeatureError,
    VersionNotFoundError,
    WriteOutcomeUnknown,
)
from tablelog.logstore.common.conditional_put import Answer, settle
from tablelog.logstore.data_files import DataFiles
from tablelog.logstore.hdfs.errors import error_for
from tablelog.logstore.local.store import LocalLogStore
from tablelog.logstore.memory import MemoryLogStore

TABLE = "memory:///t"
SECRET = "s3://key:secret@bucket/t/_delta_log/0.json"


def subclasses(kind: type[TablelogError]) -> set[type[TablelogError]]:
    return {kind}.union(*(subclasses(one) for one in kind.__subclasses__()))


KINDS = sorted(
    (kind for kind in subclasses(TablelogError) if kind.__module__ == TablelogError.__module__),
    key=lambda k: k.__name__,
)


def new(kind: type[TablelogError]) -> TablelogError:
    """An error without fields, except for those that its class requires."""
    if kind is CommitStateUnknownError:
        return CommitStateUnknownError(TABLE, 3, "token", "no answer")
    if kind is WriteOutcomeUnknown:
        return WriteOutcomeUnknown("a.json", "no answer")
    return kind("message")


def fields(error: TablelogError) -> tuple[str | None, int | None, str | None]:
    return error.table, error.version, error.path


# --- the classes --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_each_class_has_the_fields_and_pickles_them(kind: type[TablelogError]) -> None:
    error = new(kind)
    required = {
        CommitStateUnknownError: (TABLE, 3, None),
        WriteOutcomeUnknown: (None, None, "a.json"),
    }.get(kind, (None, None, None))
    assert fields(error) == required
    assert error.with_context(table=TABLE, version=3, path="a.json") is error
    assert fields(error) == (TABLE, 3, "a.json")
    error.with_context(table="another", version=4, path="another")
    assert fields(error) == (TABLE, 3, "a.json")
    if isinstance(error, DeltaConcurrentModificationException):
        assert error.winner is None
        error = kind("message", table=TABLE, version=3, path="a.json", winner=7)  # type: ignore[call-arg]
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy), fields(copy)) == (kind, str(error), (TABLE, 3, "a.json"))
    assert getattr(copy, "winner", 7) == 7


def test_fields_are_keywords_of_the_constructor() -> None:
    assert fields(CorruptLogError("x", table="t", version=0, path="p")) == ("t", 0, "p")
    assert fields(UnsupportedFeatureError("x", ("f",), table="t", version=0)) == ("t", 0, None)
    damaged = DamagedCheckpointError("x", ("a",), table="t", version=1, path="a")
    assert fields(pickle.loads(pickle.dumps(damaged))) == ("t", 1, "a")


def test_a_block_and_a_method_set_the_fields_that_are_missing() -> None:
    with pytest.raises(TablelogError) as raised, error_context(table="t", version=2, path="p"):
        raise InvalidArgumentError("x", version=1)
    assert fields(raised.value) == ("t", 1, "p")

    class Handle:
        table = "t"

        @sets_table
        def fail(self, error: Exception) -> None:
            raise error

    with pytest.raises(TablelogError) as raised:
        Handle().fail(InvalidArgumentError("x"))
    assert fields(raised.value) == ("t", None, None)
    with pytest.raises(KeyError):
        Handle().fail(KeyError("not ours"))


# --- the core -----------------------------------------------------------------------------------------------------


def committed(log: DeltaLog, *names: str) -> None:
    for name in names:
        log.transaction().commit([add(name)], WRITE)


def test_a_version_that_does_not_exist() -> None:
    log = table()
    with pytest.raises(VersionNotFoundError) as raised:
        log.snapshot(9)
    assert fields(raised.value) == (TABLE, 9, None)
    with pytest.raises(TimestampOutOfRangeError) as early:
        log.snapshot(timestamp=0)
    assert early.value.table == TABLE
    with pytest.raises(TableNotFoundError) as absent:
        new_log().snapshot()
    assert absent.value.table == TABLE


def test_a_missing_commit() -> None:
    log = table()
    committed(log, "a", "b", "c")
    log.store.delete(f"{log.log_path}/{commit_name(2)}")
    with pytest.raises(MissingCommitError) as raised:
        other(log).snapshot()
    assert fields(raised.value) == (TABLE, 2, commit_name(2))


def test_a_damaged_commit() -> None:
    log = table()
    committed(log, "a", "b")
    log.store.write(f"{log.log_path}/{commit_name(1)}", b"{", overwrite=True)
    with pytest.raises(CorruptLogError) as raised:
        other(log).snapshot()
    assert fields(raised.value) == (TABLE, 1, commit_name(1))


def test_a_damaged_checkpoint() -> None:
    log = table()
    committed(log, "a", "b")
    log.checkpoint()
    log.store.write(f"{log.log_path}/{checkpoint_name(2)}", b"no Parquet", overwrite=True)
    log.store.delete(f"{log.log_path}/{commit_name(0)}")
    with pytest.raises(CorruptLogError) as raised:
        other(log).snapshot()
    assert fields(raised.value) == (TABLE, 2, checkpoint_name(2))


def test_a_damaged_schema() -> None:
    log = table()
    path = f"{log.log_path}/{commit_name(0)}"
    log.store.write(path, log.store.read(path).replace(b'\\"struct\\"', b'\\"strict\\"'), overwrite=True)
    with pytest.raises(CorruptLogError) as raised:
        _ = other(log).snapshot().schema
    assert (raised.value.table, raised.value.version) == (TABLE, 0)


def test_a_checksum_that_does_not_match() -> None:
    log = table(conf={"spark.databricks.delta.writeChecksumFile.enabled": "true"})
    committed(log, "a")
    path = f"{log.log_path}/{crc_name(1)}"
    text = log.store.read(path).replace(b'"numFiles":1', b'"numFiles":5')
    log.store.write(path, text, overwrite=True)
    commit = f"{log.log_path}/{commit_name(1)}"
    log.store.write(commit, log.store.read(commit).replace(b'"txnId":"', b'"txnId":"x'), overwrite=True)
    with pytest.raises(ChecksumMismatchError) as raised:
        _ = other(log).snapshot().files
    assert fields(raised.value) == (TABLE, 1, crc_name(1))


def _whole_table(txn: Transaction) -> None:
    txn.read_whole_table()


def _file(txn: Transaction) -> None:
    txn.read_keys([("a", None)])


def _nothing(txn: Transaction) -> None:
    pass


def _append(txn: Transaction) -> None:
    txn.commit([add("winner")], WRITE)


def _remove(txn: Transaction) -> None:
    txn.commit([RemoveFile("a", 1, True)], Operation("DELETE"))


def _identify(txn: Transaction) -> None:
    txn.commit([SetTransaction("app", 1)], WRITE)


def _describe(txn: Transaction) -> None:
    txn.set_metadata(replace(txn.metadata, description="other"))
    txn.commit([], Operation("SET TBLPROPERTIES"))


CONFLICTS: dict[type[DeltaConcurrentModificationException], tuple[Callable[..., None], Callable[..., None], str | None]]
CONFLICTS = {
    ConcurrentAppendException: (_whole_table, _append, None),
    ConcurrentDeleteReadException: (_file, _remove, "a"),
    ConcurrentDeleteDeleteException: (_nothing, _remove, "a"),
    ConcurrentTransactionException: (_nothing, _identify, None),
    MetadataChangedException: (_nothing, _describe, None),
}


@pytest.mark.parametrize("kind", CONFLICTS, ids=lambda kind: kind.__name__)
def test_a_conflict_names_the_version_that_was_read_and_the_winner(
    kind: type[DeltaConcurrentModificationException],
) -> None:
    reads, wins, path = CONFLICTS[kind]
    log = table(isolationLevel="Serializable")
    committed(log, "a")
    loser = log.transaction()
    reads(loser)
    handle = other(log)
    committed(handle, *([] if kind is ConcurrentAppendException else ["unrelated"]))
    wins(handle.transaction())
    with pytest.raises(DeltaConcurrentModificationException) as raised:
        loser.commit([RemoveFile("a", 1, True), SetTransaction("app", 2)], Operation("DELETE"))
    error = raised.value
    assert type(error) is kind
    assert fields(error) == (TABLE, 1, path)
    assert error.winner == handle.snapshot().version
    assert f"version {error.winner} " in str(error)
    copy = pickle.loads(pickle.dumps(error))
    assert (fields(copy), copy.winner) == (fields(error), error.winner)


def test_a_conflict_about_a_table_that_another_writer_created() -> None:
    log = new_log()
    loser = log.transaction()
    create(other(log))
    loser.set_metadata(Metadata("mine", SCHEMA, (), {}))
    with pytest.raises(ProtocolChangedException) as raised:
        loser.commit([], Operation("CREATE TABLE"))
    assert fields(raised.value) == (TABLE, -1, None)
    assert raised.value.winner == 0


def test_a_commit_that_lost_every_attempt_names_the_last_winner() -> None:
    log = new_log(conf={"spark.databricks.delta.maxCommitAttempts": "0"})
    create(log)
    loser = log.transaction()
    committed(other(log), "a")
    with pytest.raises(ConcurrentWriteException) as raised:
        loser.commit([add("m")], WRITE)
    assert fields(raised.value) == (TABLE, 0, None)
    assert raised.value.winner == 1


def test_a_commit_without_an_answer() -> None:
    class Silent(MemoryLogStore):
        def write(self, path: str, data: bytes, *, overwrite: bool = False) -> None:
            raise WriteOutcomeUnknown(path, "reset")

    store = MemoryLogStore()
    log = new_log(store, clock=Patient())
    create(log)
    silent = Silent()
    silent.__dict__.update(store.__dict__)
    transaction = Transaction(
        DeltaLog(log.table, silent, conf=log.conf, clock=Patient()), log.snapshot(), patience=QUICK
    )
    with pytest.raises(CommitStateUnknownError) as raised:
        transaction.commit([add("m")], WRITE)
    assert fields(raised.value) == (TABLE, 1, None)


def test_an_error_of_the_store_gets_the_table() -> None:
    class Failing(MemoryLogStore):
        def list_from(self, path: str) -> None:  # type: ignore[override]
            raise StorageUnavailableError("listing: no route", path=path)

    log = DeltaLog(TABLE, Failing())
    with pytest.raises(StorageUnavailableError) as raised:
        log.snapshot()
    assert raised.value.table == TABLE
    assert str(raised.value.path).startswith(f"{TABLE}/_delta_log/")


# --- the stores ---------------------------------------------------------------------------------------------------


def test_a_write_that_is_refused_names_the_file_without_user_information() -> None:
    with pytest.raises(StorageAccessError) as refused:
        settle(SECRET, lambda: Answer.failed(StorageAccessError("no permission")), NO_PAUSES)
    assert refused.value.path == "s3://bucket/t/_delta_log/0.json"


def test_each_error_of_hadoop_names_the_file() -> None:
    for name in ("AccessControlException", "NSQuotaExceededException", "ConnectException", "InvalidPathException"):
        error = error_for(f"org.example.{name}", "text", "reading", "hdfs://user@host/t/a.json")
        assert isinstance(error, TablelogError)
        assert error.path == "hdfs://host/t/a.json"


def test_an_error_of_s3_names_the_file() -> None:
    pytest.importorskip("botocore")
    from tablelog.logstore.s3.replies import error_of

    error = error_of(OSError("no route"), "reading", SECRET)
    assert isinstance(error, StorageUnavailableError)
    assert error.path == "s3://bucket/t/_delta_log/0.json"


def test_errors_of_local_files_name_the_file(tmp_path: Path) -> None:
    (tmp_path / "directory").mkdir()
    path = f"file://{tmp_path}/directory"
    with pytest.raises(CorruptLogError) as no_file:
        LocalLogStore().read(path)
    assert no_file.value.path == path
    (tmp_path / "file").write_bytes(b"x")
    with pytest.raises(TablelogError) as no_directory:
        LocalLogStore().write(f"file://{tmp_path}/file/0.json", b"x")
    assert str(no_directory.value.path) in str(no_directory.value)
    with pytest.raises(StorageError) as no_data_file:
        DataFiles.of(f"file://{tmp_path}", {}, {}).write("file/a.parquet", b"x")
    assert str(no_data_file.value.path).endswith("/file/a.parquet")
    assert str(no_data_file.value.path) in str(no_data_file.value)
