"""HDFS itself, by both clients: hdfs-native, and Spark's own Hadoop client."""

import json
import os
import pickle
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from tablelog.conformance import CHECKS, Check, Level, try_out
from tablelog.core.deltalog import DeltaLog
from tablelog.core.protocol.actions import Metadata, Protocol
from tablelog.core.txn.operation import Operation
from tablelog.engine.jvm.hadoop import has_file_system
from tablelog.engine.storage import hadoop_log
from tablelog.engine.storage.hadoop_client import HadoopFiles
from tablelog.errors import (
    CorruptLogError,
    InvalidArgumentError,
    StorageAccessError,
    StorageUnavailableError,
    UnsafeStoreError,
    UnsupportedEnvironmentError,
    WriteOutcomeUnknown,
)
from tablelog.logstore.common import spool
from tablelog.logstore.hdfs.native_client import NativeFiles
from tablelog.logstore.hdfs.store import PROCESS_CLIENTS, HDFSLogStore

from .hdfs import HDFS
from .hdfs_writers import SCHEMA, SPAWN, LosingProxy, append, die_before_the_rename, processes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUICK = [check for check in CHECKS if check.level is Level.QUICK and check.number not in (5, 6)]


@pytest.fixture(autouse=True)
def nothing_stays() -> Iterator[None]:
    before = PROCESS_CLIENTS.current()
    PROCESS_CLIENTS.use(NativeFiles)
    yield
    PROCESS_CLIENTS.use(before)


@pytest.fixture(params=["hdfs-native", "spark"])
def client(request: pytest.FixtureRequest) -> str:
    """Each client in turn is that of the process."""
    name: str = request.param
    if name == "spark":
        use_spark(request.getfixturevalue("spark"))
    else:
        pytest.importorskip("hdfs_native")
    return name


def use_spark(spark: "SparkSession") -> None:
    hadoop_log._served.clear()
    hadoop_log.serve(spark)


def store(conf: dict[str, str]) -> HDFSLogStore:
    return HDFSLogStore(conf)


def new_table(url: str, conf: dict[str, str]) -> DeltaLog:
    log = DeltaLog.for_path(url, conf=conf)
    log.transaction().commit([Protocol(1, 2), Metadata("t", SCHEMA, ())], Operation("CREATE TABLE"))
    return log


def names(conf: dict[str, str], url: str) -> list[str]:
    """All that is in a log's directory, hidden names too."""
    return sorted(entry.name for entry in NativeFiles(conf).entries(f"{url}/_delta_log/"))


def check_log(url: str, conf: dict[str, str], made: dict[str, list[int]]) -> None:
    """Every commit that was acknowledged is there once, at the version that was said, and there is no other."""
    versions = sorted(version for each in made.values() for version in each)
    assert versions == list(range(1, len(versions) + 1))
    files = HDFSLogStore(conf)
    for writer, each in made.items():
        for serial, version in enumerate(each):
            lines = files.read(f"{url}/_delta_log/{version:020}.json").splitlines()
            added = [json.loads(line)["add"]["path"] for line in lines if b'"add"' in line]
            assert added == [f"f-{writer}-{serial}"]
    assert not [name for name in names(conf, url) if name.startswith(".")]


@pytest.mark.parametrize("check", QUICK, ids=lambda check: check.name)
def test_hdfs_native_keeps_the_contract(check: Check, hdfs: HDFS) -> None:
    pytest.importorskip("hdfs_native")
    try_out(check, partial(store, hdfs.conf), hdfs.url(), seconds=120)


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "check", [check for check in QUICK if check.guarantee in (1, 2, 3)], ids=lambda check: check.name
)
def test_sparks_client_keeps_the_contract(check: Check, hdfs: HDFS, spark: "SparkSession") -> None:
    """A check ends when it has seen enough; the time is for slow machines, where a step of a call took 25 s."""
    use_spark(spark)
    try_out(check, partial(store, hdfs.conf), hdfs.url(), seconds=600)


