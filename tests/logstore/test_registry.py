"""Which store serves a path, by the keys that a Delta user writes; and what is said when none can."""

import gc
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import EntryPoint

import pytest

from logstore.own_stores import Own
from tablelog.errors import LogStoreConfigurationError
from tablelog.logstore import LocalLogStore, LogStore, MemoryLogStore, registry, store_for
from tablelog.logstore.azure.store import AzureLogStore
from tablelog.logstore.gcs.store import GCSLogStore
from tablelog.logstore.hdfs.store import HDFSLogStore
from tablelog.logstore.s3.conditional_put_store import S3LogStore
from tablelog.logstore.s3.dynamodb_store import S3DynamoDBLogStore
from tablelog.logstore.s3.single_driver_store import S3SingleDriverLogStore

OWN = "logstore.own_stores.Own"
CLASS = "delta.logStore.class"
JVM = ("org.apache.spark.sql.delta.storage.", "io.delta.storage.")


def impl(scheme: str) -> str:
    return f"delta.logStore.{scheme}.impl"


@pytest.fixture
def entry_points(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[EntryPoint]]:
    """The installed entry points, to be filled by a test."""
    found: list[EntryPoint] = []
    monkeypatch.setattr(registry, "entry_points", lambda group: [point for point in found if point.group == group])
    registry._entry_points.cache_clear()
    yield found
    registry._entry_points.cache_clear()


def error(path: str, conf: dict[str, str]) -> str:
    with pytest.raises(LogStoreConfigurationError) as caught:
        store_for(path, conf=conf)
    return str(caught.value)


@pytest.mark.parametrize("path", ["/t", "t", "./a:b", "file:/t", "file:///t", "FILE:///t"])
def test_local_paths_have_the_local_store(path: str) -> None:
    assert type(store_for(path)) is LocalLogStore


def test_memory_is_one_store_for_the_process() -> None:
    store = store_for("memory://a/t")
    assert type(store) is MemoryLogStore
    assert store_for("MEMORY://b/t", conf={"spark.app.name": "another"}) is store


@pytest.mark.parametrize("prefix", ["spark.", ""])
@pytest.mark.parametrize("value", [OWN, OWN.replace(".Own", ":Own"), f" {OWN} "])
def test_a_key_by_scheme(prefix: str, value: str) -> None:
    conf = {prefix + impl("own"): value}
    assert type(store_for("own://bucket/t", conf=conf)) is Own
    assert type(store_for("OWN://bucket/t", conf=conf)) is Own
    assert type(store_for("/t", conf=conf)) is LocalLogStore


def test_a_key_by_scheme_in_capitals_is_the_same_key() -> None:
    assert type(store_for("own:/t", conf={"spark." + impl("OWN"): OWN})) is Own


def test_a_key_replaces_the_default() -> None:
    assert type(store_for("/t", conf={impl("file"): OWN})) is Own


@pytest.mark.parametrize("prefix", ["spark.", ""])
def test_a_class_for_every_path(prefix: str) -> None:
    for path in ("own:/t", "/t", "s3://b/t"):
        assert type(store_for(path, conf={prefix + CLASS: OWN})) is Own


def test_both_forms_of_a_key_may_agree_and_mustnt_differ() -> None:
    for key in (CLASS, impl("own")):
        assert type(store_for("own:/t", conf={key: OWN, f"spark.{key}": OWN})) is Own
        message = error("own:/t", {key: OWN, f"spark.{key}": "a.B"})
        assert key in message
        assert f"spark.{key}" in message
        assert "differ" in message


@pytest.mark.parametrize("first", ["", "spark."])
@pytest.mark.parametrize("second", ["", "spark."])
def test_class_and_scheme_keys_exclude_each_other(first: str, second: str) -> None:
    """Also where the scheme is another one than the path's, as in Delta."""
    message = error("/t", {first + CLASS: OWN, second + impl("s3a"): OWN})
    assert first + CLASS in message
    assert second + impl("s3a") in message


@pytest.mark.parametrize("package", JVM)
@pytest.mark.parametrize("name", ["LocalLogStore", "HDFSLogStore"])
@pytest.mark.parametrize("key", [CLASS, impl("file"), "spark." + CLASS])
def test_jvm_names_on_local_paths(package: str, name: str, key: str) -> None:
    """HDFSLogStore is what Delta uses there by itself: the same files, and ours excludes other processes too."""
    assert store_for("/t", conf={key: package + name}) is store_for("/t")


def test_deltas_delegating_store_is_the_choice_by_scheme() -> None:
    name = "org.apache.spark.sql.delta.storage.DelegatingLogStore"
    assert store_for("/t", conf={CLASS: name}) is store_for("/t")
    assert type(store_for("s3a://b/t", conf={CLASS: name})) is S3LogStore


