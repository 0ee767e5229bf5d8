"""The store for an S3 service without conditional writes: for a single driver; it tries to detect a second one.

A driver is one process. Inside it, a lock for each name makes "check, then put" exclusive; between processes nothing
does. A second driver is detected, mostly before a commit is lost, but not with certainty: so `exclusion` is `process`,
and this store is used only if it is configured.
"""

import atexit
import contextlib
import json
import logging
import os
import re
import socket
import threading
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, ClassVar, Self
from weakref import WeakValueDictionary

from ...clock import Clock, SystemClock
from ...errors import StorageUnavailableError, UnsafeStoreError, WriteOutcomeUnknown
from ...settings.declarations import LOG_STORE, SECOND_DRIVER
from ..base import Exclusion
from ..common.conditional_put import settle
from ..common.retry_policy import DEFAULT_RETRIES, RetryPolicy
from ..common.spool import Content, joined
from ..common.uri import shown
from .conditional_put_store import S3LogStore
from .places import S3Location
from .requests import S3Requests
from .settings import PREFIXES, S3Settings

_WITHOUT_SPARK = SECOND_DRIVER.key.removeprefix("spark.")

LEASE_NAME = f".driver.{uuid.UUID(int=0)}.tmp"
"""The hidden object under `_delta_log` that names the driver."""
LEASE_SECONDS = 60.0
"""A lease older than this, by the service's clock, belongs to a driver that has ended or is idle."""
RENEW_SECONDS = 20.0

_LATE_SECONDS = 15 * 60.0
"""How long a request may be on its way, in seconds: the service rejects a request with an older signature."""
_COMMIT = re.compile(r"([0-9]{20})\.json").fullmatch
_KEPT = 1000

logger = logging.getLogger(__name__)


class _Lock:
    """A lock that supports weak references."""

    def __init__(self) -> None:
        self.lock = threading.Lock()


@dataclass
class _Log:
    """The state of this process for one log."""

    leases: dict[str, float] = field(default_factory=dict)
    """By endpoint: the time (monotonic) until which the lease needs no check."""
    own: set[int] = field(default_factory=set)
    """The newest versions that this process wrote."""


class Driver:
    """A process as a driver: its locks, its leases and the versions that it wrote.

    All stores in a process share one. A pickled store gets that of the process that loads it.
    """

    def __init__(self, clock: Clock | None = None) -> None:
        self.clock = clock or SystemClock()
        self.begin()

    def __reduce__(self) -> tuple[Any, ...]:
        return _of_this_process, ()

    def begin(self) -> None:
        """Start as a new driver, without anything of the former one; a forked child does this."""
        self.token = uuid.uuid4().hex
        self.guard = threading.Lock()
        # By bucket and key, without the endpoint: several endpoints may serve one object.
        self.locks: WeakValueDictionary[str, _Lock] = WeakValueDictionary()
        self.logs: dict[str, _Log] = {}
        self.late: dict[str, tuple[bytes, float]] = {}
        """By object: the digest of data sent without a certain answer, and until when it may still arrive."""
        self.leases: list[tuple[S3Requests, S3Location]] = []

    @contextlib.contextmanager
    def locked(self, place: S3Location) -> Iterator[None]:
        """The lock of the object."""
        with self.guard:
            lock = self.locks.setdefault(_name(place), _Lock())  # it exists as long as a thread holds it or waits
        with lock.lock:
            yield

    def note(self, log: _Log, version: int) -> None:
        """Record a version as this process's own, before it is sent."""
        with self.guard:
            log.own.add(version)
            if len(log.own) > _KEPT:
                log.own.remove(min(log.own))

    def end(self) -> None:
        """Remove the leases, so that the next driver needn't wait; each request is made only once."""
        for requests, lease in self.leases:
            with contextlib.suppress(Exception):
                body = requests.send("get_object", lease)["Body"]
                if json.loads(body.read()).get("driver") == self.token:
                    requests.send("delete_object", lease)


PROCESS_DRIVER = Driver()
"""The driver of all stores in this process that aren't created with another one."""
os.register_at_fork(after_in_child=PROCESS_DRIVER.begin)
atexit.register(PROCESS_DRIVER.end)


def _of_this_process() -> Driver:
    return PROCESS_DRIVER