def test_names_that_hdfs_takes(hdfs: HDFS, client: str) -> None:
    """As long as HDFS's own limit, though the temporary name is longer; no colon, and that is found out at once."""
    one, log = HDFSLogStore(hdfs.conf), f"{hdfs.url()}/_delta_log"
    one.write(f"{log}/{'y' * 255}", b"1")
    with pytest.raises(InvalidArgumentError, match="a:b"):
        one.write(f"{log}/a:b", b"")
    assert names(hdfs.conf, log.rpartition("/")[0]) == ["y" * 255], client


def test_a_large_file_is_written_in_pieces(hdfs: HDFS, client: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "IN_MEMORY", 1 << 16)
    monkeypatch.setattr(spool, "_CHUNK", 100_001)
    store, path = HDFSLogStore(hdfs.conf), f"{hdfs.url()}/_delta_log/{0:020}.json"
    pieces = [bytes([number]) * 70_001 for number in range(40)]
    store.write_pieces(path, iter(pieces))
    assert store.read(path) == store.read_at_most(path, 40 * 70_001) == b"".join(pieces)
    with store.open_file(path) as file:
        assert file.read() == b"".join(pieces)
    with pytest.raises(CorruptLogError, match="more than 999999 bytes"):
        store.read_at_most(path, 999_999)
    with pytest.raises(FileNotFoundError):
        store.open_file(f"{path}.absent")
    with pytest.raises(FileExistsError):
        store.write_pieces(path, reversed(pieces))
    store.write_pieces(path, pieces[:3], overwrite=True)
    assert store.read(path) == b"".join(pieces[:3])
    assert [status.size for status in store.list_from(path)] == [3 * 70_001]


def test_processes_and_threads_of_both_clients_make_one_log(hdfs: HDFS, spark: "SparkSession") -> None:
    """Four processes with hdfs-native, and four threads that share one handle on Spark's client."""
    use_spark(spark)
    url, commits = hdfs.url(), 8
    new_table(url, hdfs.conf)
    threads = [f"thread-{number}" for number in range(4)]
    with (
        processes([f"process-{number}" for number in range(4)], url, hdfs.conf, commits) as made,
        ThreadPoolExecutor(4) as pool,
    ):
        done = list(pool.map(lambda name: append(url, hdfs.conf, name, commits), threads))
    made.update(zip(threads, done, strict=True))
    check_log(url, hdfs.conf, made)


def test_a_name_node_that_is_killed_and_started_again_amid_commits(hdfs: HDFS, spark: "SparkSession") -> None:
    use_spark(spark)
    own = HDFS.start()
    try:
        url = own.url()
        new_table(url, own.conf)
        with processes(["process-0", "process-1"], url, own.conf, 6) as made, ThreadPoolExecutor(1) as pool:
            thread = pool.submit(append, url, own.conf, "thread", 6)
            log = DeltaLog.for_path(url, conf=own.conf)
            while log.snapshot().version < 4:
                pass
            own.kill()
            own.restart()
            said = thread.exception(timeout=180)
            made["thread"] = thread.result() if said is None else repr(said)
        # Whoever gave up was told so, and said nothing of what isn't there.
        acknowledged = {name: versions for name, versions in made.items() if isinstance(versions, list)}
        for name, failure in made.items():
            assert name in acknowledged or "Unavailable" in failure or "CommitStateUnknown" in failure, failure
        latest = DeltaLog.for_path(url, conf=own.conf).snapshot()
        assert latest.version >= 4  # the cluster that was killed has kept what it had acknowledged
        paths = latest.files.column("path").to_pylist()
        assert len(paths) == len(set(paths)) == latest.version
        for name, versions in acknowledged.items():
            assert {f"f-{name}-{serial}" for serial in range(len(versions))} <= set(paths)
    finally:
        own.stop()


