"""Where a new table may begin: not in a partition directory of another one."""

from collections.abc import Iterator

import pytest

from tablelog.core import DeltaLog
from tablelog.errors import InvalidArgumentError, StorageAccessError
from tablelog.logstore import MemoryLogStore
from tablelog.logstore.base import FileStatus

COMMIT = b'{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}\n'


@pytest.fixture
def store() -> MemoryLogStore:
    store = MemoryLogStore()
    store.write("memory:///t/_delta_log/00000000000000000000.json", COMMIT)
    return store


@pytest.mark.parametrize("place", ["p=1", "p=1/q=2", "p=a%252Fb", "p=1/"])
def test_no_table_begins_in_a_partition_directory(store: MemoryLogStore, place: str) -> None:
    with pytest.raises(InvalidArgumentError, match="is a partition directory of the table memory:///t"):
        DeltaLog.for_path(f"memory:///t/{place}", store=store).transaction()


@pytest.mark.parametrize("place", ["t/other", "t/p=1/other", "u/p=1", "t=1"])
def test_a_table_begins_at_other_places(store: MemoryLogStore, place: str) -> None:
    assert DeltaLog.for_path(f"memory:///{place}", store=store).transaction().read_version == -1


class OfOneTable(MemoryLogStore):
    """The credentials give access to one table only."""

    def list_from(self, path: str) -> Iterator[FileStatus]:
        if not path.startswith("memory:///t/p=1/"):
            raise StorageAccessError("forbidden")
        return super().list_from(path)


def test_credentials_for_the_new_table_alone_suffice() -> None:
    assert DeltaLog.for_path("memory:///t/p=1", store=OfOneTable()).transaction().read_version == -1
