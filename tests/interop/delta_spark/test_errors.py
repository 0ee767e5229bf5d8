"""What Delta refuses we refuse with its condition, its SQLSTATE and its class in PySpark."""

import json
from pathlib import Path
from typing import Any

import pytest

from tablelog import error_conditions
from tablelog.spark import DeltaTable, IdentityGenerator

from .bad_requests import ANSWER, REQUESTS, SEED, SETUP

# Requests that the two refuse otherwise, with our condition and why.
DIFFERENT = {
    # delta-spark has no name for it, an internal error, or a Java class that says nothing
    "create with no columns in common": ("DELTA_PARTITION_COLUMN_NOT_FOUND", "unnamed there"),
    "created partitioned by no column": ("DELTA_PARTITION_COLUMN_NOT_FOUND", "unnamed there"),
    "write into buckets": ("DELTA_OPERATION_NOT_ALLOWED", "unnamed there"),
    "schema given": ("DELTA_UNSUPPORTED_SCHEMA_DURING_READ", "unnamed there"),
    "NOT NULL of a column": ("NOT_SUPPORTED_CHANGE_COLUMN", "unnamed there"),
    "merge by no column": ("UNRESOLVED_COLUMN.WITH_SUGGESTION", "an internal error there"),
    "merge inserts the table's column": ("UNRESOLVED_COLUMN.WITH_SUGGESTION", "an internal error there"),
    "created clustered by no column": ("DELTA_COLUMN_NOT_FOUND_IN_SCHEMA", "it is told of nested columns there"),
    "column mapping by nothing": ("DELTA_ILLEGAL_OPTION", "unnamed there"),
    "property of another type": ("DELTA_ILLEGAL_OPTION", "Spark's wrapper there"),
    "property that is no number": ("DELTA_ILLEGAL_OPTION", "Spark's wrapper there"),
    "protocol version as text": ("DELTA_ILLEGAL_OPTION", "Spark's wrapper there"),
    "protocol that there isn't": ("DELTA_ILLEGAL_OPTION", "unnamed there"),
    "convert of nothing": ("DELTA_EMPTY_DIRECTORY", "unnamed there"),
    "manifests of deletion vectors": ("DELTA_UNSUPPORTED_GENERATE_WITH_DELETION_VECTORS", "its DELETE fails there"),
    # another step finds it first
    "load of no table": ("DELTA_PATH_DOES_NOT_EXIST", "Spark looks for the path first there"),
    "delete by an aggregate": ("INVALID_WHERE_CONDITION", "Spark's condition for a filter"),
    "constraint on an aggregate": ("DELTA_AGGREGATE_IN_CHECK_CONSTRAINT", "found when it is resolved"),
    "write of a partition name with a space": (
        "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES",
        "columns are looked at first",
    ),
    "replaceWhere of no SQL": ("PARSE_SYNTAX_ERROR", "a ParseException, which is an AnalysisException"),
    "version below 0": ("DELTA_TIME_TRAVEL_INVALID_BEGIN_VALUE", "found when options are read"),
    "changes from a version and a time": ("DELTA_MULTIPLE_CDC_BOUNDARY", "found when options are read"),
    "changes until a version and a time": ("DELTA_MULTIPLE_CDC_BOUNDARY", "found when options are read"),
    "value out of the type's range": ("DELTA_CAST_OVERFLOW_IN_TABLE_WRITE", "the frame is cast, the value isn't"),
    "created with a column twice": ("DELTA_DUPLICATE_COLUMNS_FOUND.DATA", "Spark's catalog there"),
    "column there is": ("DELTA_DUPLICATE_COLUMNS_FOUND.DATA", "Spark's ALTER TABLE there"),
    "column below no struct": ("DELTA_ADD_COLUMN_PARENT_NOT_STRUCT", "Spark's ALTER TABLE there"),
    "optimize by no column": ("UNRESOLVED_COLUMN.WITH_SUGGESTION", "it is resolved first"),
    "convert of no Parquet": ("DELTA_CONVERT_NON_PARQUET_TABLE", "the path is looked for first there"),
    # only one of the two refuses
    "constraint by chance": ("DELTA_NON_DETERMINISTIC_EXPRESSION_IN_CHECK_CONSTRAINT", "a rule that holds by chance"),
    "append of a wider type": (None, "stored with a cast, as Spark's store assignment does"),
    "unset of a property that isn't set": ("DELTA_UNSET_NON_EXISTENT_PROPERTY", "SQL there; ours is a method"),
    "overwriteSchema of partitions": (
        "DELTA_OVERWRITE_SCHEMA_WITH_DYNAMIC_PARTITION_OVERWRITE",
        "the whole table is overwritten there, because the write names no partition columns",
    ),
    "vacuum of the future": ("DELTA_VACUUM_RETENTION_PERIOD_NEGATIVE", "the method gives it another meaning there"),
}


@pytest.fixture(scope="module")
def root(spark: Any, peer: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the table that the requests begin with, as each engine writes it."""
    root = tmp_path_factory.mktemp("errors")
    exec(SEED, {"spark": spark, "path": str(root / "ours" / "seed")})
    peer("run", code=SEED, path=str(root / "theirs" / "seed"))
    return root


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_is_refused_alike(spark: Any, peer: Any, root: Path, name: str) -> None:
    number, request = str(list(REQUESTS).index(name)), REQUESTS[name]
    scope: dict[str, Any] = {
        "spark": spark,
        "DeltaTable": DeltaTable,
        "IdentityGenerator": IdentityGenerator,
        "setup": SETUP,
        "code": request.ours,
        "path": str(root / "ours" / number),
    }
    exec(ANSWER, scope)  # the same lines that the peer runs
    ours = scope["result"]
    code = f"setup = {SETUP!r}\ncode = {request.theirs or request.ours!r}\n{ANSWER}"
    theirs = peer("run", code=code, path=str(root / "theirs" / number))
    if name in DIFFERENT:
        assert (None if ours is None else ours[1]) == DIFFERENT[name][0], (ours, theirs)
    elif ours is None or theirs is None:
        assert ours is theirs, (ours, theirs)
    else:  # where PySpark has no class for Delta's error, ours is one that it has
        assert theirs[0] in (ours[0], "Py4JJavaError"), (ours, theirs)
        assert ours[1:3] == theirs[1:3], (ours, theirs)


def test_the_conditions_are_delta_s(peer: Any, tmp_path: Path) -> None:
    code = """
stream = spark._jvm.Thread.currentThread().getContextClassLoader().getResourceAsStream("error/delta-error-classes.json")
result = bytes(stream.readAllBytes()).decode()
"""
    known = json.loads(peer("run", code=code, path=str(tmp_path)))
    for name, condition in error_conditions.CONDITIONS.items():
        if name in known:
            assert known[name]["sqlState"] == condition.sql_state, name
        else:
            assert not name.startswith("DELTA_"), name
