"""`python -m soak.driver RUN NAME WORK`: a Spark driver; WORK is `commands`, `streams` (both), or `finish`.

`finish` lets each stream read what is left, vacuums everything that no version needs, and ends.
"""

import os
import random
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from pyspark.sql import DataFrame

from soak import effects
from soak.effects import NOTHING, Effect, Row, digest
from soak.journal import Journal
from soak.places import ACCOUNTS, Place, Run
from soak.reader import broken
from support.sessions import session_builder
from tablelog import retrying
from tablelog.core import DeltaLog
from tablelog.spark import DeltaTable, enable

_USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"
_HEAP_EVERY_SECONDS = 20.0
_STEPS = {
    "append": 5, "delete": 3, "update": 3, "transfer": 5, "merge": 4,
    "optimize": 2, "vacuum": 1, "restore": 1, "read": 2,
}  # fmt: skip


def session(run: Run, name: str) -> Any:
    settings = {
        "spark.driver.memory": "1g",
        "spark.sql.warehouse.dir": f"{run.directory}/{name}-warehouse",
        "spark.local.dir": f"{run.directory}/{name}-local",
        "spark.sql.shuffle.partitions": "1",
        # What Spark keeps of jobs that ended would look like a leak until these numbers are reached.
        "spark.ui.retainedJobs": "20",
        "spark.ui.retainedStages": "20",
        "spark.ui.retainedTasks": "100",
        "spark.sql.ui.retainedExecutions": "20",
        "spark.sql.streaming.numRecentProgressUpdates": "5",
        # The default, `analytics`, keeps an entry for each object that was read, until the process ends.
        "spark.hadoop.fs.s3a.input.stream.type": "classic",
    }
    for place in run.places:
        settings |= {f"spark.hadoop.{key}": value for key, value in place.conf.items()}
    if run.class_path:
        settings["spark.driver.extraClassPath"] = run.class_path
    spark = session_builder("local[2]", settings).getOrCreate()
    enable(spark)
    return spark


