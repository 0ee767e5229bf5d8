"""What the processes of the tests on S3 do; each has a store of its own."""

import contextlib
import os
from collections.abc import Mapping
from typing import Any

SCHEMA = '{"type":"struct","fields":[{"name":"v","type":"long","nullable":true,"metadata":{}}]}'


def create(table: str, conf: Mapping[str, str]) -> None:
    """Version 0."""
    from tablelog.core.deltalog import DeltaLog
    from tablelog.core.protocol.actions import Metadata, Protocol
    from tablelog.core.txn.operation import Operation

    transaction = DeltaLog.for_path(table, conf=conf).transaction()
    transaction.set_protocol(Protocol(1, 2))
    transaction.set_metadata(Metadata(id="a", schema_string=SCHEMA))
    transaction.commit([], Operation("CREATE TABLE"))


def append(
    table: str, conf: Mapping[str, str], number: int, commits: int, barrier: Any = None
) -> list[tuple[str, int]]:
    """Append files, one commit each: (file, version) of each."""
    from tablelog.core.deltalog import DeltaLog
    from tablelog.core.protocol.actions import AddFile
    from tablelog.core.txn.operation import Operation

    log = DeltaLog.for_path(table, conf=conf)
    if barrier is not None:
        barrier.wait(60)
    made = []
    for serial in range(commits):
        path = f"f-{number}-{serial}"
        committed = log.transaction().commit([AddFile(path, {}, 1, 1, True)], Operation("WRITE"))
        made.append((path, committed.version))
    return made


def run(results: Any, environment: Mapping[str, str], *arguments: Any) -> None:
    """`append` in a process: its result or the name and text of its error go to `results`."""
    os.environ.update(environment)
    try:
        results.put(append(*arguments))
    except Exception as error:
        results.put((type(error).__name__, str(error)))


def die_after_deciding(environment: Mapping[str, str], conf: Mapping[str, str], path: str) -> None:
    """End this process between DynamoDB's decision and the copy."""
    os.environ.update(environment)
    from tablelog.logstore.s3.dynamodb_store import S3DynamoDBLogStore

    store = S3DynamoDBLogStore.configured("s3a", conf, {})
    store._put_in_place = lambda *_: os._exit(9)  # type: ignore[method-assign]
    with contextlib.suppress(Exception):
        store.write(path, b"decided")
