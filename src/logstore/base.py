"""The contract between the transaction log and the storage below it."""

import io
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Literal, NamedTuple, Self

from ..errors import CorruptLogError
from .common.uri import shown

Exclusion = Literal["process", "host", "global"]


def too_large(path: str, size: int, most: int) -> CorruptLogError:
    """The error for a file of the log that has more bytes than it can."""
    return CorruptLogError(f"{shown(path)} has {size} bytes, and should have {most} at most")


class FileStatus(NamedTuple):
    """One file of a listing.

    `path` is a canonical URI, `size` is in bytes, `modification_time_ms` in milliseconds since the Unix epoch.
    """

    path: str
    size: int
    modification_time_ms: int


class LogStore(ABC):
    """Bytes at rest under `_delta_log`, and nothing else.

    Paths are absolute URIs as strings; a bare local path is accepted. The transaction log is safe on a store that
    keeps these guarantees, which the conformance suite checks:

    1. **Atomic visibility.** A reader sees the whole file or none. Relied on by every reader of the log: a commit
       that is half there would be a corrupt table.
    2. **Mutual exclusion.** Of all writers of one absent path exactly one wins, and every loser is told. Relied on
       by `core.txn.commit`: it is what makes a version a serial order. `exclusion` declares how far it reaches:
       within one `process`, one `host`, or `global`ly.
    3. **Consistent listing.** What was written is listed, in UTF-8 byte order of names, by everyone, at once; and of
       what is written during a listing, no numbered file is listed without those that were written before it. Relied
       on by `core.log.segment` to find the newest version and to tell a missing one, and by a refresh to see that
       there is none.
    4. **An honest answer.** `write` without `overwrite` returns (won), raises `FileExistsError` (lost) or
       `WriteOutcomeUnknown`. A store never repeats a conditional write after an ambiguous answer (time-out, reset,
       5xx), and once an answer was ambiguous a later "exists" is unknown too. Only what the service defines as not
       applied (429, S3's 409) is tried again. Relied on by `core.txn.commit` to never make one commit twice, and
       never to report an own success as a conflict.

    Instances are shared between threads, are picklable, and work (or say that they can't) in a forked child.

    A store of one's own is a subclass that declares the three attributes without a value below and has the five
    abstract methods. `spark.delta.logStore.<scheme>.impl` or an entry point names it (see `registry`).
    """

    exclusion: Exclusion
    """How far guarantee 2 reaches."""

    partial_writes_visible: bool
    """Whether a reader may ever see a part of a file (guarantee 1 is then broken: refuse to commit)."""

    atomic_overwrite: bool
    """Whether `write(..., overwrite=True)` replaces a file in one step, for `_last_checkpoint`."""

    schemes: ClassVar[frozenset[str] | None] = None
    """The URI schemes, in lower case, that the store can serve; None: any."""

    configuration_prefixes: ClassVar[tuple[str, ...]] = ()
    """The keys of the configuration that the store reads start with one of these, as the user writes them."""

    endangered_by: Mapping[str, str] = MappingProxyType({})
    """Who may not write to the same log: a part of the `engineInfo` of its commits -> why. The core warns of such."""

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        classes = [vars(each) for each in cls.__mro__]
        for plain, other in (("write", "write_pieces"), ("read", "read_at_most")):
            nearest = next(i for i, c in enumerate(classes) if plain in c)
            if nearest < next(i for i, c in enumerate(classes) if other in c):
                # One from further up would go past what this class makes of a write, or a read.
                setattr(cls, other, getattr(LogStore, other))

    @classmethod
    def configured(cls, scheme: str, conf: Mapping[str, str], storage_options: Mapping[str, Any]) -> Self:
        """The store for `scheme`, as the registry makes it, once for each different set of arguments.

        `conf` holds the keys that `configuration_prefixes` lets through, `storage_options` what the caller gave in
        fsspec's names. A store that needs neither has nothing to override. Raises `LogStoreConfigurationError`
        where they don't make sense.
        """
        return cls()

    @abstractmethod
    def read(self, path: str) -> bytes:
        """The whole content of `path`; `FileNotFoundError` where there is none."""

    def read_at_most(self, path: str, most: int) -> bytes:
        """`read` of a file that is known to have no more than `most` bytes; CorruptLogError for one that has more.

        A store that can tell before it reads overrides this.
        """
        data = self.read(path)
        if len(data) > most:
            raise too_large(path, len(data), most)
        return data

    @abstractmethod
    def write(self, path: str, data: bytes, *, overwrite: bool = False) -> None:
        """Write `data` as the whole content of `path`, making parent directories.

        Raises `FileExistsError` (lost: `path` is there and untouched) or `WriteOutcomeUnknown` (guarantee 4); any
        other `Exception` means that nothing was written. A `KeyboardInterrupt` says nothing about the outcome. With
        `overwrite`, the last writer's bytes stay, whole.
        """

    def write_pieces(self, path: str, pieces: Iterable[bytes], *, overwrite: bool = False) -> None:
        """`write` what `pieces` give, one after another: a file that needn't be in memory at once.

        All that `write` promises holds here too, and where `pieces` raises, nothing was written and its error comes
        through. That the path is taken may be told before the first piece is asked for. Making a piece may read and
        list this store, on any thread: hold no lock meanwhile that these take.

        Here the pieces are put together. A store that can take one after another overrides it, and has both ways of
        writing go through a third: a subclass that overrides `write` alone gets this one back, which calls `write`.
        """
        whole = io.BytesIO()
        for piece in pieces:
            whole.write(piece)
        self.write(path, whole.getvalue(), overwrite=overwrite)

    @abstractmethod
    def list_from(self, path: str) -> Iterator[FileStatus]:
        """The files beside `path` whose names are >= its name, in byte order; not those in directories below.

        Raises `FileNotFoundError`, at the call, where the directory doesn't exist (an object store can't tell that
        from an empty one, and gives an empty listing). Temporary names of the store's own are never listed.
        """

    @abstractmethod
    def delete(self, path: str) -> None:
        """Remove `path`; that it is absent already is fine."""

    @abstractmethod
    def resolve(self, path: str) -> str:
        """The canonical URI of `path`, so that two spellings of one table are one table."""
