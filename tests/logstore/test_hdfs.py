"""The store for HDFS, on a file system that can be made to fail at each step."""

import logging
import os
import pickle
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from logstore.fake_hadoop import DirectoryFiles, FailingFiles, store
from tablelog.conformance import CHECKS, Check, Level, try_out
from tablelog.errors import (
    CorruptLogError,
    InvalidArgumentError,
    LogStoreConfigurationError,
    StorageAccessError,
    StorageError,
    StorageUnavailableError,
    UnsupportedEnvironmentError,
    WriteOutcomeUnknown,
)
from tablelog.logstore import store_for
from tablelog.logstore.common import spool
from tablelog.logstore.hdfs import client, native_client
from tablelog.logstore.hdfs.errors import error_for
from tablelog.logstore.hdfs.native_client import NativeFiles, NativeLibrary, native_error
from tablelog.logstore.hdfs.store import PROCESS_CLIENTS, STALE_AFTER_MS, HDFSLogStore, ProcessClients

QUICK = [check for check in CHECKS if check.level is Level.QUICK]
NAME = f"{0:020}.json"
AWAY = StorageUnavailableError("the NameNode is away")
REFUSED = StorageAccessError("permission denied")


@pytest.fixture
def log(tmp_path: Path) -> str:
    """The URI of a log's directory, which exists."""
    (tmp_path / "_delta_log").mkdir()
    return f"hdfs://cluster{tmp_path}/_delta_log"


@pytest.fixture
def process_clients() -> Iterator[ProcessClients]:
    """What creates the clients of the stores in this process, set back after the test."""
    before = PROCESS_CLIENTS.current()
    yield PROCESS_CLIENTS
    PROCESS_CLIENTS.use(before)


@pytest.fixture
def directory() -> Iterator[Path]:
    with TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as name:
        yield Path(name)


def on(files: FailingFiles) -> HDFSLogStore:
    return HDFSLogStore(clients=lambda _conf: files)


def left(log: str) -> list[str]:
    return sorted(os.listdir(log.removeprefix("hdfs://cluster")))


@pytest.mark.parametrize("check", QUICK, ids=lambda check: check.name)
@pytest.mark.thorough
def test_it_keeps_the_contract(check: Check, directory: Path) -> None:
    if check.number in (5, 6):  # lost replies and the like, of which the tests below have HDFS's own
        pytest.skip("these stand in front of a service that speaks HTTP")
    try_out(check, store, f"hdfs://cluster{directory}/table")


# ---- what the answer to a rename comes to --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "error", [AWAY, REFUSED, FileNotFoundError("no source"), FileExistsError("taken"), OSError("?")]
)
def test_a_rename_that_was_made_is_never_lost(log: str, error: Exception) -> None:
    """Whatever the answer: a client may have repeated the rename, and give the answer to the second one."""
    with pytest.raises(WriteOutcomeUnknown):
        on(FailingFiles(rename=("after", error))).write(f"{log}/{NAME}", b"ours")
    assert left(log) == [NAME]


def test_a_rename_that_the_client_repeats_is_unknown(log: str) -> None:
    with pytest.raises(WriteOutcomeUnknown):
        on(FailingFiles(rename="again")).write(f"{log}/{NAME}", b"ours")
    assert left(log) == [NAME]


@pytest.mark.parametrize("error", [AWAY, REFUSED])
def test_a_rename_that_was_not_made_wrote_nothing(log: str, error: StorageError) -> None:
    """The temporary file was there to be removed, so no rename took it, and none that is still on its way will."""
    with pytest.raises(type(error)) as caught:
        on(FailingFiles(rename=("before", error))).write(f"{log}/{NAME}", b"ours")
    assert caught.value is error
    assert left(log) == []


def test_an_error_that_says_nothing_of_a_rename_that_was_not_made(log: str) -> None:
    with pytest.raises(StorageUnavailableError, match="nothing was written"):
        on(FailingFiles(rename=("before", OSError("?")))).write(f"{log}/{NAME}", b"ours")
    assert left(log) == []


