"""`python -m soak --seconds 180 --target local|minio|both --seed 1`: a soak; its report in build/soak."""

import argparse
import contextlib
import json
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from servers import MinIO
from servers.spark_jars import spark_jars
from soak import counting, journal, places, report
from soak.effects import Row
from soak.places import Place, Run
from soak.processes import Outages, Process
from soak.resources import Sample, verdict

_END_SECONDS = 240.0
_LAST_SECONDS = 900.0
"""For the last driver, which reads all that the streams have left and vacuums every place."""


def _places(target: str, directory: str, server: MinIO | None) -> tuple[Place, ...]:
    found = []
    if target in ("local", "both"):
        found.append(Place("local", f"{directory}/tables"))
    if server is not None:
        found.append(Place("minio", server.url("tables"), server.conf, vectors=True))
    return tuple(found)


def _processes(run: Run, seconds: float) -> list[Process]:
    longest = max(30.0, min(180.0, seconds / 4))
    return [
        Process(run, "core-0", "soak.core_writer"),
        Process(run, "core-1", "soak.core_writer", lives=(2.0, longest / 2)),
        Process(run, "reader-0", "soak.reader"),
        Process(run, "driver-0", "soak.driver", ("commands",)),
        Process(run, "driver-1", "soak.driver", ("streams",), lives=(5.0, longest)),
    ]


def _supervised(run: Run, seconds: float, processes: Sequence[Process], outages: Outages) -> list[str]:
    """Let them work, kill those whose time has come, and wait until all have ended; what went wrong."""
    random_, every = random.Random(run.seed), max(0.5, seconds / 600)
    found: list[str] = []
    try:
        for process in processes:
            process.start()
        ends = time.monotonic() + seconds
        while time.monotonic() < ends and not found:
            found += [wrong for process in processes if (wrong := process.look(random_)) is not None]
            outages.look(random_)
            time.sleep(every)
        Path(run.directory, "stop").touch()
        found += [wrong for process in processes if (wrong := process.finish(_END_SECONDS)) is not None]
        last = Process(run, "driver-2", "soak.driver", ("finish",))
        last.start()
        wrong_at_last = last.finish(_LAST_SECONDS)
        found += [] if wrong_at_last is None else [wrong_at_last]
    finally:
        for process in processes:
            process.kill()
    return found


def _judged(
    run: Run,
    processes: Sequence[Process],
    outages: Outages,
    first: dict[str, list[Row]],
    found: list[str],
    seconds: float,
) -> report.Report:
    journals = journal.collected(Path(run.directory))
    counts = {}
    for place in run.places:
        of_place, counts[place.name] = counting.place_problems(run, place, journals, first[place.name])
        found += of_place
    found += [f"{intent.op} ({intent.kind}, {intent.outcome}): {intent.error}" for intent in journals.intents.values()
              if intent.outcome in ("failed", "unknown")
              and not outages.excuse(intent.place, intent.at, intent.at + intent.seconds)]  # fmt: skip
    found += [f"{name}: {line['broken']}" for name, line in journals.others if "broken" in line]
    errors = [(name, line) for name, line in journals.others if "error" in line]
    found += [f"{name}, {line['place']}: {line['error']}" for name, line in errors
              if not outages.excuse(line["place"], line["since"], line["at"])]  # fmt: skip
    found += _too_little(journals, run)
    resources = {}
    sampled = {f"{process.name}, {what}": samples for process in processes for what, samples in process.samples.items()}
    heaps = [Sample(line["heap"]) for name, line in journals.others if name == "driver-0.1" and "heap" in line]
    for what, samples in {**sampled, "driver-0, live heap of the JVM": heaps}.items():
        judged = verdict(what, samples)
        if judged is not None:
            resources[what] = judged
            # A JVM takes its heap by and by up to its limit: what lives in it is judged in place of its pages.
            found += [one for one in judged.problems if not (what.endswith(", jvm") and "memory" in one)]
    kills = {process.name: process.kills for process in processes if process.lives is not None}
    kills |= {"MinIO": len(outages.times)} if outages.server is not None else {}
    return report.Report(
        run.seed, seconds, run.retention_seconds, kills, counts, report.tallied(journals), resources, found
    )


def _too_little(journals: journal.Journals, run: Run) -> list[str]:
    """What the soak doesn't show, because it didn't happen at all."""
    done = {(one.place, one.op.partition("-")[0]) for one in journals.intents.values() if one.outcome == "acknowledged"}
    read = {line["place"] for line in journals.reads}
    found = []
    for place in run.places:
        found += [f"{place.name}: no writer without Spark committed"] if (place.name, "core") not in done else []
        found += [f"{place.name}: no version was read"] if place.name not in read else []
    return found + ([] if any(who == "driver" for _, who in done) else ["no command of a driver came to its end"])


def soak(target: str, seconds: float, seed: int, directory: str) -> report.Report:
    """One soak with its own server."""
    server = MinIO.start() if target in ("minio", "both") else None
    try:
        class_path = ":".join(map(str, spark_jars())) if server is not None else ""
        retention = int(max(40, min(300, seconds / 5)))
        run = Run(directory, seed, _places(target, directory, server), retention, class_path)
        first = {place.name: places.create(place, retention) for place in run.places}
        processes = _processes(run, seconds)
        outages = Outages(server, max(40.0, min(400.0, seconds / 4)))
        found = _supervised(run, seconds, processes, outages)
        return _judged(run, processes, outages, first, found, seconds)
    finally:
        if server is not None:
            server.stop()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=180)
    parser.add_argument("--target", choices=("local", "minio", "both"), default="both")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("build/soak"))
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that its processes are ended too
    directory = tempfile.mkdtemp(prefix="tablelog-soak-")
    made = soak(arguments.target, arguments.seconds, arguments.seed, directory)
    arguments.out.mkdir(parents=True, exist_ok=True)
    name = f"{arguments.target}-{arguments.seconds:.0f}s-seed{arguments.seed}"
    (arguments.out / f"{name}.json").write_text(json.dumps(asdict(made), indent=1))
    text = report.markdown(made, arguments.target)
    (arguments.out / f"{name}.md").write_text(text)
    print(text)
    if made.problems:
        print(f"the journals and tables are kept in {directory}", file=sys.stderr)
        return 1
    with contextlib.suppress(OSError):
        shutil.rmtree(directory)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
