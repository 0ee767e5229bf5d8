"""From words to a target: what is made, how often, at which address, and what is refused."""

import pickle
from pathlib import Path
from typing import Any

import pytest

from tablelog.conformance.targets import WrongTargetError, from_factory, from_url, named, option, setting
from tablelog.errors import LogStoreConfigurationError
from tablelog.logstore import LocalLogStore, MemoryLogStore

HERE = str(Path(__file__).parent)


@pytest.fixture(autouse=True)
def _own_store_can_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(HERE)


def test_a_path_is_a_local_store_and_each_client_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    target = from_url("relative dir/", {}, {}).target
    assert target.root == tmp_path.as_uri() + "/relative%20dir"
    assert target.endpoint is None
    one, other = target.factory(), target.factory()
    assert isinstance(one, LocalLogStore)
    assert one is not other


def test_a_store_of_one_process_is_the_one_instance() -> None:
    target = from_url("memory://bucket/x", {}, {}).target
    assert isinstance(target.factory(), MemoryLogStore)
    assert target.factory() is target.factory()


def test_a_factory_can_go_to_another_process(tmp_path: Path) -> None:
    for asked in (from_url(str(tmp_path), {}, {}), from_factory("own_store:OwnStore", str(tmp_path))):
        factory = pickle.loads(pickle.dumps(asked.target.factory))
        assert isinstance(factory(), LocalLogStore)


def test_a_class_of_ones_own_is_configured_by_the_registry(tmp_path: Path) -> None:
    asked = from_url(str(tmp_path), {"password": "hidden"}, {"fs.own.key": "key-1"}, "own_store:Quotes")
    assert asked.target.factory()._password == "key-1 hidden"  # type: ignore[attr-defined]
    assert asked.words == (
        *("--store", "own_store:Quotes", "--root", str(tmp_path)),
        *("--option", "password=…", "--conf", "fs.own.key=…"),
    )
    assert asked.secrets == {"hidden", "key-1"}


def test_a_factory_brings_its_root_or_gets_one(tmp_path: Path) -> None:
    assert from_factory("own_store:in_memory", None).target.root == "memory://here/there"
    assert from_factory("own_store:OwnStore", str(tmp_path)).target.root == tmp_path.as_uri()
    root = from_factory("own_store.OwnStore", None).target.root
    assert root.startswith("file:///")
    assert not Path(root.removeprefix("file://")).exists()


def test_a_factory_with_an_endpoint_can_be_stood_in_front_of(tmp_path: Path) -> None:
    target = from_factory("own_store:served", str(tmp_path)).target
    assert target.endpoint == "http://127.0.0.1:9000"
    assert target.through is not None
    client: Any = pickle.loads(pickle.dumps(target.through("http://127.0.0.1:5555")))()
    assert client.endpoint == "http://127.0.0.1:5555"
    assert from_factory("own_store:OwnStore", str(tmp_path)).target.through is None


@pytest.mark.parametrize(
    ("options", "conf", "endpoint", "seen"),
    [
        ({"x": "h:1"}, {"fs.own.endpoint": "http://h:1"}, "http://h:1", {"fs.own.endpoint": "http://p:2", "x": "h:1"}),
        ({}, {"a.endpoint": "h:1", "a.ssl.enabled": "false"}, "http://h:1", {"a.endpoint": "p:2"}),
        ({}, {"a.endpoint": "h:1"}, "https://h:1", {"a.endpoint": "p:2"}),
        (
            {},
            {"a.endpoint": "http://h:1", "a.bucket.b.endpoint": "http://h:7"},
            "http://h:7",
            {"a.endpoint": "http://h:1"},
        ),
        (
            {"client_kwargs": {"endpoint_url": "http://h:1/"}},
            {},
            "http://h:1",
            {"client_kwargs": {"endpoint_url": "http://p:2/"}},
        ),
        (
            {"connection_string": "A=b;BlobEndpoint=http://h:1/acc;"},
            {},
            "http://h:1",
            {"connection_string": "A=b;BlobEndpoint=http://p:2/acc;"},
        ),
    ],
)
def test_the_address_is_found_in_the_settings_and_replaced(
    tmp_path: Path, options: dict[str, Any], conf: dict[str, str], endpoint: str, seen: dict[str, Any]
) -> None:
    target = from_url(str(tmp_path), options, conf).target
    assert target.endpoint == endpoint
    assert target.through is not None
    arguments = target.through("http://p:2").args  # type: ignore[attr-defined]
    assert seen.items() <= {**arguments[1], **arguments[2]}.items()


