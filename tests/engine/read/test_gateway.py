"""Each of Spark's internals that the gateway uses, once: what breaks here breaks with a new Spark."""

import datetime
import gc
import threading
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from types import SimpleNamespace
from typing import ClassVar

import pyarrow as pa
import pytest
from py4j.clientserver import ClientServerConnection, JavaClient
from py4j.java_gateway import GatewayClient
from py4j.protocol import MEMORY_COMMAND_NAME, REFLECTION_COMMAND_NAME, Py4JError
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tablelog.engine.jvm.connection import environment
from tablelog.engine.jvm.connection.callbacks import Connections, carried
from tablelog.engine.jvm.connection.environment import SUPPORTED, check_version
from tablelog.engine.jvm.connection.gateway import Gateway
from tablelog.engine.jvm.connection.names import Names
from tablelog.engine.jvm.hadoop import has_file_system
from tablelog.engine.jvm.registry.python_internals import JvmInternal
from tablelog.engine.jvm.scans import planned_scan, without_dynamic_pruning
from tablelog.errors import UnsupportedEnvironmentError


@pytest.fixture
def gateway(spark: SparkSession) -> Gateway:
    return Gateway.of(spark)


def test_versions() -> None:
    for version in SUPPORTED:
        check_version(f"{version}.0")
    for version in ("3.5.1", "4.0.2", "4.4.0", "5.0.0-preview1"):
        with pytest.raises(UnsupportedEnvironmentError, match=r"supports Spark 4\.1, 4\.2, 4\.3"):
            check_version(version)


def test_this_jvm_has_every_internal_of_the_registry(spark: SparkSession, gateway: Gateway) -> None:
    version = environment.minor_of(spark.version)
    assert list(environment.missing_in_jvm(gateway.py4j.jvm, version)) == []
    assert list(environment.missing_settings(spark)) == []


def test_what_a_jvm_lacks_is_named(gateway: Gateway) -> None:
    declared = [
        JvmInternal("org.apache.spark.sql.Gone", "a class"),
        JvmInternal("org.apache.spark.sql.classic.Dataset", "methods", ("ofRows", "gone")),
        JvmInternal("org.apache.spark.sql.Later", "another version", versions=("9.9",)),
    ]
    assert list(environment.missing_in_jvm(gateway.py4j.jvm, "4.3", declared)) == [
        "org.apache.spark.sql.Gone (a class)",
        "org.apache.spark.sql.classic.Dataset.gone (methods)",
    ]


def test_the_check_asks_the_jvm_for_nothing_but_the_version(spark: SparkSession, sent: list[str]) -> None:
    assert spark.version
    one = len(sent)
    environment.check_environment(spark)
    assert len(sent) == 2 * one


def test_a_session_with_no_jvm() -> None:
    with pytest.raises(UnsupportedEnvironmentError, match="Spark Connect"):
        Gateway.of(SimpleNamespace())  # type: ignore[arg-type]


