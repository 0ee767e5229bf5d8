"""Items of S3DynamoDBLogStore in DynamoDB, which another program may have written: no commit is lost by one."""

import json
from collections.abc import Iterator
from typing import Any

from fuzz.target import Target, allowed
from tablelog.errors import CorruptLogError
from tablelog.logstore.common.conditional_put import Answer, Verdict
from tablelog.logstore.common.http_clients import Clients
from tablelog.logstore.s3.dynamodb_entries import Entries, EntrySettings
from tablelog.logstore.s3.dynamodb_store import S3DynamoDBLogStore
from tablelog.logstore.s3.places import S3Location
from tablelog.logstore.s3.requests import Listed

_TABLE = "s3a://bucket/t"
_LOG = "t/_delta_log/"
_FIRST, _SECOND = (f"{version:020}.json" for version in range(2))
_TEMPORARY = f".tmp/{_SECOND}.1"
_WORDS = [
    "tablePath", "fileName", "tempPath", "complete", "expireTime", "S", "N", "B", "M", "L", "NULL", "true", "false",
    "True", "TRUE", _TABLE, _FIRST, _SECOND, _TEMPORARY, ".tmp/", "..", "../", "/", f"../{_FIRST}", f".tmp/../{_FIRST}",
    "_last_checkpoint", "é", "",
]  # fmt: skip


class _Client:
    """DynamoDB with one item, which it returns for each request."""

    def __init__(self, item: dict[str, Any]) -> None:
        self._item = item

    def get_item(self, **_: Any) -> dict[str, Any]:
        return {"Item": self._item}

    def query(self, **_: Any) -> dict[str, Any]:
        return {"Items": [self._item]}

    def update_item(self, **_: Any) -> None:
        """The item is complete; nothing is asked after it."""

    def close(self) -> None:
        """Nothing is open."""


class _Entries(Entries):
    def __init__(self, item: dict[str, Any]) -> None:
        super().__init__(EntrySettings())
        self._clients = Clients(lambda _region: _Client(item))


class _Bucket:
    """The requests to S3, with objects in memory."""

    def __init__(self, objects: dict[str, bytes]) -> None:
        self.objects = objects

    def get(self, place: S3Location) -> bytes:
        if place.key not in self.objects:
            raise FileNotFoundError(place.uri)
        return self.objects[place.key]

    def exists(self, place: S3Location) -> bool:
        return place.key in self.objects

    def delete(self, place: S3Location) -> None:
        self.objects.pop(place.key, None)

    def put_if_absent(self, place: S3Location, content: bytes) -> Answer:
        if place.key in self.objects:
            return Answer(Verdict.EXISTS)
        self.objects[place.key] = content
        return Answer(Verdict.APPLIED)

    def list(self, place: S3Location, after: str | None) -> Iterator[Listed]:
        found = sorted(key for key in self.objects if key.startswith(place.directory) and key > (after or ""))
        return (Listed(key, len(self.objects[key]), 0) for key in found)


def item(data: bytes) -> None:
    """A reader with this item finds each commit as it was, or a typed error, and no other object is gone."""
    try:
        parsed = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise CorruptLogError("no JSON") from error
    if not isinstance(parsed, dict) or not all(isinstance(value, dict) for value in parsed.values()):
        raise CorruptLogError("no item")
    _Entries(parsed).get(_TABLE, _SECOND)  # whether the item is valid
    before = {_LOG + _FIRST: b"first", _LOG + "_last_checkpoint": b"{}", _LOG + _TEMPORARY: b"second"}
    store = S3DynamoDBLogStore(entries=EntrySettings())
    store._entries, store._requests = _Entries(parsed), _Bucket(dict(before))  # type: ignore[assignment]
    objects = store._requests.objects  # type: ignore[attr-defined]
    allowed(lambda: list(store.list_from(f"{_TABLE}/_delta_log/{_FIRST}")))
    for name in (_FIRST, _SECOND):
        try:
            allowed(lambda name=name: store.read(f"{_TABLE}/_delta_log/{name}"))  # type: ignore[misc]
        except FileNotFoundError:
            assert name == _SECOND
    for key in (_LOG + _FIRST, _LOG + "_last_checkpoint"):
        assert objects[key] == before[key]
    assert all(key.startswith(_LOG) for key in objects)


def _seed(complete: str, **more: Any) -> bytes:
    texts = {"tablePath": _TABLE, "fileName": _SECOND, "tempPath": _TEMPORARY, "complete": complete}
    return json.dumps({**{key: {"S": text} for key, text in texts.items()}, **more}).encode()


def _seeds() -> list[bytes]:
    return [_seed("false"), _seed("true", expireTime={"N": "1795713495"})]


TARGETS = (Target("dynamodb-item", item, _seeds, "json", _WORDS),)
