"""The requests that the log makes of S3 are those of the formulas in docs/stores.md, each at two sizes.

The commands that need Spark are in tests/servers/test_requests*.py.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from logstore.fake_s3 import FakeS3
from tablelog.core import AddFile, DeltaLog, Metadata, Operation
from tablelog.core.table_maintenance import vacuum
from tablelog.core.table_maintenance.check import check_data
from tablelog.core.table_maintenance.table_files import of_table
from tablelog.logstore.data_files import DataFiles
from tablelog.report.gather import gather
from tablelog.settings.declarations import CHECKPOINT_PART_SIZE

URL = "s3a://bucket/t"
SCHEMA = '{"type":"struct","fields":[{"name":"v","type":"long","nullable":true,"metadata":{}}]}'
SIZES = pytest.mark.parametrize("c", [2, 7])


class Kind(NamedTuple):
    """A kind of checkpoint. `parts`: it is in parts, or has sidecars, of at most two files of the table."""

    parts: bool
    v2: bool

    @property
    def conf(self) -> dict[str, str]:
        return {CHECKPOINT_PART_SIZE.key: "2"} if self.parts else {}

    @property
    def properties(self) -> dict[str, str]:
        return {"delta.checkpointPolicy": "v2"} if self.v2 else {}

    def files(self, of_table: int) -> int:
        """How many files a checkpoint has."""
        return (math.ceil(of_table / 2) if self.parts else 1) + self.v2


KINDS = pytest.mark.parametrize("kind", [Kind(False, False), Kind(True, False), Kind(True, True)], ids=str)


class Table:
    """A table of `commits` commits, of which the first creates it, and a count of the requests."""

    def __init__(self, fake: FakeS3, commits: int, kind: "Kind | None" = None) -> None:
        self.fake = fake
        self.store = fake.store()
        self.conf = {**fake.conf, **(kind.conf if kind else {})}
        self.writer = self.log()
        transaction = self.writer.transaction()
        properties = {"delta.checkpointInterval": "1000", **(kind.properties if kind else {})}
        transaction.set_metadata(Metadata("id", SCHEMA, configuration=properties))
        transaction.commit([], Operation("CREATE TABLE"))
        self.append(commits - 1)

    def log(self) -> DeltaLog:
        """A handle that has read nothing yet."""
        return DeltaLog(URL, self.store, conf=self.conf)

    def append(self, commits: int) -> None:
        for _ in range(commits):
            name = f"f{self.writer.snapshot().version}"
            self.writer.transaction().commit([AddFile(name, {}, 1, 1, True)], Operation("WRITE"))

    def cost(self, work: Callable[[], object]) -> dict[str, int]:
        self.fake.asked.clear()
        work()
        return Counter("LIST" if "list-type" in asked.query else asked.method for asked in self.fake.asked)


@pytest.fixture
def fake() -> Iterator[FakeS3]:
    with FakeS3() as service:
        yield service


@SIZES
def test_opening_reads_each_commit_since_the_checkpoint(fake: FakeS3, c: int) -> None:
    table = Table(fake, c)
    assert table.cost(lambda: table.log().snapshot().files) == {"LIST": 1, "GET": c + 2}
    table.writer.checkpoint()
    assert table.cost(lambda: table.log().snapshot().files) == {"LIST": 1, "GET": 3}
    table.append(c)
    assert table.cost(lambda: table.log().snapshot().files) == {"LIST": 1, "GET": c + 3}


@SIZES
@KINDS
def test_a_checkpoint_costs_a_request_for_each_of_its_files(fake: FakeS3, c: int, kind: Kind) -> None:
    table = Table(fake, c + 2, kind)
    k = kind.files(c + 1)
    assert table.cost(table.writer.checkpoint) == {"LIST": 1, "GET": 1, "PUT": k + 1}
    assert table.cost(lambda: table.log().snapshot().files) == {"LIST": 1, "GET": k + 2}


@SIZES
@KINDS
def test_a_check_reads_each_commit_and_each_checkpoint_twice(fake: FakeS3, c: int, kind: Kind) -> None:
    """Once to read it, and once to compare: a checkpoint with the one before and the commits since then."""
    table = Table(fake, c + 1, kind)
    table.writer.checkpoint()
    table.append(2)
    table.writer.checkpoint()
    commits, k, newest = c + 3, kind.files(c) + kind.files(c + 2), kind.files(c + 2)
    health = {"LIST": 2, "GET": 2 * commits + 2 * k + 1 + 2}  # the checksum of the older one, of the newest, the hint
    assert table.cost(lambda: table.log().health()) == health
    opened = newest + 2
    report = lambda checked: gather(table.log(), commits=1000, check_log=checked, target=None)  # noqa: E731
    assert table.cost(lambda: report(False)) == {"LIST": 3, "GET": opened + commits}
    assert table.cost(lambda: report(True)) == {"LIST": 5, "GET": opened + commits + health["GET"]}
    table.append(3)
    since = 2 * 3 + 3  # each commit twice, as before, and its checksum
    assert table.cost(lambda: table.log().health()) == {"LIST": 2, "GET": health["GET"] + since}


@SIZES
def test_a_check_looks_at_each_data_file(fake: FakeS3, c: int) -> None:
    table = Table(fake, c + 1)
    files, stream = DataFiles.of(URL, fake.conf, {"skip_instance_cache": True}), pa.BufferOutputStream()
    pq.write_table(pa.table({"v": [1]}), stream)
    for path in table.writer.snapshot().files.column("path").to_pylist():
        files.write(path, stream.getvalue().to_pybytes())
    log = table.log()
    snapshot = log.snapshot()
    _ = snapshot.files
    work = lambda names: check_data(log, snapshot, of_table(log), reads_files=names)  # noqa: E731
    assert table.cost(lambda: work(False)) == {"LIST": 1}
    assert table.cost(lambda: work(True)) == {"LIST": 1, "HEAD": c, "GET": c}


@SIZES
def test_an_older_version_reads_the_commits_up_to_it(fake: FakeS3, c: int) -> None:
    table = Table(fake, c + 3)
    log = table.log()
    log.snapshot()
    assert table.cost(lambda: log.snapshot(c - 1).files) == {"LIST": 1, "GET": c + 1}


@SIZES
def test_a_refresh_reads_the_new_commits(fake: FakeS3, c: int) -> None:
    table = Table(fake, 2)
    log = table.log()
    log.snapshot()
    assert table.cost(log.snapshot) == {"LIST": 1}
    table.append(c)
    assert table.cost(log.snapshot) == {"LIST": 1, "GET": c}


@SIZES
def test_a_commit_is_a_listing_and_two_writes_however_many_files_it_adds(fake: FakeS3, c: int) -> None:
    table = Table(fake, 2)
    adds = [AddFile(f"g{number}", {}, 1, 1, True) for number in range(c)]
    work = lambda: table.writer.transaction().commit(adds, Operation("WRITE"))  # noqa: E731
    assert table.cost(work) == {"LIST": 1, "PUT": 2}


@SIZES
def test_a_checkpoint_doesnt_depend_on_the_commits(fake: FakeS3, c: int) -> None:
    table = Table(fake, c)
    assert table.cost(table.writer.checkpoint) == {"LIST": 1, "GET": 1, "PUT": 2}


@SIZES
def test_the_history_reads_the_commits_that_it_shows(fake: FakeS3, c: int) -> None:
    table = Table(fake, c + 2)
    log = table.writer
    log.snapshot()
    assert table.cost(lambda: log.history(c)) == {"LIST": 2, "GET": c}


@SIZES
def test_vacuum_lists_by_pages_and_deletes_by_pages(fake: FakeS3, c: int) -> None:
    table, unneeded = Table(fake, c), 4 * c
    files = DataFiles.of(URL, fake.conf, {"skip_instance_cache": True})
    for number in range(unneeded):
        files.write(f"old{number}", b"x")
    fake.page_size = 5
    log, in_log = table.writer, 2 * c  # a commit and its checksum each
    snapshot = log.snapshot()
    window = vacuum.window_of(log, snapshot, 0, checked=False)
    lists = math.ceil(in_log / 5) + 1 + math.ceil((unneeded + 1) / 5)  # the log is one name
    run = lambda dry: vacuum.vacuum(log, snapshot, of_table(log), window, dry_run=dry)  # noqa: E731
    assert table.cost(lambda: run(True)) == {"LIST": lists}
    assert table.cost(lambda: run(False)) == {"LIST": lists + 3, "PUT": 5, "POST": 1}
    assert files.list("_delta_log")


@SIZES
def test_what_is_made_from_an_older_checkpoint_reads_its_checksum_once(fake: FakeS3, c: int) -> None:
    table = Table(fake, c)
    table.writer.checkpoint()
    table.append(c)
    log = table.log()
    snapshot = log.snapshot()
    assert snapshot.files.num_rows == 2 * c - 1
    window = vacuum.window_of(log, snapshot, 0, checked=False)
    run = lambda: vacuum.vacuum(log, snapshot, of_table(log), window, dry_run=True)  # noqa: E731
    assert table.cost(run) == {"LIST": 3, "GET": 1}
    assert table.cost(run) == {"LIST": 3}
    log = table.log()
    transaction = log.transaction()
    metadata = replace(log.snapshot().metadata, configuration={"delta.checkpointInterval": "1"})
    transaction.set_metadata(metadata)
    # The commit and its checksum; the older checksum, the checkpoint, `_last_checkpoint` twice; the cleanup's list.
    assert table.cost(lambda: transaction.commit([], Operation("SET"))) == {"PUT": 2 + 2, "GET": 2, "LIST": 1}


@SIZES
def test_vacuum_lists_each_directory_below_the_table(fake: FakeS3, c: int) -> None:
    table = Table(fake, 2)
    files = DataFiles.of(URL, fake.conf, {"skip_instance_cache": True})
    for number in range(3 * c):
        files.write(f"p={number % c}/f{number}", b"x")
    log = table.writer
    snapshot = log.snapshot()
    window = vacuum.window_of(log, snapshot, 0, checked=False)
    run = lambda: vacuum.vacuum(log, snapshot, of_table(log), window, dry_run=True)  # noqa: E731
    assert table.cost(run) == {"LIST": 3 + c}
    assert not [key for key in fake.objects if "/old" in key]