@pytest.mark.parametrize("whole", [True, False], ids=["applied", "not-applied"])
def test_a_lost_reply_to_a_rename(hdfs: HDFS, client: str, whole: bool) -> None:
    """Won, or unknown; lost only where nothing was written. And a commit in the same place is made once."""
    with LosingProxy(hdfs.port, b"rename2", whole=whole) as proxy:
        conf = {"fs.defaultFS": f"hdfs://127.0.0.1:{proxy.port}", "dfs.replication": "1"}
        url = hdfs.url().replace(str(hdfs.port), str(proxy.port), 1)
        path = f"{url}/_delta_log/{0:020}.json"
        try:
            HDFSLogStore(conf).write(path, b"ours")
        except WriteOutcomeUnknown:
            assert whole
        except StorageUnavailableError:
            assert not whole
        assert proxy.lost == 1
        left = names(conf, url)
        assert left in ([f"{0:020}.json"], []), client
        assert bool(left) == whole
        if whole:  # a whole commit looks at what became of it, and is made once
            proxy.times = 2
            assert new_table(f"{url}-table", conf).snapshot().version == 0
            assert proxy.lost == 2


def test_a_killed_writer_leaves_a_hidden_file_at_most(hdfs: HDFS, client: str) -> None:
    url = hdfs.url()
    path = f"{url}/_delta_log/{0:020}.json"
    doomed = SPAWN.Process(target=die_before_the_rename, args=(hdfs.conf, path, b"lost"))
    doomed.start()
    doomed.join(60)
    assert doomed.exitcode == -9
    assert [name[:26] for name in names(hdfs.conf, url)] == [f".{0:020}.json"]
    one = HDFSLogStore(hdfs.conf)
    assert list(one.list_from(f"{url}/_delta_log/")) == []
    one.write(path, b"next")
    assert [status.size for status in one.list_from(path)] == [4], client


def test_a_pickled_store_has_no_session_elsewhere(hdfs: HDFS, spark: "SparkSession") -> None:
    use_spark(spark)
    one, url = HDFSLogStore(hdfs.conf), hdfs.url()
    one.write(f"{url}/a", b"1")
    with SPAWN.Pool(1) as pool:
        assert pool.apply(read_and_say, (pickle.dumps(one), f"{url}/a")) == (b"1", "NativeFiles")


def read_and_say(pickled: bytes, path: str) -> tuple[bytes, str]:
    one = pickle.loads(pickled)
    return one.read(path), type(one._files()).__name__


def test_a_fork_of_hdfs_native_is_refused(hdfs: HDFS) -> None:
    pytest.importorskip("hdfs_native")
    one, url = HDFSLogStore(hdfs.conf), hdfs.url()
    one.write(f"{url}/a", b"1")
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            one.read(f"{url}/a")
        except UnsupportedEnvironmentError:
            os.write(writer, b"refused")
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writer)
    with os.fdopen(reader, "rb") as answer:
        assert answer.read() == b"refused"


def test_paths_without_an_authority(hdfs: HDFS, client: str) -> None:
    url = hdfs.url()
    bare = "hdfs:///" + url.partition("://")[2].partition("/")[2]
    one = HDFSLogStore(hdfs.conf)
    one.write(f"{bare}/a", b"1")
    assert one.read(f"{url}/a") == b"1", client
    assert one.resolve(bare) == one.resolve(url)


def test_viewfs(hdfs: HDFS, client: str) -> None:
    """The temporary file is beside its target, so a rename never crosses a mount point."""
    mounts = {"fs.viewfs.mounttable.c.link./logs": hdfs.root, "fs.viewfs.mounttable.c.linkFallback": hdfs.endpoint}
    one = HDFSLogStore({**hdfs.conf, **mounts})
    below = hdfs.url().removeprefix(hdfs.root)
    path = f"viewfs://c/logs{below}/_delta_log/{0:020}.json"
    one.write(path, b"1")
    with pytest.raises(FileExistsError):
        one.write(path, b"2")
    assert [status.path for status in one.list_from(path)] == [path], client
    assert one.read(f"{hdfs.root}{below}/_delta_log/{0:020}.json") == b"1"


