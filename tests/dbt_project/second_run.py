"""A program that runs dbt in its own process, as Airflow does: the second run of the project, its docs, and its clones.

`python -m tablelog.spark second_run.py <folder of the first run's target> <dbt's arguments>`.
"""

import sys

from dbt.cli.main import dbtRunner

first_run, *options = sys.argv[1:]
dbt = dbtRunner()
build = ["build", "--event-time-start", "2024-05-03", "--event-time-end", "2024-05-05"]
commands = [
    [*build, *options],
    ["docs", "generate", *options],
    ["clone", "--target", "copy", "--state", first_run, "--select", "prices", "loans_merged", *options],
]
failed = [command[0] for command in commands if not dbt.invoke(command).success]
if failed:
    sys.exit(f"dbt failed: {', '.join(failed)}")