def test_one_gateway_for_all_sessions(spark: SparkSession, gateway: Gateway) -> None:
    assert Gateway.of(spark.newSession()) is gateway


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What this thread sends to the JVM from here on, but what frees memory there."""
    commands: list[str] = []
    ours, send = threading.current_thread(), GatewayClient.send_command

    def noted(client: GatewayClient, command: str, *arguments: object, **more: object) -> object:
        if threading.current_thread() is ours and not command.startswith(MEMORY_COMMAND_NAME):
            commands.append(command)
        return send(client, command, *arguments, **more)

    monkeypatch.setattr(GatewayClient, "send_command", noted)
    return commands


def test_names_of_the_jvm_are_looked_up_once(gateway: Gateway, sent: list[str]) -> None:
    def lookups() -> int:
        return sum(command.startswith(REFLECTION_COMMAND_NAME) for command in sent)

    names = Names(gateway.py4j.jvm)
    assert names.java.lang.Math.max(1, 2) == 2
    first = lookups()
    assert first == 4  # java, java.lang, the class, the method
    assert names.java.lang.Math.max(3, 2) == 3
    assert names.java.lang.StringBuilder("text").reverse().toString() == "txet"
    assert lookups() == first + 1  # the class alone is new
    with pytest.raises(Py4JError):
        names.java.lang.Math.unheard()
    assert names.java.lang.Long.MAX_VALUE == 2**63 - 1


def test_a_condition_over_a_wide_frame_asks_for_its_own_columns(
    spark: SparkSession, gateway: Gateway, sent: list[str]
) -> None:
    def calls(columns: int) -> int:
        wide = spark.range(1).select(*(F.lit(i).alias(f"c{i}") for i in range(columns)))
        condition = gateway.filter_condition(wide.where("c0 < c1"))
        other = spark.range(1).select(*(F.lit(i).alias(f"c{i}") for i in range(columns)))
        before = len(sent)
        rebound = gateway.column(gateway.rebound(condition, other))
        made = len(sent) - before
        assert [row.c1 for row in other.where(rebound).collect()] == [1]
        return made

    calls(2)  # the names
    assert calls(300) == calls(3)


def test_arrays_in_bulk(gateway: Gateway) -> None:
    assert list(gateway.strings([])) == []
    assert list(gateway.strings([""])) == [""]
    assert list(gateway.strings(["a", "", "ü%\n", ""])) == ["a", "", "ü%\n", ""]
    assert list(gateway.longs(pa.array([0, -1, 2**62], pa.int64())[1:])) == [-1, 2**62]
    assert list(gateway.ints(pa.array([], pa.int32()))) == []
    numbers = pa.array([3, -(2**31), 2**31 - 1], pa.int32())
    assert gateway.read_ints(gateway.ints(numbers)).equals(numbers)


def test_functions_of_an_index(gateway: Gateway) -> None:
    texts = gateway.element_of(gateway.strings(["a", "b", "c"]), "[Ljava.lang.String;")
    table = gateway.table_of(texts, 3)
    assert list(table) == ["a", "b", "c"]
    picked = gateway.wrapped(gateway.picked(table, pa.array([2, 0], pa.int32())))
    assert gateway.elements(picked) == ["c", "a"]


def test_rows_and_conditions_over_them(spark: SparkSession, gateway: Gateway) -> None:
    kinds = "a int not null, b string, c date, d decimal(3, 2), e timestamp"
    schema = spark.createDataFrame([], kinds).schema
    moment = datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC)
    values = pa.table(
        {
            "a": pa.array([1, None, 3], pa.int32()),
            "b": ["x", "y", None],
            "c": pa.array([datetime.date(1500, 1, 1), None, datetime.date(2000, 1, 1)]),
            "d": pa.array([Decimal("1.50")] * 3, pa.decimal128(3, 2)),
            "e": pa.array([moment] * 3, pa.timestamp("us", "UTC")),
        }
    )
    rows = gateway.rows(spark, values, schema)
    assert len(rows) == 3
    assert rows[0].getInt(0) == 1
    assert rows[1].isNullAt(0)
    java_schema = gateway.schema(schema.json())
    frame = spark.createDataFrame([], kinds.replace("not null", ""))
    for condition, expected in (
        ("a = 1 or b is null", [0, 2]),
        ("a > 0", [0, 2]),
        ("c < date'1582-10-15'", [0]),
        ("d = 1.5 and year(e) = 2000", [0, 1, 2]),
        ("a is null", [1]),
        ("concat(b, 'z') = 'yz'", [1]),
    ):
        one = gateway.filter_condition(frame.where(condition))
        assert gateway.rows_matching(gateway.seq([one]), java_schema, rows, 3).to_pylist() == expected, condition


def test_expressions_move_between_frames(spark: SparkSession, gateway: Gateway) -> None:
    one, other = spark.range(5), spark.range(3, 9)
    expression = gateway.expression(spark, one.id > 3)
    moved = gateway.column(gateway.rebound(expression, other.alias("x")))
    assert other.where(moved).count() == 5
    assert not gateway.has_subquery(gateway.filter_condition(one.where("id > 1")))
    one.createOrReplaceTempView("one_to_five")
    assert gateway.has_subquery(gateway.filter_condition(one.where("id in (select id from one_to_five)")))


def test_file_systems(spark: SparkSession, gateway: Gateway) -> None:
    assert has_file_system(spark, "file:///tmp")
    assert not has_file_system(spark, "nosuchscheme://host/path")


def test_the_execution_that_calls_back(spark: SparkSession, gateway: Gateway) -> None:
    assert gateway.execution_id() is None


def test_fields_of_metadata(gateway: Gateway) -> None:
    assert {"file_path", "file_name", "file_size", "file_modification_time", "row_index"} <= gateway.metadata_fields


def test_the_planned_scan_of_a_filter(spark: SparkSession, gateway: Gateway, tmp_path: object) -> None:
    path = f"{tmp_path}/t"
    spark.range(6).withColumn("p", F.col("id") % 2).write.partitionBy("p").parquet(path)
    frame = spark.read.parquet(path)
    found = planned_scan(frame.where("p = 1"))
    assert found is not None
    assert (found.complete, found.understood) == (True, True)
    assert found.partition_filters.size() == 2  # not null, and equal
    found = planned_scan(frame.where("p = 1 and id > 2"))
    assert found is not None
    assert (found.complete, found.data_filters.size()) == (False, 2)
    assert planned_scan(frame.where("false")) is None
    assert without_dynamic_pruning(gateway, found.data_filters).size() == 2


def test_py4j_s_own_connections_can_be_looked_at(gateway: Gateway) -> None:
    """The fields of Py4J's client that `callbacks` closes connections by."""
    client = gateway.py4j.java_gateway_server.getCallbackClient()
    connections = Connections.of(gateway)
    assert connections._field(client, "lock").getClass().getName() == "java.util.concurrent.locks.ReentrantLock"
    assert connections._field(client, "connections").size() >= 0


def test_an_object_that_a_callback_returns_arrives(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    class Supplier:
        @carried
        def get(self) -> object:
            return gateway.jvm.java.io.File("x")

        class Java:
            implements: ClassVar = ["java.util.function.Supplier"]

    def at_once(self: JavaClient, target_id: str, enqueue: bool = True) -> None:
        GatewayClient.garbage_collect_object(self, target_id)

    def released_first(self: ClientServerConnection, *args: object) -> str:
        message: str = call_proxy(self, *args)
        gc.collect()
        return message

    call_proxy = ClientServerConnection._call_proxy
    monkeypatch.setattr(JavaClient, "garbage_collect_object", at_once)
    monkeypatch.setattr(ClientServerConnection, "_call_proxy", released_first)
    with ThreadPoolExecutor(1) as pool:  # with a connection of its own
        name = pool.submit(lambda: gateway.jvm.java.util.Optional.empty().orElseGet(Supplier()).getName())
    assert name.result() == "x"
