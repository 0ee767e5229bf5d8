"""The records of real commands about their progress are those that docs/guide/logging.md lists."""

import logging
import re
from pathlib import Path

import pytest

from tablelog.spark import DeltaTable

PAGE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "logging.md"
SECTION = PAGE.read_text(encoding="utf-8").split("## Progress of commands")[1].split("\n## ")[0]
RECORD = re.compile(r"\S+: ([A-Z ]+): (.+)")


def listed():
    """The stages of each command that the page names, in their order."""
    commit = re.search(r"two stages:\s+`(.+)` and `(.+)`", SECTION).groups()
    found = {}
    for line in SECTION.splitlines():
        if not line.startswith("| `"):
            continue
        commands, stages = line.strip("| ").split(" | ")
        named = [stage.strip("` ") for stage in stages.split(";")]
        for command in commands.removesuffix(" and other changes of the metadata").split(", "):
            found[command.replace("`", "")] = [one for s in named for one in (commit if s == "commit" else (s,))]
    return found


def numbered(stage):
    """A stage as the page writes it, with N, then M, for its numbers."""
    letters = iter("NM")
    text = re.sub(r"\d[\d,]*", lambda _: next(letters), stage)
    return re.sub(r"([NM]) file\b", r"\1 files", text)


def merge(table):
    merged = table.delta.alias("t").merge(table.spark.range(5, 25).alias("s"), "t.id = s.id")
    merged.whenMatchedDelete().whenNotMatchedInsertAll().execute()


def create(table):
    DeltaTable.create(table.spark).location(table.beside("new").path).addColumn("id", "bigint").execute()


def convert(table):
    table.spark.range(3).write.parquet(table.beside("parquet").path)
    DeltaTable.convertToDelta(table.spark, f"parquet.`{table.beside('parquet').path}`")


COMMANDS = {
    "DELETE": lambda table: table.delta.delete("id = 2"),
    "UPDATE": lambda table: table.delta.update("id = 2", {"id": "id + 100"}),
    "MERGE": merge,
    "WRITE": lambda table: table.write(table.spark.range(3)),
    "WRITE with replaceWhere": lambda table: table.write(table.spark.range(3), "overwrite", replaceWhere="id < 3"),
    "WRITE with auto compaction": lambda table: table.write(table.spark.range(3)),
    "OPTIMIZE": lambda table: table.delta.optimize().executeCompaction(),
    "REORG": lambda table: table.spark.sql(f"REORG TABLE delta.`{table.path}` APPLY (PURGE)"),
    "DROP FEATURE": lambda table: table.delta.dropFeatureSupport("deletionVectors"),
    "VACUUM": lambda table: table.delta.vacuum(0),
    "RESTORE": lambda table: table.delta.restoreToVersion(0),
    "CONVERT TO DELTA": convert,
    "CREATE TABLE": create,
    "CREATE TABLE AS SELECT": lambda table: table.spark.sql(
        f"CREATE TABLE delta.`{table.beside('new').path}` USING delta AS SELECT 1 AS id"
    ),
    "CLONE": lambda table: table.delta.clone(table.beside("clone").path, isShallow=True),
    "TRUNCATE": lambda table: table.spark.sql(f"TRUNCATE TABLE delta.`{table.path}`"),
    "SET TBLPROPERTIES": lambda table: table.delta.setProperties({"delta.checkpointInterval": "7"}),
}
PROPERTIES = {
    "REORG": "delta.enableDeletionVectors",
    "DROP FEATURE": "delta.enableDeletionVectors",
    "WRITE with auto compaction": "delta.autoOptimize.autoCompact",
}
"""What the table has enabled before the command."""


def test_the_page_lists_the_commands_of_this_test():
    assert listed().keys() == COMMANDS.keys()


@pytest.mark.parametrize("command", COMMANDS)
def test_the_stages_of_a_command_are_those_of_the_page(table, conf, caplog, command):
    conf("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    conf("spark.databricks.delta.autoCompact.minNumFiles", "2")
    for start in (0, 10):
        table.write(table.spark.range(start, start + 10).repartition(1))
    if command in PROPERTIES:
        table.delta.setProperties({PROPERTIES[command]: "true"})
    table.delta.delete("id = 1")
    with caplog.at_level(logging.INFO, "tablelog.progress"):
        COMMANDS[command](table)
    records = [RECORD.fullmatch(r.getMessage()) for r in caplog.records if r.name == "tablelog.progress"]
    assert {record[1] for record in records} == {command.partition(" with ")[0].removesuffix(" AS SELECT")}
    assert [numbered(record[2]) for record in records] == listed()[command]
