"""A commit that came first, with its actions sorted by kind."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from ...protocol.actions import (
    Action,
    AddFile,
    CommitInfo,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
)
from ...protocol.row_tracking import BACKFILL


@dataclass(frozen=True)
class Winner:
    """A commit that came first: its actions, also sorted by kind for the checks.

    `file_time_ms` is the modification time of its log file, in milliseconds since the epoch. `more` reads the file
    actions of a commit that has too many for memory, in batches; `actions`, `adds` and `removes` then have none.
    """

    version: int
    actions: tuple[Action, ...] = ()
    info: CommitInfo | None = None
    metadata: Metadata | None = None
    protocol: Protocol | None = None
    adds: tuple[AddFile, ...] = ()
    removes: tuple[RemoveFile, ...] = ()
    app_ids: frozenset[str] = frozenset()
    domains: frozenset[str] = frozenset()
    file_time_ms: int = 0
    more: Callable[[], Iterator[Sequence[Action]]] | None = None

    @classmethod
    def of(
        cls,
        version: int,
        actions: Sequence[Action],
        file_time_ms: int = 0,
        more: Callable[[], Iterator[Sequence[Action]]] | None = None,
    ) -> "Winner":
        info: CommitInfo | None = None
        metadata: Metadata | None = None
        protocol: Protocol | None = None
        adds: list[AddFile] = []
        removes: list[RemoveFile] = []
        app_ids: set[str] = set()
        domains: set[str] = set()
        for action in actions:
            if isinstance(action, AddFile):
                adds.append(action)
            elif isinstance(action, RemoveFile):
                removes.append(action)
            elif isinstance(action, CommitInfo):
                info = action
            elif isinstance(action, SetTransaction):
                app_ids.add(action.app_id)
            elif isinstance(action, Metadata):
                metadata = action
            elif isinstance(action, Protocol):
                protocol = action
            elif isinstance(action, DomainMetadata):
                domains.add(action.domain)
        return cls(
            version,
            tuple(actions),
            info,
            metadata,
            protocol,
            tuple(adds),
            tuple(removes),
            frozenset(app_ids),
            frozenset(domains),
            file_time_ms,
            more,
        )

    def parts(self) -> "Iterator[Winner]":
        """This commit, or parts of it with its description and only some of its file actions."""
        if self.more is None:
            yield self
            return
        for actions in self.more():
            yield replace(Winner.of(self.version, actions, self.file_time_ms), info=self.info)

    def time(self) -> int:
        """The time of the commit in milliseconds: the in-commit timestamp, else the time of the log file."""
        in_commit = None if self.info is None else self.info.in_commit_timestamp
        return self.file_time_ms if in_commit is None else in_commit

    @property
    def backfills(self) -> bool:
        """Whether the commit only assigns row ids to existing files."""
        return self.info is not None and self.info.operation == BACKFILL

    @property
    def vacuums(self) -> bool:
        """Whether the commit is the start or the end of a VACUUM."""
        return self.info is not None and self.info.operation in ("VACUUM START", "VACUUM END")

    @property
    def blind_append(self) -> bool:
        """Whether its commitInfo says that it read nothing; a writer that doesn't say so may have read anything."""
        return self.info is not None and self.info.is_blind_append is True

    @property
    def described(self) -> str:
        operation = self.info.operation if self.info is not None else None
        return f"version {self.version}" + (f" ({operation})" if operation else "")
