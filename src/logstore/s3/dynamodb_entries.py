"""The items of Delta's S3DynamoDBLogStore in DynamoDB: which writer won each file, and where the data is."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple, Self, TypeVar

from ...clock import Clock, SystemClock
from ...errors import CorruptLogError, LogStoreConfigurationError, StorageUnavailableError
from ...settings import declarations
from ...settings.spark_own import HADOOP
from ..common.conditional_put import Answer, Verdict, persist
from ..common.http_clients import Clients, cause_of
from ..common.retry_policy import DEFAULT_RETRIES, RetryPolicy
from ..common.uri import shown
from .replies import answer_of, error_of, is_transport, reply_of
from .settings import EXPIRED, S3Settings, sdk

_Result = TypeVar("_Result")

_NAME = "io.delta.storage.S3DynamoDBLogStore."
PREFIXES = (f"spark.{_NAME}", _NAME, f"{HADOOP.prefix}spark.{_NAME}", f"{HADOOP.prefix}{_NAME}")
"""The prefixes of the keys, as in Delta."""
_KEYS = frozenset(setting.key.removeprefix(PREFIXES[0]) for setting in declarations.DYNAMODB)
_REJECTED = frozenset(
    {
        *("ProvisionedThroughputExceededException", "ThrottlingException", "RequestLimitExceeded"),
        *("TransactionConflictException", "ReplicatedWriteConflictException"),
    }
)
_EXPIRED = EXPIRED | {"UnrecognizedClientException"}
_CREATE_SECONDS = 60.0
_ATTRIBUTES = ("tablePath", "fileName", "tempPath", "complete")
_TEMPORARY = ".tmp/"
"""The directory of temporary files, relative to that of the file."""


class DynamoDBEntry(NamedTuple):
    """One item. `temp_path` is relative to the directory of the file."""

    table_path: str
    file_name: str
    temp_path: str
    complete: bool = False


@dataclass(frozen=True)
class EntrySettings:
    """The settings of the DynamoDB table."""

    table: str = declarations.DYNAMODB_TABLE.default
    region: str = declarations.DYNAMODB_REGION.default
    ttl_seconds: int = declarations.DYNAMODB_TTL.default
    read_units: int = declarations.DYNAMODB_READ_UNITS.default
    write_units: int = declarations.DYNAMODB_WRITE_UNITS.default
    access: S3Settings = field(default_factory=S3Settings)
    """The credentials: the same as for S3, unless `credentials.provider` is set."""

    @classmethod
    def of(cls, conf: Mapping[str, str], s3: S3Settings) -> Self:
        """Read the settings with Delta's keys. Raises LogStoreConfigurationError."""
        values: dict[str, str] = {}
        for key in conf:
            prefix = next((prefix for prefix in PREFIXES if key.startswith(prefix)), None)
            if prefix is None:
                continue
            name, value = key[len(prefix) :], str(conf[key]).strip()
            if name not in _KEYS:
                raise LogStoreConfigurationError(f"{key} isn't supported; supported are {', '.join(sorted(_KEYS))}")
            if values.setdefault(name, value) != value:
                raise LogStoreConfigurationError(f"{key} is set twice with different values, with and without a prefix")
        dynamodb = {PREFIXES[0] + name: value for name, value in values.items()}
        provider = declarations.DYNAMODB_PROVIDER.of(dynamodb)
        if provider:
            s3 = replace(s3, hadoop={**s3.hadoop, "aws.credentials.provider": provider})
            s3.access("")
        return cls(
            table=declarations.DYNAMODB_TABLE.of(dynamodb) or cls.table,
            region=declarations.DYNAMODB_REGION.of(dynamodb) or cls.region,
            ttl_seconds=declarations.DYNAMODB_TTL.of(dynamodb),
            read_units=declarations.DYNAMODB_READ_UNITS.of(dynamodb),
            write_units=declarations.DYNAMODB_WRITE_UNITS.of(dynamodb),
            access=s3,
        )


