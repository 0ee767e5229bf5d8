"""Lines of the log, both ways: those of every corpus, generated ones, and hostile ones."""

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tablelog.core.protocol import codec
from tablelog.core.protocol.actions import (
    Action,
    AddCDCFile,
    AddFile,
    CheckpointMetadata,
    CommitInfo,
    DeletionVectorDescriptor,
    DomainMetadata,
    Format,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
    Sidecar,
)
from tablelog.core.protocol.codec.parsing import PARSERS
from tablelog.errors import CorruptLogError, InvalidArgumentError

ADD = {"path": "a", "partitionValues": {}, "size": 1, "modificationTime": 2, "dataChange": True}


def line(action: str, **fields: Any) -> str:
    return json.dumps({action: fields})


def semantic(value: dict[str, Any]) -> dict[str, Any]:
    """JSON without what means nothing: the order of features, optional fields that are null."""
    (name, body), *rest = value.items()
    assert not rest
    body = {key: item for key, item in body.items() if item is not None}
    if name == "protocol":
        body = {key: sorted(item) if isinstance(item, list) else item for key, item in body.items()}
    return {name: body}


@pytest.mark.parametrize("corpus", ["golden", "dat"])
def test_every_line_of_the_corpora_survives(corpus: str, request: pytest.FixtureRequest) -> None:
    root: Path = request.getfixturevalue(corpus)("")
    seen = 0
    for path in sorted(root.rglob("_delta_log/*.json")):
        data = path.read_bytes()
        lines = [text for text in data.decode().split("\n") if text]
        actions = codec.parse_commit(data)
        assert len(actions) == len(lines), path
        for text, action in zip(lines, actions, strict=True):
            written = codec.to_json(action)
            assert semantic(json.loads(written)) == semantic(json.loads(text)), path
            assert codec.parse_line(written) == action, path
            seen += 1
        assert codec.parse_commit(codec.serialise(actions)) == actions
    assert seen > 100


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
longs = st.integers(-(2**63), 2**63 - 1)
maps = st.dictionaries(texts, texts, max_size=3)
values = st.dictionaries(texts, st.none() | texts, max_size=3)
ints = st.integers(-(2**31), 2**31 - 1)
vectors = st.builds(DeletionVectorDescriptor, texts, texts, ints, longs, st.none() | ints)
json_values = st.recursive(
    st.none() | st.booleans() | longs | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
features = st.none() | st.frozensets(texts, max_size=4)
actions: st.SearchStrategy[Action] = st.one_of(
    st.builds(
        AddFile, texts, values, longs, longs, st.booleans(), st.none() | texts, st.none() | maps, st.none() | vectors,
        st.none() | longs, st.none() | longs, st.none() | texts,
    ),
    st.builds(
        RemoveFile, texts, st.none() | longs, st.booleans(), st.none() | st.booleans(), st.none() | values,
        st.none() | longs, st.none() | texts, st.none() | maps, st.none() | vectors, st.none() | longs,
        st.none() | longs,
    ),
    st.builds(AddCDCFile, texts, values, longs, st.booleans(), st.none() | maps),
    st.builds(
        Metadata, texts, texts, st.lists(texts, max_size=3).map(tuple), maps, st.builds(Format, texts, maps),
        st.none() | texts, st.none() | texts, st.none() | longs,
    ),
    st.builds(Protocol, st.integers(0, 2**31 - 1), st.integers(0, 2**31 - 1), features, features),
    st.builds(SetTransaction, texts, longs, st.none() | longs),
    st.builds(DomainMetadata, texts, texts, st.booleans()),
    st.builds(CheckpointMetadata, longs, st.none() | maps),
    st.builds(Sidecar, texts, longs, longs, st.none() | maps),
    st.builds(
        CommitInfo,
        timestamp=st.none() | longs,
        operation=st.none() | texts,
        operation_parameters=st.none() | st.dictionaries(texts, json_values, max_size=3),
        read_version=st.none() | longs,
        is_blind_append=st.none() | st.booleans(),
        operation_metrics=st.none() | maps,
        txn_id=st.none() | texts,
        extra=st.dictionaries(texts.map("x".__add__), json_values.filter(lambda v: v is not None), max_size=2),
    ),
)  # fmt: skip


@settings(max_examples=300)
@given(st.lists(actions, max_size=5))
def test_what_is_written_is_read_back(given_actions: list[Action]) -> None:
    data = codec.serialise(given_actions)
    assert codec.parse_commit(data) == given_actions
    assert data.count(b"\n") == len(given_actions)


@settings(max_examples=300)
@given(json_values, st.sampled_from(sorted(PARSERS)), st.sampled_from(["", *sorted(ADD)]))
def test_any_json_is_an_action_or_a_typed_error(value: Any, name: str, key: str) -> None:
    body = {**ADD, key: value} if key else value
    try:
        action = codec.parse_line(json.dumps({name: body}))
    except CorruptLogError:
        return
    assert action is None or codec.parse_line(codec.to_json(action)) == action


@settings(max_examples=300)
@given(st.binary(max_size=60) | st.text(max_size=60).map(lambda text: text.encode(errors="surrogatepass")))
def test_any_bytes_are_nothing_or_a_typed_error(data: bytes) -> None:
    try:
        codec.parse_commit(data)
        codec.parse_line(data)
    except CorruptLogError:
        pass


def test_the_form_is_deltas() -> None:
    dv = DeletionVectorDescriptor("u", "ab^-aqEH.-t@S}K{vb[*k^", 40, 6, 4)
    add = AddFile("p=%2520/f", {"p": "%20", "q": None}, 1, 2, True, '{"numRecords":1}', deletion_vector=dv)
    assert codec.to_json(add) == (
        '{"add":{"path":"p=%2520/f","partitionValues":{"p":"%20","q":null},"size":1,"modificationTime":2,'
        '"dataChange":true,"stats":"{\\"numRecords\\":1}","deletionVector":{"storageType":"u",'
        '"pathOrInlineDv":"ab^-aqEH.-t@S}K{vb[*k^","offset":4,"sizeInBytes":40,"cardinality":6}}}'
    )
    assert codec.to_json(AddFile("f", {}, 1, 2, False)) == (
        '{"add":{"path":"f","partitionValues":{},"size":1,"modificationTime":2,"dataChange":false}}'
    )
    assert codec.to_json(RemoveFile("f", None, True)) == '{"remove":{"path":"f","dataChange":true}}'
    assert codec.to_json(Metadata("i", "{}")) == (
        '{"metaData":{"id":"i","format":{"provider":"parquet","options":{}},"schemaString":"{}",'
        '"partitionColumns":[],"configuration":{}}}'
    )
    assert codec.to_json(Protocol(3, 7, frozenset(), frozenset({"b", "a"}))) == (
        '{"protocol":{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":[],"writerFeatures":["a","b"]}}'
    )
    assert codec.serialise([SetTransaction("ä", 1)]) == '{"txn":{"appId":"ä","version":1}}\n'.encode()
    assert codec.serialise([]) == b""


def test_commit_info_keeps_what_it_has_no_field_for() -> None:
    text = line(
        "commitInfo", timestamp="yesterday", operation="WRITE", operationParameters={"mode": "Append", "n": 1},
        job={"jobId": "1"}, readVersion=2.0, userId=None, isBlindAppend=True,
    )  # fmt: skip
    info = codec.parse_line(text)
    assert isinstance(info, CommitInfo)
    assert (info.operation, info.is_blind_append, info.timestamp, info.read_version) == ("WRITE", True, None, None)
    assert info.operation_parameters == {"mode": "Append", "n": 1}
    assert info.extra == {"timestamp": "yesterday", "job": {"jobId": "1"}, "readVersion": 2.0}
    written = json.loads(codec.to_json(info))["commitInfo"]
    assert written == {key: value for key, value in json.loads(text)["commitInfo"].items() if value is not None}


def test_operation_parameters_are_texts_as_delta_prints_them() -> None:
    given_parameters = {
        "mode": "Overwrite",
        "partitionBy": ["a", "b"],
        "predicate": [],
        "check": True,
        "n": 3,
        "x": None,
    }
    assert codec.operation_parameters(given_parameters) == {
        "mode": "Overwrite", "partitionBy": '["a","b"]', "predicate": "[]", "check": True, "n": 3,
    }  # fmt: skip


def test_numbers_paths_and_texts_stay_exact() -> None:
    for path in ("a%20b", "/abs/%2520", "file:///x%23", "s3://b/k+%2B", 'é\u2028\U0001f600\\"\t\x00'):
        action = codec.parse_line(line("add", **{**ADD, "path": path, "size": 2**63 - 1, "baseRowId": 2**53 + 1}))
        assert isinstance(action, AddFile)
        assert (action.path, action.size, action.base_row_id) == (path, 2**63 - 1, 2**53 + 1)
        assert codec.parse_commit(codec.serialise([action])) == [action]
    escaped = codec.parse_line('{"add":{"path":"\\ud83d\\ude00\\u00e9","partitionValues":{"\\u0070":null},'
                               '"size":1,"modificationTime":1,"dataChange":true}}')  # fmt: skip
    assert isinstance(escaped, AddFile)
    assert escaped.path == "\U0001f600é"
    assert escaped.partition_values == {"p": None}


def test_what_is_unknown_is_ignored() -> None:
    assert codec.parse_line("") is None
    assert codec.parse_line(" \r") is None
    assert codec.parse_line('{"newAction":{"x":1}}') is None
    assert codec.parse_line("{}") is None
    assert codec.parse_line('{"add":null,"remove":null}') is None
    assert isinstance(codec.parse_line(line("add", **ADD, newField={"deep": [1]}, stats=None, tags=None)), AddFile)
    assert isinstance(codec.parse_line('{"add":null,"txn":{"appId":"a","version":1}}'), SetTransaction)
    assert isinstance(codec.parse_line(json.dumps({"add": ADD, "extraAction": 3})), AddFile)
    # A name that also occurs as a key further in is no duplicate.
    named = codec.parse_line(line("add", **{**ADD, "partitionValues": {"add": "1"}}))
    assert isinstance(named, AddFile)
    assert named.partition_values == {"add": "1"}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("nonsense", "Expecting value"),
        ('{"add":', "Expecting value"),
        ("[1]", "an object, not an array"),
        ("3", "an object, not 3"),
        ('{"add":3}', "'add' should be an object"),
        ('{"add":{"path":"a"}}', "'partitionValues' is missing"),
        (line("add", **{**ADD, "path": None}), "'path' is missing or null"),
        (line("add", **{**ADD, "size": "1"}), "'size' should be a 64-bit integer"),
        (line("add", **{**ADD, "size": 1.0}), "'size' should be a 64-bit integer"),
        (line("add", **{**ADD, "size": True}), "'size' should be a 64-bit integer"),
        (line("add", **{**ADD, "size": 2**63}), "'size' should be a 64-bit integer"),
        (line("add", **{**ADD, "dataChange": 1}), "'dataChange' should be a boolean"),
        (line("add", **{**ADD, "partitionValues": {"a": 1}}), "should map to strings, but contains 1"),
        (line("add", **ADD, stats={}), "'stats' should be a string, not an object"),
        (line("add", **ADD, deletionVector=[]), "'deletionVector' should be an object"),
        (line("add", **ADD, deletionVector={"storageType": "u"}), "'pathOrInlineDv' is missing"),
        (line("metaData", id="i", partitionColumns=[1]), "'partitionColumns' should be an array of strings"),
        (line("metaData", id="i", configuration={"a": None}), "'configuration' should map to strings"),
        (line("metaData", id="i", format="parquet"), "'format' should be an object"),
        (line("protocol", minReaderVersion=-1, minWriterVersion=2), "out of range"),
        (line("protocol", minReaderVersion=1, minWriterVersion=2**40), "out of range"),
        (line("protocol", minReaderVersion=1, minWriterVersion=2, readerFeatures="x"), "'readerFeatures'"),
        (json.dumps({"add": ADD, "remove": {"path": "a", "dataChange": True}}), "two actions"),
        (f'{{"add":{json.dumps(ADD)},"add":{json.dumps(ADD)}}}', "occurs twice"),
        (f'{{"add":{json.dumps(ADD)},"\\u0061dd":{json.dumps(ADD)}}}', "occurs twice"),
        ('{"commitInfo":{"n":NaN}}', "NaN is not JSON"),
        ('{"commitInfo":{"n":-Infinity}}', "-Infinity is not JSON"),
        ('{"commitInfo":{"n":1e999}}', "out of range"),
        ('{"commitInfo":{"n":%s}}' % ("9" * 5000), "not a line of JSON"),
        ('{"commitInfo":{"s":"\\ud800"}}', "surrogate"),
        ('{"commitInfo":{"s":"\ud800"}}', "surrogate"),
        ('{"commitInfo":{"n":%s}}' % ("[" * 100_000 + "]" * 100_000), "too deep"),
        ("[" * 100_000, "too deep"),
    ],
)  # fmt: skip
def test_hostile_lines_are_typed_errors_that_say_what_is_wrong(text: str, says: str) -> None:
    with pytest.raises(CorruptLogError, match=re.escape(says)) as error:
        codec.parse_line(text)
    assert len(str(error.value)) < 300


