"""Commands in sessions of random time zones, over partitions that another writer left with no zone in their values."""

import datetime
import random
from collections.abc import Callable
from pathlib import Path
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from engine.read.tables import HandMade
from support.races import held
from support.spark_tables import Table
from tablelog.core.protocol.actions import CommitInfo
from tablelog.errors import ConcurrentAppendException
from tablelog.spark import DeltaTable

ZONES = ["America/New_York", "Asia/Kolkata", "Pacific/Apia", "+05:30", "UTC"]
PLAIN = {"+05:30": "Asia/Kolkata"}
START = datetime.datetime(2024, 3, 30)
HOURS = 36


class Case:
    """A table of one row an hour, `id` is the hour, each in a partition by its timestamp in the session's zone.

    Half of the values name no zone: they mean the hour in the zone of whoever reads them.
    """

    def __init__(self, spark: SparkSession, root: Path, zone: str, seed: int) -> None:
        self.spark, self.zone, self.random = spark, ZoneInfo(PLAIN.get(zone, zone)), random.Random(seed)
        self.made = HandMade(root, {"id": "long", "t": "timestamp"}, ["t"])
        self.hours = set(self.random.sample(range(HOURS), 8))
        self.append(self.hours)
        self.table = Table(spark, root)

    def append(self, hours: set[int]) -> None:
        adds = [self.made.file(pa.table({"id": pa.array([n], pa.int64())}), {"t": self.text(n)}) for n in sorted(hours)]
        self.made.commit([CommitInfo(operation="WRITE", is_blind_append=False), *adds])

    def local(self, hour: int) -> str:
        return (START + datetime.timedelta(hours=hour)).strftime("%Y-%m-%d %H:%M:%S")

    def text(self, hour: int) -> str:
        if self.random.random() < 0.5:
            return self.local(hour)
        at = (START + datetime.timedelta(hours=hour)).replace(tzinfo=self.zone).astimezone(datetime.UTC)
        return at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    def literal(self, hour: int) -> str:
        return f"timestamp'{self.local(hour)}'"

    def rows(self, hours: list[int], shift: int = 0) -> DataFrame:
        values = ", ".join(f"({hour + shift}L, {self.literal(hour)})" for hour in hours)
        return self.spark.sql(f"select * from values {values} as v(id, t)")

    @property
    def delta(self) -> DeltaTable:
        return DeltaTable.forPath(self.spark, self.table.path)


def read(case: Case, few: list[int], border: int) -> set[int]:
    filtered = case.table.read().where(f"t >= {case.literal(border)}")
    assert {row.id for row in filtered.collect()} == {n for n in case.hours if n >= border}
    mixed = case.table.read().where(f"t = {case.literal(few[0])} or id = {few[1]}")
    assert {row.id for row in mixed.collect()} == set(few[:2])
    return case.hours


def delete(case: Case, few: list[int], border: int) -> set[int]:
    case.delta.delete(f"t < {case.literal(border)}")
    return {n for n in case.hours if n >= border}


def delete_rows(case: Case, few: list[int], border: int) -> set[int]:
    case.delta.delete(f"t < {case.literal(border)} and id >= 0 or id = {few[0]}")
    return {n for n in case.hours if n >= border and n != few[0]}


def update(case: Case, few: list[int], border: int) -> set[int]:
    case.delta.update(f"t = {case.literal(few[0])}", {"id": "id + 100"})
    return case.hours - {few[0]} | {few[0] + 100}


def dynamic(case: Case, few: list[int], border: int) -> set[int]:
    case.table.write(case.rows(few, 100), "overwrite", partitionOverwriteMode="dynamic")
    return case.hours - set(few) | {n + 100 for n in few}


def replace_where(case: Case, few: list[int], border: int) -> set[int]:
    where = f"t = {case.literal(few[0])}"
    case.table.write(case.rows(few[:1], 100), "overwrite", replaceWhere=where)
    return case.hours - {few[0]} | {few[0] + 100}


def merged(case: Case, few: list[int], border: int) -> set[int]:
    source = case.rows(few, 100).alias("s")
    case.delta.alias("t").merge(source, "t.t = s.t").whenMatchedUpdate(set={"id": "s.id"}).execute()
    return case.hours - set(few) | {n + 100 for n in few}


COMMANDS: list[Callable[[Case, list[int], int], set[int]]] = [
    read, delete, delete_rows, update, dynamic, replace_where, merged,
]  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.__name__)
def test_a_command_means_the_partitions_of_its_session(spark, conf, tmp_path, command):
    seeds = random.Random(command.__name__)
    conf("spark.sql.session.timeZone", zone := seeds.choice(ZONES))
    case = Case(spark, tmp_path / "table", zone, seeds.randrange(1 << 30))
    few = seeds.sample(sorted(case.hours), 2)
    expected = command(case, few, seeds.randrange(HOURS))
    assert {row.id for row in case.table.read().collect()} == expected, zone


@pytest.mark.parametrize("command", [delete, dynamic, merged], ids=lambda one: one.__name__)
def test_a_conflict_is_one_of_the_partitions_of_the_session(spark, conf, tmp_path, command):
    seeds = random.Random(command.__name__)
    conf("spark.sql.session.timeZone", zone := seeds.choice(ZONES[:3]))
    for meets in (True, False):
        case = Case(spark, tmp_path / str(meets), zone, seeds.randrange(1 << 30))
        few = seeds.sample(sorted(case.hours), 2)
        border = max(few) + 1
        other = few[0] if meets else border
        case.random.random = lambda: 0.0  # type: ignore[method-assign]
        with held("before committing", lambda case=case, other=other: case.append({other}), writes=False):
            if meets:
                with pytest.raises(ConcurrentAppendException):
                    command(case, few, border)
            else:
                command(case, few, border)
