"""What the files of the log ask of the state of a version, so that they need not know its snapshot."""

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
        """The removed files that the version still remembers."""

    def pieces(self, *, with_stats: bool) -> "Iterator[pa.Table]":
        """The columns of the files, piece by piece."""


class VersionState(Protocol):
    """A version as its checksum tells it."""

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
        """Those without their statistics."""
