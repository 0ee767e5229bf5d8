"""Runs of cells, each in a process of its own, and what they answered."""

import json
import os
import signal
import subprocess
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree

from .cells import CELLS, PREVIEW, PYTHONS, Cell
from .environments import BUILD, ROOT, Environment, NotHereError, newest_preview, prepare

PASSED, FAILED, NOT_RUN, REFUSED = ("passed", "failed", "not run", "refused")
_SECONDS = 900.0
_OF_PREVIEW = "classic, the newest preview on PyPI"
_SCENARIOS = "tests/matrix/scenarios"


@dataclass(frozen=True)
class Result:
    """What came of a cell. `refused`: the start-up check refused a preview of Spark, as `says` tells."""

    name: str
    python: str
    spark: str
    session: str
    outcome: str
    says: str
    passed: int = 0
    failed: tuple[str, ...] = ()
    seconds: int = 0
    packages: dict[str, str] = field(default_factory=dict)
    on: str = field(default_factory=lambda: datetime.now(UTC).date().isoformat())


def without_result() -> list[Result]:
    """A row for each cell, and for the preview, that says that it has no result."""
    rows = [(cell.name, cell.python, cell.spark, cell.session) for cell in CELLS]
    rows.append((PREVIEW, PYTHONS[-1], "", _OF_PREVIEW))
    return [Result(*row, NOT_RUN, "no result is kept", on="") for row in rows]


def run(cell: Cell, wheel: Path) -> Result:
    """Run all scenarios in a cell; its output is in `build/matrix/logs`."""
    began = time.monotonic()
    try:
        environment = prepare(cell.python, f"pyspark=={cell.spark}.*", wheel)
    except NotHereError as missing:
        return Result(cell.name, cell.python, cell.spark, cell.session, NOT_RUN, str(missing))
    except subprocess.CalledProcessError as error:
        return Result(cell.name, cell.python, cell.spark, cell.session, FAILED, f"no environment: {error}")
    return _scenarios(cell.name, environment, cell.session, began)


def run_preview(wheel: Path) -> Result:
    """Try `enable` with the newest preview of Spark; if the start-up check accepts it, run all scenarios."""
    python, version, began = PYTHONS[-1], newest_preview(), time.monotonic()
    session = _OF_PREVIEW
    if version is None:
        return Result(PREVIEW, python, "", session, NOT_RUN, "PyPI has no preview")
    try:
        environment = prepare(python, f"pyspark=={version}", wheel)
    except NotHereError as missing:
        return Result(PREVIEW, python, version, session, NOT_RUN, str(missing))
    except subprocess.CalledProcessError as error:
        return Result(PREVIEW, python, version, session, FAILED, f"no environment: {error}")
    versions = environment.versions("pyspark")
    of_preview = (PREVIEW, versions["python"], versions["pyspark"], session)
    code, log = _output(PREVIEW, environment, ["tests/matrix/preview.py"])
    answer = next((json.loads(line) for line in log.read_text().splitlines() if line.startswith('{"spark"')), None)
    seconds = round(time.monotonic() - began)
    if code != 0 or answer is None:
        return Result(
            *of_preview, FAILED, f"enable ended with no typed error: {log.relative_to(ROOT)}", seconds=seconds
        )
    if not answer["accepted"]:
        return Result(*of_preview, REFUSED, str(answer["says"]), seconds=seconds)
    return _scenarios(PREVIEW, environment, session, began)


def _scenarios(name: str, environment: Environment, session: str, began: float) -> Result:
    versions = environment.versions("pyspark", "tablelog", "pyarrow", "pandas")
    python, pyspark = versions.pop("python"), versions.pop("pyspark")
    xml = BUILD / "logs" / f"{name}.xml"
    xml.unlink(missing_ok=True)
    code, log = _output(name, environment, ["-m", "pytest", _SCENARIOS, f"--junitxml={xml}"])
    passed, failed = _counts(xml)
    fine = code == 0 and passed > 0 and not failed
    says = f"{passed} passed"
    if not fine:
        says = f"{len(failed)} failed, {says}, exit code {code}: {log.relative_to(ROOT)}"
    return Result(
        name,
        python,
        pyspark,
        session,
        PASSED if fine else FAILED,
        says,
        passed,
        failed,
        round(time.monotonic() - began),
        versions,
    )


def _output(name: str, environment: Environment, arguments: list[str]) -> tuple[int, Path]:
    """Run Python in the environment, in a process group of its own; the exit code and the log."""
    log = BUILD / "logs" / f"{name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    left_out = ("TABLELOG_SHARE", "PYTHONPATH", "SPARK_HOME", "VIRTUAL_ENV", "SPARK_REMOTE")
    variables = {key: value for key, value in os.environ.items() if key not in left_out}
    variables["TABLELOG_MATRIX_CELL"] = name
    with log.open("wb") as out:
        process = subprocess.Popen(
            [str(environment.python), *arguments],
            cwd=ROOT,
            env=variables,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            return process.wait(_SECONDS), log
        except subprocess.TimeoutExpired:
            return -signal.SIGINT, log
        finally:
            if process.poll() is None:  # like Ctrl-C, so that pytest ends the server and the JVM
                os.killpg(process.pid, signal.SIGINT)
                process.wait(120)


def _counts(xml: Path) -> tuple[int, tuple[str, ...]]:
    """How many scenarios passed, and the names of those that didn't. Nothing may be skipped in a cell."""
    if not xml.exists():
        return 0, ()
    cases = list(ElementTree.parse(xml).iter("testcase"))
    failed = [case for case in cases if any(case.find(mark) is not None for mark in ("failure", "error", "skipped"))]
    return len(cases) - len(failed), tuple(f"{case.get('classname')}.{case.get('name')}" for case in failed)
