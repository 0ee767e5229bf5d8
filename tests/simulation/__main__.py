"""`python -m simulation <seed>`: replay one schedule, print its trace and what became of each commit.

`python -m simulation whole <seed>` (or `long`, `growing`) replays one of that kind, as the tests of mutants run them.
`python -m simulation <first seed> <count>` runs many, in as many processes as there are processors.
"""

import sys
import time
import traceback

from .quick import quick_core
from .runs import run_in_processes
from .scheduler import START, Workers
from .world import WRITERS, World


def replay(seed: int, only: str | None = None) -> int:
    failure = None
    with quick_core():
        world = World(seed, Workers(WRITERS), only)
        try:
            world.run()
        except BaseException as error:
            failure = error
    for moment, writer, call, path, fault in world.events:
        print(f"{moment - START:9.3f} s  w{writer}  {call:6} {path.rpartition('/')[2]}  {fault or ''}")
    for attempt in world.attempts:
        where = "" if attempt.version is None else f" {attempt.version}"
        print(f"{attempt.name}: {attempt.detail}: told {attempt.told}{where}; in truth at {attempt.at}")
    print(f"{world.kind}, {world.faults}")
    if failure is not None:
        traceback.print_exception(failure)
        return 1
    print("all invariants hold")
    return 0


def main(arguments: list[str]) -> int:
    if arguments[0] in ("whole", "long", "growing"):
        return replay(int(arguments[1]), arguments[0])
    if len(arguments) == 1:
        return replay(int(arguments[0]))
    first, count = int(arguments[0]), int(arguments[1])
    started = time.perf_counter()
    summary = run_in_processes(first, count)
    seconds = time.perf_counter() - started
    print(f"{summary}\n{count / seconds:.0f} schedules a second")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
