"""S3SingleDriverLogStore: one winner among the threads of one process, and an eye on other processes."""

import json
import logging
import multiprocessing
import pickle
import subprocess
import sys
import threading
from collections.abc import Iterator
from email.utils import formatdate

import pytest

from logstore.fake_s3 import Asked, FakeS3, Reply
from support.clocks import ManualClock
from tablelog.errors import LogStoreConfigurationError, StorageUnavailableError, UnsafeStoreError, WriteOutcomeUnknown
from tablelog.logstore import store_for
from tablelog.logstore.s3.settings import S3Settings
from tablelog.logstore.s3.single_driver_store import (
    LEASE_NAME,
    PROCESS_DRIVER,
    RENEW_SECONDS,
    Driver,
    S3SingleDriverLogStore,
)

LOG = "s3a://bucket/t/_delta_log"
LEASE = f"/bucket/t/_delta_log/{LEASE_NAME}"


class OldS3(FakeS3):
    """A service without conditional writes, and the driver of the stores that write to it."""

    def __init__(self) -> None:
        super().__init__()
        self.enforces = False
        self.clock = ManualClock()
        self.driver = Driver(self.clock)


@pytest.fixture
def fake() -> Iterator[OldS3]:
    with OldS3() as service:
        yield service


def store_of(fake: OldS3, **conf: str) -> S3SingleDriverLogStore:
    return S3SingleDriverLogStore(S3Settings.of("s3a", {**fake.conf, **conf}, {}), driver=fake.driver)


def commit(version: int) -> str:
    return f"{LOG}/{version:020}.json"


def put_lease(fake: OldS3, age: float) -> None:
    """A lease of another driver; the fake service shows each object as just written, so its clock is turned."""
    fake.objects[LEASE] = json.dumps({"driver": "another", "host": "node7", "process": 42}).encode()
    now = 1_800_000_000.0
    headers = {"Date": formatdate(now, usegmt=True), "Last-Modified": formatdate(now - age, usegmt=True), "ETag": '"e"'}
    fake.scripted = lambda asked: asked.method == "GET" and asked.key == LEASE
    fake.replies = [Reply(200, headers=headers, body=fake.objects[LEASE])]


def test_requests_of_a_commit(fake: OldS3) -> None:
    store = store_of(fake)
    store.write(commit(0), b"data")
    assert fake.methods() == ["HEAD", "GET", "PUT", "GET", "HEAD", "PUT"]
    assert [asked.key for asked in fake.asked[1:4]] == [LEASE] * 3
    fake.asked.clear()
    store.write(commit(1), b"data")
    store_of(fake).write(commit(2), b"data")
    store.write(f"{LOG}/{2:020}.crc", b"data")
    assert fake.methods() == ["HEAD", "PUT"] * 3
    assert [status.path for status in store.list_from(f"{LOG}/")] == [
        *(f"{LOG}/{0:020}.json", f"{LOG}/{1:020}.json", f"{LOG}/{2:020}.crc", f"{LOG}/{2:020}.json")
    ]


def test_a_lease_is_renewed(fake: OldS3) -> None:
    store = store_of(fake)
    store.write(commit(0), b"data")
    fake.asked.clear()
    store.write(commit(1), b"data")
    fake.clock.time += RENEW_SECONDS + 1
    store.write(commit(2), b"data")
    assert fake.methods() == ["HEAD", "PUT", "HEAD", "GET", "PUT", "HEAD", "PUT"]


def test_one_winner_among_threads_of_many_stores(fake: OldS3) -> None:
    barrier = threading.Barrier(8)
    won: list[tuple[int, int]] = []

    def write(number: int) -> None:
        store = store_of(fake)
        for version in range(10):
            barrier.wait()
            try:
                store.write(commit(version), b"%d" % number)
            except FileExistsError:
                continue
            won.append((version, number))

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(version for version, _ in won) == list(range(10))
    assert all(fake.objects[f"/bucket/t/_delta_log/{version:020}.json"] == b"%d" % number for version, number in won)


