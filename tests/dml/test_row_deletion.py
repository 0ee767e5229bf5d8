"""How many deleted rows a command may collect, where statistics are wrong; no JVM is needed."""

from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from tablelog.dml.command import row_deletion
from tablelog.engine.write import deletion_vector_writer


class _CountedError(Exception):
    pass


def test_row_counts_above_64_bits_do_not_make_a_command_collect_single_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    records = pa.chunked_array([pa.array([(1 << 63) - 1, 2], pa.int64())])
    command: Any = SimpleNamespace(snapshot=SimpleNamespace(num_records=lambda: records))
    found = []

    def by_file(_: object, most: int | None) -> None:
        found.append(most)
        raise _CountedError

    monkeypatch.setattr(deletion_vector_writer, "by_file", by_file)
    rows: Any = None
    with pytest.raises(_CountedError):
        row_deletion.delete_rows(command, rows)
    assert found == [(1 << 63) + 1]  # Arrow's sum is negative, which looks like few rows
