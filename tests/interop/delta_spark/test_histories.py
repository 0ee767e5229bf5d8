"""Random histories of a table, command by command: delta-spark and we run each on equal copies, and leave the same.

Every step starts from what delta-spark has left so far, so that each of our commands runs on a table of its making
and one difference doesn't lead to the next.
"""

import json
import os
import random
import re
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from benchmarks.worker import Worker
from pyspark.sql import SparkSession

from interop.features import THEIR_WORDS, scope
from support.rows import assert_same_rows
from support.spark_tables import Table
from tablelog.core import DeltaLog

FIRST = int(os.environ.get("TABLELOG_FIRST", "0"))
SEEDS = range(FIRST, FIRST + int(os.environ.get("TABLELOG_CASES", "4")))
STEPS = 8
LAYOUTS = ("", ".partitionedBy('p')", ".clusterBy('id', 's')")
PROPERTIES = (
    {"delta.enableDeletionVectors": "true"},
    {"delta.enableChangeDataFeed": "true"},
    {"delta.columnMapping.mode": "name"},
    {"delta.enableRowTracking": "true"},
    {"delta.enableInCommitTimestamps": "true"},
    {"delta.checkpointInterval": "3"},
)
UNCHECKED = "spark.databricks.delta.retentionDurationCheck.enabled"
THEIRS = {
    "T().reorg()": "spark.sql(f'REORG TABLE {table} APPLY (PURGE)')",
    "T().vacuum(0, mode='LITE')": "spark.sql(f'VACUUM {table} LITE RETAIN 0 HOURS')",
    "T().optimize().executeFull()": "spark.sql(f'OPTIMIZE {table} FULL')",
}


def history(seed: int) -> tuple[str, list[str]]:
    """What makes a table, and the commands that follow; these write rows from one task, lest the files vary."""
    dice = random.Random(seed)
    layout = dice.choice(LAYOUTS)
    properties = {key: value for one in PROPERTIES if dice.random() < 0.35 for key, value in one.items()}
    if "delta.columnMapping.mode" in properties:
        properties.pop("delta.enableChangeDataFeed", None)  # delta-spark creates no table with both
    columns = ".addColumn('id', 'bigint').addColumn('p', 'int').addColumn('s', 'string')"
    given = "".join(f".property({key!r}, {value!r})" for key, value in properties.items())
    make = f"DeltaTable.create(spark){columns}{layout}{given}.location(path).execute(); save(rows(0, 40))"
    by_partition = "partitionedBy" in layout

    def step(at: int) -> str:
        n, m = dice.randrange(40), dice.randrange(3)
        where = dice.choice([f"p = {m}", "p is null", f"p in ({m}, 7)"])
        compactions = ["T().optimize().executeCompaction()"] * 2
        if by_partition:
            compactions += [f"T().optimize().where({where!r}).executeCompaction()"]
        if "clusterBy" in layout:
            compactions += ["T().optimize().executeFull()"]
        else:
            compactions += ["T().optimize().executeZOrderBy('id')", "T().optimize().executeZOrderBy('s', 'id')"]
        return dice.choice(
            [
                f"save(spark.range({100 * at}, {100 * at + 10}, 1, 1).selectExpr("
                "'id', 'if(id % 4 = 0, null, cast(id % 3 as int)) p', 'concat(\"s\", id) s'))",
                f"T().delete('id % 10 = {m}')",
                f"T().delete('p = {m} and id > {n}')",
                f"T().update('id between {n} and {n} + 5', {{'s': \"concat(s, '!')\"}})",
                dice.choice(compactions),
                dice.choice(compactions),
                "T().reorg()",
                f"T().restoreToVersion({n} % (T().history().count() - 1))",
                f"rows(200, 206).where('p = {m}').coalesce(1).write.format('delta').mode('overwrite')"
                f".option('replaceWhere', 'p = {m}').save(path)",
                "rows(300, 320).coalesce(1).write.format('delta').mode('overwrite').save(path)",
                f"add('c{at}', 'int')",
                f"properties(enableDeletionVectors={dice.choice(['true', 'false'])!r})",
            ]
        )

    last = dice.choice(["T().vacuum(0)", "T().vacuum(0, mode='LITE')"])
    return make, [*(step(at) for at in range(1, STEPS)), last]


