"""A writer that dies before each of its requests in turn."""

from collections.abc import Iterator
from typing import Any

from tablelog.logstore.s3.dynamodb_store import S3DynamoDBLogStore


class Died(BaseException):
    """In place of the end of the process: nothing of the store's code goes on after it."""


class _Mortal:
    """Passes calls on, and dies before the one that `left` has come down to."""

    def __init__(self, inner: Any, left: list[int], done: list[str]) -> None:
        self._inner, self._left, self._done = inner, left, done

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._inner, name)

        def counted(*arguments: Any, **more: Any) -> Any:
            if self._left[0] == 0:
                raise Died(name)
            self._left[0] -= 1
            self._done.append(name)
            return call(*arguments, **more)

        return counted


def mortal(store: S3DynamoDBLogStore, requests: int) -> tuple[S3DynamoDBLogStore, list[str]]:
    """`store`, made to die after so many requests, and what it has asked by then."""
    left, done = [requests], list[str]()
    store._requests = _Mortal(store._requests, left, done)  # type: ignore[assignment]
    store._entries = _Mortal(store._entries, left, done)  # type: ignore[assignment]
    return store, done


def each_death(make: Any, path_of: Any, data: bytes) -> Iterator[tuple[str, list[str], bool]]:
    """For each number of requests: the path, what was asked, and whether the writer lived."""
    for requests in range(100):
        store, done = mortal(make(), requests)
        path = path_of(requests)
        try:
            store.write(path, data)
        except Died:
            yield path, done, False
        else:
            yield path, done, True
            return
    raise AssertionError("the write never ended")