def test_a_lost_reply_and_nobody_to_ask_is_unknown(log: str) -> None:
    for when in ("before", "after"):
        with pytest.raises(WriteOutcomeUnknown, match="the NameNode is away"):
            on(FailingFiles(rename=(when, AWAY), delete="before")).write(f"{log}/{NAME}", b"ours")
    assert NAME in left(log)
    assert next(store().list_from(f"{log}/")).path.endswith(NAME)


class OvertakenFiles(FailingFiles):
    """Another writer takes the name between our look at it and our rename."""

    def rename(self, source: str, target: str, *, overwrite: bool) -> None:
        DirectoryFiles.write(self, target, b"theirs")
        super().rename(source, target, overwrite=overwrite)


@pytest.mark.parametrize("answer", ["", ("before", AWAY), ("before", OSError("rename returned false"))])
def test_a_name_that_another_took_is_lost_whatever_the_answer(log: str, answer: str | tuple[str, Exception]) -> None:
    with pytest.raises(FileExistsError):
        on(OvertakenFiles(rename=answer)).write(f"{log}/{NAME}", b"ours")
    assert store().read(f"{log}/{NAME}") == b"theirs"
    assert left(log) == [NAME]


def test_taken_and_nobody_to_ask_for_the_temporary_is_unknown(log: str) -> None:
    """On a client that repeats, "taken" alone may be our own first rename's doing."""
    with pytest.raises(WriteOutcomeUnknown):
        on(OvertakenFiles(delete="before")).write(f"{log}/{NAME}", b"ours")


def test_a_loser_writes_nothing(log: str) -> None:
    files = FailingFiles()
    on(files).write(f"{log}/{NAME}", b"first")
    files.calls.clear()
    with pytest.raises(FileExistsError, match=NAME):
        on(files).write(f"{log}/{NAME}", b"second")
    assert files.calls == ["exists"]


@pytest.mark.parametrize("error", [AWAY, FileExistsError("taken"), FileNotFoundError("no parent")])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_temporary_file_that_cant_be_written_is_no_race(log: str, when: str, error: Exception) -> None:
    with pytest.raises(StorageUnavailableError):
        on(FailingFiles(write=(when, error))).write(f"{log}/{NAME}", b"ours")
    assert left(log) == []


