"""Ctrl-C at each step of every command: what is said to be committed is what the log has, and no row of it is lost."""

import pytest
from pyspark.sql import SparkSession

from support.commands import KINDS, made, values
from support.interruptions import SEVERAL_COMMITS, every_step_is_told
from support.spark_tables import Table

COMMANDS = {name: kind.run for name, kind in KINDS.items()} | SEVERAL_COMMITS


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Table:
    table = made(spark, tmp_path_factory.mktemp("interrupts"))
    table.write(values(spark, (5, 1)))  # two files in each partition
    return table


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_says_what_is_committed(table: Table, name: str) -> None:
    every_step_is_told(table, name, COMMANDS[name])