def test_a_second_driver_is_refused_by_the_lease(fake: OldS3) -> None:
    put_lease(fake, age=10)
    with pytest.raises(UnsafeStoreError) as caught:
        store_of(fake).write(commit(0), b"data")
    for words in ("node7", "process 42", "wait 50 s", "S3DynamoDBLogStore", "Nothing was written"):
        assert words in str(caught.value)
    assert list(fake.objects) == [LEASE]


def test_a_lease_that_is_old_by_the_services_clock_is_taken_over(fake: OldS3) -> None:
    put_lease(fake, age=61)
    store_of(fake).write(commit(0), b"data")
    assert json.loads(fake.objects[LEASE])["driver"] == fake.driver.token


@pytest.mark.parametrize("prefix", ["", "spark."])
def test_by_configuration_a_second_driver_is_warned_of(
    fake: OldS3, caplog: pytest.LogCaptureFixture, prefix: str
) -> None:
    put_lease(fake, age=10)
    conf = {f"{prefix}delta.logStore.s3SingleDriver.secondDriver": "warn"}
    conf |= {**fake.conf, "spark.delta.logStore.s3a.impl": "io.delta.storage.S3SingleDriverLogStore"}
    with caplog.at_level(logging.WARNING):
        store = store_for(LOG, conf=conf)
        assert isinstance(store, S3SingleDriverLogStore)
        store._driver = fake.driver
        store.write(commit(0), b"data")
    assert "another driver" in caplog.text
    with pytest.raises(LogStoreConfigurationError, match="maybe"):
        S3SingleDriverLogStore.configured("s3a", {"spark.delta.logStore.s3SingleDriver.secondDriver": "maybe"}, {})


def test_a_driver_that_starts_at_the_same_moment_is_noticed(fake: OldS3) -> None:
    seen = iter([False, True])

    def second_look(asked: Asked) -> bool:
        return asked.method == "GET" and asked.key == LEASE and next(seen)

    put_lease(fake, age=0)
    del fake.objects[LEASE]
    fake.scripted = second_look
    with pytest.raises(UnsafeStoreError, match="same time"):
        store_of(fake).write(commit(0), b"data")


def test_foreign_versions_between_own_commits_are_noticed(fake: OldS3) -> None:
    store = store_of(fake)
    store.write(commit(0), b"data")
    for version in (1, 2):
        fake.objects[f"/bucket/t/_delta_log/{version:020}.json"] = b"foreign"
    with pytest.raises(UnsafeStoreError, match="didn't write version 2"):
        store.write(commit(3), b"data")
    with pytest.raises(UnsafeStoreError, match="the object exists"):
        store.write(commit(1), b"data")


def test_what_was_there_before_the_first_own_commit_is_no_second_driver(fake: OldS3) -> None:
    for version in range(3):
        fake.objects[f"/bucket/t/_delta_log/{version:020}.json"] = b"an earlier driver's"
    store = store_of(fake)
    with pytest.raises(FileExistsError):
        store.write(commit(2), b"data")
    store.write(commit(3), b"data")
    store.write(commit(4), b"data")


def test_a_table_made_anew_begins_anew(fake: OldS3) -> None:
    store = store_of(fake)
    for version in (7, 8):
        store.write(commit(version), b"data")
    fake.objects.clear()
    for version in range(3):
        store.write(commit(version), b"data")


