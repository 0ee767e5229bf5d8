"""The interface between the transaction log and its storage."""

import io
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, BinaryIO, ClassVar, Literal, NamedTuple, Self

from ..errors import CorruptLogError
from .common.uri import shown

Exclusion = Literal["process", "host", "global"]


def too_large(path: str, size: int | None, most: int) -> CorruptLogError:
    """The error for a file of the log with more bytes than expected; `size` may be unknown."""
    has = f"more than {most}" if size is None else size
    return CorruptLogError(f"{shown(path)} has {has} bytes, but should have {most} at most", path=shown(path))


class FileStatus(NamedTuple):
    """One file of a listing.

    `path` is a canonical URI, `size` is in bytes, `modification_time_ms` in milliseconds since the Unix epoch.
    """

    path: str
    size: int
    modification_time_ms: int


class LogStore(ABC):
    """Stores files under `_delta_log`.

    Paths are absolute URIs as strings; a local path without a scheme is accepted. The transaction log is safe on a
    store that gives these guarantees, which the conformance suite checks:

    1. **Atomic visibility.** A reader sees a whole file or no file. All readers of the log rely on it: a partly visible
       commit would corrupt the table.
    2. **Mutual exclusion.** If several writers create the same path, exactly one succeeds, and every other one gets
       `FileExistsError`. `core.txn.commit` relies on it for a serial order of versions. `exclusion` declares the scope:
       one `process`, one `host`, or `global`.
    3. **Consistent listing.** After a write, every listing has the file, in UTF-8 byte order of names. If a listing has
       a numbered file that was written during the listing, it also has the numbered files that were written before it.
       `core.log.segment` relies on it to find the newest version and missing versions, and a refresh to find out that
       there is no new version.
    4. **Correct answers.** `write` without `overwrite` returns (success), raises `FileExistsError` (lost) or
       `WriteOutcomeUnknown`. A store never repeats a conditional write after an ambiguous answer (time-out, reset,
       5xx), and after an ambiguous answer a later "exists" is unknown too. It repeats only a request that the service
       defines as not applied (429, S3's 409). `core.txn.commit` relies on it never to commit twice, and never to report
       its own success as a conflict.

    Instances are shared between threads and can be pickled. In a forked child they work, or raise
    UnsupportedEnvironmentError.

    To write a store, subclass this class, declare the three attributes without a value below, and implement the five
    abstract methods. `spark.delta.logStore.<scheme>.impl` or an entry point selects it (see `registry`).
    """

    exclusion: Exclusion
    """The scope of guarantee 2."""

    partial_writes_visible: bool
    """Whether a reader may see a part of a file (this breaks guarantee 1, and commits are refused)."""

    atomic_overwrite: bool
    """Whether `write(..., overwrite=True)` replaces a file atomically; needed for `_last_checkpoint`."""

    schemes: ClassVar[frozenset[str] | None] = None
    """The URI schemes, in lower case, that the store supports; None: all."""

    configuration_prefixes: ClassVar[tuple[str, ...]] = ()
    """Prefixes of the configuration keys that the store reads, in the form in which users write them."""

    endangered_by: Mapping[str, str] = MappingProxyType({})
    """Writers that may not share the log: a part of their commits' `engineInfo` -> reason. The core warns of them."""

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        classes = [vars(each) for each in cls.__mro__]
        for plain, other in (("write", "write_pieces"), ("read", "read_at_most"), ("read", "open_file")):
            nearest = next(i for i, c in enumerate(classes) if plain in c)
            if nearest < next(i for i, c in enumerate(classes) if other in c):
                # An inherited one would bypass this class's own `write` or `read`.
                setattr(cls, other, getattr(LogStore, other))

    @classmethod
    def configured(cls, scheme: str, conf: Mapping[str, str], storage_options: Mapping[str, Any]) -> Self:
        """Create the store for `scheme`; the registry calls this once for each different set of arguments.

        A store without options doesn't need to override it.

        Args:
            scheme: The scheme of the path, in lower case.
            conf: The keys of the configuration that start with one of `configuration_prefixes`.
            storage_options: The caller's options, with fsspec's names.

        Raises:
            LogStoreConfigurationError: The options aren't valid.
        """
        return cls()

    @abstractmethod
    def read(self, path: str) -> bytes:
        """The whole content of `path`; raises `FileNotFoundError` if it doesn't exist."""

    def read_at_most(self, path: str, most: int) -> bytes:
        """`read` of a file of at most `most` bytes; raises CorruptLogError for a larger one.

        A store that can check the size before it reads overrides this.
        """
        data = self.read(path)
        if len(data) > most:
            raise too_large(path, len(data), most)
        return data

    def open_file(self, path: str) -> BinaryIO:
        """`path`, open for reading, so that a large file needn't be in memory at once; the caller closes it.

        It raises the errors of `read`. This default reads the whole file. A store that can read it in pieces overrides
        this.
        """
        return io.BytesIO(self.read(path))

    @abstractmethod
    def write(self, path: str, data: bytes, *, overwrite: bool = False) -> None:
        """Write `data` as the whole content of `path`, and create parent directories.

        With `overwrite`, the file has the whole content of the last writer.

        Raises:
            FileExistsError: Lost: `path` exists and wasn't changed.
            WriteOutcomeUnknown: See guarantee 4.
            Exception: Any other error means that nothing was written. A `KeyboardInterrupt` says nothing about the
                outcome.
        """

    def write_pieces(self, path: str, pieces: Iterable[bytes], *, overwrite: bool = False) -> None:
        """Like `write`, with the content in `pieces`, so that a large file needn't be in memory at once.

        It gives the same guarantees as `write`. If `pieces` raises, nothing is written and the error is raised
        unchanged. `FileExistsError` may be raised before the first piece is requested. `pieces` may read and list this
        store, on any thread: hold no lock that this would need.

        This default joins the pieces. A store that can write them one by one overrides it, and implements both `write`
        and this method with a third method. A subclass that overrides only `write` gets this default again.
        """
        whole = io.BytesIO()
        for piece in pieces:
            whole.write(piece)
        self.write(path, whole.getvalue(), overwrite=overwrite)

    @abstractmethod
    def list_from(self, path: str) -> Iterator[FileStatus]:
        """The files in the directory of `path` with names >= its name, in byte order, without subdirectories.

        Temporary files of the store are never listed.

        Raises:
            FileNotFoundError: The directory doesn't exist; raised by the call itself. An object store can't distinguish
                this from an empty directory and returns an empty listing.
        """

    @abstractmethod
    def delete(self, path: str) -> None:
        """Remove `path`; it is no error if `path` doesn't exist."""

    @abstractmethod
    def resolve(self, path: str) -> str:
        """The canonical URI of `path`: different spellings of one path have the same canonical URI."""