def test_a_bad_line_of_a_commit_is_named() -> None:
    good = codec.serialise([SetTransaction("a", 1)])
    with pytest.raises(CorruptLogError, match=r"^line 3: not a line of JSON"):
        codec.parse_commit(good + good + b'{"txn":{"appId":"a"')
    with pytest.raises(CorruptLogError, match=r"^line 2: .*UTF-8"):
        codec.parse_commit(good + b'{"txn":{"appId":"\xff","version":1}}\n')
    with pytest.raises(CorruptLogError, match=r"^line 1: the action 'txn' is damaged"):
        codec.parse_commit(b'{"txn":{"appId":1,"version":1}}')
    assert codec.parse_commit(b"\n" + good + b"\r\n\n" + good) == [SetTransaction("a", 1)] * 2


def test_only_a_line_feed_ends_a_line() -> None:
    action = SetTransaction("a\u2028b\u0085c", 1)
    assert codec.parse_commit(codec.serialise([action, action])) == [action, action]


def test_what_can_not_be_json_is_refused_before_it_is_written() -> None:
    for info in (
        CommitInfo(extra={"n": float("nan")}),
        CommitInfo(extra={"n": object()}),
        CommitInfo(operation="\ud800"),
    ):
        with pytest.raises(InvalidArgumentError):
            codec.serialise([info])


