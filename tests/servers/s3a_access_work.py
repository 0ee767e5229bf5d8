"""`python -m servers.s3a_access_work PLAN`: short works of tables by one session, each reached in its own way.

PLAN is a `Plan` as JSON. The last line is a list of JSON: for each of its steps null, or how it failed.
"""

import json
import os
import sys
import traceback
from dataclasses import dataclass, field

from pyspark.sql import SparkSession

from support.sessions import session_builder
from support.table_work import Work, by_route, merged, settings
from tablelog.errors import TablelogError
from tablelog.spark import enable


@dataclass(frozen=True)
class Step:
    """What is done with the table at `url`: `work`, or a method of `Work` without arguments."""

    url: str
    route: str
    what: str = "work"
    without: tuple[str, ...] = ()
    """Variables of the environment that Python doesn't have in this step."""


@dataclass(frozen=True)
class Plan:
    """The jars, the JVM's options, Hadoop's keys, and the steps."""

    jars: str
    java: str
    hadoop: dict[str, str]
    steps: list[Step] = field(default_factory=list)


def work(at: Work) -> None:
    """Create, append, read, DELETE, MERGE, UPDATE, and read an older version."""
    at.write(at.frame(0, 6), "error")
    at.write(at.frame(6, 12))
    assert at.ids() == list(range(12))
    at.delta.delete("id = 3")
    assert merged(at) == (5, 1, 2, 2)  # 11 moves, 0 and 10 go, 12 and 13 come
    at.delta.update("id = 1", {"id": "id + 200", "x": "(id + 200) * 1.5"})
    assert at.ids() == [2, 4, 5, 6, 7, 8, 9, 12, 13, 111, 201]
    assert at.ids(versionAsOf="1") == list(range(12))
    at.nothing_is_left_behind()


def outcome(spark: SparkSession, step: Step, hadoop: dict[str, str]) -> dict[str, str] | None:
    """None if the step succeeded, else the class and the message of its error."""
    before = {name: os.environ.pop(name) for name in step.without}
    at = Work(spark, step.url, hadoop, by_job=True)
    try:
        with settings(spark, by_route(step.route)):
            work(at) if step.what == "work" else getattr(at, step.what)()
    except TablelogError as error:
        return {"kind": type(error).__name__, "message": str(error)}
    except Exception as error:
        return {"kind": type(error).__name__, "message": traceback.format_exc()}
    finally:
        os.environ.update(before)
    return None


def main(path: str) -> None:
    with open(path) as stream:
        given = json.load(stream)
    plan = Plan(**{**given, "steps": [Step(**step) for step in given["steps"]]})
    os.environ["PYSPARK_PYTHON"] = sys.executable
    hadoop = {f"spark.hadoop.{key}": value for key, value in plan.hadoop.items()}
    values = {"spark.jars": plan.jars, **hadoop}
    spark = session_builder("local[2]", values, more_java_options=plan.java).getOrCreate()
    enable(spark)
    outcomes = [outcome(spark, step, plan.hadoop) for step in plan.steps]
    spark.stop()
    print(json.dumps(outcomes))


if __name__ == "__main__":
    main(sys.argv[1])
