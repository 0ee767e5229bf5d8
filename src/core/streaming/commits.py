"""What one commit means to a stream: the files that it adds or changes, or the error that it is."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ...errors import ChangeDataMissingError, UnsupportedFeatureError
from ..log.replay import in_commit_timestamp
from ..protocol.actions import Action, AddCDCFile, AddFile, CommitInfo, FileAction, Metadata, Protocol, RemoveFile
from ..table.changed_files import changes_nothing
from .planning import Separable, VersionFiles


@dataclass(frozen=True, slots=True)
class CommitRules:
    """What the user allows: the options of a stream that decide on single commits.

    `exclude` says of a path in the log whether that file isn't read. `changes`: the stream reads the change data feed.
    """

    ignore_deletes: bool = False
    ignore_changes: bool = False
    skip_change_commits: bool = False
    exclude: Callable[[str], bool] | None = None
    changes: bool = False

    def excludes(self, path: str) -> bool:
        return self.exclude is not None and self.exclude(path)

    def needed(self, actions: Iterable[Action]) -> list[Action]:
        """The actions of a commit that `of_commit` uses: a stream of new rows only needs to know one removed file."""
        needed: list[Action] = []
        removes = False
        for action in actions:
            if self.changes or not isinstance(action, FileAction):
                needed.append(action)
            elif isinstance(action, AddFile):
                if action.data_change:
                    needed.append(action)
            elif isinstance(action, RemoveFile) and action.data_change and not removes:
                removes = True
                needed.append(action)
        return needed


NO_RULES = CommitRules()
"""What applies if the user sets no option."""


@dataclass(frozen=True, slots=True)
class CommitFiles:
    """The files of a commit that a stream reads, in order, and what else it has to know of the commit.

    `skipped`: a MERGE that changed no row. `in_commit_timestamp` is in milliseconds.
    """

    version: int
    files: Sequence[FileAction]
    metadata: Metadata | None = None
    protocol: Protocol | None = None
    skipped: bool = False
    in_commit_timestamp: int | None = None

    def planned(self, rules: CommitRules) -> VersionFiles:
        """The input of `planning`."""
        sizes = [file.size or 0 for file in self.files]
        if not rules.changes:
            return VersionFiles(self.version, sizes)
        separable = Separable.BY_FILE
        if any(isinstance(file, AddCDCFile) for file in self.files):
            separable = Separable.CHANGE_DATA
        elif any(file.deletion_vector for file in self.files if not isinstance(file, AddCDCFile)):
            separable = Separable.NOT
        excluded = (i for i, file in enumerate(self.files) if self.skipped or rules.excludes(file.path))
        return VersionFiles(self.version, sizes, separable, frozenset(excluded))


def of_commit(version: int, actions: Sequence[Action], rules: CommitRules, table: str) -> CommitFiles:
    """The files of a commit that a stream reads.

    Raises UnsupportedFeatureError if the commit deletes or changes rows, unless `rules` allow it.
    """
    metadata = next((action for action in actions if isinstance(action, Metadata)), None)
    protocol = next((action for action in actions if isinstance(action, Protocol)), None)
    if rules.changes:
        change_data: list[FileAction] = [action for action in actions if isinstance(action, AddCDCFile)]
        if change_data:
            return CommitFiles(version, change_data, metadata, protocol, False, in_commit_timestamp(actions))
        changed: list[FileAction] = [
            action for action in actions if isinstance(action, AddFile | RemoveFile) and action.data_change
        ]
        time = in_commit_timestamp(actions)
        return CommitFiles(version, changed, metadata, protocol, changes_nothing(actions), time)
    added: list[FileAction] = [action for action in actions if isinstance(action, AddFile) and action.data_change]
    removed = next((action for action in actions if isinstance(action, RemoveFile) and action.data_change), None)
    if removed is not None:
        _check_removal(version, actions, removed, bool(added), rules, table)
        if rules.skip_change_commits:
            added = []
    return CommitFiles(version, added, metadata, protocol)


def _check_removal(
    version: int, actions: Sequence[Action], removed: RemoveFile, adds: bool, rules: CommitRules, table: str
) -> None:
    if rules.ignore_changes or rules.skip_change_commits or (rules.ignore_deletes and not adds):
        return
    if adds:
        info = next((action for action in actions if isinstance(action, CommitInfo)), None)
        what = removed.path if info is None else f"{info.operation} ({dict(info.operation_parameters or {})})"
        raise UnsupportedFeatureError(
            f"Version {version} of {table} changed rows ({what}), which a stream of new rows can't express. To skip "
            "such versions, set the option skipChangeCommits to true; to read the changes, set readChangeFeed to true "
            "(if the table has a change data feed); to read the changed table from its beginning, start the query with "
            "a new checkpoint location.",
            condition="DELTA_SOURCE_TABLE_IGNORE_CHANGES",
            parameters={"version": version, "changeInfo": what, "dataPath": table},
            table=table,
            version=version,
        ).with_context(path=removed.path)
    raise UnsupportedFeatureError(
        f"Version {version} of {table} deleted rows (of {removed.path}, for example), which a stream of new rows can't "
        "express. To ignore deletions, set the option ignoreDeletes to true, or read them by readChangeFeed.",
        condition="DELTA_SOURCE_IGNORE_DELETE",
        parameters={"removedFile": removed.path, "version": version, "dataPath": table},
        table=table,
        version=version,
    ).with_context(path=removed.path)


def changes_missing(table: str, version: int) -> ChangeDataMissingError:
    """The error for a version of which a stream of changes can't read the changes."""
    return ChangeDataMissingError(
        f"The changes of {table} can't be read from version {version} on, because "
        "delta.enableChangeDataFeed isn't true in that version. Start with a version that has change data.",
        condition="DELTA_MISSING_CHANGE_DATA",
        parameters={
            "startVersion": version,
            "endVersion": version,
            "version": version,
            "key": "delta.enableChangeDataFeed",
        },
        table=table,
        version=version,
    )
