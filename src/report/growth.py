"""Rows, bytes and files of each version, computed from the newest version and the actions of the commits before it."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ..core.protocol.actions import Action, AddFile, CommitInfo, FileKey, RemoveFile
from ..core.protocol.record_count import num_records
from .facts import Commit, Point

_PREDICATES = ("predicate", "matchedPredicates", "notMatchedPredicates", "notMatchedBySourcePredicates")


@dataclass(frozen=True, slots=True)
class Change:
    """What a commit adds to the table; `None`: its actions don't say."""

    version: int
    time_ms: int
    rows: int | None
    size: int | None
    files: int


@dataclass(frozen=True, slots=True)
class _File:
    size: int | None
    rows: int | None


def changes(commits: Iterable[tuple[int, int, Sequence[Action]]]) -> Iterator[tuple[Change, Commit]]:
    """The change and the description of each commit.

    A `remove` without size or statistics has those of the `add` before it, if that is in one of the commits. An `add`
    of a file that is live already changes nothing: some commands write it again to change its tags or row ids.

    Args:
        commits: (version, time in milliseconds, actions), ascending.
    """
    live: dict[FileKey, _File] = {}
    for version, time_ms, actions in commits:
        rows: int | None = 0
        size: int | None = 0
        added, removed = (
            [a for a in actions if isinstance(a, AddFile)],
            [a for a in actions if isinstance(a, RemoveFile)],
        )
        files = 0
        for remove in removed:
            known = live.pop(remove.key, None)
            file = _File(
                known.size if remove.size is None and known else remove.size,
                known.rows if known else _live_rows(remove),
            )
            files -= 1
            rows, size = _plus(rows, file.rows, -1), _plus(size, file.size, -1)
        for add in added:
            is_new = add.key not in live and (add.data_change or bool(removed))
            file = live[add.key] = _File(add.size, _live_rows(add))
            if is_new:
                files += 1
                rows, size = _plus(rows, file.rows, 1), _plus(size, file.size, 1)
        info = next((action for action in actions if isinstance(action, CommitInfo)), CommitInfo())
        yield (
            Change(version, time_ms, rows, size, files),
            Commit(
                version,
                time_ms,
                info.operation or "unknown",
                len(added),
                len(removed),
                sum(add.size for add in added),
                _overtaken_by(version, info.read_version),
                tuple(_predicates(info)),
                info.user_name or info.engine_info or "",
            ),
        )


def _live_rows(file: AddFile | RemoveFile) -> int | None:
    rows = num_records(file.stats)
    vector = file.deletion_vector
    return rows if rows is None or vector is None else rows - vector.cardinality


def _plus(total: int | None, value: int | None, sign: int) -> int | None:
    return None if total is None or value is None else total + sign * value


def _overtaken_by(version: int, read_version: int | None) -> int | None:
    return None if read_version is None or not -1 <= read_version < version else version - read_version - 1


def _predicates(info: CommitInfo) -> Iterator[str]:
    for name in _PREDICATES:
        value = (info.operation_parameters or {}).get(name)
        if value not in (None, "", "[]", []):
            yield str(value)


def points(newest: Point, history: Sequence[Change]) -> tuple[Point, ...]:
    """The table at each version of the history, ascending.

    Args:
        newest: The newest version, whose numbers are exact.
        history: The changes, ascending; the last one led to the newest version.
    """
    if not history:
        return (newest,)
    found: list[Point] = []
    rows, size, files = newest.rows, newest.size, newest.files
    for change in reversed(history):
        found.append(Point(change.version, change.time_ms, rows, size, files))
        rows, size, files = _plus(rows, change.rows, -1), _plus(size, change.size, -1), files - change.files
    return tuple(reversed(found))


_NAME = re.compile(r"`((?:[^`]|``)+)`|([^\W\d]\w*)")


def named_columns(predicates: Iterable[str], columns: Iterable[Sequence[str]]) -> list[tuple[str, int]]:
    """The columns that conditions name, with the number of conditions; the most frequent first.

    Delta writes conditions as text, so that a column and a word in a string can't be distinguished with certainty.

    Args:
        predicates: The texts of conditions.
        columns: The names of the columns, each with the structs that contain it.
    """
    parts = {".".join(column): {part.lower() for part in column} for column in columns}
    counts = dict.fromkeys(parts, 0)
    for predicate in predicates:
        names = {(match[1] or match[2]).replace("``", "`").lower() for match in _NAME.finditer(predicate)}
        for column, needed in parts.items():
            counts[column] += needed <= names
    return sorted(((name, count) for name, count in counts.items() if count), key=lambda item: (-item[1], item[0]))