def test_threads_of_one_process_are_never_a_second_driver(fake: OldS3) -> None:
    """Versions that arrive in any order: a thread's earlier one may be seen before it is later's turn."""
    store, versions, errors = store_of(fake), iter(range(200)), list[Exception]()

    def write() -> None:
        for version in versions:
            try:
                store.write(commit(version), b"data")
            except Exception as error:
                errors.append(error)

    threads = [threading.Thread(target=write) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def test_an_overwrite_waits_for_the_write_of_the_same_name(fake: OldS3) -> None:
    store, seen = store_of(fake), threading.Event()
    overwriting = threading.Thread(target=store.write, args=(commit(0), b"over"), kwargs={"overwrite": True})

    def look(asked: Asked) -> bool:
        if asked.method == "HEAD" and not seen.is_set():
            seen.set()
            overwriting.start()
        return False

    fake.replies, fake.scripted = [Reply(500)], look
    store.write(commit(0), b"data")
    overwriting.join()
    puts = [asked.key for asked in fake.asked if asked.method == "PUT" and asked.key != LEASE]
    assert len(puts) == 2
    assert fake.objects[puts[0]] == b"over"


def test_one_object_behind_two_endpoints_has_one_lock(fake: OldS3) -> None:
    store = store_of(fake)
    fake.replies, fake.scripted = [Reply(500)], lambda asked: asked.method == "PUT" and asked.key != LEASE
    with pytest.raises(WriteOutcomeUnknown):
        store.write(commit(0), b"late")
    elsewhere = {"fs.s3a.endpoint": fake.endpoint.replace("127.0.0.1", "localhost")}
    with pytest.raises(StorageUnavailableError, match="may still arrive"):
        store_of(fake, **elsewhere).write(commit(0), b"other")


def test_a_write_that_may_still_arrive_keeps_other_bytes_away(fake: OldS3) -> None:
    store = store_of(fake)
    store.write(commit(0), b"data")
    fake.replies, fake.scripted = [Reply(500, "InternalError")], lambda asked: asked.method == "PUT"
    with pytest.raises(WriteOutcomeUnknown):
        store.write(commit(1), b"late")
    with pytest.raises(StorageUnavailableError, match="may still arrive"):
        store_of(fake).write(commit(1), b"other")
    fake.clock.time = 1e12
    fake.replies.clear()
    store_of(fake).write(commit(1), b"other")
    fake.replies = [Reply(500, "InternalError")]
    with pytest.raises(WriteOutcomeUnknown):
        store.write(commit(2), b"late")
    store.write(commit(2), b"late")  # the same bytes may always be sent again
    with pytest.raises(FileExistsError):
        store.write(commit(2), b"other")


def test_a_process_that_ends_gives_up_its_lease(fake: OldS3) -> None:
    code = (
        "import json, sys; from tablelog.logstore.s3.single_driver_store import S3SingleDriverLogStore;"
        "conf, path = json.loads(sys.argv[1]);"
        "S3SingleDriverLogStore.configured('s3a', conf, {}).write(path, b'data')"
    )
    subprocess.run([sys.executable, "-c", code, json.dumps([fake.conf, commit(0)])], check=True, timeout=60)
    assert list(fake.objects) == [f"/bucket/t/_delta_log/{0:020}.json"]
    store_of(fake).write(commit(1), b"data")
    put_lease(fake, age=0)
    fake.replies.clear()
    fake.driver.end()
    assert LEASE in fake.objects  # another's by now


def test_a_pickled_store_belongs_to_the_driver_that_loads_it(fake: OldS3) -> None:
    assert pickle.loads(pickle.dumps(store_of(fake)))._driver is PROCESS_DRIVER


def test_a_forked_child_is_another_driver() -> None:
    fork = multiprocessing.get_context("fork")
    tokens = fork.SimpleQueue()
    with PROCESS_DRIVER.guard:  # as a thread that the child doesn't have
        child = fork.Process(target=_put_token, args=(tokens,))
        child.start()
    assert tokens.get() != PROCESS_DRIVER.token
    child.join(30)
    assert child.exitcode == 0


def _put_token(tokens: "multiprocessing.SimpleQueue[str]") -> None:
    with PROCESS_DRIVER.guard:
        tokens.put(PROCESS_DRIVER.token)
