"""`tablelog optimize` and `tablelog convert` in processes of their own, with a local Spark session."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from support.arrow_table import ArrowTable
from support.command_line import in_process


def test_optimize_makes_fewer_files(tmp_path: Path) -> None:
    table = ArrowTable(tmp_path / "events").with_rows(4)
    ran = in_process("optimize", table.path, "--zorder", "id", "--master", "local[2]", "--json")
    assert ran.code == 0, ran.err
    document = ran.json
    assert (document["numFilesBefore"], document["numFilesAfter"]) == (4, 2)
    assert (document["from"], document["version"]) == (4, 5)
    assert sorted(row["id"] for row in in_process("cat", table.path, "--json").json["rows"]) == list(range(12))
    assert "starting a local Spark session" in ran.err
    assert "Traceback" not in ran.err


def test_convert_adds_a_log(tmp_path: Path) -> None:
    root = tmp_path / "some files"
    (root / "day=2024-05-01").mkdir(parents=True)
    pq.write_table(pa.table({"id": [1, 2]}), root / "day=2024-05-01" / "a.parquet")
    ran = in_process("convert", root, "--partitioned-by", "day DATE", "--master", "local[1]", "--json")
    assert ran.code == 0, ran.err
    assert (ran.json["version"], ran.json["numFiles"]) == (0, 1)
    rows = in_process("cat", root, "--json").json["rows"]
    assert rows == [{"id": 1, "day": "2024-05-01"}, {"id": 2, "day": "2024-05-01"}]
    wrong = in_process("convert", tmp_path / "nothing", "--master", "local[1]")
    assert wrong.code != 0
    assert "Traceback" not in wrong.err
