"""Commands on one table by a driver of its own, each by both routes: `tried.py MASTER URL SETTINGS`.

It prints a line of JSON for each command: how it ended. It is a process of its own, because the credentials of a driver
are in the environment in which its JVM was started.
"""

import json
import sys
from collections.abc import Callable
from typing import Any

from support.sessions import session_builder
from support.table_work import Work, by_route, settings
from tablelog.errors import TablelogError
from tablelog.spark import enable


def main(master: str, url: str, conf: dict[str, str]) -> None:
    spark = enable(session_builder(master, conf).getOrCreate())
    table = Work(spark, url, {}, by_job=True)
    commands: dict[str, Callable[[], Any]] = {
        "read": lambda: table.read().collect(),
        "append": lambda: table.write(table.frame(4, 8)),
    }
    for route in ("native", "arrow"):
        for name, command in commands.items():
            told = {"command": f"{name} by {route}", "error": "", "text": "", "table": None}
            with settings(spark, by_route(route)):
                try:
                    command()
                except TablelogError as error:
                    told |= {"error": type(error).__name__, "text": str(error), "table": error.table}
                except Exception as error:
                    told |= {"error": type(error).__name__, "text": str(error)}
            print(json.dumps(told), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], json.loads(sys.argv[3]))
