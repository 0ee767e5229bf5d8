"""Every parameter of every public method refuses values of other types, names itself, and the table stays as it is."""

import inspect
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, Union, get_args, get_origin

import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.types import DataType, StructField, StructType

from support.spark_tables import Table
from tablelog.errors import ArgumentTypeError
from tablelog.spark import DeltaTable
from tablelog.spark.delta_table.create import DeltaTableBuilder, IdentityGenerator
from tablelog.spark.delta_table.merge import DeltaMergeBuilder
from tablelog.spark.delta_table.optimize import DeltaOptimizeBuilder

CLASSES = (DeltaTable, DeltaMergeBuilder, DeltaOptimizeBuilder, DeltaTableBuilder, IdentityGenerator)
VALUES: dict[str, Any] = {
    "str": "1",
    "int": 1,
    "bool": True,
    "float": 1.5,
    "bytes": b"1",
    "None": None,
    "list of str": ["a"],
    "list of int": [1],
    "dict of str": {"a": "b"},
    "dict of int": {"a": 1},
    "dict by int": {1: "a"},
    "object": object(),
}
# What each annotation takes, of the values above: written down by hand, and not worked out as the code does.
TAKES: dict[Any, set[str]] = {
    str: {"str"},
    int: {"int"},
    bool: {"bool"},
    float: {"int", "float"},
    type(None): {"None"},
    Mapping[str, str]: {"dict of str"},
    Mapping[str, str | Column]: {"dict of str"},
    Sequence[str]: {"list of str"},
    list[str]: {"list of str"},
    tuple[str, ...]: set(),
    list[StructField]: set(),
    Iterable[StructField]: set(),
    **{kind: set() for kind in (SparkSession, DataFrame, Column, DataType, StructType, IdentityGenerator)},
}
INSTEAD: dict[Any, Any] = {str: "x", int: 1, bool: False, float: 1.0, Mapping[str, str]: {}}
Case = tuple[type, str, str, Any]


def members(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,)


def takes(kind: Any) -> set[str]:
    found: set[str] = set()
    for one in members(kind):
        found |= {"str"} if get_origin(one) is Literal else TAKES[one]
    return found


def public(cls: type) -> Iterator[tuple[str, inspect.Signature]]:
    """The public methods, and the constructor of what a user makes."""
    for name, member in vars(cls).items():
        function = member.__func__ if isinstance(member, classmethod) else member
        if inspect.isfunction(function) and (
            not name.startswith("_") or (cls, name) == (IdentityGenerator, "__init__")
        ):
            yield name, inspect.signature(function)


def parameters(signature: inspect.Signature) -> list[inspect.Parameter]:
    return list(signature.parameters.values())[1:]


CASES: list[Case] = [
    (cls, method, one.name, wrong)
    for cls in CLASSES
    for method, signature in public(cls)
    for one in parameters(signature)
    for wrong in sorted(VALUES.keys() - takes(one.annotation))
]


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Table:
    table = Table(spark, tmp_path_factory.mktemp("arguments") / "table")
    table.write(spark.sql("SELECT 1 id"))
    return table


@pytest.fixture(scope="module")
def receivers(table: Table) -> dict[type, Any]:
    """What each method is called on."""
    source = table.spark.range(1)
    return {
        DeltaTable: table.delta,
        DeltaMergeBuilder: table.delta.merge(source, "true"),
        DeltaOptimizeBuilder: table.delta.optimize(),
        DeltaTableBuilder: DeltaTable.createOrReplace(table.spark),
    }


def call_with(table: Table, receiver: Any, cls: type, method: str, wrong_name: str, value: Any) -> Callable[[], Any]:
    signature = dict(public(cls))[method]
    positional, named = [], {}
    for one in parameters(signature):
        if one.kind is one.VAR_POSITIONAL:
            if one.name == wrong_name:
                positional.append(value)
        elif one.name == wrong_name:
            named[one.name] = value
        elif one.default is one.empty:
            first = members(one.annotation)[0]
            named[one.name] = {SparkSession: table.spark, DataFrame: table.spark.range(1)}.get(
                first, INSTEAD.get(first)
            )
    target = cls if method == "__init__" else getattr(receiver, method)
    return lambda: target(*positional, **named)


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_a_value_of_another_type_is_refused_by_name(table: Table, receivers: dict[type, Any], cls: type) -> None:
    cases = [case for case in CASES if case[0] is cls]
    assert cases
    for _, method, name, wrong in cases:
        call = call_with(table, receivers.get(cls), cls, method, name, VALUES[wrong])
        with pytest.raises(ArgumentTypeError) as caught:
            call()
        assert name in str(caught.value), (method, name, wrong)
        assert isinstance(caught.value, TypeError), (method, name, wrong)
        assert isinstance(caught.value, ValueError), (method, name, wrong)
        assert table.version == 0, (method, name, wrong)
        assert "0x" not in str(caught.value), "the value itself isn't shown"


def test_every_public_method_is_walked_over() -> None:
    walked = {(cls, method) for cls in CLASSES for method, _ in public(cls)}
    assert len(walked) > 50
    assert {
        (DeltaTable, "cloneAtVersion"),
        (DeltaTable, "restoreToTimestamp"),
        (IdentityGenerator, "__init__"),
    } <= walked
    assert len(CASES) > 500


def test_what_the_annotations_allow_is_taken(table: Table) -> None:
    spark = table.spark
    assert table.delta.history(limit=1).count() == 1
    assert table.delta.vacuum(1000, dryRun=True).count() == 0
    assert DeltaTable.forPath(spark, table.path, {}).detail().count() == 1
    builder = DeltaTable.create(spark).tableName("t").addColumns([StructField("a", DataType.fromDDL("int"))])
    builder.addColumns(StructType([])).partitionedBy("a").partitionedBy(["a"]).partitionedBy(("a",))
    builder.addColumn("b", "int", generatedAlwaysAs=IdentityGenerator(1, 2)).property("a", "b")
    table.delta.merge(spark.range(1), "true").whenMatchedUpdate(set={"id": "1"}).whenMatchedDelete("id = 1")
    with pytest.raises(ValueError, match="'set' must be given"):
        table.delta.update("id = 1")


def test_whether_there_is_a_table_is_asked_with_hadoops_configuration_of_the_path(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is set in Hadoop's configuration alone (core-site.xml) names the credentials of an object store."""
    hadoop = table.spark.sparkContext._jsc.hadoopConfiguration()  # type: ignore[union-attr]
    seen: list[dict[str, str]] = []

    def can_be_read(path: str, conf: Mapping[str, str]) -> bool:
        seen.append({key: value for key, value in conf.items() if "fs.s3a.endpoint" in key})
        return False

    monkeypatch.setattr("tablelog.spark.delta_table.table.can_be_read", can_be_read)
    hadoop.set("fs.s3a.endpoint", "http://127.0.0.1:1")
    try:
        assert DeltaTable.isDeltaTable(table.spark, "s3a://bucket/table") is False
    finally:
        hadoop.unset("fs.s3a.endpoint")
    assert seen == [{"spark.hadoop.fs.s3a.endpoint": "http://127.0.0.1:1"}]
