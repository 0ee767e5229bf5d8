"""What VACUUM may remove: names and links on a real disk, random histories on a log in memory."""

import os
import tempfile
import uuid
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.log_builder import LogBuilder, add, remove
from tablelog.core import DeltaLog
from tablelog.core.log import checkpoint
from tablelog.core.protocol import deletion_vectors, paths
from tablelog.core.protocol.actions import AddCDCFile, DeletionVectorDescriptor
from tablelog.core.table_maintenance import unneeded_files
from tablelog.core.table_maintenance.unneeded_files import Needed, is_hidden, names_of
from tablelog.dml.maintain.vacuum import removable
from tablelog.engine.storage.table_files import LocalFiles
from tablelog.errors import InvalidArgumentError

HOUR = 3_600_000
T0 = 1_700_000_000_000


def put(root: Path, name: str, at_ms: int = T0, data: bytes = b"x") -> str:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    os.utime(path, ns=(at_ms * 1_000_000, at_ms * 1_000_000))
    return name


def age(root: Path, at_ms: int = T0) -> None:
    for path in [root, *root.rglob("*")]:
        if path.is_dir() and not path.is_symlink():
            os.utime(path, ns=(at_ms * 1_000_000, at_ms * 1_000_000))


def names(root: Path) -> set[str]:
    return {path.relative_to(root).as_posix() for path in root.rglob("*")}


def run(root: Path, needed: Needed, before_ms: int = T0 + 1, columns: tuple[str, ...] = ()) -> set[str]:
    """Vacuum a directory; the names that went."""
    files = LocalFiles(str(root))
    before = names(root)
    found = removable(files, files.walk(lambda name: is_hidden(name, columns)), needed, before_ms)
    removed = files.delete([name for name, _ in found.files]) + files.remove_directories(found.empty)
    gone = before - names(root)
    assert removed == len(found) == len([one for one in gone if not one.endswith(".crc")])
    return gone


@pytest.mark.parametrize(
    ("name", "hidden"),
    [
        ("part-0.parquet", False),
        ("_delta_log", True),
        (".part-0.parquet.crc", True),
        ("_change_data", False),
        ("_delta_index", False),
        ("_temporary", False),
        ("__magic_job-74b70e4b", False),
        ("__base", False),
        ("_temporary_exports", True),
        ("__magic_numbers", True),
        ("__baseline", True),
        ("_p=1", False),
        ("_q=1", True),
        ("_symlink_format_manifest", True),
        ("deletion_vector_x.bin", False),
        ("metadata", False),
    ],
)
def test_hidden(name, hidden):
    assert is_hidden(name, ["_p"]) is hidden
    assert is_hidden("metadata", iceberg=True)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("p=1/x.parquet", {"p=1/x.parquet"}),
        ("p=a%2520b/x%20y.parquet", {"p=a%20b/x y.parquet", "p=a%2520b/x%20y.parquet"}),
        ("file:///data/t/x.parquet", {"x.parquet"}),
        ("/data/t/a%3Db/x.parquet", {"a=b/x.parquet"}),
        ("./a//b.parquet", {"a/b.parquet"}),
        ("file:/data/t/x.parquet", {"x.parquet"}),
        ("file:///data/tt/x.parquet", set()),
        ("s3://other/x.parquet", set()),
        ("../t2/x.parquet", set()),
    ],
)
def test_a_path_has_its_names(path, expected):
    assert expected <= set(names_of("file:///data/t", path))
    assert bool(names_of("file:///data/t", path)) is bool(expected)


def test_the_scheme_of_an_object_store_does_not_matter():
    assert "k/x" in names_of("s3a://bucket/t", "s3://bucket/t/k/x")


@pytest.mark.parametrize("hours", [None, 168, 200.5])
def test_retention(hours):
    found = unneeded_files.retention_ms(hours, 168 * HOUR, checked=True, table="t")
    assert found == (168 if hours is None else hours) * HOUR


@pytest.mark.parametrize("hours", [float("nan"), float("inf"), float("-inf"), 1e15, 1e300])
def test_a_retention_is_a_number_of_hours(hours: float) -> None:
    with pytest.raises(InvalidArgumentError, match=r"t: the retention of VACUUM is a number of hours up to 10,000,000"):
        unneeded_files.retention_ms(hours, 5, checked=False, table="t")


def test_retention_that_is_refused():
    with pytest.raises(InvalidArgumentError, match="168 hours"):
        unneeded_files.retention_ms(167, 168 * HOUR, checked=True, table="t")
    assert unneeded_files.retention_ms(0.5, 168 * HOUR, checked=False, table="t") == HOUR // 2
    with pytest.raises(InvalidArgumentError, match="can't be negative"):
        unneeded_files.retention_ms(-1, 168 * HOUR, checked=False, table="t")


