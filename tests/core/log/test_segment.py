"""Which files make up a version: pure choices over listings."""

import pytest

from tablelog.core.log.segment import choose, name_of, parse_listing
from tablelog.errors import MissingCommitError
from tablelog.logstore import FileStatus

UUID = "80a083e8-7026-4e79-81be-64bd76c43a11"


def commit(*versions: int) -> list[str]:
    return [f"{version:020d}.json" for version in versions]


def checkpoint(version: int) -> str:
    return f"{version:020d}.checkpoint.parquet"


def part(version: int, number: int, of: int) -> str:
    return f"{version:020d}.checkpoint.{number:010d}.{of:010d}.parquet"


def compacted(first: int, last: int) -> str:
    return f"{first:020d}.{last:020d}.compacted.json"


def listing(*names: str):
    return parse_listing(FileStatus(f"file:///t/_delta_log/{name}", 1, 0) for name in sorted(names))


def chosen(*names: str, **arguments):
    segment = choose(listing(*names), "t", **arguments)
    if segment is None:
        return None
    files = [name_of(status) for status in (segment.checkpoint.files if segment.checkpoint else ())]
    return segment.version, files, [name_of(entry.status) for entry in segment.entries]


@pytest.mark.parametrize(
    ("names", "arguments", "expected"),
    [
        pytest.param(commit(0, 1, 2), {}, (2, [], commit(0, 1, 2)), id="commits alone"),
        pytest.param(commit(0, 1, 2), {"version": 1}, (1, [], commit(0, 1)), id="an older version"),
        pytest.param(
            [*commit(0, 1, 2, 3), checkpoint(2)], {}, (3, [checkpoint(2)], commit(3)), id="from the checkpoint on"
        ),
        pytest.param([*commit(2, 3), checkpoint(2)], {}, (3, [checkpoint(2)], commit(3)), id="cleaned up before it"),
        pytest.param([checkpoint(2)], {}, (2, [checkpoint(2)], []), id="a checkpoint alone"),
        pytest.param(
            [*commit(0, 1, 2, 3), checkpoint(1), checkpoint(3)],
            {"version": 2},
            (2, [checkpoint(1)], commit(2)),
            id="no checkpoint newer than the version",
        ),
        pytest.param(
            [*commit(0, 1, 2), part(1, 1, 2), part(1, 2, 2)],
            {},
            (2, [part(1, 1, 2), part(1, 2, 2)], commit(2)),
            id="all parts, in order",
        ),
        pytest.param(
            [*commit(0, 1, 2), part(1, 1, 3), part(1, 2, 3)], {}, (2, [], commit(0, 1, 2)), id="a part is missing"
        ),
        pytest.param(
            [*commit(0, 1), part(1, 1, 2), part(1, 1, 3), part(1, 2, 3), part(1, 3, 3)],
            {},
            (1, [part(1, 1, 3), part(1, 2, 3), part(1, 3, 3)], []),
            id="parts of two attempts aren't mixed",
        ),
        pytest.param(
            [*commit(0, 1, 2), f"{1:020d}.checkpoint.{UUID}.json"],
            {},
            (2, [f"{1:020d}.checkpoint.{UUID}.json"], commit(2)),
            id="a UUID-named checkpoint",
        ),
        pytest.param(
            [*commit(0, 1), f"{1:020d}.checkpoint.{UUID}.parquet", checkpoint(1), part(1, 1, 1)],
            {},
            (1, [checkpoint(1)], []),
            id="a classic one is a single request",
        ),
        pytest.param(
            [*commit(0, 1, 2), checkpoint(2)],
            {"unusable": {checkpoint(2)}},
            (2, [], commit(0, 1, 2)),
            id="damaged: back to the commits",
        ),
        pytest.param(
            [*commit(0, 1, 2), checkpoint(1), checkpoint(2)],
            {"unusable": {checkpoint(2)}},
            (2, [checkpoint(1)], commit(2)),
            id="damaged: back to the checkpoint before",
        ),
        pytest.param(
            [*commit(0, 1, 2, 3, 4), compacted(1, 3)],
            {},
            (4, [], [*commit(0), compacted(1, 3), *commit(4)]),
            id="a compaction stands for its commits",
        ),
        pytest.param(
            [*commit(0, 1, 2, 3, 4), compacted(1, 2), compacted(1, 3), compacted(2, 4)],
            {},
            (4, [], [*commit(0), compacted(1, 3), *commit(4)]),
            id="the longest compaction",
        ),
        pytest.param(
            [*commit(0, 1, 2, 3), compacted(1, 3)],
            {"version": 2},
            (2, [], commit(0, 1, 2)),
            id="one that reaches too far",
        ),
        pytest.param(
            [*commit(0, 1, 2, 3), checkpoint(2), compacted(1, 3)],
            {},
            (3, [checkpoint(2)], commit(3)),
            id="one that begins before the checkpoint",
        ),
        pytest.param(
            [*commit(0, 1, 2), compacted(1, 2)],
            {"unusable": {compacted(1, 2)}},
            (2, [], commit(0, 1, 2)),
            id="a damaged compaction",
        ),
        pytest.param(
            [
                *commit(0),
                "_last_checkpoint",
                "0.json",
                f"{1:020d}.json.tmp",
                f"{1:020d}.checkpoint.parquet.crc",
                f"{5:020d}.2f6a.json",
                f"{3:020d}.crc",
            ],
            {},
            (0, [], commit(0)),
            id="names that the protocol doesn't know",
        ),
        pytest.param([], {}, None, id="nothing"),
        pytest.param(commit(3, 4), {}, None, id="neither version 0 nor a checkpoint"),
        pytest.param([*commit(2, 3), checkpoint(2)], {"version": 1}, None, id="before all that is left"),
        pytest.param(commit(0, 1), {"version": 2}, None, id="after the newest"),
    ],
)
def test_the_files_of_a_version(names, arguments, expected) -> None:
    assert chosen(*names, **arguments) == expected


@pytest.mark.parametrize(
    ("names", "hole"),
    [
        ([*commit(0, 2)], "00000000000000000001.json is missing"),
        ([*commit(0, 1, 5)], "00000000000000000002.json to 00000000000000000004.json is missing"),
        ([*commit(0, 1, 2, 4), checkpoint(2)], "00000000000000000003.json is missing"),
        ([*commit(4), checkpoint(2)], "00000000000000000003.json is missing"),
        ([*commit(0, 4), compacted(1, 3)], "00000000000000000001.json to 00000000000000000003.json is missing"),
    ],
)
def test_a_hole_is_named(names, hole) -> None:
    with pytest.raises(MissingCommitError, match=hole):
        chosen(*names)


def test_a_hole_before_the_checkpoint_does_no_harm() -> None:
    assert chosen(*commit(0, 3, 4), checkpoint(3)) == (4, [checkpoint(3)], commit(4))


def test_the_checksum_and_the_commit_of_the_version_itself() -> None:
    found = choose(listing(*commit(0, 1), f"{0:020d}.crc"), "t", version=0)
    assert found is not None
    assert found.checksum is not None
    assert name_of(found.checksum) == f"{0:020d}.crc"
    assert found.last_commit is not None
    assert name_of(found.last_commit) == f"{0:020d}.json"
    newest = choose(listing(*commit(0, 1), f"{0:020d}.crc"), "t")
    assert newest is not None
    assert newest.checksum is None


def test_a_hole_as_wide_as_versions_go_is_told_at_once() -> None:
    with pytest.raises(MissingCommitError, match=f"{commit(2)[0]} to {commit(2**63 - 2)[0]} is missing"):
        chosen(*commit(0, 1, 2**63 - 1))