def test_an_address_in_the_url_is_replaced_there() -> None:
    conf = {"spark.delta.logStore.hdfs.impl": "own_store:OnOneNode"}
    target = from_url("hdfs://node:9000/x/", {}, conf).target
    assert target.endpoint == "node:9000"
    assert target.through is not None
    store = pickle.loads(pickle.dumps(target.through("127.0.0.1:5555")))()
    store.write("hdfs://node:9000/x/a", b"1")
    assert store.inner.read("hdfs://127.0.0.1:5555/x/a") == b"1"
    assert [status.path for status in store.list_from("hdfs://node:9000/x/")] == ["hdfs://node:9000/x/a"]


def test_an_address_in_a_mount_of_viewfs_is_replaced_there() -> None:
    conf = {"fs.viewfs.mounttable.c.link./logs": "hdfs://node:9000/x", "fs.defaultFS": "hdfs://node:9000"}
    target = from_url("viewfs://c/logs", {}, conf).target
    assert target.endpoint == "node:9000"
    assert target.through is not None
    made = target.through("127.0.0.1:5555")()
    assert made._conf == {key: value.replace("node:9000", "127.0.0.1:5555") for key, value in conf.items()}  # type: ignore[attr-defined]
    two = {**conf, "fs.viewfs.mounttable.c.linkFallback": "hdfs://other:9000/"}
    assert from_url("viewfs://c/logs", {}, two).target.endpoint is None


def test_a_name_of_ones_choice(tmp_path: Path) -> None:
    asked = from_url(str(tmp_path), {}, {})
    assert named(asked, "ext4").target.what == "ext4"
    assert named(asked, None).target.what == "LocalLogStore"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("own_store", "package.module:name"),
        ("own_store:nothing", "can't be loaded"),
        ("no_such_module:x", "can't be loaded"),
        ("own_store:HERE", "can't be loaded"),
        ("own_store:_only", "can't be called"),
        ("own_store:no_store", "returned a str"),
        ("own_store:raises", "no configuration found"),
        ("own_store:Client", "endpoint"),
        ("own_store:Elsewhere", "--root"),
    ],
)
def test_a_factory_that_makes_no_store_is_refused(name: str, said: str) -> None:
    with pytest.raises(WrongTargetError, match=said):
        from_factory(name, None)


def test_a_scheme_that_nobody_serves_is_refused() -> None:
    with pytest.raises(LogStoreConfigurationError, match="no store supports nosuch"):
        from_url("nosuch://bucket/x", {}, {})


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("key=a=b", "key", "a=b"),
        ("anon=true", "anon", True),
        ('client_kwargs={"verify": false}', "client_kwargs", {"verify": False}),
        ("number=12", "number", "12"),
        ("empty=", "empty", ""),
    ],
)
def test_options_are_what_they_look_like_and_settings_are_text(text: str, name: str, value: Any) -> None:
    assert option(text) == (name, value)
    assert setting(text) == (name, text.partition("=")[2])


@pytest.mark.parametrize("text", ["secret", "=secret", "x={secret"])
def test_a_wrong_setting_is_refused_without_being_shown(text: str) -> None:
    with pytest.raises(ValueError, match=r"=value|JSON") as caught:
        option(text)
    assert "secret" not in str(caught.value)


def test_a_key_that_is_called_as_the_bucket_is_no_secret() -> None:
    assert from_url("memory://tablelog/x", {"key": "tablelog", "secret": "tablelog-2"}, {}).secrets == {"tablelog-2"}
