"""S3LogStore: the probe whether the service honours the condition of a write."""

import logging
import threading

import pytest

from logstore.fake_s3 import FakeS3, Reply
from logstore.s3_paths import KEY, LOG, commit
from tablelog.errors import StorageAccessError, StorageUnavailableError, UnsafeStoreError


def test_the_probe_costs_three_requests_before_the_first_commit_only(fake: FakeS3) -> None:
    store = fake.store()
    list(store.list_from(f"{LOG}/"))
    with pytest.raises(FileNotFoundError):
        store.read(commit(0))
    store.write(f"{LOG}/_last_checkpoint", b"", overwrite=True)
    store.delete(f"{LOG}/_last_checkpoint")
    assert fake.methods() == ["list", "GET", "PUT", "DELETE"]
    fake.asked.clear()
    store.write(commit(0), b"data")
    assert fake.methods() == ["PUT?", "PUT?", "DELETE", "PUT?"]
    assert len({asked.key for asked in fake.asked[:3]}) == 1
    assert fake.asked[0].key.startswith(f"{KEY}/.")
    store.write(commit(1), b"data")
    fake.store().write("s3://bucket/another/_delta_log/x", b"data")
    assert fake.methods()[4:] == ["PUT?", "PUT?"]
    store.write("s3a://second/t/_delta_log/x", b"data")
    assert fake.methods()[6:] == ["PUT?", "PUT?", "DELETE", "PUT?"]
    assert list(fake.objects) == [
        f"{KEY}/{0:020}.json",
        f"{KEY}/{1:020}.json",
        "/bucket/another/_delta_log/x",
        "/second/t/_delta_log/x",
    ]


def test_a_service_that_ignores_the_condition_is_refused(fake: FakeS3) -> None:
    fake.enforces = False
    store = fake.store()
    for _ in range(2):
        with pytest.raises(UnsafeStoreError) as caught:
            store.write(commit(0), b"data")
    assert fake.objects == {}
    for word in ("S3DynamoDBLogStore", "S3SingleDriverLogStore", "newer version", "spark.delta.logStore"):
        assert word in str(caught.value)


@pytest.mark.parametrize("applied", [True, False])
def test_a_probe_with_ambiguous_answers_goes_on(fake: FakeS3, applied: bool) -> None:
    fake.replies = [Reply(500, "InternalError", applied=applied)]
    fake.store().write(commit(0), b"data")
    assert list(fake.objects) == [f"{KEY}/{0:020}.json"]


def test_a_probe_without_a_certain_answer_refuses_with_nothing_written(fake: FakeS3) -> None:
    fake.replies = [Reply(500, "InternalError")] * 100
    with pytest.raises(StorageUnavailableError, match="condition of a write failed"):
        fake.store().write(commit(0), b"data")


def test_a_probe_that_never_arrived_isnt_removed(fake: FakeS3) -> None:
    fake.replies, fake.scripted = [Reply(403, "AccessDenied")] * 10, lambda _asked: True
    with pytest.raises(StorageAccessError):
        fake.store().write(commit(0), b"data")
    assert fake.methods() == ["PUT?"]


def test_a_probe_that_cant_be_removed_warns(fake: FakeS3, caplog: pytest.LogCaptureFixture) -> None:
    fake.replies, fake.scripted = [Reply(403, "AccessDenied")], lambda asked: asked.method == "DELETE"
    with caplog.at_level(logging.WARNING):
        fake.store().write(commit(0), b"data")
    assert "couldn't be removed" in caplog.text
    assert [status.path for status in fake.store().list_from(f"{LOG}/")] == [commit(0)]


def test_threads_probe_once(fake: FakeS3) -> None:
    stores = [fake.store() for _ in range(4)]
    barrier = threading.Barrier(4)

    def write(number: int) -> None:
        barrier.wait()
        stores[number].write(commit(number), b"data")

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert fake.methods().count("PUT?") == 6
