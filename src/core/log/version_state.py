"""The interfaces of a version's state that the modules of the log use, so that they don't import the snapshot."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from ..protocol.actions import AddFile, DomainMetadata, Metadata, SetTransaction
from ..protocol.actions import Protocol as ProtocolAction
from ..protocol.properties import TableProperties

if TYPE_CHECKING:
    import pyarrow as pa


class LiveFiles(Protocol):
    """The live files of a version, by column."""

    def select(self, names: Sequence[str]) -> "pa.Table":
        """These columns of `add`, by name."""

    @property
    def tombstones(self) -> "pa.Table":
        """The removed files that the version still lists."""

    def pieces(self, *, with_stats: bool) -> "Iterator[pa.Table]":
        """The columns of the files, in pieces."""


class VersionState(Protocol):
    """The state of a version that its checksum summarises."""

    @property
    def table(self) -> str: ...
    @property
    def protocol(self) -> ProtocolAction: ...
    @property
    def metadata(self) -> Metadata: ...
    @property
    def properties(self) -> TableProperties: ...
    @property
    def transactions(self) -> Mapping[str, SetTransaction]: ...
    @property
    def domain_metadata(self) -> Mapping[str, DomainMetadata]: ...
    @property
    def timestamp_ms(self) -> int: ...
    @property
    def at_hand(self) -> bool:
        """Whether the files are in memory."""

    def add_files(self) -> Sequence[AddFile]:
        """The actions of the live files."""

    def listed_files(self) -> Sequence[AddFile]:
        """The live files without their statistics."""
