"""The store for S3 and compatible services: one PutObject with `If-None-Match: *`, which the service must enforce."""

import logging
import os
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, BinaryIO, ClassVar, Self

from ...errors import InvalidArgumentError, StorageUnavailableError, TablelogError, WriteOutcomeUnknown
from ..base import Exclusion, FileStatus, LogStore, too_large
from ..common import object_uri, posix
from ..common.conditional_put import settle
from ..common.listing import without_false_gaps
from ..common.retry_policy import DEFAULT_RETRIES, RetryPolicy
from ..common.schemes import served_by
from ..common.spool import Content, size_of, spooled
from ..common.uri import shown
from .places import S3Location, place_of
from .replies import no_condition
from .requests import S3Requests
from .settings import PREFIXES, S3Settings

LARGEST = 5 << 30
"""The most bytes in one S3 request. Multipart uploads aren't used: several services check the condition of a multipart
upload late, or never. So a large file is sent by one request too, from a temporary file."""

_UNORDERED = "--x-s3"
_PROBE_TRIES = 6

logger = logging.getLogger(__name__)


class ProbedBuckets:
    """The buckets whose service enforced the condition of a write when it was probed.

    All stores in a process share one. A pickled store gets that of the process that loads it.
    """

    def __init__(self) -> None:
        self._enforcing: set[tuple[str, str]] = set()
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return _of_this_process, ()

    def once(self, endpoint: str, bucket: str, probe: Callable[[], None]) -> None:
        """Run `probe`, unless it has succeeded for this bucket before; raises the errors of `probe`."""
        if (endpoint, bucket) in self._enforcing:
            return
        with self._lock:
            if (endpoint, bucket) not in self._enforcing:
                probe()
                self._enforcing.add((endpoint, bucket))

    def renew_lock(self) -> None:
        """For a forked child, which doesn't have the thread that held the lock."""
        self._lock = threading.Lock()


_PROBED = ProbedBuckets()
os.register_at_fork(after_in_child=_PROBED.renew_lock)


def _of_this_process() -> ProbedBuckets:
    return _PROBED


