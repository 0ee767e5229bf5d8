"""The race of processes: a writer whose commit had an unknown outcome decides by the content of the file."""

from collections.abc import Callable

import pytest

from tablelog.conformance.checks.races import _won
from tablelog.conformance.failures import GuaranteeBrokenError, NotEstablishedError
from tablelog.errors import StorageUnavailableError, WriteOutcomeUnknown
from tablelog.logstore import MemoryLogStore

PATH = "memory:/log/00000000000000000007.json"


class LateStore(MemoryLogStore):
    """The first write ends with an unknown outcome; `late` writes of others and of it are applied before the second."""

    def __init__(self, *late: bytes) -> None:
        super().__init__()
        self.late, self.writes = late, 0

    def write(self, path: str, data: bytes, *, overwrite: bool = False) -> None:
        self.writes += 1
        if self.writes == 1:
            raise WriteOutcomeUnknown(path, "no reply")
        for content in self.late if self.writes == 2 else ():
            super().write(path, content)
        super().write(path, data)


def test_a_late_write_of_the_same_writer_is_its_commit() -> None:
    assert _won(LateStore(b"mine"), PATH, "mine")


def test_a_late_write_of_another_writer_is_not() -> None:
    assert not _won(LateStore(b"theirs"), PATH, "mine")


def test_a_write_that_was_lost_is_repeated() -> None:
    store = LateStore()
    assert _won(store, PATH, "mine")
    assert (store.writes, store.read(PATH)) == (2, b"mine")


def _raises(error: Exception) -> Callable[..., None]:
    def write(*_: object, **__: object) -> None:
        raise error

    return write


@pytest.mark.parametrize(
    ("error", "verdict"),
    [
        (StorageUnavailableError("the service is busy"), NotEstablishedError),
        (RuntimeError("not of the interface"), GuaranteeBrokenError),
    ],
)
def test_a_rejected_commit_breaks_no_guarantee_but_a_foreign_error_does(
    monkeypatch: pytest.MonkeyPatch, error: Exception, verdict: type[Exception]
) -> None:
    store = MemoryLogStore()
    monkeypatch.setattr(store, "write", _raises(error))
    with pytest.raises(verdict, match=str(error)):
        _won(store, PATH, "mine")