def test_what_is_needed_young_or_hidden_stays(tmp_path):
    needed = Needed(str(tmp_path))
    needed.add(put(tmp_path, "p=1/kept.parquet"))
    for name in ("old.parquet", "p=1/old.parquet", "p=1/.old.parquet.crc", "_change_data/c.parquet", "_p=2/x"):
        put(tmp_path, name)
    put(tmp_path, "young.parquet", T0 + 1)
    for name in ("_delta_log/00000000000000000000.json", "_other/x", ".x/y", "_symlink_format_manifest/manifest"):
        put(tmp_path, name)
    age(tmp_path)
    assert run(tmp_path, needed, columns=("_p",)) == {
        *("old.parquet", "p=1/old.parquet", "p=1/.old.parquet.crc", "_change_data/c.parquet", "_p=2/x")
    }
    assert (tmp_path / "_p=2").is_dir()  # it is empty now, and goes the next time


def test_empty_directories(tmp_path):
    for name in ("a/b/c", "p=1", "young/d", "full"):
        (tmp_path / name).mkdir(parents=True)
    put(tmp_path, "full/young.parquet", T0 + 5)
    age(tmp_path)
    os.utime(tmp_path / "young/d", ns=((T0 + 1) * 1_000_000, (T0 + 1) * 1_000_000))
    assert run(tmp_path, Needed(str(tmp_path))) == {"a", "a/b", "a/b/c", "p=1"}
    assert (tmp_path / "young/d").is_dir()


def test_links_are_left_alone_and_nothing_behind_them_is_touched(tmp_path):
    table, outside = tmp_path / "table", tmp_path / "outside"
    put(outside, "x.parquet")
    put(outside, "p=1/y.parquet")
    put(table, "old.parquet")
    put(table, "real/behind.parquet")
    put(table, "real/old.parquet")
    (table / "file.parquet").symlink_to(outside / "x.parquet")
    (table / "p=1").symlink_to(outside / "p=1")
    (table / "p=2").symlink_to(table / "real")
    age(tmp_path)
    needed = Needed(str(table))
    needed.add("p=2/behind.parquet")
    assert run(table, needed) == {"old.parquet", "real/old.parquet"}
    assert names(outside) == {"x.parquet", "p=1", "p=1/y.parquet"}


def test_a_directory_that_became_a_link_is_not_followed(tmp_path):
    table, outside = tmp_path / "table", tmp_path / "outside"
    put(outside, "x.parquet")
    put(table, "p=1/x.parquet")
    files = LocalFiles(str(table))
    (table / "p=1").rename(table / "p=0")
    (table / "p=1").symlink_to(outside)
    assert files.delete(["p=1/x.parquet", "gone/y.parquet"]) == 0
    assert names(outside) == {"x.parquet"}
    assert files.remove_directories(["p=1", "p=0"]) == 0


def test_an_absolute_path_by_another_way_is_the_same_file(tmp_path):
    table = tmp_path / "table"
    put(table, "x.parquet")
    (tmp_path / "alias").symlink_to(table)
    needed = Needed(str(table), LocalFiles(str(table)).same_place)
    needed.add(f"file://{tmp_path}/alias/x.parquet")
    assert run(table, needed) == set()


def test_a_table_below_is_not_ours(tmp_path):
    for name in ("sub/t/_delta_log/00000000000000000000.json", "sub/t/x.parquet", "sub/t/p=1/y.parquet", "old"):
        put(tmp_path, name)
    (tmp_path / "sub/t/p=2").mkdir()
    age(tmp_path)
    assert run(tmp_path, Needed(str(tmp_path))) == {"old"}


def test_staging_that_a_crash_left(tmp_path):
    put(tmp_path, "_tablelog_staging-old/_temporary/0/x.parquet")
    put(tmp_path, "_tablelog_staging-new/_temporary/0/x.parquet")
    put(tmp_path, "_tablelog_staging-new/_temporary/0/y.parquet", T0 + 5)
    age(tmp_path)
    assert {one.split("/")[0] for one in run(tmp_path, Needed(str(tmp_path)))} == {"_tablelog_staging-old"}
    assert not (tmp_path / "_tablelog_staging-old").exists()


# --- histories ----------------------------------------------------------------------------------------------------


