"""Logs that were damaged: the newest consistent state, or an error that names what is lost; and what `health` says."""

import json
import re
from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.log_builder import LogBuilder, add, metadata, remove
from tablelog.core import DomainMetadata, Protocol, SetTransaction, Snapshot
from tablelog.core.log import checksum
from tablelog.core.log.segment import parse_listing, ranges_text, readable
from tablelog.core.log_maintenance.problems import LogHealth
from tablelog.core.protocol import codec
from tablelog.core.protocol.paths import checkpoint_name, commit_name, compacted_name, crc_name, part_name
from tablelog.errors import CorruptLogError, MissingCommitError, TableNotFoundError, VersionNotFoundError
from tablelog.logstore.base import FileStatus
from tablelog.settings.declarations import CHECKPOINT_PART_SIZE


def table(commits: int = 8, *checkpoints: int, **conf: str) -> LogBuilder:
    builder = LogBuilder().create(add("0", size=7), table_id="t")
    for number in range(1, commits):
        builder.commit(add(str(number), size=number), remove(str(number - 2)), SetTransaction("app", number))
    for version in checkpoints:
        builder.log(conf=conf).checkpoint(builder.log().snapshot(version))
    return builder


def state(snapshot: Snapshot) -> tuple:
    files = {(a.path, a.size) for a in snapshot.add_files()}
    return files, dict(snapshot.transactions), dict(snapshot.domain_metadata), snapshot.metadata, snapshot.protocol


def messages(health: LogHealth) -> str:
    return "\n".join(f"{problem.severity}: {problem.message}" for problem in health.problems)


def test_a_sound_log() -> None:
    builder = table(8, 3, 6)
    health = builder.log().health()
    assert health.ok
    assert not health.problems
    assert (health.newest, health.commits) == (7, 8)
    assert health.readable == ((0, 7),)
    assert health.checkpoints == (3, 6)
    assert str(health).endswith("\nok")
    with pytest.raises(TableNotFoundError):
        LogBuilder(root="memory:/none").log().health()


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (lambda b: b.delete("_last_checkpoint"), "warning: _last_checkpoint is missing"),
        (lambda b: b.write("_last_checkpoint", b"{"), "warning: _last_checkpoint is missing or damaged"),
        (lambda b: b.write("_last_checkpoint", b'{"version":99,"size":1}'), "names version 99, which has no valid"),
        (lambda b: b.write("_last_checkpoint", b'{"version":3,"size":1}'), "names version 3, but there is"),
        (lambda b: b.delete(checkpoint_name(6)), "names version 6, which has no valid checkpoint"),
        (lambda b: b.write(checkpoint_name(6), b""), "warning: the checkpoint .*006.checkpoint.parquet is damaged"),
        (lambda b: b.write(checkpoint_name(6), b.read(checkpoint_name(6))[:-5]), "write a new checkpoint"),
        (lambda b: b.write(part_name(5, 1, 2), b"x"), "is a part of an incomplete checkpoint"),
        (lambda b: b.write(compacted_name(1, 3), b'{"add'), "warning: the log compaction .* isn't used"),
    ],
)
def test_what_costs_no_version(damage: Callable[[LogBuilder], None], told: str) -> None:
    builder = table(8, 3, 6)
    states = [state(builder.log().snapshot(version)) for version in range(8)]
    damage(builder)
    assert states == [state(builder.log().snapshot(version)) for version in range(8)]
    assert states[7] == state(builder.log().snapshot())
    health = builder.log().health()
    assert health.ok
    assert health.readable == ((0, 7),)
    assert re.search(told, messages(health))
    builder.log().checkpoint()
    assert not [p for p in builder.log().health().problems if "_last_checkpoint" in p.files]


def test_a_hole() -> None:
    builder = table(10, 6)
    builder.delete(commit_name(3), commit_name(4))
    assert builder.log().snapshot().version == 9
    with pytest.raises(MissingCommitError, match=r"0+3.json to 0+4.json is missing.*can be read: 0 to 2, 6 to 9"):
        builder.log().snapshot(5)
    health = builder.log().health()
    assert not health.ok
    assert health.readable == ((0, 2), (6, 9))
    assert "error: the versions 3 to 5 can't be read: the commits 3 to 4 are missing. Restore them." in messages(health)
    builder.delete(checkpoint_name(6))
    with pytest.raises(MissingCommitError, match="can be read: 0 to 2"):
        builder.log().snapshot()
    assert builder.log().snapshot(2).version == 2