class S3SingleDriverLogStore(S3LogStore):
    """Objects in a bucket of a service without conditional writes, for one driver (one process).

    A second driver is detected in two ways. The first is a lease, a hidden object under `_delta_log`: it is read and
    renewed with a commit if 20 s have passed since the last time, and is valid for 60 s. The second is a version
    in the log that this process didn't write, between versions that it wrote. The commit is then refused
    (UnsafeStoreError), or, with `spark.delta.logStore.s3SingleDriver.secondDriver=warn`, made with a warning.

    If two drivers commit the same version within the same fraction of a second, both may get a success.
    """

    exclusion: Exclusion = "process"
    configuration_prefixes: ClassVar[tuple[str, ...]] = (*PREFIXES, _WITHOUT_SPARK, SECOND_DRIVER.key)

    def __init__(
        self,
        settings: S3Settings | None = None,
        *,
        refuse: bool = True,
        retries: RetryPolicy = DEFAULT_RETRIES,
        driver: Driver = PROCESS_DRIVER,
    ) -> None:
        super().__init__(settings, retries=retries)
        self._refuse = refuse
        self._driver = driver

    @classmethod
    def configured(cls, scheme: str, conf: Mapping[str, str], storage_options: Mapping[str, Any]) -> Self:
        reaction = SECOND_DRIVER.parsed(conf.get(SECOND_DRIVER.key, conf.get(_WITHOUT_SPARK, SECOND_DRIVER.default)))
        return cls(S3Settings.of(scheme, conf, storage_options), refuse=reaction == "refuse")

    def _create(self, place: S3Location, content: Content) -> None:
        data = joined(content)
        match = _COMMIT(place.key[len(place.directory) :])
        version = int(match[1]) if match else None
        driver = self._driver
        with driver.guard:
            service = self._requests.endpoint(place.bucket)  # another one may have a bucket of the same name
            log = driver.logs.setdefault(f"{service}/{place.bucket}/{place.directory}", _Log())
        with driver.locked(place):
            self._check_absent(log, place, version)
            if version is not None and self._is_alone(log, place, version):
                self._check_absent(log, place, version)  # the check took some requests
            self._check_nothing_is_late(place, data)
            if version is not None:
                driver.note(log, version)
            try:
                settle(place.uri, lambda: self._requests.put_once(place, data), self._retries)
            except WriteOutcomeUnknown:
                now = driver.clock.monotonic()
                for name in [name for name, (_, until) in list(driver.late.items()) if until <= now]:
                    driver.late.pop(name, None)
                driver.late[_name(place)] = sha256(data).digest(), now + _LATE_SECONDS
                raise

    def _replace(self, place: S3Location, content: Content) -> None:
        with self._driver.locked(place):
            super()._replace(place, content)

    def _check_absent(self, log: _Log, place: S3Location, version: int | None) -> None:
        if not self._requests.exists(place):
            return
        self._driver.late.pop(_name(place), None)
        with self._driver.guard:
            foreign = version is not None and bool(log.own) and min(log.own) < version and version not in log.own
        if foreign:
            self._second_driver(
                place, f"the object exists, but this process, which wrote version {max(log.own)}, didn't write it"
            )
        raise FileExistsError(shown(place.uri))

    def _check_nothing_is_late(self, place: S3Location, data: bytes) -> None:
        """Refuse data other than that of an earlier request that may still arrive and would overwrite it."""
        name = _name(place)
        digest, until = self._driver.late.get(name, (b"", 0.0))
        seconds = until - self._driver.clock.monotonic()
        if seconds <= 0:
            self._driver.late.pop(name, None)
        elif digest != sha256(data).digest():
            raise StorageUnavailableError(
                f"writing {shown(place.uri)}: an earlier write of it by this process had no certain answer, and may "
                f"still arrive within {seconds:.0f} s; nothing was written, try again after that",
                path=shown(place.uri),
            )

    def _is_alone(self, log: _Log, place: S3Location, version: int) -> bool:
        """Check the previous version and the lease for a second driver; returns whether that took requests."""
        with self._driver.guard:
            before = max((own for own in log.own if own < version), default=None)
        requested = False
        if before is not None and before < version - 1:
            requested = True
            exists = self._requests.exists(place.beside(f"{version - 1:020}.json"))
            if exists and version - 1 not in log.own:  # a thread of this process may have written it meanwhile
                self._second_driver(
                    place, f"this process didn't write version {version - 1}, but it wrote version {before} before"
                )
        endpoint = self._requests.endpoint(place.bucket)
        if self._driver.clock.monotonic() >= log.leases.get(endpoint, float("-inf")):
            requested = True
            self._take_lease(place.beside(LEASE_NAME), place, first=endpoint not in log.leases)
            log.leases[endpoint] = self._driver.clock.monotonic() + RENEW_SECONDS
        return requested

    def _take_lease(self, lease: S3Location, place: S3Location, *, first: bool) -> None:
        holder, age = self._holder(lease)
        if holder is not None and holder.get("driver") != self._driver.token and age < LEASE_SECONDS:
            self._second_driver(
                place,
                f"the driver {_text(holder, 'host')} (process {_text(holder, 'process')}) committed to this log "
                f"{age:.0f} s ago; if it has ended, wait {LEASE_SECONDS - age:.0f} s",
            )
        claim = {"driver": self._driver.token, "host": socket.gethostname(), "process": os.getpid()}
        self._requests.put(lease, json.dumps(claim).encode())
        if first:
            winner, _ = self._holder(lease)
            if winner is not None and winner.get("driver") != self._driver.token:
                self._second_driver(place, f"the driver {_text(winner, 'host')} started at the same time")
            self._driver.leases.append((self._requests, lease))

    def _holder(self, lease: S3Location) -> tuple[dict[str, Any] | None, float]:
        """The content of the lease, and its age in seconds; None: there is none."""
        try:
            data, age = self._requests.get_with_age(lease)
            holder = json.loads(data)
        except FileNotFoundError:
            return None, 0.0
        except ValueError:
            return {}, age
        return holder if isinstance(holder, dict) else {}, age

    def _second_driver(self, place: S3Location, observation: str) -> None:
        message = (
            f"{shown(place.uri)}: another driver writes to this log: {observation}. S3SingleDriverLogStore is safe for "
            "one driver only: two would overwrite each other's commits. End one of them; or, if the service has "
            f"conditional writes, remove {LOG_STORE.prefix}<scheme>.impl (S3LogStore is the default); or set it to "
            "io.delta.storage.S3DynamoDBLogStore"
        )
        if self._refuse:
            raise UnsafeStoreError(f"{message}. Nothing was written", path=shown(place.uri))
        logger.warning("%s", message)


def _name(place: S3Location) -> str:
    return f"{place.bucket}/{place.key}"


def _text(holder: Mapping[str, Any], key: str) -> str:
    return str(holder.get(key, "of an unknown name"))[:100]
