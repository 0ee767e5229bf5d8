"""Each server starts, decides a race of conditional writes as its documentation promises, and leaves nothing behind."""

import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from pkgutil import resolve_name
from threading import Barrier, local
from typing import Any

import pytest

from tablelog.errors import UnsafeStoreError
from tablelog.logstore import new_store_for

from . import HDFS, SERVERS, Azurite, CannotInstallError, Ceph, Dynalite, FakeGCS, MinIO, Moto, S3rver, Server, install
from .s3 import S3Server

_WRITERS, _KEYS = 16, 10


def winners(attempt: Callable[[str, int], bool]) -> list[int]:
    """How many of the writers `attempt(key, writer)` says have won, for each key; they set out at the same moment."""
    barrier = Barrier(_WRITERS)

    def write(key: str, writer: int) -> bool:
        barrier.wait()
        return attempt(key, writer)

    with ThreadPoolExecutor(_WRITERS) as pool:
        return [
            sum(pool.map(write, [f"race/{number}"] * _WRITERS, range(_WRITERS)))  # one key after the other
            for number in range(_KEYS)
        ]


ONE_EACH = [1] * _KEYS


def _put_to_s3(server: S3Server) -> Callable[[str, int], bool]:
    from botocore.exceptions import ClientError

    client = server.client()

    def put(key: str, writer: int) -> bool:
        try:
            client.put_object(Bucket=server.bucket, Key=key, Body=b"%d" % writer, IfNoneMatch="*")
        except ClientError as error:
            if error.response["ResponseMetadata"]["HTTPStatusCode"] == 412:
                return False
            raise
        return True

    return put


def test_minio_lets_one_writer_win(minio: MinIO) -> None:
    assert winners(_put_to_s3(minio)) == ONE_EACH


def test_ceph_lets_one_writer_win(ceph: Ceph) -> None:
    assert winners(_put_to_s3(ceph)) == ONE_EACH


@pytest.mark.parametrize("name", ["versitygw", "seaweedfs", "gofakes3"])
def test_another_server_for_s3_lets_one_writer_win(name: str, request: pytest.FixtureRequest) -> None:
    assert winners(_put_to_s3(request.getfixturevalue(name))) == ONE_EACH


def test_s3rver_ignores_the_condition_and_is_refused(s3rver: S3rver) -> None:
    put = _put_to_s3(s3rver)
    assert [put("key", writer) for writer in range(3)] == [True, True, True]
    url = s3rver.url()
    with pytest.raises(UnsafeStoreError, match="If-None-Match"):
        new_store_for(url, conf=s3rver.conf).write(f"{url}/_delta_log/{0:020}.json", b"x")


def test_ceph_ignores_the_condition_of_a_multi_part_upload(ceph: Ceph) -> None:
    client, where = ceph.client(), {"Bucket": ceph.bucket, "Key": "parts"}
    client.put_object(**where, Body=b"first")
    upload = {**where, "UploadId": client.create_multipart_upload(**where)["UploadId"]}
    part = client.upload_part(**upload, PartNumber=1, Body=b"second")
    parts = {"Parts": [{"ETag": part["ETag"], "PartNumber": 1}]}
    client.complete_multipart_upload(**upload, MultipartUpload=parts, IfNoneMatch="*")
    assert client.get_object(**where)["Body"].read() == b"second"  # what a suite must find out


def test_moto_knows_the_condition(moto_server: Moto) -> None:
    put = _put_to_s3(moto_server)  # in a race it lets two win now and then
    assert [put("key", writer) for writer in range(3)] == [True, False, False]


def test_azurite_lets_one_writer_win(azurite: Azurite) -> None:
    from azure.core.exceptions import ResourceExistsError

    def upload(key: str, writer: int) -> bool:
        try:
            container.upload_blob(key, b"%d" % writer, overwrite=False)
        except ResourceExistsError:
            return False
        return True

    with azurite.client() as container:
        assert winners(upload) == ONE_EACH


def test_fake_gcs_server_lets_one_writer_win(gcs_server: FakeGCS) -> None:
    from google.api_core.exceptions import PreconditionFailed
    from google.auth.credentials import AnonymousCredentials
    from google.cloud.storage import Client

    mine = local()  # the client's connections aren't safe in threads

    def upload(key: str, writer: int) -> bool:
        if not hasattr(mine, "bucket"):
            client = Client("tablelog", AnonymousCredentials(), client_options={"api_endpoint": gcs_server.endpoint})
            mine.bucket = client.bucket("tablelog")
        try:
            mine.bucket.blob(key).upload_from_string(b"%d" % writer, if_generation_match=0, retry=None)
        except PreconditionFailed:
            return False
        return True

    assert winners(upload) == ONE_EACH


def test_hdfs_lets_one_rename_win(hdfs: HDFS) -> None:
    from hdfs_native import Client

    client = Client(hdfs.endpoint)
    client.mkdirs("/race", create_parent=True)

    def rename(key: str, writer: int) -> bool:
        hidden = f"/{key}.{writer}"
        with client.create(hidden) as file:
            file.write(b"%d" % writer)
        try:
            client.rename(hidden, f"/{key}", overwrite=False)
        except FileExistsError:
            return False
        return True

    assert winners(rename) == ONE_EACH


