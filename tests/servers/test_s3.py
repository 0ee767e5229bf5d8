"""The stores for S3 on MinIO, moto and dynalite: whole table commits, second drivers, crashes, and servers that end."""

import multiprocessing
import threading
import time
from collections.abc import Iterator, Mapping

import pytest

from logstore.s3_crashes import each_death
from servers import Dynalite, MinIO, Moto, log_work, s3_writers
from tablelog.core.deltalog import DeltaLog
from tablelog.errors import StorageAccessError, StorageError, StorageMissingError
from tablelog.logstore.s3 import single_driver_store as s3_single_driver
from tablelog.logstore.s3.conditional_put_store import S3LogStore
from tablelog.logstore.s3.dynamodb_store import S3DynamoDBLogStore
from tablelog.logstore.s3.single_driver_store import S3SingleDriverLogStore

PROCESSES, COMMITS = 4, 10
SINGLE = {"spark.delta.logStore.s3a.impl": "io.delta.storage.S3SingleDriverLogStore"}
DYNAMODB = {"spark.delta.logStore.s3a.impl": "io.delta.storage.S3DynamoDBLogStore"}
_spawn = multiprocessing.get_context("spawn")


@pytest.fixture
def dynamodb(dynalite: Dynalite, monkeypatch: pytest.MonkeyPatch) -> Dynalite:
    for key, value in dynalite.environment.items():
        monkeypatch.setenv(key, value)
    return dynalite


@pytest.fixture
def own_minio() -> Iterator[MinIO]:
    """One that a test may kill."""
    server = MinIO.start()
    yield server
    server.stop()


def appended(
    table: str, conf: Mapping[str, str], environment: Mapping[str, str], processes: int
) -> list[list[tuple[str, int]] | tuple[str, str]]:
    """What the processes that append at the same time say."""
    results, barrier = _spawn.Queue(), _spawn.Barrier(processes)
    running = [
        _spawn.Process(
            target=s3_writers.run, args=(results, dict(environment), table, dict(conf), number, COMMITS, barrier)
        )
        for number in range(processes)
    ]
    for process in running:
        process.start()
    found = [results.get(timeout=120) for _ in running]
    for process in running:
        process.join(30)
        assert process.exitcode == 0
    return found


def check(table: str, conf: Mapping[str, str], made: dict[str, int]) -> None:
    """Each commit is in the log once, at its version, and the versions have no hole."""
    snapshot = DeltaLog.for_path(table, conf=conf).snapshot()
    assert snapshot.version == len(made)
    assert sorted(made.values()) == list(range(1, len(made) + 1))
    assert sorted(file.path for file in snapshot.add_files()) == sorted(made)


def test_processes_commit_to_one_table(minio: MinIO) -> None:
    table = minio.url()
    s3_writers.create(table, minio.conf)
    found = appended(table, minio.conf, {}, PROCESSES)
    check(table, minio.conf, dict(pair for made in found for pair in made))  # type: ignore[misc]


