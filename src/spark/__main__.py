"""`python -m tablelog.spark`: run a program of Python with tablelog enabled in the Spark sessions that it makes."""

import runpy
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

from .sessions.new_sessions import enabled_sessions

USAGE = """\
usage: python -m tablelog.spark PROGRAM [ARGUMENT ...]
       python -m tablelog.spark -m MODULE [ARGUMENT ...]

Runs a program of Python with tablelog enabled in each Spark session that it makes: as if it called
tablelog.spark.enable(session). Nothing else of the program or of this environment is changed.

PROGRAM is the path of a script, or the name of a command of this Python environment:
    python -m tablelog.spark dbt run
    python -m tablelog.spark job.py --day 2024-05-01
"""


def main(arguments: Sequence[str]) -> int:
    """Run the program that `arguments` name; returns the exit code 2 if they name none. The program may exit itself."""
    if arguments[:1] in (["-h"], ["--help"]):
        sys.stdout.write(USAGE)
        return 0
    if arguments[:1] == ["-m"] and len(arguments) > 1:
        sys.argv = list(arguments[1:])
        with enabled_sessions():
            runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        return 0
    if not arguments or arguments[0].startswith("-"):
        sys.stderr.write(USAGE)
        return 2
    script = _script(arguments[0])
    if script is None:
        sys.stderr.write(
            f"python -m tablelog.spark: there is no script {arguments[0]}, and no command of that name in "
            f"{sysconfig.get_path('scripts')}, the environment of this Python.\n"
        )
        return 2
    sys.argv = [str(script), *arguments[1:]]
    sys.path[0] = str(script.parent)
    with enabled_sessions():
        runpy.run_path(str(script), run_name="__main__")
    return 0


def _script(program: str) -> Path | None:
    """The script of a program: a file, or a command of this environment, written in Python."""
    path = Path(program)
    if path.is_file():
        return path.resolve()
    command = Path(sysconfig.get_path("scripts")) / program
    return command if path.name == program and command.is_file() else None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
