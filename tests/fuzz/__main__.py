"""`python -m fuzz [--engine atheris|hypothesis] [--seed S] N [TARGET ...]`: N cases of each target, or of all.

Each target runs in a process of its own, which is ended if a case takes too long, and started again after the case that
ended it. The last lines are a table of what was run; findings are in `build/fuzz`. The exit code is 1 if there are any.
"""

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from .recorder import Watch, record
from .targets import TARGETS

BUILD = Path(__file__).resolve().parents[2] / "build" / "fuzz"
_WAIT = 30
"""A process that ends no case in this many seconds of processor time, and ten times what a case may take, is ended."""
_PATIENCE = 20
"""How much longer that may be on the clock: a process with a low priority waits for others."""
_MOST_STARTS = 50


def run(engine: str, name: str, count: int, seed: int) -> dict[str, object]:
    """Run one target; returns what was measured."""
    directory = BUILD / engine / name
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    watch, started, coverage = Watch(directory), time.monotonic(), ""
    for start in range(_MOST_STARTS):
        before = watch.counters().cases
        output = directory / f"output-{start}.txt"
        with output.open("w") as file:
            process = subprocess.Popen(
                [sys.executable, "-m", "fuzz.engines", engine, name, str(count), str(seed + start), str(directory)],
                cwd=Path(__file__).parents[1], stdout=file, stderr=subprocess.STDOUT,
            )  # fmt: skip
            try:
                ended = _wait(process, watch, TARGETS[name].seconds * 10 + _WAIT)
            finally:
                process.kill()
                process.wait()
        text = output.read_text(errors="replace")
        coverage = (re.findall(r"cov: (\d+) ft: (\d+)", text) or [("", "")])[-1][0] or coverage
        counters = watch.counters()
        if ended == "done" and (counters.cases >= count or counters.cases == before):
            break
        if counters.length or ended != "done":
            record(directory / "findings.jsonl", name, ended, text[-3000:], watch.running())
            watch.skip(findings=1)
    counters = watch.counters()
    measured = {
        "target": name, "engine": engine, "cases": counters.cases, "valid": counters.valid,
        "findings": counters.findings, "seconds": round(time.monotonic() - started), "branches": coverage,
    }  # fmt: skip
    with (BUILD / "measured.jsonl").open("a") as file:
        file.write(json.dumps(measured) + "\n")
    return measured


def _wait(process: "subprocess.Popen[bytes]", watch: Watch, seconds: float) -> str:
    """How the process ended: "done", or why not."""
    cases, used, since = -1, 0.0, time.monotonic()
    while process.poll() is None:
        time.sleep(0.2)
        now = watch.counters().cases
        if now != cases:
            cases, used, since = now, _processor_time(process.pid), time.monotonic()
        elif _processor_time(process.pid) - used > seconds or time.monotonic() - since > seconds * _PATIENCE:
            process.send_signal(signal.SIGABRT)
            process.wait()
            return f"a case ran for more than {seconds:.0f} s"
    return "done" if process.returncode == 0 else f"the process ended with {process.returncode}"


def _processor_time(process: int) -> float:
    """The seconds of processor time that a process has used."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:  # it has just ended, or this isn't Linux
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("--engine", choices=["atheris", "hypothesis"], default="hypothesis")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("count", type=int)
    parser.add_argument("targets", nargs="*", choices=[*TARGETS, []], metavar="TARGET")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the process of the target is ended too
    found = 0
    for name in arguments.targets or TARGETS:
        measured = run(arguments.engine, name, arguments.count, arguments.seed)
        print("  ".join(f"{key}: {value}" for key, value in measured.items()), flush=True)
        if measured["findings"]:
            found += 1
            for line in (BUILD / arguments.engine / name / "findings.jsonl").read_text().splitlines()[:20]:
                finding = json.loads(line)
                print(f"    {finding['kind']}: {finding['text'].strip().splitlines()[-1][:200]}", flush=True)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
