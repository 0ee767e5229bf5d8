"""Listings of a table's files on an object store: by directory or flat, they find the same."""

import random
from collections import Counter
from collections.abc import Iterator

import pytest

from logstore.fake_s3 import FakeS3
from tablelog.core.table_maintenance import listing
from tablelog.core.table_maintenance.listing import grouped, prefers_flat_listing, walk
from tablelog.core.table_maintenance.unneeded_files import is_hidden
from tablelog.logstore.data_files import DataFiles

URL = "s3a://bucket/t"


@pytest.fixture
def fake() -> Iterator[FakeS3]:
    with FakeS3() as service:
        yield service


def found(directories: Iterator) -> dict[str, tuple[list[str], list[str]]]:
    """The files and the hidden names of each directory."""
    names = {one.name: (sorted(file.name for file in one.files), sorted(one.hidden)) for one in directories}
    return {name: files for name, files in names.items() if name == "" or files != ([], [])}


def both_ways(fake: FakeS3, names: list[str]) -> tuple[dict, dict, int]:
    """What `walk` and a flat listing find, and the requests of `walk`."""
    files = DataFiles.of(URL, fake.conf, {"skip_instance_cache": True})
    for name in names:
        files.write(name, b"x")
    fake.asked.clear()
    walked = found(walk(files, is_hidden))
    requests = len(fake.asked)
    return walked, found(grouped(files.statuses(), is_hidden, "")), requests


NAMES = {
    "flat": ["a", "b", "_hidden", ".x"],
    "nested": ["a", "p=1/q=2/b", "p=1/_x/c", "p=1/.c.crc", "p=2/q=1/d", "_delta_log/0.json", "_tmp/1/x"],
    "one directory": ["_delta_log/0.json", "p=1/b"],
    "odd names": ["p=a b/x", "p=%20/y", "p=1 /z", "p=[1]*/x y", "p=ä/ü", "q+r&s/t"],
    "nothing but the log": ["_delta_log/0.json"],
    "more directories than threads": [f"p={number}/f{number}" for number in range(30)],
}


@pytest.mark.parametrize("names", NAMES.values(), ids=NAMES)
def test_both_ways_find_the_same(fake: FakeS3, names: list[str]) -> None:
    walked, flat, _ = both_ways(fake, names)
    assert walked == flat
    assert walked


@pytest.mark.parametrize(
    "name",
    [
        "data-1/__magic_job-2/job-2/00/task_3_m_000000.pendingset",
        "data-1/__magic_job-2/job-2/00/tasks/attempt_3/__base/p=spark/part-0.c000.snappy.parquet",
        "data-1/_temporary/0/_temporary/attempt_3/p=spark/part-0.c000.snappy.parquet",
    ],
)
def test_what_a_killed_job_left_is_listed(fake: FakeS3, name: str) -> None:
    """Both committers of Hadoop keep their files in hidden directories. Found by a soak with kills."""
    walked, flat, _ = both_ways(fake, ["p=1/a", name, "_other/x"])
    assert walked == flat
    files = DataFiles.of(URL, fake.conf, {"skip_instance_cache": True})
    assert {one.path_of(file.name) for one in walk(files, is_hidden) for file in one.files} == {"p=1/a", name}


def test_a_name_with_an_empty_part_is_found(fake: FakeS3) -> None:
    """Spark and delta-rs can write below `t//`, which s3fs can't list as a directory."""
    files = DataFiles.of(URL, fake.conf, {"skip_instance_cache": True})
    client = fake.store()
    client.write("s3a://bucket/t//x", b"1", overwrite=True)
    files.write("p=1/a", b"x")
    names = {one.path_of(file.name) for one in walk(files, is_hidden) for file in one.files}
    assert "p=1/a" in names
    assert len(names) == 2


def test_many_small_directories_are_listed_flat(fake: FakeS3) -> None:
    walked, flat, requests = both_ways(fake, [f"p={number:02}/f" for number in range(60)])
    assert walked == flat
    assert requests == 1 + 31 + 1  # the root, those that were listed or under way, everything


class Counted:
    """The sizes of directories, listed as `DataFiles` does, with a count of the requests."""

    def __init__(self, sizes: list[int]) -> None:
        self.sizes = {f"p={number:05}": size for number, size in enumerate(sizes)}
        self.requests = 0

    def entries(self) -> tuple[list, list[str]]:
        self.requests += 1 + len(self.sizes) // 1000
        return [], list(self.sizes)

    def statuses(self, below: str = "") -> Iterator[tuple[str, int, int]]:
        chosen = {below: self.sizes[below]} if below else self.sizes
        self.requests += 1 + sum(chosen.values()) // 1000
        return iter([(f"{name}/{number}", 1, 1) for name, size in chosen.items() for number in range(size)])


@pytest.mark.parametrize("seed", range(40))
def test_every_file_is_found_once_by_few_requests(seed: int) -> None:
    """However the files are distributed: also with the largest directories first, or last."""
    rng = random.Random(seed)
    sizes = [int(rng.paretovariate(0.6)) % 3000 for _ in range(rng.choice([5, 17, 40, 300, 2000]))]
    if seed % 4:
        sizes.sort(reverse=seed % 4 == 1)
    files = Counted(sizes)
    seen = Counter(one.path_of(file.name) for one in walk(files, is_hidden) for file in one.files)
    assert len(seen) == sum(sizes) == seen.total()
    flat = 1 + sum(sizes) // 1000
    by_directory = 1 + len(sizes) // 1000 + sum(1 + size // 1000 for size in sizes)
    assert files.requests <= min(by_directory + flat, 34 + len(sizes) // 1000 + 9 * flat)


def test_the_rule_needs_a_sample() -> None:
    assert not prefers_flat_listing(1000, 15, 0)
    assert prefers_flat_listing(1000, 16, 0)
    assert not prefers_flat_listing(100, 16, 16 * 600)
    assert prefers_flat_listing(100, 16, 16 * 400)
    assert not prefers_flat_listing(100, 100, 100)


@pytest.mark.parametrize("directory", ["p=1", "p=19"], ids=["in the sample", "after the sample"])
def test_an_error_of_one_directory_is_not_an_empty_directory(
    fake: FakeS3, monkeypatch: pytest.MonkeyPatch, directory: str
) -> None:
    files = DataFiles.of(URL, fake.conf, {"skip_instance_cache": True})
    for number in range(20):
        files.write(f"p={number}/f", b"x")
    real = DataFiles.statuses
    monkeypatch.setattr(listing, "_PAGE", 1)

    def broken(self: DataFiles, below: str = "") -> Iterator[tuple[str, int, int]]:
        if below == directory:
            raise ConnectionResetError("gone")
        return real(self, below)

    monkeypatch.setattr(DataFiles, "statuses", broken)
    with pytest.raises(ConnectionResetError):
        list(walk(files, is_hidden))
