"""Stores that use the create functions of client libraries. Some of these functions silently replace files."""

import functools
import http.client
import logging
import secrets
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial
from importlib import import_module
from typing import Any

from tablelog.logstore import FileStatus, LocalLogStore, LogStore
from tablelog.logstore.base import Exclusion
from tablelog.logstore.common import object_uri
from tablelog.logstore.common.uri import local_path

from ..model import Target
from .mutant import Mutant, in_files, needs
from .object_store import ObjectStore


class FsspecStore(LogStore):
    """A store on an fsspec file system, which creates files as fsspec's interface documents it.

    `file_system` creates the file system. An overwrite uses `pipe_file` without a mode.
    """

    exclusion: Exclusion = "global"
    partial_writes_visible = False
    atomic_overwrite = True

    def __init__(self, file_system: Callable[[], Any]) -> None:
        self.files = file_system()

    def read(self, path: str) -> bytes:
        return bytes(self.files.cat_file(self.place(path)))

    def write(self, path: str, data: bytes, *, overwrite: bool = False) -> None:
        place = self.place(path)
        self.files.makedirs(place.rpartition("/")[0], exist_ok=True)
        if overwrite:
            self.files.pipe_file(place, data)
        else:
            self.create(place, data)

    def create(self, place: str, data: bytes) -> None:
        """Write exclusively, as the interface documents it."""
        self.files.pipe_file(place, data, mode="create")

    def list_from(self, path: str) -> Iterator[FileStatus]:
        scheme, authority, key = object_uri.split(path)
        directory, _, start = self.place(path).rpartition("/")
        statuses = []
        for entry in self.files.ls(directory, detail=True, refresh=True):
            name = entry["name"].rpartition("/")[2]
            if entry["type"] == "file" and name >= start:
                when = entry.get("LastModified") or entry.get("created") or datetime.now()
                uri = object_uri.join(scheme, authority, object_uri.parent(key) + name)
                statuses.append(FileStatus(uri, entry["size"], int(when.timestamp() * 1000)))
        return iter(sorted(statuses, key=lambda status: status.path.encode()))

    def delete(self, path: str) -> None:
        if self.files.exists(self.place(path)):
            self.files.rm_file(self.place(path))

    def resolve(self, path: str) -> str:
        return object_uri.resolve(path)

    def place(self, path: str) -> str:
        """The path in the file system: `authority/key`."""
        _, authority, key = object_uri.split(path)
        return f"{authority}/{key}"


class FsspecLocalCreate(LocalLogStore):
    """`pipe_file(mode="create")` of fsspec's LocalFileSystem, which checks for the file and then opens it."""

    def write(self, path: str, data: bytes, *, overwrite: bool = False) -> None:
        files = import_module("fsspec").filesystem("file", auto_mkdir=True)
        files.pipe_file(local_path(path), data, mode="overwrite" if overwrite else "create")


class ExclusiveOpen(FsspecStore):
    """`open("xb")` of s3fs, which creates an empty file without the condition."""

    def create(self, place: str, data: bytes) -> None:
        with self.files.open(place, "xb") as file:
            file.write(data)


class _Signing(ObjectStore):
    """Sends the parts of a signature that moto checks."""

    def ask(
        self,
        method: str,
        path: str,
        query: dict[str, str] | None = None,
        data: bytes | None = None,
        headers: dict[str, str] | None = None,
    ) -> tuple[int, bytes]:
        return super().ask(method, path, query, data, {**(headers or {}), "Authorization": _SIGNATURE})


_BUSY = "tablelog-busy-"
_SIGNATURE = "AWS4-HMAC-SHA256 Credential=test/20250101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0"


def _fsspec_memory() -> Any:
    return import_module("fsspec").filesystem("memory")


def _obstore_memory() -> Any:
    return import_module("obstore.fsspec").FsspecStore("memory")


def _s3fs(endpoint: str) -> Any:
    credentials = {"key": "test", "secret": "test"}
    return import_module("s3fs").S3FileSystem(**credentials, endpoint_url=endpoint, use_listings_cache=False)


@functools.cache
def _moto() -> str:
    """The endpoint of a moto server, which runs in this process until it ends."""
    backend = import_module("moto.s3.models").S3Backend
    put_object = backend.put_object

    def put_object_on_a_busy_machine(self: Any, bucket_name: str, *arguments: Any, **named: Any) -> Any:
        if bucket_name.startswith(_BUSY):
            time.sleep(0.002)  # between moto's check and its write
        return put_object(self, bucket_name, *arguments, **named)

    backend.put_object = put_object_on_a_busy_machine
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = import_module("moto.server").ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    return f"http://{host}:{port}"


def _bucket_of_moto() -> tuple[str, str]:
    """Create a bucket; returns (endpoint, root)."""
    endpoint, bucket = _moto(), f"{_BUSY}{secrets.token_hex(6)}"
    connection = http.client.HTTPConnection(endpoint.removeprefix("http://"), timeout=10)
    connection.request("PUT", f"/{bucket}")
    connection.getresponse().read()
    connection.close()
    return endpoint, f"s3://{bucket}/table"


def _shared(make: Callable[[], LogStore], root: str) -> Target:
    only = make()
    return Target(lambda: only, root, "")


def _on_moto(make: Callable[[str], LogStore]) -> Target:
    endpoint, root = _bucket_of_moto()
    return Target(partial(make, endpoint), root, "")


MUTANTS: tuple[Mutant, ...] = (
    in_files(FsspecLocalCreate, "one_winner_in_every_interleaving", "one_winner_when_all_stand_before_the_act"),
    Mutant(
        "FsspecMemoryCreate",
        'pipe_file(mode="create") of fsspec\'s MemoryFileSystem, which checks for the file and then writes it',
        ("one_winner_in_every_interleaving",),
        lambda _: _shared(partial(FsspecStore, _fsspec_memory), f"memory://{secrets.token_hex(6)}/table"),
        needs("fsspec"),
    ),
    Mutant(
        "ObstoreFsspecCreate",
        'pipe_file(mode="create") of obstore.fsspec, which ignores the mode',
        ("second_writer_loses",),
        lambda _: _shared(partial(FsspecStore, _obstore_memory), f"memory://{secrets.token_hex(6)}/table"),
        needs("obstore"),
    ),
    Mutant(
        "S3fsExclusiveOpen",
        (ExclusiveOpen.__doc__ or "").partition("\n")[0],
        ("second_writer_loses",),
        lambda _: _on_moto(lambda endpoint: ExclusiveOpen(partial(_s3fs, endpoint))),
        needs("s3fs", "moto", "flask"),
    ),
    Mutant(
        "Moto",
        "moto's S3, which checks for the object and then writes it, on a busy machine",
        ("one_winner_among_threads",),
        lambda _: _on_moto(_Signing),
        needs("moto", "flask"),
    ),
)