def verdict_of(status: int, code: str) -> Verdict:
    """The verdict for DynamoDB's reply to a conditional write."""
    if code == "ConditionalCheckFailedException":
        return Verdict.EXISTS
    if code in _REJECTED:
        return Verdict.NOT_APPLIED
    return Verdict.AMBIGUOUS if status >= 500 else Verdict.FAILED


class Entries:
    """The DynamoDB table. Threads may share it; a copy in another process creates its own connections."""

    def __init__(
        self, settings: EntrySettings, clock: Clock | None = None, *, retries: RetryPolicy = DEFAULT_RETRIES
    ) -> None:
        self._settings = settings
        self._clock = clock or SystemClock()
        self._retries = retries
        self._clients: Clients[str, Any] = Clients(partial(_new_client, settings.access))

    def get(self, table_path: str, file_name: str) -> DynamoDBEntry | None:
        """The item of one file."""
        key = _key(table_path, file_name)
        item = self._read(
            table_path,
            lambda client: client.get_item(TableName=self._settings.table, Key=key, ConsistentRead=True).get("Item"),
        )
        return _entry(item, table_path) if item else None

    def newest(self, table_path: str) -> DynamoDBEntry | None:
        """The item of the last file, in byte order, with a name that starts with a digit."""
        items = self._read(
            table_path,
            lambda client: client.query(
                TableName=self._settings.table,
                KeyConditionExpression="tablePath = :table AND fileName < :end",
                ExpressionAttributeValues={":table": {"S": table_path}, ":end": {"S": ":"}},
                ConsistentRead=True,
                ScanIndexForward=False,
                Limit=1,
            )["Items"],
        )
        return _entry(items[0], table_path) if items else None

    def put_new(self, entry: DynamoDBEntry, path: str) -> Answer:
        """Send the item once, on condition that there is none; creates the table if it doesn't exist."""
        item = {
            **_key(entry.table_path, entry.file_name),
            "tempPath": {"S": entry.temp_path},
            "complete": {"S": "false"},
        }
        request = {
            "TableName": self._settings.table,
            "Item": item,
            "ConditionExpression": "attribute_not_exists(fileName)",
        }
        try:
            try:
                self._send(lambda client: client.put_item(**request))
            except Exception as error:
                if not _no_table(error):
                    raise
                self._create_table(path)
                self._send(lambda client: client.put_item(**request))
        except Exception as error:
            return _answer(error, path)
        return Answer(Verdict.APPLIED)

    def complete(self, entry: DynamoDBEntry) -> None:
        """Mark the item complete and set its expiry; does nothing if it was removed, or is another writer's."""
        expires = self._clock.now_ms() // 1000 + self._settings.ttl_seconds
        self._change(
            entry,
            lambda client: client.update_item(
                TableName=self._settings.table,
                Key=_key(entry.table_path, entry.file_name),
                UpdateExpression="SET complete = :true, expireTime = :expires",
                ConditionExpression="tempPath = :temp",
                ExpressionAttributeValues={
                    ":true": {"S": "true"},
                    ":expires": {"N": str(expires)},
                    ":temp": {"S": entry.temp_path},
                },
            ),
        )

    def remove(self, table_path: str, file_name: str) -> DynamoDBEntry | None:
        """Remove the item of a file and return it."""
        item = self._read(
            table_path,
            lambda client: client.delete_item(
                TableName=self._settings.table, Key=_key(table_path, file_name), ReturnValues="ALL_OLD"
            ).get("Attributes"),
        )
        return _entry(item, table_path) if item else None

    def _change(self, entry: DynamoDBEntry, request: Callable[[Any], Any]) -> None:
        try:
            persist(lambda: self._send(request), _passing, _busy, self._retries)
        except Exception as error:
            reply = reply_of(error)
            if reply is None or verdict_of(*reply) is not Verdict.EXISTS:
                raise error_of(error, "completing", entry.table_path, "DynamoDB") from cause_of(error)

    def _read(self, table_path: str, request: Callable[[Any], _Result]) -> _Result | None:
        try:
            return persist(lambda: self._send(request), _passing, _busy, self._retries)
        except Exception as error:
            if _no_table(error):
                return None
            raise error_of(error, "reading the commits of", table_path, "DynamoDB") from cause_of(error)

    def _create_table(self, path: str) -> None:
        table = self._settings.table
        description = {
            "TableName": table,
            "AttributeDefinitions": [
                {"AttributeName": name, "AttributeType": "S"} for name in ("tablePath", "fileName")
            ],
            "KeySchema": [
                {"AttributeName": "tablePath", "KeyType": "HASH"},
                {"AttributeName": "fileName", "KeyType": "RANGE"},
            ],
            "ProvisionedThroughput": {
                "ReadCapacityUnits": self._settings.read_units,
                "WriteCapacityUnits": self._settings.write_units,
            },
        }
        try:
            self._send(lambda client: client.create_table(**description))
        except Exception as error:
            reply = reply_of(error)
            if reply is None or reply[1] != "ResourceInUseException":  # another writer creates it
                raise
        until = self._clock.monotonic() + _CREATE_SECONDS
        while not self._is_active(table):
            if self._clock.monotonic() > until:
                raise StorageUnavailableError(
                    f"writing {shown(path)}: DynamoDB didn't create the table {table} within {_CREATE_SECONDS:.0f} s; "
                    "nothing was written, try again later",
                    path=shown(path),
                )
            self._clock.sleep(0.5)

    def _is_active(self, table: str) -> bool:
        try:
            described = self._send(lambda client: client.describe_table(TableName=table))
        except Exception as error:
            if _no_table(error):  # this request may reach a server that doesn't know the new table yet
                return False
            raise
        return bool(described["Table"]["TableStatus"] == "ACTIVE")

    def _send(self, request: Callable[[Any], _Result]) -> _Result:
        return self._clients.with_renewal(self._settings.region, request, self._rejects_credentials)

    def _rejects_credentials(self, error: Exception) -> bool:
        reply = reply_of(error)
        missing = isinstance(error, sdk().exceptions.NoCredentialsError)
        return (missing or (reply is not None and reply[1] in _EXPIRED)) and self._settings.access.access("").renews