@pytest.mark.parametrize("content", [b"", b"\n", b'{"add":{"path":"x', b"\x00" * 50])
def test_a_torn_commit(content: bytes) -> None:
    builder = table(8, 3)
    builder.write(commit_name(7), content)
    with pytest.raises(CorruptLogError, match=r"version 7 of memory:///table.*Restore 0+7.json from a copy"):
        builder.log().snapshot()
    assert builder.log().snapshot(6).version == 6
    health = builder.log().health()
    assert health.readable == ((0, 6),)
    assert "error: version 7 of memory:///table" in messages(health)
    assert "the versions 7 can't be read: see the problems above" in messages(health)


def test_a_torn_checkpoint_that_nothing_stands_in_for() -> None:
    builder = table(10, 3, 6)
    builder.delete(*(commit_name(version) for version in range(5)))
    builder.write(checkpoint_name(6), b"PAR1")
    with pytest.raises(CorruptLogError, match=r"version 9 of .* from other files of the log.*can be read: 3\. Restore"):
        builder.log().snapshot()
    assert builder.log().snapshot(3).version == 3
    health = builder.log().health()
    assert health.readable == ((3, 3),)
    assert health.checkpoints == (3,)
    assert "the versions 4 to 9 can't be read: the commit 4 is missing" in messages(health)


def test_commits_before_the_first_version() -> None:
    builder = table(10, 6)
    builder.delete(commit_name(0))
    health = builder.log().health()
    assert health.ok
    assert "warning: 5 commits before version 6" in messages(health)


def test_a_checkpoint_from_the_future() -> None:
    builder = table(10, 9)
    builder.delete(*(commit_name(version) for version in range(6, 10)))
    assert builder.log().snapshot().version == 9  # the commits were lost, and it holds what they said
    health = builder.log().health()
    assert not health.ok
    assert "is newer than the newest commit, 5: the commits up to 9 were lost" in messages(health)
    builder.write(checkpoint_name(9), b"")
    with pytest.raises(CorruptLogError, match="can be read: 0 to 5"):
        builder.log().snapshot()
    builder.delete(checkpoint_name(9))
    assert builder.log().snapshot().version == 5


def test_a_checkpoint_that_says_something_else() -> None:
    other = table(8)
    other.commit(add("of another table"))
    other.log().checkpoint(other.log().snapshot(8))
    builder = table(8, 2)
    builder.commit(add("8"))
    builder.write(checkpoint_name(8), other.read(checkpoint_name(8)))
    health = builder.log().health()
    assert not health.ok
    assert "doesn't match the commits: it has 1 files that they don't have, and lacks 1 (such as 8)" in messages(health)


def test_a_compaction_that_says_something_else() -> None:
    builder = table(8)
    builder.log().compact(2, 5)
    assert not builder.log().health().problems
    lines = codec.parse_commit(builder.read(compacted_name(2, 5)))
    builder.write(compacted_name(2, 5), codec.serialise(lines[:-1]))
    assert "error: the log compaction" in messages(builder.log().health())


def test_a_checksum_that_says_something_else() -> None:
    builder = table(8, 3)
    snapshot = builder.log().snapshot()
    told = json.loads(checksum.serialise(checksum.of(snapshot, snapshot.totals())))
    builder.write(crc_name(7), json.dumps(told).encode())
    assert not builder.log().health().problems
    builder.write(crc_name(7), json.dumps(told | {"numFiles": 77}).encode())
    assert "doesn't match its checksum: the number of files is 2, the checksum says 77" in messages(
        builder.log().health()
    )


@pytest.mark.parametrize("checkpoints", [(), (3,), (1, 3)])
def test_a_commit_that_lost_a_line_before_later_commits_were_made(checkpoints: tuple[int, ...]) -> None:
    """Writers that read the damaged commit have written the newest checksums from it."""
    builder = table(9, *checkpoints)

    def write_checksums(*versions: int) -> None:
        for version in versions:
            held = builder.log().snapshot(version)
            builder.write(crc_name(version), checksum.serialise(checksum.of(held, held.totals())))

    write_checksums(*range(9))
    assert not builder.log().health().problems
    lines = builder.read(commit_name(5)).splitlines(keepends=True)
    builder.write(commit_name(5), b"".join(line for line in lines if b'"add"' not in line))
    write_checksums(7, 8)
    found = builder.log().health().problems
    assert [(problem.severity, problem.kind, problem.files) for problem in found] == [
        ("error", "checksum-contradicts", (crc_name(5),))
    ]
    assert "the number of files is 1, the checksum says 2" in found[0].message


