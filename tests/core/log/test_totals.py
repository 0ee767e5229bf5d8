"""The totals of files in columns: their sums are exact, whatever a log says."""

from dataclasses import replace

import pytest

from support.log_builder import add
from tablelog.core.log import columns
from tablelog.core.log.columns import FILE_SCHEMA, counted, table_of, totals_of
from tablelog.core.log.replay import NO_FILES
from tablelog.core.protocol.actions import AddFile, DeletionVectorDescriptor

_MOST = 2**63 - 1


@pytest.fixture(params=["few", "many"], autouse=True)
def _way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "many":
        monkeypatch.setattr(columns, "_FEW", 0)


def _file(number: int, size: int, deleted: int | None) -> AddFile:
    vector = None if deleted is None else DeletionVectorDescriptor("u", "ab^-aqEH.-t@S}K{vb[*k^@", 36, deleted, number)
    return replace(add(f"{number}.parquet", size=size), deletion_vector=vector)


@pytest.mark.parametrize(
    "files",
    [
        [],
        [(0, None), (8191, 1), (8192, 1), (100, 0)],
        [(_MOST, None), (_MOST, None), (1, None)],
        [(1, _MOST), (1, 5), (1, None), (1, _MOST)],
    ],
)
def test_the_totals_are_those_of_a_replay(files: list[tuple[int, int | None]]) -> None:
    """A sum of 64-bit integers overflowed without an error. Found by fuzzing."""
    actions = [_file(number, *file) for number, file in enumerate(files)]
    expected = NO_FILES.changed((1, file.size, file.deletion_vector) for file in actions)
    table = table_of(actions, FILE_SCHEMA)
    assert totals_of(table["size"], table["deletionVector"]) == expected
    found = counted(table)
    assert (found.num_files, found.size_in_bytes) == (expected.num_files, expected.size_in_bytes)
    assert found.num_deletion_vectors == expected.num_deletion_vectors
    assert found.num_deleted_records == expected.num_deleted_records