class Driver:
    def __init__(self, run: Run, name: str) -> None:
        self._run = run
        self._journal = Journal(run.directory, name)
        self._random = random.Random(f"{run.seed} {name}")
        process, _, incarnation = name.partition(".")
        self._next_id = 1_000_000_000_000 * (1 + int(process.rpartition("-")[2])) + 1_000_000 * int(incarnation)
        self._spark = session(run, name)
        self._jvm = self._spark._jvm
        self._logs: dict[tuple[str, str], DeltaLog] = {}
        self._heap_said = 0.0
        self._seen_active: dict[Place, float] = {}

    def ready(self) -> None:
        self._journal.say(ready={"pid": os.getpid(), "jvm": self._jvm.java.lang.ProcessHandle.current().pid()})

    # --- commands -------------------------------------------------------------------------------------------------

    def commands(self, *, with_streams: bool) -> None:
        """Commands by chance until the soak ends, and streams beside them."""
        queries: dict[Place, Any] = {}
        names, weights = list(_STEPS), list(_STEPS.values())
        while not self._run.stopped:
            place = self._random.choice(self._run.places)
            step: Callable[[Place], None] = getattr(self, f"_{self._random.choices(names, weights)[0]}")
            with self._journal.errors_told(place.name):
                retrying(partial(step, place))
            if with_streams:
                self._keep_streaming(queries)
            self._say_heap()
            time.sleep(self._random.uniform(0.0, 0.3))
        for query in queries.values():
            query.stop()

    def _say_heap(self) -> None:
        """What lives in the JVM after a collection."""
        if time.monotonic() - self._heap_said > _HEAP_EVERY_SECONDS:
            self._jvm.System.gc()
            runtime = self._jvm.java.lang.Runtime.getRuntime()
            self._journal.say(heap=runtime.totalMemory() - runtime.freeMemory())
            self._heap_said = time.monotonic()

    def _newest(self, place: Place, table: str) -> int:
        return self._logs.setdefault((place.name, table), place.log(table)).snapshot().version

    def _do(self, place: Place, kind: str, effect: Effect, command: Callable[[], object], table: str = "main") -> None:
        def work(operation: str) -> None:
            self._spark.conf.set(_USER_METADATA, operation)
            try:
                command()
            finally:
                self._spark.conf.unset(_USER_METADATA)

        name = f"{kind}" if table == "main" else f"{kind} {table}"
        self._journal.did(place.name, table, name, effect, work, lambda: self._newest(place, table))

    def _table(self, place: Place, table: str = "main") -> DeltaTable:
        return DeltaTable.forPath(self._spark, place.url(table))

    def _frame(self, rows: list[Row]) -> DataFrame:
        values = ", ".join(f"({row.id}L, '{row.p}', {row.amount}L)" for row in rows)
        frame: DataFrame = self._spark.sql(f"SELECT * FROM VALUES {values} AS t(id, p, amount)")
        return frame

    def _new_rows(self, count: int) -> list[Row]:
        self._next_id += count
        return [Row(self._next_id - at, "spark", self._random.randint(0, 99)) for at in range(count)]

    def _append(self, place: Place) -> None:
        rows = self._new_rows(self._random.randint(1, 20))
        writer = self._frame(rows).write.format("delta").mode("append")
        self._do(place, "append", effects.insert(rows), lambda: writer.save(place.url("main")))

    def _delete(self, place: Place) -> None:
        divisor = self._random.choice((3, 5, 11))
        rest = self._random.randrange(divisor)
        where = f"p = 'spark' AND id % {divisor} = {rest}"
        effect = effects.delete_where("spark", divisor, rest)
        self._do(place, "DELETE", effect, lambda: self._table(place).delete(where))

    def _update(self, place: Place) -> None:
        divisor, by = self._random.choice((2, 5, 11)), self._random.randint(1, 9)
        rest = self._random.randrange(divisor)
        where = f"p = 'spark' AND id % {divisor} = {rest}"
        effect = effects.add_where("spark", divisor, rest, by)
        self._do(place, "UPDATE", effect, lambda: self._table(place).update(where, {"amount": f"amount + {by}"}))

    def _transfer(self, place: Place) -> None:
        source, target = self._random.sample(range(ACCOUNTS), 2)
        amount = self._random.randint(1, 50)
        moved = f"amount + CASE WHEN id = {source} THEN -{amount} ELSE {amount} END"
        where = f"p = 'accounts' AND id IN ({source}, {target})"
        effect = effects.transfer(source, target, amount)
        self._do(place, "transfer", effect, lambda: self._table(place).update(where, {"amount": moved}))

    def _merge(self, place: Place) -> None:
        rows = self._new_rows(self._random.randint(1, 8))
        old = range(max(rows[0].id - 60, self._next_id // 1_000_000 * 1_000_000), rows[-1].id)
        some = self._random.sample(old, min(len(old), 4)) if old else []
        rows += [Row(number, "spark", self._random.randint(100, 199)) for number in some]
        source = self._frame(rows).alias("s")
        clauses = self._table(place).alias("t").merge(source, "t.p = 'spark' AND t.id = s.id")
        clauses = clauses.whenMatchedUpdate(set={"amount": "s.amount"}).whenNotMatchedInsertAll()
        self._do(place, "MERGE", effects.merge("spark", rows), clauses.execute)

    def _optimize(self, place: Place) -> None:
        table = self._random.choice(("main", "main", "events", "copied"))
        if table == "copied" and not DeltaTable.isDeltaTable(self._spark, place.url(table)):
            return
        delta = self._table(place, table)
        if place.vectors and table == "main" and self._random.random() < 0.5:
            self._do(place, "REORG", NOTHING, delta.reorg)
        else:
            self._do(place, "OPTIMIZE", NOTHING, lambda: delta.optimize().executeCompaction(), table)

    def _vacuum(self, place: Place) -> None:
        self._do(place, "VACUUM", NOTHING, lambda: self._table(place).vacuum())

    def _restore(self, place: Place) -> None:
        """Back to a version that is so young that no vacuum has removed files of it."""
        young = time.time() * 1000 - self._run.retention_seconds * 1000 / 4
        self._newest(place, "main")
        entries = self._logs[place.name, "main"].history(6)[1:]
        versions = [entry.version for entry in entries if entry.timestamp_ms > young]
        if versions:
            version = self._random.choice(versions)
            table = self._table(place)
            self._do(place, "RESTORE", effects.restore(version), lambda: table.restoreToVersion(version))

    def _read(self, place: Place) -> None:
        version = self._newest(place, "main")
        frame = self._spark.read.format("delta").option("versionAsOf", version).load(place.url("main"))
        rows = [Row(*values) for values in frame.select("id", "p", "amount").collect()]
        self._journal.say(place=place.name, version=version, digest=digest(rows), rows=len(rows))
        for what in broken(rows):
            self._journal.say(broken=f"{place.name}, version {version}: {what}")

    # --- streams --------------------------------------------------------------------------------------------------

    def _keep_streaming(self, queries: dict[Place, Any]) -> None:
        for place in self._run.places:
            query = queries.get(place)
            if query is not None and query.isActive:
                self._seen_active[place] = time.time()
            else:
                with self._journal.errors_told(place.name, self._seen_active.get(place)):
                    if query is not None and query.exception() is not None:
                        queries.pop(place)
                        raise query.exception()
                    queries[place] = self._stream(place, processingTime="2 seconds")

    def _stream(self, place: Place, **trigger: Any) -> Any:
        """The copying of events, from where the earlier incarnations came to."""
        reader = self._spark.readStream.format("delta")
        if "processingTime" in trigger:
            reader = reader.option("maxFilesPerTrigger", "20")
        rows = reader.load(place.url("events"))
        writer = rows.writeStream.format("delta").option("checkpointLocation", place.url("checkpoint"))
        return writer.trigger(**trigger).start(place.url("copied"))

    def finish(self) -> None:
        for place in self._run.places:
            self._stream(place, availableNow=True).awaitTermination()
        self._spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
        for place in self._run.places:
            self._do(place, "VACUUM", NOTHING, lambda place=place: self._table(place).vacuum(0))  # type: ignore[misc]


def main(run: Run, name: str, work: str) -> None:
    driver = Driver(run, name)
    if work == "finish":
        driver.finish()
        return
    driver.ready()
    driver.commands(with_streams=work == "streams")


if __name__ == "__main__":
    main(Run.of(sys.argv[1]), sys.argv[2], sys.argv[3])