def test_a_table_without_columns_may_have_no_schema() -> None:
    text = (
        '{"metaData":{"id":"i","format":{"provider":"parquet","options":{}},"partitionColumns":[],"configuration":{}}}'
    )
    action = codec.parse_line(text)
    assert isinstance(action, Metadata)
    assert action.schema_string == ""
    assert codec.to_json(action) == text


def test_a_line_of_many_keys_is_read_in_one_pass() -> None:
    """Time is counted as the interpreter does: a look through the line for each key would cost 10^11 comparisons."""
    keys = ",".join(f'"k{number}":1' for number in range(100_000))
    started = time.process_time()
    assert codec.parse_line(f"{{{keys}}}") is None
    assert time.process_time() - started < 5
    with pytest.raises(CorruptLogError, match="the key 'k7' occurs twice"):
        codec.parse_line(f'{{{keys},"k7":2}}')


@pytest.mark.parametrize(("field", "value"), [("sizeInBytes", 10**12), ("sizeInBytes", 2**31), ("offset", -(2**40))])
def test_a_vector_lies_within_what_the_protocol_has_numbers_for(field: str, value: int) -> None:
    vector = {"storageType": "u", "pathOrInlineDv": "x", "sizeInBytes": 1, "cardinality": 1, "offset": 1, field: value}
    add = {"path": "a", "partitionValues": {}, "size": 1, "modificationTime": 1, "dataChange": True}
    with pytest.raises(CorruptLogError, match=f"'{field}' should be a 32-bit integer, not"):
        codec.parse_line(json.dumps({"add": {**add, "deletionVector": vector}}))