def told(table: Table, since: int) -> list[dict[str, Any]]:
    """What the commits from a version on say, without times, sizes and the names of new files."""
    found = []
    for version in range(since, table.version + 1):
        actions = [next(iter(action.items())) for action in table.actions(version)]
        info = next(action for kind, action in actions if kind == "commitInfo")
        adds = [action for kind, action in actions if kind == "add"]
        removes = [action for kind, action in actions if kind == "remove"]
        found.append(
            {
                "operation": info["operation"],
                "parameters": {key: plain(v) for key, v in info["operationParameters"].items() if v is not None},
                "metrics": {key: v for key, v in info.get("operationMetrics", {}).items() if counts(key)},
                "blind": info.get("isBlindAppend"),
                "level": info.get("isolationLevel"),
                "actions": Counter(kind for kind, _ in actions if kind in ("add", "remove", "cdc", "txn")),
                "adds": Counter((add["dataChange"], marked(add), partition(add)) for add in adds),
                "rows": sum(json.loads(add["stats"])["numRecords"] - (marked(add) or 0) for add in adds),
                "removes": Counter((remove["path"], remove["dataChange"], marked(remove)) for remove in removes),
                "row ids": sorted(add["defaultRowCommitVersion"] for add in adds if "defaultRowCommitVersion" in add),
            }
        )
    return found


def state(table: Table) -> dict[str, Any]:
    """What the newest version says of the table as a whole; delta-spark repeats some of it where nothing changed."""
    snapshot = DeltaLog.for_path(table.path).snapshot()
    domains = {name: json.loads(domain.configuration) for name, domain in snapshot.domain_metadata.items()}
    for domain in domains.values():
        domain.pop("domainName", None)
    said = table.info()["operationParameters"]
    if said.get("mode") == "Overwrite" and "predicate" not in said:
        domains.pop("delta.clustering", None)  # theirs forgets the columns then, and no other property
    return {
        "protocol": snapshot.protocol,
        "schema": [(field.name, field.data_type, field.nullable) for field in snapshot.schema.fields],
        "partitioned by": snapshot.metadata.partition_columns,
        "properties": {key: value.partition("col-")[0] for key, value in snapshot.metadata.configuration.items()},
        "domains": domains,
        "files": snapshot.num_files,
    }


def plain(value: Any) -> Any:
    """A parameter without the numbers of expressions, and JSON without the spaces and order of its writer."""
    text = re.sub(r"#\d+", "", value) if isinstance(value, str) else value
    try:
        return json.loads(text)
    except (TypeError, ValueError):
        return text


def counts(metric: str) -> bool:
    return not re.search("time|bytes|size", metric.lower())


def marked(action: dict[str, Any]) -> int | None:
    """How many rows the deletion vector of a file takes; None: it has none."""
    vector = action.get("deletionVector")
    return vector["cardinality"] if vector else None


def partition(add: dict[str, Any]) -> str | None:
    return next(iter(add["partitionValues"].values()), None)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.timeout(900)
def test_each_command_leaves_the_same(spark: SparkSession, conf: Any, peer: Worker, tmp_path: Path, seed: int) -> None:
    conf(UNCHECKED, "false")
    free = f"spark.conf.set({UNCHECKED!r}, 'false')\n"
    make, commands = history(seed)
    theirs = Table(spark, tmp_path / "theirs")
    peer("run", code=THEIR_WORDS + make, path=theirs.path)
    for number, command in enumerate(commands):
        ours = Table(spark, tmp_path / f"ours{number}")
        shutil.copytree(theirs.root, ours.root)
        since = theirs.version + 1
        said = refused(exec, command, scope(spark, ours.path))
        code = THEIR_WORDS + free + THEIRS.get(command, command)
        they_said = refused(peer, "run", code=code, path=theirs.path)
        context = f"seed {seed}, {make}; {commands[: number + 1]}"
        assert bool(said) == bool(they_said), f"{context}: {said} / {they_said}"
        left, right = told(ours, since), told(theirs, since)
        assert [one["operation"] for one in left] == [one["operation"] for one in right], context
        different = [
            (one["operation"], key, one[key], other[key])
            for one, other in zip(left, right, strict=True)
            for key in one
            if one[key] != other[key]
        ]
        assert not different, context
        assert state(ours) == state(theirs), context
        assert_same_rows(ours.read().toArrow(), theirs.read().toArrow())
    assert len(ours.data_files()) == len(theirs.data_files())
    out = tmp_path / "rows"
    peer("read", path=ours.path, out=str(out))
    assert_same_rows(pq.read_table(out), ours.read().toArrow())


def refused(run: Any, *arguments: Any, **named: Any) -> str:
    """Why the command failed; empty: it didn't."""
    try:
        run(*arguments, **named)
    except Exception as failure:
        return str(failure)[:300]
    return ""