def test_one_of_several_large_writes_wins(minio: MinIO, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is one conditional request from a temporary file; the object has the bytes of the winner."""
    log_work.large_writes_race(minio.url(), minio.conf, monkeypatch)


def test_processes_commit_to_one_table_with_dynamodb(minio: MinIO, dynamodb: Dynalite) -> None:
    table, conf = minio.url(), {**minio.conf, **dynamodb.conf, **DYNAMODB}
    s3_writers.create(table, conf)
    found = appended(table, conf, dynamodb.environment, PROCESSES)
    check(table, conf, dict(pair for made in found for pair in made))  # type: ignore[misc]
    items = dynamodb.client().query(
        TableName="delta_log",
        KeyConditionExpression="tablePath = :t",
        ExpressionAttributeValues={":t": {"S": table}},
    )["Items"]
    commits = [item for item in items if item["fileName"]["S"].endswith(".json")]
    assert len(commits) == PROCESSES * COMMITS + 1
    assert all(item["complete"]["S"] == "true" and int(item["expireTime"]["N"]) > time.time() for item in items)
    below = minio.client().list_objects_v2(Bucket=minio.bucket, Prefix=f"{table.removeprefix(minio.root)[1:]}/")
    assert not [item["Key"] for item in below["Contents"] if "/.tmp/" in item["Key"]]


def test_threads_of_one_driver_commit_to_one_table(moto_server: Moto) -> None:
    table, conf = moto_server.url(), {**moto_server.conf, **SINGLE}
    s3_writers.create(table, conf)
    made: dict[str, int] = {}
    threads = [
        threading.Thread(target=lambda n=number: made.update(s3_writers.append(table, conf, n, COMMITS)))  # type: ignore[misc]
        for number in range(PROCESSES)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check(table, conf, made)


def test_a_second_driver_is_refused_and_the_first_goes_on(moto_server: Moto) -> None:
    table, conf = moto_server.url(), {**moto_server.conf, **SINGLE}
    s3_writers.create(table, conf)
    (second,) = appended(table, conf, {}, 1)
    assert second[0] == "UnsafeStoreError"
    assert "another driver" in second[1]
    check(table, conf, dict(s3_writers.append(table, conf, 0, COMMITS)))


def test_of_two_drivers_that_start_at_once_at_most_one_commits(moto_server: Moto) -> None:
    """What one made is there; who found the other was told, and lost nothing that it was told it had."""
    table, conf = moto_server.url(), {**moto_server.conf, **SINGLE}
    s3_writers.create(table, conf)
    s3_single_driver.PROCESS_DRIVER.end()  # this process's part is over
    found = appended(table, conf, {}, 2)
    refused = [result for result in found if isinstance(result, tuple)]
    assert all(name == "UnsafeStoreError" for name, _ in refused)
    assert refused


def test_a_crash_before_each_request_on_real_services(minio: MinIO, dynamodb: Dynalite) -> None:
    conf = {**minio.conf, **dynamodb.conf}

    def make() -> S3DynamoDBLogStore:
        return S3DynamoDBLogStore.configured("s3a", conf, {})

    root = minio.url()
    for path, done, lived in each_death(make, lambda k: f"{root}{k}/_delta_log/{0:020}.json", b"data"):
        listed = [status.path for status in make().list_from(path)]
        assert listed == ([path] if lived or "put_new" in done else [])
        if listed:
            assert make().read(path) == b"data"
        else:
            make().write(path, b"another's")
            assert make().read(path) == b"another's"


def test_a_writer_that_is_killed_after_dynamodb_decided_has_committed(minio: MinIO, dynamodb: Dynalite) -> None:
    conf, path = {**minio.conf, **dynamodb.conf}, f"{minio.url()}/_delta_log/{0:020}.json"
    process = _spawn.Process(target=s3_writers.die_after_deciding, args=(dynamodb.environment, conf, path))
    process.start()
    process.join(60)
    assert process.exitcode == 9
    store = S3DynamoDBLogStore.configured("s3a", conf, {})
    with pytest.raises(FileExistsError):
        store.write(path, b"rival")
    assert S3LogStore.configured("s3a", minio.conf, {}).read(path) == b"decided"


@pytest.mark.parametrize("more", [{}, DYNAMODB], ids=["condition", "dynamodb"])
def test_a_server_that_is_killed_during_commits_and_started_again(
    own_minio: MinIO, dynamodb: Dynalite, more: dict[str, str]
) -> None:
    table, conf = own_minio.url(), {**own_minio.conf, **dynamodb.conf, **more}
    s3_writers.create(table, conf)
    results = _spawn.Queue()
    process = _spawn.Process(target=s3_writers.run, args=(results, dynamodb.environment, table, conf, 0, 2000))
    process.start()
    log = DeltaLog.for_path(table, conf=conf)
    while log.snapshot().version < 5:
        assert process.is_alive()
    own_minio.kill()
    end = results.get(timeout=120)
    process.join(30)
    own_minio.restart()
    snapshot = DeltaLog.for_path(table, conf=conf).snapshot()
    files = sorted(file.path for file in snapshot.add_files())
    assert len(files) == snapshot.version  # each commit once, in a log with no hole
    assert files == sorted(f"f-0-{serial}" for serial in range(snapshot.version))
    assert end[0] in {"StorageUnavailableError", "CommitStateUnknownError"}
    s3_writers.append(table, conf, 1, 3)
    assert DeltaLog.for_path(table, conf=conf).snapshot().version == snapshot.version + 3


@pytest.mark.parametrize("store", [S3LogStore, S3SingleDriverLogStore, S3DynamoDBLogStore])
def test_what_is_wrong_with_the_access_is_said(minio: MinIO, dynamodb: Dynalite, store: type[S3LogStore]) -> None:
    path = f"{minio.url()}/_delta_log/{0:020}.json"
    wrong = {**minio.conf, "fs.s3a.secret.key": "wr0ng-s3cret"}
    for conf, where, error in (
        (wrong, path, StorageAccessError),
        ({**minio.conf, "fs.s3a.access.key": "nobody"}, path, StorageAccessError),
        (minio.conf, path.replace("tablelog/", "no-such-bucket/", 1), StorageMissingError),
        ({**minio.conf, "fs.s3a.endpoint": "http://127.0.0.1:1"}, path, StorageError),
    ):
        made = store.configured("s3a", {**conf, **dynamodb.conf}, {})
        began = time.monotonic()
        for call in (
            lambda m=made, w=where: m.write(w, b"data"),  # type: ignore[misc]
            lambda m=made, w=where: m.read(w),  # type: ignore[misc]
            lambda m=made, w=where: list(m.list_from(w)),  # type: ignore[misc]
        ):
            with pytest.raises(error) as caught:
                call()
            assert "s3cret" not in str(caught.value)
            assert "_delta_log" in str(caught.value)
        assert time.monotonic() - began < 30
