"""A service that rejects one request in ten (503 SlowDown), under mixed work: nothing is lost or done twice."""

import json
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from random import Random

import pytest

from logstore.fake_s3 import Asked, FakeS3, Reply
from tablelog.core import AddFile, DeltaLog, Metadata, Operation
from tablelog.errors import CommitStateUnknownError
from tablelog.logstore.data_files import DataFiles

TABLE = "s3a://bucket/t"
SCHEMA = '{"type":"struct","fields":[{"name":"v","type":"long","nullable":true,"metadata":{}}]}'
WRITERS, EACH = 4, 5


def throttled(fake: FakeS3, seed: int, *, applied: bool = False) -> Callable[[Asked], Reply | None]:
    """One request in ten is rejected, by a seed; with `applied`, a write is rejected after it was done."""
    dice, lock = Random(seed), threading.Lock()

    def decide(asked: Asked) -> Reply | None:
        with lock:
            rejected = dice.random() < 0.1
        if not rejected:
            return None
        if applied and asked.method == "PUT":
            return Reply(503, "SlowDown", applied=True)
        return Reply(503, "SlowDown")

    return decide


def log_of(fake: FakeS3) -> DeltaLog:
    return DeltaLog(TABLE, fake.store())


def create(fake: FakeS3) -> None:
    transaction = log_of(fake).transaction()
    transaction.set_metadata(Metadata("id", SCHEMA, configuration={"delta.checkpointInterval": "5"}))
    transaction.commit([], Operation("CREATE TABLE"))


def committed(fake: FakeS3) -> Counter[str]:
    """How many commits add each file."""
    found: Counter[str] = Counter()
    for key, data in fake.objects.items():
        if "/_delta_log/" in key and key.endswith(".json"):
            actions = [json.loads(line) for line in data.decode().splitlines()]
            found.update(action["add"]["path"] for action in actions if "add" in action)
    return found


@pytest.mark.one_case
@pytest.mark.parametrize(("seed", "applied"), [(1, False), (2, True)], ids=["rejected", "rejected but done"])
def test_each_commit_of_many_writers_is_there_once(fake: FakeS3, seed: int, applied: bool) -> None:
    create(fake)
    fake.refused = throttled(fake, seed, applied=applied)

    def write(writer: int) -> list[str]:
        log, told = log_of(fake), []
        for serial in range(EACH):
            name = f"f-{writer}-{serial}"
            log.transaction().commit([AddFile(name, {}, 1, 1, True)], Operation("WRITE"))
            told.append(name)
            log_of(fake).snapshot()
        return told

    with ThreadPoolExecutor(WRITERS) as pool:
        told = [name for names in pool.map(write, range(WRITERS)) for name in names]
    rejections = sum(1 for asked in fake.asked if asked.method == "PUT" and "if-none-match" in asked.headers)
    assert rejections > WRITERS * EACH  # some were sent again, with their condition
    assert committed(fake) == Counter(told)
    fake.refused = lambda asked: None
    snapshot = log_of(fake).snapshot()
    assert snapshot.version == WRITERS * EACH
    assert sorted(file.path for file in snapshot.add_files()) == sorted(told)


def test_data_files_are_written_read_and_deleted_all_the_same(fake: FakeS3) -> None:
    fake.refused = throttled(fake, 4)
    files = DataFiles.of(TABLE, fake.conf, {"skip_instance_cache": True})
    names = [f"f{number}" for number in range(12)]
    for name in names:
        files.write(name, name.encode())
    assert sorted(files.list("")) == sorted(names)
    assert [files.read_range(name, 0, 10) for name in names] == [name.encode() for name in names]
    files.delete(names[:6])
    assert sorted(files.list("")) == sorted(names[6:])
    assert sum(1 for asked in fake.asked if asked.method == "PUT") > len(names)


def test_a_commit_that_is_always_rejected_fails_and_leaves_the_table_as_it_was(fake: FakeS3) -> None:
    create(fake)
    log = log_of(fake)
    log.snapshot()
    before = dict(fake.objects)
    fake.refused = lambda asked: Reply(503, "SlowDown") if asked.method == "PUT" else None
    with pytest.raises(Exception, match="503 SlowDown") as caught:
        log.transaction().commit([AddFile("f", {}, 1, 1, True)], Operation("WRITE"))
    assert not isinstance(caught.value, CommitStateUnknownError)
    assert fake.objects == before
