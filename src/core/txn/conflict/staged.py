"""What a transaction has read, and what it commits: the values that the conflict checks compare with other commits."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from ...protocol.actions import (
    Action,
    AddFile,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
)
from ...protocol.paths import canonical, canonical_column
from ...skipping.predicates import Predicate

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class ReadPredicate:
    """A predicate that selected the files to read, and the time zone of partition timestamps that name none.

    `every_file`: the transaction read each file that may match; the other members of the ReadSet don't name these.
    """

    predicate: Predicate
    time_zone: str
    every_file: bool = False


@dataclass(frozen=True)
class ReadSet:
    """The files and identifiers that a transaction has read.

    Args:
        predicates: The predicates that selected files.
        files: Tables with the column `path`: files that were read, with the paths as they are in the log.
        paths: Single files that were read, with the paths as they are in the log.
        whole_table: The transaction read the whole table.
        app_ids: The applications whose `txn` was read.
    """

    predicates: tuple[ReadPredicate, ...] = ()
    files: tuple["pa.Table", ...] = ()
    paths: frozenset[str] = frozenset()
    whole_table: bool = False
    app_ids: frozenset[str] = frozenset()

    @property
    def depends_on_files(self) -> bool:
        """Whether the result of the transaction depends on which files the table has."""
        return self.whole_table or bool(self.predicates or self.files or self.paths)

    def first_read(self, removed: Mapping[str, RemoveFile], table: str) -> RemoveFile | None:
        """The first file that was read and that is in `removed` (keys: canonical paths); None: there is none."""
        for path in self.paths:
            if (hit := removed.get(canonical(path, table))) is not None:
                return hit
        if self.files:
            import pyarrow as pa
            import pyarrow.compute as pc

            removed_paths = pa.array(list(removed), pa.string())
            for files in self.files:
                column = canonical_column(files.column("path"), table)
                hits = column.filter(pc.is_in(column.cast(pa.string()), value_set=removed_paths))
                if len(hits):
                    return removed[hits[0].as_py()]
        return None


@dataclass(frozen=True)
class Staged:
    """The content of a transaction before its commit, without its `commitInfo`.

    Args:
        table: The canonical root URI of the table.
        actions: The actions to commit.
        metadata: The metadata that holds after the commit.
        protocol: The protocol that holds after the commit.
        read_metadata: The metadata of the snapshot that was read (`None` for a new table). Read predicates refer to
            its partition columns.
        read_version: The version that was read; -1 for a new table.
        blind_append: The transaction only adds files and read none.
        drops_features: The transaction removes features from the protocol.
        restates_files, readds_files: As in `Operation`.
        in_bulk: The commit also adds or removes files that aren't in `actions`: it has too many.
        adds_in_bulk: It adds such files.
        removes_in_bulk: It removes such files.
    """

    table: str
    actions: tuple[Action, ...]
    metadata: Metadata
    protocol: Protocol
    read_metadata: Metadata | None
    read_version: int = -1
    blind_append: bool = False
    drops_features: bool = False
    restates_files: bool = False
    readds_files: bool = False
    in_bulk: bool = False
    adds_in_bulk: bool = False
    removes_in_bulk: bool = False

    @property
    def removes_files(self) -> bool:
        """Whether the transaction removes files."""
        return self.removes_in_bulk or bool(self.removed)

    @cached_property
    def adds_files(self) -> bool:
        """Whether the transaction adds files."""
        return self.adds_in_bulk or any(isinstance(action, AddFile) for action in self.actions)

    @cached_property
    def writes_metadata(self) -> bool:
        return any(isinstance(action, Metadata) for action in self.actions)

    @cached_property
    def writes_protocol(self) -> bool:
        return any(isinstance(action, Protocol) for action in self.actions)

    @cached_property
    def domains(self) -> frozenset[str]:
        return frozenset(action.domain for action in self.actions if isinstance(action, DomainMetadata))

    @cached_property
    def app_ids(self) -> frozenset[str]:
        return frozenset(action.app_id for action in self.actions if isinstance(action, SetTransaction))

    @cached_property
    def removed(self) -> frozenset[str]:
        return frozenset(canonical(a.path, self.table) for a in self.actions if isinstance(a, RemoveFile))
