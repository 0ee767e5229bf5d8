"""The comparison of two versions' files on the local disk: the same as in memory, in pieces of any size."""

import random
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from tablelog.core import AddFile
from tablelog.core.log.columns import FILE_SCHEMA, REMOVE_SCHEMA, adds_of, removes_of, table_of
from tablelog.core.log.replay import CommitOverlay
from tablelog.core.log_maintenance import compared_files
from tablelog.core.log_maintenance.compared_files import RowFlags, compared, flags_of
from tablelog.core.protocol.actions import DeletionVectorDescriptor
from tablelog.errors import CorruptLogError, InvalidArgumentError, StorageError

ROOT = "file:///tmp/a%20table"
_VECTORS = (
    None,
    DeletionVectorDescriptor("u", "ab^-aqEH.-t@S}K{vb[*k^", 34, 2, 4),
    DeletionVectorDescriptor("u", "ab^-aqEH.-t@S}K{vb[*k^", 34, 2, None),
    DeletionVectorDescriptor("p", "file:///else/a%20b.bin", 34, 2, 1),
)
_SPELLINGS = ("p={0}/x{0}", "p={0}//x{0}", "./p={0}/x{0}", "file:/tmp/a%20table/p={0}/x{0}", "p=%20{0}/%C3%A9{0}")


def _files(dice: random.Random, count: int) -> list[AddFile]:
    """Files with different paths, of which some are in the result of each call."""
    files: dict[str, AddFile] = {}
    overlay = CommitOverlay(ROOT)
    for number in dice.sample(range(count), count // 2):
        path = dice.choice(_SPELLINGS).format(number)
        add = AddFile(path, {"p": None}, number, 1, True, deletion_vector=dice.choice(_VECTORS))
        files[overlay.key(add)[0]] = add
    return list(files.values())


def _pieces(dice: random.Random, rows: pa.Table) -> list[pa.Table]:
    """The rows in pieces of any size, also empty ones."""
    ends = sorted(dice.randint(0, rows.num_rows) for _ in range(5))
    return [rows.slice(start, end - start) for start, end in zip([0, *ends], [*ends, rows.num_rows], strict=True)]


@pytest.mark.parametrize("seed", range(20))
def test_the_same_as_in_memory(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    dice = random.Random(seed)
    monkeypatch.setattr(compared_files, "_BUCKET_BYTES", dice.choice([1, 10, 1000]))
    key = CommitOverlay(ROOT).key
    wanted, now, gone = (_files(dice, 200) for _ in range(3))
    live = {key(add) for add in now}
    removes = [add.remove(5) for add in gone if key(add) not in live]
    sides = [_pieces(dice, table_of(files, FILE_SCHEMA)) for files in (wanted, now)]
    tombstones = _pieces(dice, table_of(removes, REMOVE_SCHEMA))
    found = compared(ROOT, *map(iter, sides), iter(tombstones), 50)

    def of(flags: RowFlags, pieces: list[pa.Table], *, flagged: bool) -> Iterator[pa.Table]:
        return flags.filtered(iter(pieces), flagged=flagged)

    added = [add for add in wanted if key(add) not in live]
    removed = [add for add in now if key(add) not in {key(one) for one in wanted}]
    assert [a for piece in of(found.added, sides[0], flagged=True) for a in adds_of(piece)] == added
    assert [a for piece in of(found.removed, sides[1], flagged=True) for a in adds_of(piece)] == removed
    kept = [a for piece in of(found.removed, sides[1], flagged=False) for a in adds_of(piece)]
    assert kept == [add for add in now if add not in removed]
    left = [key(r) for piece in of(found.revived, tombstones, flagged=False) for r in removes_of(piece)]
    assert left == [key(r) for r in removes if key(r) not in {key(add) for add in added}]
    assert (found.num_added, found.added_bytes) == (len(added), sum(add.size for add in added))
    assert (found.num_removed, found.removed_bytes) == (len(removed), sum(add.size for add in removed))
    assert added
    assert removed
    assert len(left) < len(removes)


@pytest.mark.parametrize("seed", range(10))
def test_the_files_among_others(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    dice = random.Random(seed)
    monkeypatch.setattr(compared_files, "_BUCKET_BYTES", dice.choice([1, 10, 1000]))
    key = CommitOverlay(ROOT).key
    sought, files = _files(dice, 200), _files(dice, 200)
    wanted = {key(add) for add in sought}
    pieces = _pieces(dice, table_of(files, FILE_SCHEMA))
    flags = flags_of(ROOT, _pieces(dice, table_of(sought, FILE_SCHEMA)), iter(pieces), 50)
    expected = [add for add in files if key(add) in wanted]
    assert [a for piece in flags.filtered(pieces, flagged=True) for a in adds_of(piece)] == expected
    assert 0 < flags.count == len(expected) < len(files)


@pytest.mark.parametrize("flagged", [True, False])
def test_another_order_of_the_files_is_an_error(flagged: bool) -> None:
    """As when a checkpoint is found damaged, and other files of the log replace it."""
    files = [AddFile(f"x{number}", {}, 1, 1, True) for number in range(6)]
    orders = [
        files,
        [*files[3:], *files[:3]],
        files[:5],
        [*files, files[0]],
        [*files[:5], AddFile("y", {}, 1, 1, True)],
    ]
    first, *others = ([table_of(order, FILE_SCHEMA)] for order in orders)
    flags = flags_of(ROOT, [table_of(files[1:3], FILE_SCHEMA)], first, 1)
    assert sum(piece.num_rows for piece in flags.filtered(first, flagged=flagged)) == (2 if flagged else 4)
    for other in others:
        with pytest.raises(CorruptLogError, match="came in another order"):
            list(flags.filtered(other, flagged=flagged))


def test_files_that_get_other_paths() -> None:
    """A clone compares the new paths; the source has the original ones."""
    source = table_of([AddFile(name, {}, 1, 1, True) for name in ("a", "b")], FILE_SCHEMA)
    paths = pa.array(["file:///source/a", "file:///source/b"])
    wanted = source.set_column(0, "path", paths).append_column("original", source.column("path"))
    now = table_of([AddFile("file:///source/a", {}, 1, 1, True)], FILE_SCHEMA)
    found = compared(ROOT, [wanted], [now], [], 1)
    assert [piece.column("path").to_pylist() for piece in found.added.filtered([source], flagged=True)] == [["b"]]


def test_two_files_with_one_path() -> None:
    adds = [AddFile("x", {}, 1, 1, True, deletion_vector=vector) for vector in _VECTORS[:2]]
    with pytest.raises(InvalidArgumentError, match="x is added twice"):
        compared(ROOT, [table_of(adds, FILE_SCHEMA)], [], [], 1)


def test_no_directory_for_temporary_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "none"))
    with pytest.raises(StorageError, match=r"files of a large table are sorted .* no temporary file"):
        compared(ROOT, [], [], [], 1)