class History:
    """A table whose log is in memory and whose files are on disk, on a clock of the test's."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.builder = LogBuilder().create(configuration={"delta.deletedFileRetentionDuration": "interval 2 hours"})
        self.active: dict[str, DeletionVectorDescriptor | None] = {}
        self.at = [self.builder.clock.now]
        self.cdc: list[tuple[int, str]] = []

    @property
    def now(self) -> int:
        return self.builder.clock.now

    def commit(self, *actions) -> None:
        self.builder.commit(*actions, at=self.now)
        self.at.append(self.now)

    def step(self, kind: str, hours: float, early_ms: int, pick: int) -> None:
        """One thing that happens `hours` after the last; files and times of removal are `early_ms` before commits."""
        self.builder.clock.now += max(2, round(hours * HOUR))
        early = self.now - early_ms
        name = f"p={pick % 3}/{uuid.uuid4()}.parquet"
        chosen = sorted(self.active)[pick % len(self.active)] if self.active else None
        if kind == "crash":
            put(self.root, name, early)
        elif kind == "checkpoint":
            log = self.log()
            log.checkpoint()
        elif kind == "add" or chosen is None:
            put(self.root, name, early)
            self.active[name] = None
            self.commit(add(name, partition_values={}))
        elif kind == "remove":
            vector = self.active.pop(chosen)
            change = put(self.root, f"_change_data/cdc-{uuid.uuid4()}", early)
            self.cdc.append((len(self.at), change))
            self.commit(remove(chosen, at=early, deletion_vector=vector), AddCDCFile(change, {}, 1))
        elif kind == "vector":
            file = uuid.uuid4()
            put(self.root, f"deletion_vector_{file}.bin", early)
            new = DeletionVectorDescriptor("u", deletion_vectors.relative(file), 10, 1, 1)
            old, self.active[chosen] = self.active[chosen], new
            self.commit(remove(chosen, at=early, deletion_vector=old), add(chosen, deletion_vector=new))
        elif kind == "restore":
            version = pick % len(self.at)
            then = {one.path: one.deletion_vector for one in self.log().snapshot(version).add_files()}
            if not all((self.root / name).exists() for name in then):
                return
            gone = [remove(n, at=early, deletion_vector=dv) for n, dv in self.active.items() if then.get(n, 0) != dv]
            back = [add(n, deletion_vector=dv) for n, dv in then.items() if self.active.get(n, 0) != dv]
            self.active = then
            self.commit(*gone, *back)

    def log(self) -> DeltaLog:
        return DeltaLog(self.builder.root, self.builder.store, clock=self.builder.clock)

    def files_of(self, version: int) -> set[str]:
        found = set()
        for one in self.log().snapshot(version).add_files():
            found.add(one.path)
            if one.deletion_vector is not None:
                found.add(paths.decode(deletion_vectors.path_of(one.deletion_vector)))
        return found


STEP = st.tuples(
    st.sampled_from(["add", "add", "remove", "vector", "checkpoint", "crash", "restore"]),
    st.floats(0, 3),
    st.sampled_from([0, 1, 1000, HOUR // 2, 5 * HOUR]),
    st.integers(0, 20),
)


@settings(max_examples=30)
@given(steps=st.lists(STEP, min_size=1, max_size=14), retention=st.floats(0, 12), large=st.booleans())
def test_every_version_within_the_retention_can_be_read_afterwards(steps, retention, large):
    with tempfile.TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patched:
        if large:
            patched.setattr(checkpoint, "_AT_ONCE", 0)
        root = Path(directory)
        history = History(root)
        for step in steps:
            history.step(*step)
        history.builder.clock.now += 2
        log = history.log()
        before_ms = history.now - round(retention * HOUR)
        current = max((v for v, at in enumerate(history.at) if at <= before_ms), default=0)
        versions = range(current, len(history.at))
        kept = set().union(*(history.files_of(version) for version in versions))
        kept |= {name for version, name in history.cdc if version > current}
        present = [name for name in names(root) if (root / name).is_file()]
        ages = {name: (root / name).stat().st_mtime_ns // 1_000_000 for name in present}
        files = LocalFiles(directory)
        needed, _ = unneeded_files.needed_by(log, log.snapshot(), before_ms, files.same_place)
        found = removable(files, files.walk(is_hidden), needed, before_ms)
        files.delete([name for name, _ in found.files])
        left = {name for name in names(root) if (root / name).is_file()}
        assert kept & ages.keys() <= left
        assert {name for name, at in ages.items() if at >= before_ms} <= left
        # And it takes all that it may: what is old, and what neither a version nor the log's own times call for.
        assert left <= kept | {n for n, at in ages.items() if at >= before_ms - 5 * HOUR} | set(needed)