@pytest.mark.parametrize("package", JVM)
@pytest.mark.parametrize(
    ("path", "name", "kind"),
    [
        ("s3a://b/t", "S3SingleDriverLogStore", S3SingleDriverLogStore),
        ("s3://b/t", "S3DynamoDBLogStore", S3DynamoDBLogStore),
        ("abfss://c@a.dfs.core.windows.net/t", "AzureLogStore", AzureLogStore),
        ("gs://b/t", "GCSLogStore", GCSLogStore),
        ("hdfs://n/t", "HDFSLogStore", HDFSLogStore),
    ],
)
def test_deltas_class_names_mean_ours(package: str, path: str, name: str, kind: type[LogStore]) -> None:
    assert type(store_for(path, conf={CLASS: package + name})) is kind
    if name != "HDFSLogStore":
        assert "but not file" in error("/t", {CLASS: package + name})


@pytest.mark.parametrize("package", JVM)
def test_deltas_class_names_that_we_dont_have_are_refused_by_name(package: str) -> None:
    message = error("s3a://b/t", {CLASS: package + "IBMCOSLogStore"})
    assert "IBMCOSLogStore" in message
    assert CLASS in message


def test_the_hdfs_store_is_never_the_local_one_elsewhere() -> None:
    message = error("hdfs://n/t", {CLASS: JVM[0] + "LocalLogStore"})
    assert "supports file but not hdfs" in message


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("", "not the dotted path"),
        ("Own", "not the dotted path"),
        ("no.such.module.Store", "No module named 'no'"),
        ("logstore.own_stores.Missing", "Missing"),
        ("logstore.own_stores.NoStore", "logstore.own_stores.NoStore, which is not a subclass"),
        ("logstore.own_stores.a_function", "which is not a subclass"),
        ("logstore.own_stores.Unfinished", "doesn't implement delete, list_from, resolve, write"),
        ("logstore.own_stores.Undeclared", "doesn't declare exclusion, partial_writes_visible"),
        ("logstore.own_stores.NeedsAnArgument", "TypeError"),
        ("logstore.module_that_fails.Store", "RuntimeError: the licence has run out"),
        ("com.example.MyLogStore", "tablelog needs a Python class"),
        ("tablelog.logstore.LocalLogStore", "supports file but not own"),
        (JVM[0] + "NoSuchLogStore", "tablelog needs a Python class"),
    ],
)
def test_what_cant_be_used_is_named(value: str, says: str) -> None:
    message = error("own://b/t", {"spark." + impl("own"): value})
    assert says in message
    assert "spark." + impl("own") in message


@pytest.mark.parametrize(
    ("schemes", "kind"),
    [
        ("s3 s3a s3n", S3LogStore),
        ("abfs abfss az wasb wasbs", AzureLogStore),
        ("gs gcs", GCSLogStore),
        ("hdfs viewfs ofs", HDFSLogStore),
    ],
)
def test_each_scheme_has_its_store(schemes: str, kind: type[LogStore]) -> None:
    for scheme in schemes.split():
        assert type(store_for(f"{scheme}://bucket/t")) is kind


def test_a_scheme_whose_service_is_gone_says_so() -> None:
    message = error("adl://bucket/t", {})
    assert "retired" in message
    assert "spark.delta.logStore.adl.impl" in message


def test_an_unknown_scheme_lists_those_served() -> None:
    message = error("foo://bucket/t", {})
    assert "no store supports foo" in message
    assert "file, gcs, gs, hdfs, memory" in message


@pytest.mark.parametrize(
    "path",
    [
        "s3x://AKIA123:s3cret@bucket/t",
        "s3x://AKIA123:s3/cr/et@bucket/t",
        "s3x://AKIA123@bucket/t",
        "https://bucket/t?sig=s3cret",
    ],
)
def test_no_message_shows_a_secret(path: str) -> None:
    message = error(path, {})
    assert "bucket/t" in message
    assert "s3cret" not in message
    assert "AKIA" not in message
    assert "cr/et" not in message


def test_one_instance_for_each_class_scheme_and_options() -> None:
    conf = {impl("own"): OWN, impl("other"): OWN}
    first = store_for("own://a/t", conf=conf)
    assert store_for("own://b/u", conf=dict(conf), storage_options={}) is first
    assert store_for("other://a/t", conf=conf) is not first
    with_options = store_for("own:/t", conf=conf, storage_options={"client": {"retries": 1, "hosts": ["a", "b"]}})
    same = {"client": {"hosts": ["a", "b"], "retries": 1}}
    other = {"client": {"hosts": ["a", "b"], "retries": True}}
    assert with_options is not first
    assert store_for("own:/t", conf=conf, storage_options=same) is with_options
    assert store_for("own:/t", conf=conf, storage_options=other) is not with_options


