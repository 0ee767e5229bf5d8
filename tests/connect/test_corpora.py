"""The tables of the corpora, read on Spark Connect with exactly the rows and the schema expected."""

import json
from pathlib import Path
from typing import Any

import pytest

from conftest import Corpus
from golden.test_rows import DAT, DAT_VERSIONS, GOLDEN, MUST_RAISE, expected_rows, without_nullability
from support.rows import assert_same_rows
from tablelog.errors import TablelogError


@pytest.mark.parametrize(("table", "version"), [(t, v) for t in DAT for v in ["latest", *DAT_VERSIONS.get(t, [])]])
def test_dat_table_reads_as_expected(spark: Any, dat: Corpus, table: str, version: str) -> None:
    path, oracle = str(dat(table) / "delta"), dat(table) / "expected" / version
    number = json.loads((oracle / "table_version_metadata.json").read_text())["version"]
    reader = spark.read.format("delta")
    frame = (reader if version == "latest" else reader.option("versionAsOf", number)).load(path)
    expected = expected_rows(spark, oracle / "table_content")
    assert without_nullability(frame.schema) == without_nullability(expected.schema)
    assert_same_rows(frame.toArrow(), expected.toArrow())


@pytest.mark.parametrize("table", GOLDEN)
def test_golden_table_reads_as_expected(spark: Any, golden: Corpus, table: str) -> None:
    root: Path = golden(table)
    frame = spark.read.format("delta").load(str(root / "delta"))
    expected = expected_rows(spark, root / "expected")
    if table == "data-reader-partition-values":  # its expected as_timestamp is in the time zone of who made it
        frame, expected = frame.drop("as_timestamp"), expected.drop("as_timestamp")
    assert without_nullability(frame.schema) == without_nullability(expected.schema)
    assert_same_rows(frame.toArrow(), expected.toArrow())


@pytest.mark.parametrize("table", MUST_RAISE)
def test_broken_table_raises_a_typed_error(spark: Any, golden: Corpus, table: str) -> None:
    with pytest.raises(TablelogError, match=table):
        spark.read.format("delta").load(str(golden(table) / "delta")).count()
