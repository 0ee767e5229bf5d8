"""`tablelog optimize` and `tablelog convert` in processes of their own, with a local Spark session."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support import json_keys
from support.arrow_table import ArrowTable
from support.command_line import in_process


@pytest.mark.slow
def test_optimize_makes_fewer_files(tmp_path: Path) -> None:
    table = ArrowTable(tmp_path / "events").with_rows(4)
    ran = in_process("optimize", table.path, "--zorder", "id", "--master", "local[2]", "--json")
    assert ran.code == 0, ran.err
    document = ran.json
    assert json_keys.keys_of(document) == json_keys.stable()["optimize TABLE --json"]
    assert (document["numFilesBefore"], document["numFilesAfter"]) == (4, 2)
    assert (document["from"], document["version"]) == (4, 5)
    assert sorted(row["id"] for row in in_process("cat", table.path, "--json").json["rows"]) == list(range(12))
    assert ran.err == ""


@pytest.mark.slow
def test_convert_adds_a_log(tmp_path: Path) -> None:
    root = tmp_path / "some files"
    (root / "day=2024-05-01").mkdir(parents=True)
    pq.write_table(pa.table({"id": [1, 2]}), root / "day=2024-05-01" / "a.parquet")
    ran = in_process("convert", root, "--partitioned-by", "day DATE", "--master", "local[1]", "--json")
    assert ran.code == 0, ran.err
    assert (ran.json["version"], ran.json["numFiles"]) == (0, 1)
    assert json_keys.keys_of(ran.json) == json_keys.stable()["convert NEW --json"]
    rows = in_process("cat", root, "--json").json["rows"]
    assert rows == [{"id": 1, "day": "2024-05-01"}, {"id": 2, "day": "2024-05-01"}]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "words", "code", "said"),
    [
        ("optimize", ("--where", "nosuch = 1"), 2, "[UNRESOLVED_COLUMN.WITH_SUGGESTION]"),
        ("convert", ("--partitioned-by", "day DATEX"), 2, "[UNSUPPORTED_DATATYPE]"),
        ("convert", (), 4, "[DELTA_EMPTY_DIRECTORY] there is no file to convert"),
        ("optimize", ("--master", "nonsense"), 2, "--master: "),
        ("optimize", ("--master", "local[two]"), 2, "--master: "),
    ],
)
def test_a_mistake_of_the_user_is_one_line(
    command: str, words: tuple[str, ...], code: int, said: str, tmp_path: Path
) -> None:
    """Nothing of the JVM's own lines is written before it."""
    table = ArrowTable(tmp_path / "events").with_rows(1) if command == "optimize" else None
    ran = in_process(command, tmp_path if table is None else table.path, "--master", "local[1]", *words)
    assert (ran.code, ran.out) == (code, "")
    assert ran.err.startswith(f"tablelog {command}: ")
    assert said in ran.err
    assert len(ran.err.splitlines()) == 1