def test_options_that_cant_be_compared_arent_shared() -> None:
    class Client:
        __hash__ = None  # type: ignore[assignment]

    options = {"client": Client()}
    conf = {impl("own"): OWN}
    assert store_for("own:/t", conf=conf, storage_options=options) is not (
        store_for("own:/t", conf=conf, storage_options=options)
    )


def test_a_store_gets_its_keys_and_its_options() -> None:
    conf = {impl("own"): OWN, "fs.own.key": "1", "spark.hadoop.fs.own.key": "2", "fs.s3a.secret.key": "3"}
    store = store_for("own:/t", conf=conf, storage_options={"a": 1})
    assert isinstance(store, Own)
    assert store.got == ("own", {"fs.own.key": "1", "spark.hadoop.fs.own.key": "2"}, {"a": 1})
    assert store_for("own:/t", conf=conf | {"unrelated": "x"}, storage_options={"a": 1}) is store
    with pytest.raises(LogStoreConfigurationError, match="makes no sense"):
        store_for("own:/t", conf=conf, storage_options={"refuse": 1})


def test_threads_get_one_instance() -> None:
    import threading

    found: list[LogStore] = []
    barrier = threading.Barrier(8)

    def ask() -> None:
        barrier.wait()
        found.append(store_for("own:/t", conf={impl("own"): OWN}, storage_options={"threads": 8}))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len({id(store) for store in found}) == 1


def point(scheme: str, value: str) -> EntryPoint:
    return EntryPoint(scheme, value, "tablelog.logstores")


def test_an_entry_point_serves_its_scheme(entry_points: list[EntryPoint]) -> None:
    entry_points.append(point("own", "logstore.own_stores:Own"))
    assert type(store_for("own://b/t")) is Own
    assert "memory, ofs, own, s3" in error("foo:/t", {})
    assert type(store_for("own://b/t", conf={impl("own"): "tablelog.logstore.MemoryLogStore"})) is MemoryLogStore


def test_an_entry_point_doesnt_replace_what_is_built_in(entry_points: list[EntryPoint]) -> None:
    """An installed package alone mustn't move the log of local tables to another store."""
    entry_points.append(point("file", "logstore.own_stores:Own"))
    assert type(store_for("/t")) is LocalLogStore


def test_entry_points_that_disagree_or_fail_are_named(entry_points: list[EntryPoint]) -> None:
    entry_points += [point("own", "logstore.own_stores:Own"), point("own", "another:Own")]
    entry_points += [point("gone", "no.such:Store"), point("nostore", "logstore.own_stores:NoStore")]
    message = error("own:/t", {})
    assert "another:Own" in message
    assert "logstore.own_stores:Own" in message
    assert "no.such:Store" in error("gone:/t", {})
    assert "not a subclass" in error("nostore:/t", {})
    assert type(store_for("own:/t", conf={impl("own"): OWN})) is Own


# --- how many are kept ------------------------------------------------------------------------------------------------


def with_key(number: int) -> LogStore:
    conf = {
        "fs.s3a.access.key": f"key-{number}",
        "fs.s3a.secret.key": "secret",
        "fs.s3a.endpoint": "http://127.0.0.1:1",
    }
    return store_for("s3a://bucket/t", conf=conf)


@pytest.mark.slow
@pytest.mark.thorough
def test_credentials_that_change_leave_no_stores_behind() -> None:
    """Each hour's credentials are another store, with connections of its own."""
    seen = weakref.WeakSet[LogStore]()
    closed: list[str] = []
    for number in range(200):
        store = with_key(number)
        assert isinstance(store, S3LogStore)
        client = store._requests._clients["bucket"].client
        client.close = lambda closed=closed, key=f"key-{number}": closed.append(key)
        seen.add(store)
    del store, client
    gc.collect()
    assert len(seen) <= registry._KEPT
    assert len(registry._recent) <= registry._KEPT
    assert len(closed) == 200 - len(seen)
    assert closed == [f"key-{number}" for number in range(len(closed))], "those that were asked for longest ago"


def test_a_store_that_is_in_use_stays_the_one_store() -> None:
    used = with_key(-1)
    for number in range(1000, 1000 + 2 * registry._KEPT):
        with_key(number)
    assert used not in registry._recent.values()
    assert with_key(-1) is used
    assert used._requests.endpoint("bucket") == "http://127.0.0.1:1"  # type: ignore[attr-defined]


def test_the_files_in_memory_stay() -> None:
    store_for("memory://a/t").write("memory://a/t/kept", b"kept")
    for number in range(2000, 2000 + 2 * registry._KEPT):
        with_key(number)
    gc.collect()
    assert store_for("memory://a/t").read("memory://a/t/kept") == b"kept"


def test_threads_that_ask_at_once_get_one_store() -> None:
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: with_key(3000), range(64)))
    assert len({id(store) for store in found}) == 1