def _new_client(settings: S3Settings, region: str) -> Any:
    return settings.access("").client("dynamodb", region=region)


def _key(table_path: str, file_name: str) -> dict[str, Any]:
    return {"tablePath": {"S": table_path}, "fileName": {"S": file_name}}


def _entry(item: Mapping[str, Any], table_path: str) -> DynamoDBEntry:
    """The item as an entry. Raises CorruptLogError.

    A temporary file is removed after the commit, so a path of one that isn't in its directory is refused.
    """
    texts = [value.get("S") if isinstance(value := item.get(name), dict) else None for name in _ATTRIBUTES]
    table, name, temporary, complete = (text if isinstance(text, str) else "" for text in texts)
    complete = complete.lower()
    is_plain = name and "/" not in name and temporary.startswith(_TEMPORARY) and (name + temporary).isprintable()
    if table != table_path or not is_plain or complete not in {"true", "false"}:
        raise CorruptLogError(
            f"{shown(table_path)}: the item of the file {name!r} in DynamoDB is damaged (tempPath {temporary!r}, "
            f"complete {complete!r}). Correct it; if the file is in the log, the item can be removed"
        )
    return DynamoDBEntry(table, name, temporary, complete == "true")


def _no_table(error: Exception) -> bool:
    reply = reply_of(error)
    return reply is not None and reply[1] == "ResourceNotFoundException"


def _passing(error: Exception) -> bool:
    reply = reply_of(error)
    if reply is None:
        return is_transport(error)
    return verdict_of(*reply) in {Verdict.AMBIGUOUS, Verdict.NOT_APPLIED}


def _busy(error: Exception) -> bool:
    reply = reply_of(error)
    return reply is not None and verdict_of(*reply) is Verdict.NOT_APPLIED


def _answer(error: Exception, path: str) -> Answer:
    reply = reply_of(error)
    return answer_of(error, path, verdict=verdict_of(*reply) if reply else None, service="DynamoDB")