def test_a_large_file_goes_through_a_temporary_one(log: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the outcomes of a small one."""
    monkeypatch.setattr(spool, "IN_MEMORY", 4)
    contents: list[type] = []

    class Noting(FailingFiles):
        def write(self, path: str, content: spool.Content) -> None:
            contents.append(type(content))
            super().write(path, content)

    path, pieces = f"{log}/{NAME}", [b"abc", b"", b"defgh" * 9]
    on(Noting()).write_pieces(path, iter(pieces))
    assert store().read(path) == b"".join(pieces)
    with pytest.raises(FileExistsError):
        on(Noting()).write_pieces(path, [b"second", b"writer"])
    store().delete(path)
    for plan, error in (
        ({"rename": ("after", AWAY)}, WriteOutcomeUnknown),
        ({"rename": ("before", AWAY)}, StorageUnavailableError),
        ({"write": ("after", AWAY)}, StorageUnavailableError),
    ):
        store().delete(path)
        with pytest.raises(error):
            on(Noting(**plan)).write_pieces(path, pieces)
    assert left(log) == []

    def broken() -> Iterator[bytes]:
        yield from pieces
        raise OSError("of the caller")

    with pytest.raises(OSError, match="of the caller"):
        on(Noting()).write_pieces(path, broken())
    assert left(log) == []
    assert contents
    assert bytes not in contents


def test_a_large_file_is_read_in_pieces(log: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "IN_MEMORY", 4)
    one, path = on(FailingFiles()), f"{log}/{NAME}"
    one.write(path, b"0123456789")
    with one.open_file(path) as file:
        assert file.read() == b"0123456789"
    assert one.read_at_most(path, 10) == b"0123456789"
    with pytest.raises(CorruptLogError, match="has more than 9 bytes, but should have 9 at most"):
        one.read_at_most(path, 9)
    for read in (one.open_file, partial(one.read_at_most, most=10)):
        with pytest.raises(FileNotFoundError):
            read(f"{log}/absent")


def test_an_interrupt_leaves_nothing_hidden(log: str) -> None:
    class Interrupted(FailingFiles):
        def rename(self, source: str, target: str, *, overwrite: bool) -> None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        on(Interrupted()).write(f"{log}/{NAME}", b"ours")
    assert left(log) == []


def test_an_overwrite_that_may_have_been_made_says_so(log: str) -> None:
    path = f"{log}/_last_checkpoint"
    store().write(path, b"old", overwrite=True)
    with pytest.raises(WriteOutcomeUnknown):
        on(FailingFiles(rename="after")).write(path, b"new", overwrite=True)
    with pytest.raises(StorageUnavailableError):
        on(FailingFiles(rename="before")).write(path, b"newer", overwrite=True)
    assert left(log) == ["_last_checkpoint"]
    assert store().read(path) == b"new"


# ---- temporary files ------------------------------------------------------------------------------------------------


def test_an_overwrite_sweeps_what_died_a_day_ago_by_the_name_nodes_clock(
    log: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The mark is the youngest file, so a machine whose clock is off doesn't take away what others are writing."""
    directory = Path(log.removeprefix("hdfs://cluster"))
    now = 10 * STALE_AFTER_MS / 1000  # 1970: no clock says so
    uuid = "0b6b8b9e-3c1f-4f6b-9f53-2f3f2c8d5c11"
    ages = {f".{NAME}.{uuid}.tmp": 1.01, f".x.{uuid}.tmp": 0.99, ".mine.tmp": 5, "00.json": 5, "young": 0}
    for name, days in ages.items():
        (directory / name).touch()
        os.utime(directory / name, (now - days * STALE_AFTER_MS / 1000,) * 2)

    class Stamping(DirectoryFiles):
        def rename(self, source: str, target: str, *, overwrite: bool) -> None:
            super().rename(source, target, overwrite=overwrite)
            os.utime(directory / target.rpartition("/")[2], (now, now))

    HDFSLogStore(clients=Stamping).write(f"{log}/_last_checkpoint", b"", overwrite=True)
    assert set(left(log)) == {*ages, "_last_checkpoint"} - {f".{NAME}.{uuid}.tmp"}

    class Failing(Stamping):
        def entries(self, directory: str) -> list[client.HdfsEntry]:
            raise AWAY

    with caplog.at_level(logging.WARNING):
        HDFSLogStore(clients=Failing).write(f"{log}/_last_checkpoint", b"1", overwrite=True)
    assert "couldn't remove stale temporary files" in caplog.text


def test_hidden_names_are_refused(log: str) -> None:
    for name in ("", f".{NAME}.crc", f".{NAME}.0b6b8b9e-3c1f-4f6b-9f53-2f3f2c8d5c11.tmp"):
        with pytest.raises(InvalidArgumentError, match="listings omit"):
            store().write(f"{log}/{name}" if name else "hdfs://cluster/", b"")


# ---- clients, paths, configuration ----------------------------------------------------------------------------------


def test_the_client_in_use_is_that_of_the_process(process_clients: ProcessClients) -> None:
    made = []

    def clients(conf: object) -> DirectoryFiles:
        made.append(conf)
        return DirectoryFiles({})

    one = HDFSLogStore({"dfs.a": "1"})
    process_clients.use(clients)
    for _ in range(2):
        one.read(f"hdfs://cluster{__file__}")
        pickle.loads(pickle.dumps(one)).read(f"hdfs://cluster{__file__}")
    assert made == [{"dfs.a": "1"}] * 3


def test_a_forked_child_has_no_session(monkeypatch: pytest.MonkeyPatch) -> None:
    clients = ProcessClients()
    clients.use(DirectoryFiles)
    assert clients.current() is DirectoryFiles
    monkeypatch.setattr(os, "getpid", lambda: -1)
    assert clients.current() is NativeFiles


def test_a_pickled_store_keeps_the_clients_that_it_was_created_with() -> None:
    assert pickle.loads(pickle.dumps(store()))._files().default_file_system() == "hdfs://default:8020"


def test_keys_of_hadoop_as_spark_writes_them() -> None:
    conf = {"spark.hadoop.dfs.a": "1", "dfs.b": "2", "spark.hadoop.dfs.b": "3", "fs.s3a.secret.key": "x", "other": "y"}
    made = store_for("hdfs://n/t", conf=conf, storage_options={"dfs.a": "9", "dfs.replication": 1})
    assert isinstance(made, HDFSLogStore)
    assert made._conf == {"dfs.a": "1", "dfs.b": "2", "dfs.replication": "1"}
    with pytest.raises(LogStoreConfigurationError, match="user"):
        store_for("hdfs://n/t", storage_options={"user": "me"})


@pytest.mark.parametrize(
    ("path", "resolved"),
    [
        ("hdfs://N:8020/a//b/", "hdfs://N:8020/a/b"),
        ("HDFS://n/a%20b%2bc", "hdfs://n/a%20b+c"),
        ("viewfs://c/ä", "viewfs://c/%C3%A4"),
        ("hdfs:///a", "hdfs://default:8020/a"),
        ("hdfs:/a", "hdfs://default:8020/a"),
        ("hdfs://n", "hdfs://n/"),
    ],
)
def test_canonical_paths(path: str, resolved: str) -> None:
    assert store().resolve(path) == resolved
    assert store().resolve(resolved) == resolved


@pytest.mark.parametrize("path", ["hdfs://n/a/../b", "hdfs://n/./b", "hdfs://n/a%00", "viewfs:///a", "/a", "hdfs:a"])
def test_paths_that_are_none(path: str) -> None:
    with pytest.raises(InvalidArgumentError):
        store().resolve(path)


# ---- errors ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("exception", "message", "kind"),
    [
        ("java.io.FileNotFoundException", "", FileNotFoundError),
        ("org.apache.hadoop.fs.FileAlreadyExistsException", "", FileExistsError),
        ("org.apache.hadoop.security.AccessControlException", "", StorageAccessError),
        ("org.apache.hadoop.security.token.SecretManager$InvalidToken", "", StorageAccessError),
        ("org.apache.hadoop.hdfs.server.namenode.SafeModeException", "", StorageUnavailableError),
        ("org.apache.hadoop.ipc.StandbyException", "", StorageUnavailableError),
        ("java.lang.IllegalArgumentException", "java.net.UnknownHostException: nn", StorageUnavailableError),
        ("java.lang.IllegalArgumentException", "Wrong FS", InvalidArgumentError),
        ("java.net.ConnectException", "", StorageUnavailableError),
        ("java.io.IOException", "", StorageUnavailableError),
        ("org.apache.hadoop.hdfs.protocol.DSQuotaExceededException", "", StorageError),
        ("org.apache.hadoop.fs.UnsupportedFileSystemException", "", UnsupportedEnvironmentError),
    ],
)
def test_what_javas_exceptions_mean(exception: str, message: str, kind: type[Exception]) -> None:
    error = error_for(exception, f"{message}\n\tat some.Class(Line:1)", "reading", "hdfs://n/t")
    assert type(error) is kind
    assert "hdfs://n/t" in str(error)
    assert exception.rpartition(".")[2].rpartition("$")[2] in str(error)
    assert "some.Class" not in str(error)
    over_hdfs_native = RuntimeError(f'RPCError("{exception}", "{message}\\n\\tat some.Class(Line:1)\\n")')
    assert str(native_error(over_hdfs_native, "reading", "hdfs://n/t")) == str(error)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (OSError("Connection refused (os error 111)"), StorageUnavailableError),
        (OSError("RPC listener disconnected"), StorageUnavailableError),
        (RuntimeError('SASLError("no ticket")'), StorageAccessError),
        (RuntimeError("NoSASLMechanism"), StorageAccessError),
        (RuntimeError('InvalidArgument("No NameNode hosts found")'), LogStoreConfigurationError),
        (RuntimeError('DataTransferError("?")'), StorageUnavailableError),
    ],
)
def test_what_hdfs_natives_exceptions_mean(error: Exception, kind: type[Exception]) -> None:
    assert type(native_error(error, "reading", "hdfs://n/t")) is kind


