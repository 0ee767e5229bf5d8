"""The Azure store on Azurite: the checks of the suite, whole commits, a server that dies.

Azurite has no hierarchical namespace, so nothing here says anything about one.
"""

from collections.abc import Callable

import pytest

from tablelog.conformance import CHECKS, Check, Level, Verdict
from tablelog.conformance.harness.proxy import Exchange
from tablelog.conformance.harness.proxy import Reply as Sent
from tablelog.conformance.runner import run_check
from tablelog.conformance.targets import from_url
from tablelog.errors import StorageAccessError, StorageMissingError, StorageUnavailableError
from tablelog.logstore import new_store_for, store_for

from . import Azurite, log_work

QUICK = [check for check in CHECKS if check.level is Level.QUICK]


@pytest.mark.parametrize("check", QUICK, ids=lambda check: check.name)
def test_it_keeps_the_contract(azurite: Azurite, check: Check) -> None:
    # By the options, whose endpoint is a URL: so the suite can put its proxy in front of it.
    url = azurite.url().replace("abfs://", "az://").replace("@devstoreaccount1.dfs.core.windows.net", "")
    target = from_url(url, azurite.storage_options, {}).target
    finding, left, _ = run_check(check, target, f"{url}/{check.name}", Level.QUICK, 1, 120.0)
    assert finding.verdict is Verdict.PASS, finding.message
    assert not left


def test_processes_append(azurite: Azurite) -> None:
    log_work.processes_append(azurite.url(), azurite.conf)


def test_one_of_several_large_writes_wins(azurite: Azurite, monkeypatch: pytest.MonkeyPatch) -> None:
    log_work.large_writes_race(azurite.url(), azurite.conf, monkeypatch)


def test_a_large_write_that_is_cut_off_is_no_file(azurite: Azurite, monkeypatch: pytest.MonkeyPatch) -> None:
    log_work.large_write_is_cut_off(azurite.url(), azurite.conf, monkeypatch)


@pytest.mark.parametrize("fault", log_work.FAULTS, ids=lambda fault: fault.__name__)
def test_a_commit_is_made_once_whatever_befalls_it(azurite: Azurite, fault: Callable[[Exchange], Sent | None]) -> None:
    log_work.commits_through(azurite.url(), azurite.conf, azurite.endpoint, fault)


@pytest.mark.parametrize("before", [True, False])
def test_a_server_that_dies_leaves_a_commit_unknown(before: bool) -> None:
    server = Azurite.start()
    try:
        log_work.commits_while_it_dies(server, server.url(), before=before)
    finally:
        server.stop()


def test_a_server_that_is_away() -> None:
    server = Azurite.start()
    try:
        store = store_for(server.url(), conf=server.conf)
        path = f"{server.url()}/_delta_log/00000000000000000000.json"
        server.kill()
        for request in (lambda: store.write(path, b""), lambda: store.read(path), lambda: store.list_from(path)):
            with pytest.raises(StorageUnavailableError, match="can't be reached"):
                request()  # type: ignore[no-untyped-call]
    finally:
        server.stop()


def test_a_container_that_isnt_there(azurite: Azurite) -> None:
    store = store_for(azurite.url(), conf=azurite.conf)
    path = azurite.url().replace("abfs://tablelog@", "abfs://no-such@")
    for request in (lambda: store.write(path, b""), lambda: store.read(path), lambda: store.list_from(path)):
        with pytest.raises(StorageMissingError, match="ContainerNotFound"):
            request()  # type: ignore[no-untyped-call]


def test_a_key_that_is_wrong(azurite: Azurite) -> None:
    conf = {key: "d3Jvbmc=" if ".key." in key else value for key, value in azurite.conf.items()}
    store, path = store_for(azurite.url(), conf=conf), azurite.url()
    for request in (lambda: store.write(path, b""), lambda: store.read(path), lambda: store.list_from(path)):
        with pytest.raises(StorageAccessError, match="403"):
            request()  # type: ignore[no-untyped-call]


@pytest.mark.parametrize("how", ["conf", "storage_options", "environment"])
def test_each_way_to_configure_it(azurite: Azurite, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    conf = azurite.conf if how == "conf" else {}
    options = azurite.storage_options if how == "storage_options" else {}
    for name, value in azurite.environment.items() if how == "environment" else ():
        monkeypatch.setenv(name, value)
    store, path = new_store_for(azurite.url(), conf=conf, storage_options=options), azurite.url("with space")
    store.write(path, b"data")
    assert store.read(path) == b"data"