class S3LogStore(LogStore):
    """Objects in a bucket, for any number of writers on any number of hosts.

    Since 2024-08 S3 rejects a put with the condition that the object doesn't exist if it exists (412). MinIO, Ceph, R2
    and others do so too, but some services accept the condition and ignore it. So before the first such write to a
    bucket in a process, a probe writes one hidden object in the same directory twice, expects that the second write is
    rejected, and deletes the object: three requests. A service that accepts both is rejected (UnsafeStoreError). The
    probe detects a condition that is ignored. The conformance suite tests whether a service also enforces it between
    concurrent writers.

    A file has at most 5 GiB (`LARGEST`). In a directory bucket (`…--x-s3`), whose listings are unordered, each listing
    reads the whole directory.
    """

    exclusion: Exclusion = "global"
    partial_writes_visible = False
    atomic_overwrite = True
    schemes: ClassVar[frozenset[str]] = served_by("s3")
    configuration_prefixes: ClassVar[tuple[str, ...]] = PREFIXES
    endangered_by = MappingProxyType(
        {"Delta-Lake/": "Delta's S3 store writes without a condition by default, and so overwrites others' commits"}
    )

    def __init__(
        self,
        settings: S3Settings | None = None,
        *,
        retries: RetryPolicy = DEFAULT_RETRIES,
        probed: ProbedBuckets = _PROBED,
    ) -> None:
        self._requests = S3Requests(settings or S3Settings(), retries)
        self._retries = retries
        self._probed = probed

    @classmethod
    def configured(cls, scheme: str, conf: Mapping[str, str], storage_options: Mapping[str, Any]) -> Self:
        return cls(S3Settings.of(scheme, conf, storage_options))

    def read(self, path: str) -> bytes:
        return self._requests.get(place_of(path))

    def read_at_most(self, path: str, most: int) -> bytes:
        data = self._requests.get(place_of(path), most)
        if len(data) > most:
            raise too_large(path, None, most)
        return data

    def open_file(self, path: str) -> BinaryIO:
        return self._requests.open(place_of(path))

    def write(self, path: str, data: bytes, *, overwrite: bool = False) -> None:
        self._write(path, data, overwrite)

    def write_pieces(self, path: str, pieces: Iterable[bytes], *, overwrite: bool = False) -> None:
        with spooled(path, pieces) as content:
            self._write(path, content, overwrite)

    def _write(self, path: str, content: Content, overwrite: bool) -> None:
        place = place_of(path)
        name = place.key[len(place.directory) :]
        if not name or posix.is_hidden(name.encode()):
            raise InvalidArgumentError(
                f"{shown(path)} can't be written: listings omit objects with such a name. Use another name"
            )
        if (size := size_of(content)) > LARGEST:
            raise InvalidArgumentError(
                f"{shown(path)} has {size} bytes, but one request to S3 takes {LARGEST} at most: write less data"
            )
        if overwrite:
            self._replace(place, content)
        else:
            self._create(place, content)

    def list_from(self, path: str) -> Iterator[FileStatus]:
        place = place_of(path)
        directory, start = place.directory, place.key[len(place.directory) :].encode()
        # S3 lists the keys after the given one, so the last character is removed to include the start itself.
        after = place.key[:-1] if start and not place.bucket.endswith(_UNORDERED) else None
        statuses: dict[bytes, FileStatus] = {}

        def scan() -> list[bytes]:
            statuses.clear()
            for item in self._requests.list(place, after):
                name = item.key[len(directory) :].encode()
                if name and name >= start and not posix.is_hidden(name):
                    uri = object_uri.join(place.scheme, place.bucket, item.key)
                    statuses[name] = FileStatus(uri, item.size, item.modification_time_ms)
            return list(statuses)

        return iter([statuses[name] for name in without_false_gaps(scan, start)])

    def delete(self, path: str) -> None:
        self._requests.delete(place_of(path))

    def resolve(self, path: str) -> str:
        """`s3a://bucket/key` with canonical percent-escapes and no empty parts; the scheme isn't changed."""
        place = place_of(path)
        return object_uri.join(place.scheme, place.bucket, place.key.rstrip("/"))

    def _create(self, place: S3Location, content: Content) -> None:
        """Write the new object; raises the errors of `write`."""
        self._probe(place)
        settle(place.uri, lambda: self._requests.put_if_absent(place, content), self._retries)

    def _replace(self, place: S3Location, content: Content) -> None:
        """Write the object, replacing an existing one."""
        self._requests.put(place, content)

    def _probe(self, place: S3Location) -> None:
        """Raise UnsafeStoreError if the service accepts a second write of one name."""
        self._probed.once(self._requests.endpoint(place.bucket), place.bucket, lambda: self._try_twice(place))

    def _try_twice(self, place: S3Location) -> None:
        probe = place.beside(f".probe.{uuid.uuid4()}.tmp")
        accepted, last_reason, may_exist = 0, "", False
        try:
            for number in range(_PROBE_TRIES):
                data = b"tablelog tests whether the condition of a write is enforced: %d\n" % number
                try:
                    settle(probe.uri, partial(self._requests.put_if_absent, probe, data), self._retries)
                except FileExistsError:
                    return
                except WriteOutcomeUnknown as error:
                    last_reason, may_exist = error.reason, True
                    continue
                accepted, may_exist = accepted + 1, True
                if accepted == 2:
                    raise no_condition(place.uri, "it accepted two writes of one new object, both with the condition")
        finally:
            if may_exist:
                self._remove(probe)
        raise StorageUnavailableError(
            f"writing {shown(place.uri)}: the test whether the service enforces the condition of a write failed "
            f"({last_reason}); nothing was written, try again later",
            path=shown(place.uri),
        )

    def _remove(self, probe: S3Location) -> None:
        try:
            self._requests.delete(probe)
        except TablelogError as error:
            logger.warning("the hidden object %s couldn't be removed: %s", shown(probe.uri), error)
