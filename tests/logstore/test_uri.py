"""Paths and what may be shown of them."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablelog.errors import InvalidArgumentError, LogStoreConfigurationError, TablelogError
from tablelog.logstore import store_for
from tablelog.logstore.common.uri import local_path, local_uri, scheme_of, shown
from tablelog.logstore.memory import _place


@pytest.mark.parametrize(
    ("path", "local"),
    [
        ("/a b%20c", "/a b%20c"),
        ("a/b", "a/b"),
        ("./a:b", "./a:b"),
        ("file:/a%20b", "/a b"),
        ("file:///a%20b/", "/a b/"),
        ("FILE:///A", "/A"),
        ("file://localhost/a", "/a"),
        ("file:///a%2520b", "/a%20b"),
        ("file:///a%2Fb", "/a/b"),
        ("file:///a+b#c?d", "/a+b#c?d"),
        ("file:///100%", "/100%"),
        ("file:///%C3%A9é", "/éé"),
        ("file://", "/"),
    ],
)
def test_local_paths(path: str, local: str) -> None:
    assert local_path(path) == local


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("", "empty"),
        ("file:a", "relative"),
        ("file://tmp/a", "three slashes"),
        ("file://me:s3cret@host/a", "'host'"),
        ("s3://me:s3cret@b/a", "'s3://b/a'"),
        ("C:\\a", "not a path"),
        ("/a\0b", "null"),
        ("file:///a%00b", "null"),
    ],
)
def test_what_is_no_local_path(path: str, says: str) -> None:
    with pytest.raises(InvalidArgumentError, match=says) as caught:
        local_path(path)
    assert "s3cret" not in str(caught.value)


@given(st.binary(min_size=1).filter(lambda raw: b"\0" not in raw))
def test_a_uri_keeps_every_byte(raw: bytes) -> None:
    path = "/" + os.fsdecode(raw).lstrip("/")
    uri = local_uri(path)
    assert uri.isascii()
    assert " " not in uri
    assert local_path(uri) == path


@given(st.text(min_size=1))
def test_no_user_information_is_ever_shown(secret: str) -> None:
    assert shown(f"s3a://AKIA:{secret}@bucket/key") == "s3a://bucket/key"


@pytest.mark.parametrize(
    ("path", "safe"),
    [
        ("abfss://container@account.dfs.core.windows.net/t", "abfss://container@account.dfs.core.windows.net/t"),
        ("abfss://container:key@account/t", "abfss://account/t"),
        ("s3a://bucket/a@b/t", "s3a://bucket/a@b/t"),
        ("s3a://key@bucket/t", "s3a://bucket/t"),
        ("https://h/t?sig=1", "https://h/t"),
        ("hdfs://nn:8020/user/alice@corp.com/t", "hdfs://nn:8020/user/alice@corp.com/t"),
        ("hdfs://alice:word@nn:8020/t", "hdfs://nn:8020/t"),
        ("/home/a@b?c", "/home/a@b?c"),
        ("file:///home/a@b", "file:///home/a@b"),
    ],
)
def test_what_is_shown(path: str, safe: str) -> None:
    assert shown(path) == safe


@pytest.mark.parametrize(
    ("path", "scheme"),
    [("/a:b", "file"), ("a/b:c", "file"), ("S3A://b", "s3a"), ("x-y.z+1:/a", "x-y.z+1"), ("", "file")],
)
def test_schemes(path: str, scheme: str) -> None:
    assert scheme_of(path) == scheme


@pytest.mark.parametrize(
    ("spellings", "uri"),
    [
        (
            ["/t/a b", "memory:/t/a b", "memory:///t/a%20b", "Memory:///t//./x/../a%20b", "memory:////t/a b"],
            "memory:///t/a%20b",
        ),
        (["memory://h/t", "memory://h/t/x/.."], "memory://h/t"),
        (["fake://b/t%25"], "fake://b/t%25"),
        (["/t%25"], "memory:///t%2525"),
    ],
)
def test_spellings_in_memory(spellings: list[str], uri: str) -> None:
    assert {_place(spelling).uri for spelling in spellings} == {uri}


@pytest.mark.parametrize(
    ("path", "conf"),
    [
        ("s3a://b/t", {"fs.s3a.endpoint": "http://[::1"}),
        ("s3a://b/t", {"fs.s3a.endpoint": "http://h:port"}),
        ("gs://b/t", {"fs.gs.storage.root.url": "http://[::1"}),
    ],
)
def test_an_endpoint_that_is_no_url_is_named(path: str, conf: dict[str, str]) -> None:
    with pytest.raises(LogStoreConfigurationError, match="isn't the URL") as caught:
        store_for(path, conf=conf).read(f"{path}/x")
    assert next(iter(conf)) in str(caught.value)


PATHS = [
    "http://[::1",
    "s3a://[::1/t",
    "file://[::1/t",
    "gs://\udcff/t",
    "s3://b/\udcff",
    "az://c/%ff",
    "memory:/\udcff",
    "",
]


@pytest.mark.parametrize("path", PATHS)
def test_a_path_that_is_none_is_refused_by_an_error_of_ours(path: str) -> None:
    conf = {"fs.s3a.access.key": "a", "fs.s3a.secret.key": "b", "fs.s3a.endpoint": "http://127.0.0.1:1"}
    options = {"token": "anon", "endpoint_url": "http://127.0.0.1:1"} if path.startswith("gs") else {}
    try:
        store = store_for(path, conf=conf, storage_options=options)
        store.read(f"{store.resolve(path)}/x")
    except (TablelogError, FileNotFoundError):
        return
    raise AssertionError(f"{path!r} was read")