# ---- hdfs-native: what needs no server ------------------------------------------------------------------------------


def test_hdfs_native_finds_the_users_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    (tmp_path / "core-site.xml").write_text(
        "<configuration><property><name>fs.defaultFS</name><value> hdfs://ns </value></property></configuration>"
    )
    assert HDFSLogStore(clients=NativeFiles).resolve("hdfs:///a") == "hdfs://ns/a"
    assert HDFSLogStore({"fs.defaultFS": "hdfs://other"}, clients=NativeFiles).resolve("hdfs:///a") == "hdfs://other/a"
    (tmp_path / "hdfs-site.xml").write_text("<configuration>")
    with pytest.raises(LogStoreConfigurationError, match=r"hdfs-site\.xml"):
        HDFSLogStore(clients=NativeFiles).resolve("hdfs:///a")


def test_hdfs_native_never_reads_from_an_observer() -> None:
    key = "dfs.client.failover.proxy.provider.ns"
    observing = {key: "org.apache.hadoop.hdfs.server.namenode.ha.ObserverReadProxyProvider", "dfs.x": "1"}
    asked = native_client._always_active(observing)
    assert asked == {key: "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider", "dfs.x": "1"}


def test_hdfs_native_takes_the_umask_as_a_number_only() -> None:
    assert native_client._umask({"fs.permissions.umask-mode": "027"}) == 0o27
    with pytest.raises(LogStoreConfigurationError, match="octal"):
        NativeFiles({"fs.permissions.umask-mode": "u=rwx,g=rx,o="})


