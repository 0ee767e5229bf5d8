"""No secret shows: in no repr, text, error with its causes, or log record of a store, its settings or its files."""

import logging
import traceback
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from tablelog.core import DeltaLog
from tablelog.errors import TablelogError
from tablelog.logstore.data_files import DataFiles, file_system
from tablelog.logstore.registry import store_for

SECRET = "s3cr3tW0rd"
_USER = f"user:{SECRET}@"
PATHS = [
    f"hdfs://{_USER}127.0.0.1:1/t",
    f"hdfs://{SECRET}@127.0.0.1:1/t",
    f"hdfs://{_USER}127.0.0.1:port/t",
    f"viewfs://{_USER}cluster/t",
    *(f"{scheme}://{_USER}bucket/t" for scheme in ("s3", "s3a", "s3n", "gs", "gcs", "az")),
    f"abfss://container:{SECRET}@account.dfs.core.windows.net/t",
    f"abfss://{_USER}account.dfs.core.windows.net/t",
    f"abfss://c@account.dfs.core.windows.net/t?sv=1&sig={SECRET}",
    f"s3://bucket/t?X-Amz-Signature={SECRET}",
    f"wasbs://{_USER}account.blob.core.windows.net/t",
    f"https://{_USER}host/t",
    f"http://{_USER}[::1/t",
    f"ftp://{_USER}host/t",
    f"file://{_USER}host/t",
]
S3, AZURE, GS, HDFS = (
    "s3a://bucket/t",
    "abfss://c@account.dfs.core.windows.net/t",
    "gs://bucket/t",
    "hdfs://127.0.0.1:1/t",
)
ENDPOINT = f"http://{_USER}127.0.0.1:1"
_KEYS: list[tuple[str, Mapping[str, str]]] = [
    (S3, {"fs.s3a.endpoint": ENDPOINT}),
    (S3, {"fs.s3a.endpoint": f"{_USER}127.0.0.1:1"}),
    (S3, {"fs.s3a.endpoint": f"http://{_USER}[::1"}),
    (S3, {"fs.s3a.access.key": SECRET, "fs.s3a.secret.key": SECRET, "fs.s3a.session.token": SECRET}),
    (S3, {"fs.s3a.proxy.host": "127.0.0.1", "fs.s3a.proxy.username": SECRET, "fs.s3a.proxy.password": SECRET}),
    (S3, {"fs.s3a.encryption.algorithm": "SSE-C", "fs.s3a.encryption.key": SECRET}),
    (AZURE, {"fs.azure.account.key.account.dfs.core.windows.net": SECRET}),
    (AZURE, {"fs.azure.sas.fixed.token.account.dfs.core.windows.net": f"sig={SECRET}"}),
    (AZURE, {"fs.azure.abfs.endpoint": f"{SECRET}@127.0.0.1:1"}),
    (GS, {"fs.gs.storage.root.url": ENDPOINT}),
    (GS, {"fs.gs.auth.service.account.private.key": SECRET}),
    (HDFS, {"fs.defaultFS": f"hdfs://{_USER}127.0.0.1:1"}),
    ("hdfs:///t", {"fs.defaultFS": f"hdfs://{_USER}127.0.0.1:1"}),
]
_OPTIONS: list[tuple[str, Mapping[str, Any]]] = [
    (S3, {"endpoint_url": ENDPOINT}),
    (S3, {"key": SECRET, "secret": SECRET, "token": SECRET}),
    (S3, {"client_kwargs": {"endpoint_url": ENDPOINT}}),
    (S3, {"key": SECRET, "secret": SECRET, "endpoint_url": "http://127.0.0.1:1"}),
    (AZURE, {"connection_string": f"AccountName=a;AccountKey={SECRET};BlobEndpoint={ENDPOINT}/a"}),
    (AZURE, {"account_host": f"{_USER}host"}),
    (AZURE, {"account_key": SECRET}),
    (AZURE, {"sas_token": f"sig={SECRET}"}),
    (AZURE, {"credential": SECRET}),
    (GS, {"endpoint_url": ENDPOINT}),
    (GS, {"token": {"private_key": SECRET, "client_email": "a@b", "token_uri": ENDPOINT}}),
]
CASES = [
    *((path, {}, {}) for path in PATHS),
    *((path, conf, {}) for path, conf in _KEYS),
    *((path, {f"spark.hadoop.{key}": value for key, value in conf.items()}, {}) for path, conf in _KEYS),
    *((path, {}, options) for path, options in _OPTIONS),
]


def _shown(make: Callable[[], Any]) -> tuple[Any, str]:
    """What is made, and all that shows of it, or of the error that it ends with."""
    try:
        made = make()
    except (TablelogError, ImportError) as error:
        chain = "".join(traceback.format_exception(error))
        return None, "\n".join(
            [repr(error), str(error), *(line for line in chain.splitlines() if 'File "' not in line)]
        )
    access = getattr(made, "access", None)
    return made, f"{made!r} {made} {vars(made) if hasattr(made, '__dict__') and access is None else ''}"


@pytest.mark.parametrize(("path", "conf", "options"), CASES)
def test_nothing_shows_a_secret(
    path: str, conf: Mapping[str, str], options: Mapping[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "tablelog")
    log, text = _shown(lambda: DeltaLog.for_path(path, conf=conf, storage_options=options))
    texts = [text if log is None else f"{log!r} {log.table} {log.log_path}"]
    for make in (
        lambda: store_for(path, conf=conf, storage_options=options),
        lambda: file_system(path, conf, options),
        lambda: DataFiles.of(path, conf, options),
    ):
        made, text = _shown(make)
        texts.append(text if made is None else f"{made!r} {made}")
    if log is not None and "127.0.0.1:1" in str([path, conf, options]) and "hdfs" not in path:
        texts.append(_shown(log.exists)[1])
    texts += [record.getMessage() + str(record.exc_info) for record in caplog.records]
    for text in texts:
        assert SECRET not in text