def test_a_log_whose_first_commit_has_no_metadata() -> None:
    builder = LogBuilder().commit(add("0")).commit(Protocol(1, 2), metadata(), add("1")).commit(add("2"))
    held = builder.log().snapshot()
    builder.write(crc_name(2), checksum.serialise(checksum.of(held, held.totals())))
    assert not builder.log().health().problems


def test_earlier_checksums_of_a_table_whose_removed_files_were_never_there() -> None:
    """Totals that are computed from the version before would be wrong."""
    builder = table(8, 3)
    builder.commit(remove("never"), add("8"))
    held = builder.log().snapshot()
    builder.write(crc_name(8), checksum.serialise(checksum.of(held, held.totals())))
    builder.commit(add("9"))
    assert not builder.log().health().problems


def test_sidecars() -> None:
    builder = LogBuilder()
    v2 = frozenset({"v2Checkpoint"})
    builder.commit(Protocol(3, 7, v2, v2), metadata({"delta.checkpointPolicy": "v2"}), add("a"), add("b"))
    builder.log(conf={CHECKPOINT_PART_SIZE.key: "1"}).checkpoint()
    assert not builder.log().health().problems
    builder.write("_sidecars/lost.parquet", b"")
    builder.clock.now += 3 * 86_400_000
    health = builder.log().health()
    assert "warning: 1 sidecars belong to no checkpoint" in messages(health)
    sidecar = next(s for s in builder.store.list_from(f"{builder.log_path}/_sidecars/0") if "lost" not in s.path)
    builder.store.delete(sidecar.path)
    health = builder.log().health()
    assert health.checkpoints == ()
    assert health.ok  # the commits are there
    assert builder.log().snapshot().num_files == 2


def test_ranges() -> None:
    def listing(*names: str) -> tuple[tuple[int, int], ...]:
        return readable(parse_listing(FileStatus(f"t/{name}", 1, 1) for name in names), unusable=[checkpoint_name(9)])

    assert listing() == ()
    assert listing(commit_name(1)) == ()
    assert listing(commit_name(0), commit_name(1), commit_name(3)) == ((0, 1),)
    assert listing(commit_name(0), checkpoint_name(1), checkpoint_name(3), commit_name(4)) == ((0, 1), (3, 4))
    assert listing(checkpoint_name(4), commit_name(4), commit_name(5), checkpoint_name(9)) == ((4, 5),)
    assert ranges_text([(0, 0), (2, 4)]) == "0, 2 to 4"


@settings(max_examples=20)
@given(st.data())
def test_whatever_happens_to_a_log(data: st.DataObject) -> None:
    """What can be read is right, and the rest says so; `health` knows which is which beforehand."""
    builder = table(data.draw(st.integers(2, 9)))
    last = builder.version
    builder.commit(DomainMetadata("d", "{}", False))
    for version in data.draw(st.lists(st.integers(0, last), max_size=3, unique=True)):
        conf = {CHECKPOINT_PART_SIZE.key: "1"} if data.draw(st.booleans()) else {}
        builder.log(conf=conf).checkpoint(builder.log().snapshot(version))
    first = data.draw(st.integers(0, last))
    builder.log().compact(first, data.draw(st.integers(first + 1, last + 1)))
    states = [state(builder.log().snapshot(version)) for version in range(last + 2)]
    for _ in range(data.draw(st.integers(0, 4))):
        name = data.draw(st.sampled_from([*builder.names(), "_last_checkpoint"]))
        kind = data.draw(st.sampled_from(["gone", "empty", "torn", "garbage"]))
        if kind == "gone":
            builder.delete(name)
        elif name in builder.names():
            content = builder.read(name)
            torn = content[: data.draw(st.integers(0, len(content) - 1))] if content else b""
            if name.endswith(".json"):
                # A commit cut between two lines looks like a whole one, and only its checksum could show it.
                torn = torn.removesuffix(b"\n").removesuffix(b"}")
            builder.write(name, {"empty": b"", "torn": torn, "garbage": b"\x00garbage"}[kind])
    try:
        health = builder.log().health()
    except TableNotFoundError:
        assert not [name for name in builder.names() if name.endswith((".json", ".parquet")) and "compact" not in name]
        return
    ok = {version for a, b in health.readable for version in range(a, b + 1)}
    for version in range(health.newest + 1):
        if version in ok:
            assert state(builder.log().snapshot(version)) == states[version]
        else:
            with suppress(CorruptLogError, VersionNotFoundError):  # a compaction may stand for a commit that was lost
                assert state(builder.log().snapshot(version)) == states[version]
    if not ok or len(ok) <= health.newest - min(ok):
        assert not health.ok
