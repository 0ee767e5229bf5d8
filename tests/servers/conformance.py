"""The suite against every store on its server: `python -m servers.conformance [STORE ...]` in the directory `tests`.

The reports go to a directory (JSON, HTML, JUnit). A store fails if a check does that hasn't failed in the committed
report in docs/conformance: some servers are known to be unsafe. What that report has established and this run has not
is said, and is no failure: a busy machine uses up the time of a check. What can't be run here is said, and with
`TABLELOG_REQUIRE_SERVERS=1`, as in CI, it fails too.

A store whose requests mostly wait is examined beside the others, which need the processors; what it says comes at its
end. Each report tells how far its own races overlapped, and how many rounds it had the time for.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tablelog.conformance.model import Verdict
from tablelog.conformance.reports.report import Report, from_json, to_json

from . import (
    HDFS,
    Azurite,
    CannotInstallError,
    Ceph,
    Dynalite,
    FakeGCS,
    GoFakeS3,
    MinIO,
    S3rver,
    SeaweedFS,
    VersityGW,
    install,
)
from .base import StorageServer

ROOT = Path(__file__).resolve().parents[2]
PUBLISHED = ROOT / "docs" / "conformance"
_SINGLE_DRIVER = "io.delta.storage.S3SingleDriverLogStore"
_DYNAMODB = "io.delta.storage.S3DynamoDBLogStore"


@dataclass(frozen=True)
class Place:
    """What to hand to `tablelog conformance`."""

    url: str
    conf: Mapping[str, str]
    what: str
    environment: Mapping[str, str] = field(default_factory=dict)


@contextmanager
def _local() -> Iterator[Place]:
    with tempfile.TemporaryDirectory() as directory:
        yield Place(directory, {}, "LocalLogStore on a local disk")


def _on(
    kind: type[StorageServer], what: str, conf: Mapping[str, str] | None = None
) -> Callable[[], AbstractContextManager[Place]]:
    @contextmanager
    def place() -> Iterator[Place]:
        server = kind.start()
        try:
            yield Place(server.url(), {**server.conf, **(conf or {})}, what)
        finally:
            server.stop()

    return place


@contextmanager
def _dynamodb() -> Iterator[Place]:
    with ExitStack() as stack:
        minio, dynalite = MinIO.start(), Dynalite.start()
        stack.callback(minio.stop)
        stack.callback(dynalite.stop)
        conf = {**minio.conf, **dynalite.conf, "spark.delta.logStore.s3a.impl": _DYNAMODB}
        what = "S3DynamoDBLogStore on MinIO 2026-02-12 and dynalite 4"
        yield Place(minio.url(), conf, what, dynalite.environment)


@contextmanager
def _viewfs() -> Iterator[Place]:
    server = HDFS.start()
    try:
        table = "fs.viewfs.mounttable.conformance."  # hdfs-native wants a fallback in each
        conf = {f"{table}link./logs": server.root, f"{table}linkFallback": server.endpoint}
        url = server.url().replace(server.root, "viewfs://conformance/logs")
        yield Place(url, {**server.conf, **conf}, "HDFSLogStore over a viewfs mount of HDFS 3.5, by hdfs-native")
    finally:
        server.stop()


STORES: dict[str, Callable[[], AbstractContextManager[Place]]] = {
    "local": _local,
    "s3": _on(MinIO, "S3LogStore on MinIO 2026-02-12"),
    "s3-single-driver": _on(
        MinIO, "S3SingleDriverLogStore on MinIO 2026-02-12", {"spark.delta.logStore.s3a.impl": _SINGLE_DRIVER}
    ),
    "s3-dynamodb": _dynamodb,
    "azure": _on(Azurite, "AzureLogStore on Azurite 3.35"),
    "gcs": _on(FakeGCS, "GCSLogStore on fake-gcs-server 1.56"),
    "hdfs": _on(HDFS, "HDFSLogStore on HDFS 3.5, by hdfs-native"),
    "viewfs": _viewfs,
    "s3-versitygw": _on(VersityGW, "S3LogStore on versitygw 1.8"),
    "s3-seaweedfs": _on(SeaweedFS, "S3LogStore on SeaweedFS 4.48"),
    "s3-gofakes3": _on(GoFakeS3, "S3LogStore on gofakes3 1.2"),
    "s3-s3rver": _on(S3rver, "S3LogStore on s3rver 3.7"),
    "s3-ceph": _on(Ceph, "S3LogStore on Ceph RGW 16"),
}

OTHER_SERVERS = ("s3-versitygw", "s3-seaweedfs", "s3-gofakes3", "s3-s3rver", "s3-ceph")
"""S3LogStore on servers beside MinIO, some of which are unsafe."""


WAITING = ("hdfs", "viewfs")
"""The stores whose requests mostly wait: half a second for each file that hdfs-native closes."""

ONLY_NAMED = ("viewfs", *OTHER_SERVERS)
"""Those that are examined where they are named: the same store on another server, or by another way."""


def examined(name: str, arguments: argparse.Namespace, *, beside: bool) -> Report | None:
    """The report on a store; None where the suite itself came to no end. One that runs `beside` another talks later."""
    written = arguments.reports / f"{name}.json"
    written.unlink(missing_ok=True)
    with STORES[name]() as place:
        conf = [word for key, value in place.conf.items() for word in ("--conf", f"{key}={value}")]
        command = [sys.executable, "-m", "tablelog.cli", "conformance", place.url, "--level", arguments.level, *conf]
        command += ["--patience", arguments.patience, "--what", place.what]
        command += ["--json", str(written), "--html", str(written.with_suffix(".html"))]
        command += ["--junit", str(written.with_suffix(".xml")), *["--calibrate"] * arguments.calibrate]
        environment = {**os.environ, **place.environment}
        kept = subprocess.PIPE if beside else None
        done = subprocess.run(command, cwd=ROOT, env=environment, check=False, stdout=kept, stderr=kept, text=True)
        if beside:
            print(f"\n=== {name}\n{done.stdout}{done.stderr}", flush=True)
    return from_json(written.read_text()) if written.exists() else None


def not_established_now(report: Report, published: Report) -> list[str]:
    """The checks that passed in the published report, of those that both have, and not in this one."""
    passed = {finding.check.name for finding in published.findings if finding.verdict is Verdict.PASS}
    return [f.check.name for f in report.findings if f.verdict is not Verdict.PASS and f.check.name in passed]


def failed_now(report: Report, published: Report | None) -> list[str]:
    """The checks that failed, without those that failed in the published report too."""
    before = {f.check.name for f in published.findings if f.verdict is Verdict.FAIL} if published else set()
    return [f.check.name for f in report.findings if f.verdict is Verdict.FAIL and f.check.name not in before]


def main() -> int:
    """1 if a store failed."""
    parser = argparse.ArgumentParser(prog="python -m servers.conformance", description=__doc__)
    parser.add_argument("stores", nargs="*", metavar="STORE", help=", ".join(STORES))
    parser.add_argument("--level", default="quick")
    parser.add_argument("--calibrate", action="store_true", help="try out with each that broken stores are caught")
    parser.add_argument("--patience", default="1", help="times as long as the level says, on a busy machine")
    parser.add_argument("--reports", type=Path, default=ROOT / "build" / "conformance")
    parser.add_argument("--publish", action="store_true", help="keep slim reports in docs/conformance, for the matrix")
    arguments = parser.parse_args()
    if unknown := set(arguments.stores) - set(STORES):
        parser.error(f"no such store: {', '.join(sorted(unknown))}; there are {', '.join(STORES)}")
    arguments.reports.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    names = arguments.stores or [name for name in STORES if name not in ONLY_NAMED]
    lanes = [[name for name in names if (name in WAITING) is waits] for waits in (False, True)]
    with ThreadPoolExecutor(len(lanes)) as pool:
        ends = [pool.submit(_lane, lane, arguments, beside=number > 0) for number, lane in enumerate(lanes)]
        said = {name: text for end in ends for name, text in end.result().items()}
    print("\n" + "\n".join(f"{name:18} {said[name][1]}" for name in names))
    print(f"all in {time.monotonic() - began:.0f} s")
    return any(failed for failed, _ in said.values())


def _lane(names: Sequence[str], arguments: argparse.Namespace, *, beside: bool) -> dict[str, tuple[bool, str]]:
    """One store after the other."""
    return {name: _said(name, arguments, beside=beside) for name in names}


def _said(name: str, arguments: argparse.Namespace, *, beside: bool) -> tuple[bool, str]:
    """(whether that is a failure, how the examination of a store ended)."""
    if not beside:
        print(f"\n=== {name}", flush=True)
    try:
        report = examined(name, arguments, beside=beside)
    except CannotInstallError as error:
        return install.all_required(), f"not run: {error}"
    if report is None:
        return True, "the suite came to no end"
    path = PUBLISHED / f"{name}.json"
    published = from_json(path.read_text()) if path.exists() else None
    if arguments.publish:
        PUBLISHED.mkdir(exist_ok=True)
        path.write_text(to_json(report.slim()) + "\n")
    lost = not_established_now(report, published) if published else []
    new = failed_now(report, published)
    told = [f"{finding.check.name}: {finding.message}" for finding in report.findings if finding.check.name in new]
    text = ", ".join(f"{report.count(verdict)} {verdict}" for verdict in Verdict if report.count(verdict))
    text += f"; established before, and not now: {', '.join(lost)}" if lost else ""
    text += f"; failed now, and not before: {'; '.join(told)}" if new else ""
    return bool(new), text


if __name__ == "__main__":
    sys.exit(main())