def test_what_hdfs_native_cant_reach_is_refused() -> None:
    pytest.importorskip("hdfs_native")
    with pytest.raises(UnsupportedEnvironmentError, match="Spark session"):
        NativeFiles({}, library=NativeLibrary()).read("ofs://cluster/volume/bucket/a")
    nfly = {"fs.viewfs.mounttable.c.linkNfly../a": "hdfs://n/a", "fs.viewfs.mounttable.c.linkFallback": "hdfs://n/"}
    with pytest.raises(UnsupportedEnvironmentError, match="linkNfly"):
        NativeFiles(nfly, library=NativeLibrary()).read("viewfs://c/a/b")


def test_a_child_that_was_forked_is_told() -> None:
    with pytest.raises(UnsupportedEnvironmentError, match="spawn"):
        NativeFiles({}, library=NativeLibrary(used_in=os.getppid())).read("hdfs://n/a")


def test_a_missing_hdfs_native_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "hdfs_native", None)
    with pytest.raises(UnsupportedEnvironmentError, match=r"tablelog\[hdfs\]"):
        NativeFiles({}, library=NativeLibrary()).read("hdfs://n/a")


def test_a_call_that_hangs_is_given_up() -> None:
    """A listener that takes connections and never answers, as a NameNode that is stopped."""
    pytest.importorskip("hdfs_native")
    import socket

    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(StorageUnavailableError, match="no answer within"):
            NativeFiles({}, timeout_seconds=0.2, library=NativeLibrary()).read(f"hdfs://127.0.0.1:{port}/a")