def test_dynalite_lets_one_writer_win(dynalite: Dynalite) -> None:
    client = dynalite.client()
    client.create_table(
        TableName="race",
        AttributeDefinitions=[{"AttributeName": "key", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "key", "KeyType": "HASH"}],
        ProvisionedThroughput={"ReadCapacityUnits": 5, "WriteCapacityUnits": 5},
    )
    client.get_waiter("table_exists").wait(TableName="race", WaiterConfig={"Delay": 1, "MaxAttempts": 10})

    def put(key: str, writer: int) -> bool:
        item: dict[str, Any] = {"key": {"S": key}, "writer": {"N": str(writer)}}
        try:
            client.put_item(TableName="race", Item=item, ConditionExpression="attribute_not_exists(writer)")
        except client.exceptions.ConditionalCheckFailedException:
            return False
        return True

    assert winners(put) == ONE_EACH


@contextmanager
def _own(kind: type[Server]) -> Iterator[Any]:
    """A server for one test alone, which may kill it."""
    if not kind.is_here():
        pytest.skip(f"{kind.name}: `python -m servers install {kind.name}` installs it")
    try:
        server = kind.start()
    except CannotInstallError as error:
        if install.all_required() and not kind.optional:
            raise
        pytest.skip(f"{kind.name}: {error}")
    try:
        yield server
    finally:
        if Path(server.home).exists():
            server.stop()


def _group_of(server: Server) -> int:
    return int((Path(server.home) / "pid").read_text())


def _is_gone(group: int) -> bool:
    """Whether no process of the group is left, within a deadline."""
    deadline = time.monotonic() + 10
    while any(_living(group)):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def _living(group: int) -> Iterator[int]:
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, its_group = stat.read_text().rpartition(")")[2].split()[:3]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(its_group) == group and state != "Z":
            yield int(stat.parent.name)


@pytest.mark.parametrize("kind", SERVERS.values(), ids=SERVERS)
def test_stop_leaves_no_process_and_no_file(kind: type[Server]) -> None:
    with _own(kind) as server:
        group = _group_of(server)
        assert list(_living(group))
        server.stop()
    assert _is_gone(group)
    assert not Path(server.home).exists()


def test_a_killed_minio_has_its_data_when_it_is_restarted() -> None:
    with _own(MinIO) as server:
        server.client().put_object(Bucket=server.bucket, Key="kept", Body=b"bytes")
        server.kill()
        with pytest.raises(ConnectionRefusedError):
            _connect(server)
        server.restart()
        assert server.client().get_object(Bucket=server.bucket, Key="kept")["Body"].read() == b"bytes"


def test_a_server_without_files_refuses_to_be_restarted() -> None:
    with _own(FakeGCS) as server:
        server.kill()
        with pytest.raises(TypeError, match="loses its data"):
            server.restart()


def _connect(server: Server) -> None:
    import socket

    socket.create_connection(("127.0.0.1", server.port), timeout=5).close()


def _in_another_process(program: str, *arguments: str, **environment: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=Path(__file__).parents[1],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
        timeout=60,
    ).stdout


def test_another_process_kills_it_by_its_pickle() -> None:
    with _own(FakeGCS) as server:
        _in_another_process("import pickle, sys; pickle.loads(bytes.fromhex(sys.argv[1])).kill()", _pickled(server))
        with pytest.raises(ConnectionRefusedError):
            _connect(server)


def _pickled(server: Server) -> str:
    copy = pickle.dumps(server)
    assert pickle.loads(copy) == server
    return copy.hex()


def test_another_process_finds_it_in_its_environment() -> None:
    with _own(FakeGCS) as server:
        program = "from servers import FakeGCS, MinIO; print(FakeGCS.of_environment().endpoint, MinIO.of_environment())"
        assert _in_another_process(program, **server.published()).split() == [server.endpoint, "None"]


def test_it_ends_with_the_process_that_started_it() -> None:
    with _own(FakeGCS):  # it can be installed here
        program = "import os; from servers import FakeGCS; server = FakeGCS.start(); print(server.home, flush=True); "
        home = Path(_in_another_process(program + f"os.kill(os.getpid(), {int(signal.SIGKILL)})").strip())
    assert _is_gone(int((home / "pid").read_text()))
    for file in home.glob("*"):
        file.rmdir() if file.is_dir() else file.unlink()
    home.rmdir()


def test_the_log_stays_when_it_is_asked_for() -> None:
    with _own(FakeGCS) as server:
        server.stop(keep_log=True)
        assert server.log.exists()
        assert not server.data.exists()


@pytest.mark.parametrize(
    ("name", "implementation"),
    [
        ("minio", "s3fs.S3FileSystem"),
        ("moto_server", "s3fs.S3FileSystem"),
        ("azurite", "adlfs.AzureBlobFileSystem"),
        ("gcs_server", "gcsfs.core.GCSFileSystem"),  # the other one asks for the bucket's type by gRPC, for minutes
        ("hdfs", "hdfs_native.fsspec.HdfsFileSystem"),
    ],
)
def test_fsspec_reaches_it_with_its_options(name: str, implementation: str, request: pytest.FixtureRequest) -> None:
    server, kind = request.getfixturevalue(name), resolve_name(implementation)
    root = server.url("with space")
    files, path = kind(**kind._get_kwargs_from_urls(root), **server.storage_options), kind._strip_protocol(root)
    files.pipe_file(f"{path}/file", b"bytes")
    assert files.cat_file(f"{path}/file") == b"bytes"
    assert [found["size"] for found in files.ls(path, detail=True)] == [5]
