"""S3LogStore: processes, threads, descriptors, packages and secrets."""

import multiprocessing
import os
import pickle
import sys
import threading
import time
from dataclasses import replace

import pytest

from logstore.fake_s3 import ACCESS_KEY, SECRET_KEY, FakeS3, Reply
from logstore.s3_paths import commit
from tablelog.errors import UnsupportedEnvironmentError
from tablelog.logstore.registry import new_store_for
from tablelog.logstore.s3 import settings as s3_settings
from tablelog.logstore.s3.conditional_put_store import S3LogStore


def test_a_copy_and_a_forked_child_have_connections_of_their_own(fake: FakeS3, store: S3LogStore) -> None:
    store.write(commit(0), b"data")
    copy = pickle.loads(pickle.dumps(store))
    assert copy.read(commit(0)) == b"data"
    with pytest.raises(FileExistsError):
        copy.write(commit(0), b"other")
    before = fake.connections
    child = multiprocessing.get_context("fork").Process(target=store.write, args=(commit(1), b"child"))
    child.start()
    child.join(30)
    assert child.exitcode == 0
    assert fake.connections == before + 1
    assert store.read(commit(1)) == b"child"


def test_a_thousand_losers_leave_no_descriptor(fake: FakeS3, store: S3LogStore) -> None:
    store.write(commit(0), b"data")
    before = len(os.listdir("/proc/self/fd"))

    def lose() -> None:
        for _ in range(250):
            with pytest.raises(FileExistsError):
                store.write(commit(0), b"data")

    threads = [threading.Thread(target=lose) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # Both ends of each kept connection are in this process.
    assert len(os.listdir("/proc/self/fd")) - before <= 2 * 4
    assert fake.methods().count("PUT?") == 1001


def test_a_missing_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "botocore"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "botocore", None)
    store = new_store_for("s3a://bucket/t")
    with pytest.raises(UnsupportedEnvironmentError, match=r"pip install 'tablelog\[s3\]'"):
        store.read("s3a://bucket/t/x")


def test_nothing_shows_a_secret(fake: FakeS3) -> None:
    settings = s3_settings.S3Settings.of(
        "s3a", {**fake.conf, "fs.s3a.session.token": "t0ken"}, {"secret": "other-s3cret"}
    )
    for shown in (repr(settings), str(settings), repr(settings.access("b")), repr(replace(settings.access("b")))):
        assert SECRET_KEY not in shown
        assert ACCESS_KEY not in shown
        assert "t0ken" not in shown
        assert "other-s3cret" not in shown


def test_a_time_that_is_off_by_a_day_in_the_answers_changes_nothing(fake: FakeS3, store: S3LogStore) -> None:
    date = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(0))
    fake.replies = [Reply(200, headers={"Date": date, "ETag": '"e"'}, applied=True)]
    store.write(commit(0), b"data")
    assert store.read(commit(0)) == b"data"
