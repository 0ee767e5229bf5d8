"""`python -m matrix [--smoke] [--page] [PATTERN ...]`: run the cells whose names fit, one after another.

A cell whose Python isn't on the machine isn't run, and the table says so. The exit code is 1 if a cell failed, or if
none could run; the machines of CI may have none of the Pythons.
"""

import argparse
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from . import report
from .cells import PREVIEW, SMOKE, Cell, selected
from .environments import BUILD, ROOT, build_wheel
from .runs import FAILED, NOT_RUN, Result, run, run_preview, without_result


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m matrix", description=__doc__.splitlines()[0])
    parser.add_argument("patterns", nargs="*", metavar="PATTERN", help="names of cells, such as 3.12-* or preview")
    parser.add_argument("--smoke", action="store_true", help="the cells that CI runs")
    parser.add_argument("--page", action="store_true", help="put the newest results into docs/tested.md and README.md")
    parser.add_argument("--list", action="store_true", help="only print the names")
    arguments = parser.parse_args()
    cells = list(SMOKE) if arguments.smoke else selected(arguments.patterns)
    preview = PREVIEW in arguments.patterns or not (arguments.smoke or arguments.patterns)
    names = [cell.name for cell in cells] + [PREVIEW] * preview
    if arguments.list or not names:
        print("\n".join(names or ["no cell has such a name"]))
        return 0 if names else 1
    at = datetime.now(UTC)
    results = []
    for result in _results(cells, preview, build_wheel()):
        results.append(result)
        report.keep(result, BUILD / "results")
        print(f"{result.name}: {result.outcome}, {result.seconds} s", flush=True)
    print(f"\n{report.text(results)}")
    report.save(results, BUILD.parent, at)
    if arguments.page:
        every = report.newest(without_result(), BUILD / "results")
        report.into_page(ROOT / "docs" / "tested.md", report.markdown(every))
        report.into_page(ROOT / "README.md", report.overview([result for result in every if result.name != PREVIEW]))
    ran = [result for result in results if result.outcome != NOT_RUN]
    nothing = not ran and not arguments.smoke
    return int(nothing or any(result.outcome == FAILED for result in ran))


def _results(cells: list[Cell], preview: bool, wheel: Path) -> Iterator[Result]:
    yield from (run(cell, wheel) for cell in cells)
    if preview:
        yield run_preview(wheel)


sys.exit(main())
