"""The store for Google Cloud Storage on fake-gcs-server: the checks of the suite, whole commits, a server that dies."""

from collections.abc import Callable

import pytest

from tablelog.conformance import CHECKS, Check, Level, Verdict
from tablelog.conformance.harness.proxy import Exchange
from tablelog.conformance.harness.proxy import Reply as Sent
from tablelog.conformance.runner import run_check
from tablelog.conformance.targets import from_url
from tablelog.errors import StorageMissingError, StorageUnavailableError
from tablelog.logstore import new_store_for, store_for

from . import FakeGCS, log_work

QUICK = [check for check in CHECKS if check.level is Level.QUICK]


@pytest.mark.parametrize("check", QUICK, ids=lambda check: check.name)
def test_it_keeps_the_contract(gcs_server: FakeGCS, check: Check) -> None:
    url = gcs_server.url()
    target = from_url(url, {}, gcs_server.conf).target
    finding, left, _ = run_check(check, target, f"{url}/{check.name}", Level.QUICK, 1, 120.0)
    assert finding.verdict is Verdict.PASS, finding.message
    assert not left


def test_processes_append(gcs_server: FakeGCS) -> None:
    log_work.processes_append(gcs_server.url(), gcs_server.conf)


def test_one_of_several_large_writes_wins(gcs_server: FakeGCS, monkeypatch: pytest.MonkeyPatch) -> None:
    log_work.large_writes_race(gcs_server.url(), gcs_server.conf, monkeypatch)


def test_a_large_write_that_is_cut_off_is_no_file(gcs_server: FakeGCS, monkeypatch: pytest.MonkeyPatch) -> None:
    log_work.large_write_is_cut_off(gcs_server.url(), gcs_server.conf, monkeypatch)


@pytest.mark.parametrize("fault", log_work.FAULTS, ids=lambda fault: fault.__name__)
def test_a_commit_is_made_once_whatever_befalls_it(
    gcs_server: FakeGCS, fault: Callable[[Exchange], Sent | None]
) -> None:
    log_work.commits_through(gcs_server.url(), gcs_server.conf, gcs_server.endpoint, fault)


@pytest.mark.parametrize("before", [True, False])
def test_a_server_that_dies_leaves_a_commit_unknown(before: bool) -> None:
    server = FakeGCS.start()
    try:
        log_work.commits_while_it_dies(server, server.url(), before=before)
    finally:
        server.stop()


def test_a_server_that_is_away() -> None:
    server = FakeGCS.start()
    try:
        store = store_for(server.url(), conf=server.conf)
        path = f"{server.url()}/_delta_log/00000000000000000000.json"
        server.kill()
        for request in (lambda: store.write(path, b""), lambda: store.read(path), lambda: store.list_from(path)):
            with pytest.raises(StorageUnavailableError, match="can't be reached"):
                request()  # type: ignore[no-untyped-call]
    finally:
        server.stop()


def test_a_bucket_that_isnt_there(gcs_server: FakeGCS) -> None:
    """The server doesn't say of a read whether it is the bucket that is missing, as the real one does."""
    store = store_for("gs://no-such/t", conf=gcs_server.conf)
    for request in (lambda: store.write("gs://no-such/t", b""), lambda: store.list_from("gs://no-such/t")):
        with pytest.raises(StorageMissingError, match="the bucket doesn't exist"):
            request()  # type: ignore[no-untyped-call]


@pytest.mark.parametrize("how", ["conf", "storage_options", "environment"])
def test_each_way_to_configure_it(gcs_server: FakeGCS, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    conf = gcs_server.conf if how == "conf" else {}
    options = gcs_server.storage_options if how == "storage_options" else {}
    for name, value in gcs_server.environment.items() if how == "environment" else ():
        monkeypatch.setenv(name, value)
    store, path = new_store_for(gcs_server.url(), conf=conf, storage_options=options), gcs_server.url("with space")
    store.write(path, b"data")
    assert store.read(path) == b"data"