def test_viewfs_over_what_is_not_exclusive_is_refused(hdfs: HDFS, spark: "SparkSession", tmp_path: Any) -> None:
    use_spark(spark)
    one = HDFSLogStore({**hdfs.conf, "fs.viewfs.mounttable.c.link./local": f"file://{tmp_path}"})
    with pytest.raises(UnsafeStoreError, match="mounted from file:"):
        one.write("viewfs://c/local/table/_delta_log/0.json", b"1")
    assert os.listdir(tmp_path / "table/_delta_log") == []


@pytest.mark.parametrize(
    ("key", "value", "kind"),
    [
        ("fs.AbstractFileSystem.hdfs.impl", "org.apache.hadoop.fs.local.LocalFs", UnsafeStoreError),
        ("fs.hdfs.impl", "org.apache.hadoop.hdfs.ViewDistributedFileSystem", UnsupportedEnvironmentError),
    ],
)
def test_another_implementation_of_hdfs_is_refused(
    hdfs: HDFS, spark: "SparkSession", key: str, value: str, kind: type[Exception]
) -> None:
    use_spark(spark)
    with pytest.raises(kind, match=key):
        HDFSLogStore({**hdfs.conf, key: value}).write(f"{hdfs.url()}/a", b"1")


def test_ozone_without_its_jars_is_refused(spark: "SparkSession") -> None:
    use_spark(spark)
    with pytest.raises(UnsupportedEnvironmentError, match="jars"):
        HDFSLogStore().read("ofs://cluster/volume/bucket/a")


@pytest.fixture
def as_stranger(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user who may read what is open to all, and write nothing."""
    monkeypatch.setenv("HADOOP_USER_NAME", "stranger")


def test_a_user_who_may_not_write(hdfs: HDFS, as_stranger: None) -> None:
    pytest.importorskip("hdfs_native")
    with pytest.raises(StorageAccessError, match="stranger"):
        HDFSLogStore(hdfs.conf).write(f"{hdfs.root}/a/b", b"1")


def test_nobody_at_the_address(client: str) -> None:
    for where in ("hdfs://127.0.0.1:1", "hdfs://no-such-host.invalid"):
        with pytest.raises(StorageUnavailableError, match=re.escape(f"{where}/table/a")):
            HDFSLogStore().write(f"{where}/table/a", b"1")
    with pytest.raises(InvalidArgumentError, match=r"fs\.defaultFS"):
        HDFSLogStore().read("viewfs:///a")


def test_data_files_by_sparks_client(hdfs: HDFS, spark: "SparkSession") -> None:
    files, url = HadoopFiles(spark), hdfs.url()
    data = bytes(range(256)) * 8
    files.write(f"{url}/staging/a%20b%25.bin", data)
    files.write(f"{url}/staging/p=1/c.bin", b"")
    found = sorted(files.list_recursive(url))
    assert [(status.path, status.size) for status in found] == [
        (f"{url}/staging/a%20b%25.bin", len(data)),
        (f"{url}/staging/p=1/c.bin", 0),
    ]
    assert abs(found[0].modification_time_ms - found[1].modification_time_ms) < 60_000
    with files.open_file(found[0].path, len(data)) as file:
        file.seek(-4, os.SEEK_END)
        assert (file.read(2), file.tell(), file.read(), file.read()) == (data[-4:-2], len(data) - 2, data[-2:], b"")
    files.rename(f"{url}/staging/p=1/c.bin", f"{url}/p=1/c.bin")
    assert files.exists(f"{url}/p=1/c.bin")
    with pytest.raises(FileExistsError):
        files.rename(found[0].path, f"{url}/p=1/c.bin")
    with pytest.raises(FileNotFoundError):
        files.rename(f"{url}/gone", f"{url}/p=2/c.bin")
    assert files.delete(f"{url}/staging", recursive=True)
    assert not files.delete(f"{url}/staging", recursive=True)
    with pytest.raises(FileNotFoundError):
        list(files.list_recursive(f"{url}/staging"))
    assert has_file_system(spark, url)
    assert not has_file_system(spark, "nothing://a/b")
