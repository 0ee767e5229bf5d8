"""The errors that tablelog raises, grouped by what the caller has to do.

::

    TablelogError
    ├── another writer was faster: run the operation again on the new snapshot
    │   └── DeltaConcurrentModificationException
    │       ├── ConcurrentWriteException
    │       ├── MetadataChangedException
    │       ├── ProtocolChangedException
    │       ├── ConcurrentAppendException
    │       ├── ConcurrentDeleteReadException
    │       ├── ConcurrentDeleteDeleteException
    │       └── ConcurrentTransactionException
    ├── the outcome isn't known yet: call `DeltaLog.find_commit(token)` before anything else
    │   ├── WriteOutcomeUnknown            (one write of a store; the core resolves it)
    │   └── CommitStateUnknownError        (a whole commit; names table, version and token)
    │   (CommitInterrupted and CommandInterrupted, below, are KeyboardInterrupts and not part of the tree)
    ├── the table or the version doesn't exist
    │   ├── TableNotFoundError
    │   ├── TableAlreadyExistsError
    │   ├── VersionNotFoundError
    │   ├── TimestampOutOfRangeError
    │   └── ChangeDataMissingError         (a version recorded no changes)
    ├── the request is wrong: change it
    │   ├── InvalidArgumentError
    │   │   └── ArgumentTypeError
    │   ├── SchemaMismatchError
    │   ├── SchemaChangedError             (create the DataFrame again)
    │   ├── ChangeFeedSchemaError          (read the versions before and after the change separately)
    │   ├── ConstraintViolationError
    │   ├── AppendOnlyTableError
    │   └── FeatureInHistoryError          (wait until the old versions have expired)
    ├── the table needs a feature that this version of tablelog doesn't have
    │   └── UnsupportedFeatureError
    ├── the table needs something that this session doesn't allow: change the table, or the setting that is named
    │   └── UntrustedTableError
    ├── the configuration is wrong: change it
    │   ├── LogStoreConfigurationError
    │   ├── UnsupportedEnvironmentError
    │   └── UnsafeStoreError               (this store would lose commits)
    ├── the storage refuses or fails: correct the access, or wait; nothing was written
    │   └── StorageError
    │       ├── StorageAccessError         (credentials, permissions, a wrong clock)
    │       ├── StorageMissingError        (no such bucket, container or file system)
    │       └── StorageUnavailableError    (unreachable, overloaded, failing)
    ├── the table is damaged: restore what the message names
    │   ├── CorruptLogError
    │   │   ├── MissingCommitError         (a version is missing in the log)
    │   │   └── ChecksumMismatchError
    │   ├── MissingDataFileError
    │   └── UnreadableDataFileError
    └── the cluster lost rows of a command at each attempt: nothing was written; find out why executors are lost
        └── SourceRowsLostError

Each error has fields, so that a program needn't parse the message: `table`, `version` and `path` (see `TablelogError`),
and conflicts `winner`. A field that doesn't apply is None.

`condition` is the name of Delta's error condition where Delta has one (`error_conditions` lists them). Conflicts have
the names of the classes in `delta.exceptions`. The functions of `tablelog.spark` raise these errors as the classes of
`tablelog.spark.exceptions`, which are also PySpark errors.
No message or field contains a secret: paths are shown without user information, and options are never shown.
"""

from collections.abc import Mapping
from typing import Any, Self

from . import error_conditions


class TablelogError(Exception):
    """The base class of all errors.

    Args:
        condition: The error condition, where it is more exact than the one of the class.
        parameters: The message parameters of the condition, by the names that Delta gives them.
        table: The location of the table, without user information.
        version: The version that the error is about: the one that is missing, damaged, requested or read. Of a
            conflict: the version that the transaction read (-1: there was no table). Of a `CommitStateUnknownError`:
            the version that may have been committed.
        path: The file that the error is about, as the message names it: a file of the log by its name, a data file as
            the log or Spark names it, and a file that the storage refuses by its URI, without user information.
    """

    condition: str = "TABLELOG_ERROR"
    message_parameters: dict[str, str]
    table: str | None = None
    version: int | None = None
    path: str | None = None

    def __init__(
        self,
        *args: object,
        condition: str | None = None,
        parameters: Mapping[str, object] | None = None,
        table: str | None = None,
        version: int | None = None,
        path: str | None = None,
    ) -> None:
        super().__init__(*args)
        if condition is not None:
            self.condition = condition
        self.message_parameters = {name: str(value) for name, value in (parameters or {}).items()}
        self.with_context(table=table, version=version, path=path)

    def with_context(self, *, table: str | None = None, version: int | None = None, path: str | None = None) -> Self:
        """Set the fields that are None, and return the error; a field that has a value keeps it."""
        if self.table is None and table is not None:
            self.table = table
        if self.version is None and version is not None:
            self.version = version
        if self.path is None and path is not None:
            self.path = path
        return self

    @property
    def sql_state(self) -> str:
        """The SQLSTATE of the condition."""
        return error_conditions.of(self.condition).sql_state

    def getCondition(self) -> str:
        """The error condition, as `PySparkException.getCondition` returns it."""
        return self.condition

    def __reduce__(self) -> tuple[Any, ...]:
        return restored, (type(self), self.args, self.__dict__)


def restored(kind: type[TablelogError], args: tuple[object, ...], fields: Mapping[str, object]) -> TablelogError:
    """Create an error from its pickled parts: class, arguments and fields."""
    error = kind.__new__(kind)
    TablelogError.__init__(error, *args)
    error.__dict__.update(fields)
    return error


class DeltaConcurrentModificationException(TablelogError):
    """A concurrent commit invalidates what this transaction read or wrote; nothing was committed.

    Args:
        winner: The version of the commit that came first. If several did, the one that conflicts; for
            `ConcurrentWriteException`, the last one. None: it isn't known.
        condition: As of `TablelogError`.
        parameters: As of `TablelogError`.
        table: As of `TablelogError`.
        version: The version that the transaction read.
        path: As of `TablelogError`.
    """

    condition = "TABLELOG_CONCURRENT_MODIFICATION"
    winner: int | None = None

    def __init__(
        self,
        *args: object,
        winner: int | None = None,
        condition: str | None = None,
        parameters: Mapping[str, object] | None = None,
        table: str | None = None,
        version: int | None = None,
        path: str | None = None,
    ) -> None:
        super().__init__(*args, condition=condition, parameters=parameters, table=table, version=version, path=path)
        if winner is not None:
            self.winner = winner


class ConcurrentWriteException(DeltaConcurrentModificationException):
    """Other writers committed each time this transaction tried to, or since the data to write was read."""

    condition = "DELTA_CONCURRENT_WRITE"


class MetadataChangedException(DeltaConcurrentModificationException):
    """A concurrent transaction changed the table's metadata."""

    condition = "DELTA_METADATA_CHANGED"


class ProtocolChangedException(DeltaConcurrentModificationException):
    """A concurrent transaction changed the table's protocol."""

    condition = "DELTA_PROTOCOL_CHANGED"


class ConcurrentAppendException(DeltaConcurrentModificationException):
    """A concurrent transaction added files that this one would have read."""

    condition = "DELTA_CONCURRENT_APPEND"


class ConcurrentDeleteReadException(DeltaConcurrentModificationException):
    """A concurrent transaction removed files that this one read."""

    condition = "DELTA_CONCURRENT_DELETE_READ"


class ConcurrentDeleteDeleteException(DeltaConcurrentModificationException):
    """A concurrent transaction removed files that this one removes too."""

    condition = "DELTA_CONCURRENT_DELETE_DELETE"


class ConcurrentTransactionException(DeltaConcurrentModificationException):
    """A concurrent transaction advanced the same application's `txn`, or the same metadata domain."""

    condition = "DELTA_CONCURRENT_TRANSACTION"


class WriteOutcomeUnknown(TablelogError):
    """The store can't say whether its conditional write was applied (guarantee 4 of `LogStore`)."""

    condition = "TABLELOG_WRITE_OUTCOME_UNKNOWN"

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"it is unknown whether {path} was written: {reason}", path=path)
        self.reason = reason


class CommitStateUnknownError(TablelogError):
    """It is unknown whether the commit was made; `DeltaLog.find_commit(token)` finds out once the store answers again.

    If it finds the token, the commit is in the log. If it doesn't, this result is final only once the table has the
    version that the error names, or a later one: until then a delayed request may still arrive.
    """

    condition = "TABLELOG_COMMIT_STATE_UNKNOWN"

    def __init__(self, table: str, version: int, token: str, reason: str) -> None:
        super().__init__(
            f"it is unknown whether version {version} of {table} was committed by this writer: {reason}. "
            f"Don't repeat the operation before DeltaLog.for_path(...).find_commit({token!r}) shows that it wasn't "
            "committed.",
            table=table,
            version=version,
        )
        self.token = token
        self.reason = reason


class CommitInterrupted(KeyboardInterrupt):
    """Ctrl-C interrupted a commit after its first write; `committed` is the outcome.

    True: the version is in the log. False: it isn't, and never will be. None: it isn't known yet, as with
    `CommitStateUnknownError`. The class isn't an `Exception`, so it ends a program as an interrupt does. The data files
    of the commit may be deleted only where `committed` is False.
    """

    def __init__(self, table: str, version: int, token: str, committed: bool | None) -> None:
        outcomes = {
            True: f"version {version} of {table} was committed",
            False: f"nothing was committed to {table}",
            None: _unknown(table, version, token),
        }
        super().__init__(f"interrupted; {outcomes[committed]}")
        self.table = table
        self.version = version
        self.token = token
        self.committed = committed

    @property
    def versions(self) -> tuple[int, ...]:
        """The versions that are known to be committed."""
        return (self.version,) if self.committed else ()

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), (self.table, self.version, self.token, self.committed)


class CommandInterrupted(CommitInterrupted):
    """Ctrl-C interrupted a command, which may make several commits; `versions` are the commits made, which remain.

    `committed` is False if there are none: the command can be run again. True: `versions` are all commits, and the
    message has the operation of each. None: it isn't known yet whether `version` was committed too; find it by `token`,
    as with `CommitStateUnknownError`. `version` is -1 if nothing was written.
    """

    def __init__(
        self, operation: str, table: str, commits: tuple[tuple[int, str], ...], unknown: tuple[int, str] | None = None
    ) -> None:
        """`commits` has the version and the operation of each commit, `unknown` the version and the token of a commit
        whose outcome isn't known.
        """
        version, token = unknown or (commits[-1][0] if commits else -1, "")
        super().__init__(table, version, token, None if unknown else bool(commits))
        outcomes = [committed_text(table, commits)] if commits else []
        if unknown:
            outcomes.append(_unknown(table, *unknown))
        self.args = (
            f"{operation} on {table} was interrupted: its Spark jobs are cancelled, and "
            f"{'; '.join(outcomes) or 'nothing was committed'}.",
        )
        self.operation = operation
        self.commits = commits

    @property
    def versions(self) -> tuple[int, ...]:
        return tuple(version for version, _ in self.commits)

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        unknown = (self.version, self.token) if self.committed is None else None
        return type(self), (self.operation, self.table, self.commits, unknown)


def committed_text(table: str, commits: tuple[tuple[int, str], ...]) -> str:
    """The commits of a command, for a message: consecutive versions with the same operation are combined."""
    runs: list[tuple[int, int, str]] = []
    for version, operation in commits:
        if runs and runs[-1][1:] == (version - 1, operation):
            runs[-1] = runs[-1][0], version, operation
        else:
            runs.append((version, version, operation))
    if len(commits) == 1:
        return f"version {commits[0][0]} of {table} was committed ({commits[0][1]}) and remains"
    parts = [f"{f'{first} to {last}' if last > first else first} ({operation})" for first, last, operation in runs]
    return f"the versions {', '.join(parts)} of {table} were committed and remain"


def _unknown(table: str, version: int, token: str) -> str:
    return (
        f"it is unknown whether version {version} of {table} was committed: "
        f"call DeltaLog.for_path(...).find_commit({token!r}) to find out"
    )


class TableNotFoundError(TablelogError, FileNotFoundError):
    """There is no Delta table at the path."""

    condition = "DELTA_TABLE_NOT_FOUND"


class TableAlreadyExistsError(TablelogError, FileExistsError):
    """A table, or data, is at the path already."""

    condition = "DELTA_PATH_EXISTS"


class VersionNotFoundError(TablelogError):
    """The log doesn't have the version, or no longer; the message names the range that it has."""

    condition = "DELTA_VERSION_NOT_FOUND"


class TimestampOutOfRangeError(TablelogError):
    """The timestamp is before the first or after the last version; the message names the range."""

    condition = "DELTA_TIMESTAMP_INVALID"


class ChangeDataMissingError(TablelogError):
    """A version in the range of a change data feed has no change data; the message names the version."""

    condition = "DELTA_MISSING_CHANGE_DATA"


class InvalidArgumentError(TablelogError, ValueError):
    """An option, predicate, path or argument that isn't valid."""

    condition = "DELTA_ILLEGAL_OPTION"


class ArgumentTypeError(InvalidArgumentError, TypeError):
    """An argument has the wrong type; a ValueError and a TypeError, because delta.tables raises either."""


class SchemaMismatchError(TablelogError, ValueError):
    """The data's columns or types don't fit the table's schema."""

    condition = "DELTA_METADATA_MISMATCH"


class SchemaChangedError(TablelogError):
    """The table's schema changed, so its rows no longer fit the schema of a DataFrame; create the DataFrame again."""

    condition = "DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS"


class ChangeFeedSchemaError(TablelogError, ValueError):
    """The schema changed within the range of a change data feed, so one schema can't read the whole range."""

    condition = "DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE"


class ConstraintViolationError(TablelogError, ValueError):
    """A row violates NOT NULL, an invariant or a constraint of the table; nothing was written."""

    condition = "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"


class AppendOnlyTableError(TablelogError):
    """`delta.appendOnly` forbids changing or removing data."""

    condition = "DELTA_CANNOT_MODIFY_APPEND_ONLY"


class FeatureInHistoryError(TablelogError):
    """Versions in the log still need the feature to drop; drop it again when they have expired."""

    condition = "DELTA_FEATURE_DROP_WAIT_FOR_RETENTION_PERIOD"


class UnsupportedFeatureError(TablelogError):
    """The table needs protocol features that this version of tablelog doesn't have; `features` names them."""

    condition = "DELTA_OPERATION_NOT_ALLOWED"

    def __init__(
        self,
        message: str,
        features: tuple[str, ...] = (),
        *,
        condition: str | None = None,
        parameters: Mapping[str, object] | None = None,
        table: str | None = None,
        version: int | None = None,
    ) -> None:
        super().__init__(message, condition=condition, parameters=parameters, table=table, version=version)
        self.features = features


class UntrustedTableError(TablelogError):
    """The table's log refers to foreign code, or to files outside the table, that the session doesn't allow."""

    condition = "TABLELOG_UNTRUSTED_TABLE"


class LogStoreConfigurationError(TablelogError, ValueError):
    """The configuration names no store, or a store that can't be used."""

    condition = "DELTA_INVALID_LOGSTORE_CONF"


class UnsupportedEnvironmentError(TablelogError):
    """This file system, Spark version or session can't do the operation safely; the message names one that can."""

    condition = "TABLELOG_UNSUPPORTED_ENVIRONMENT"


class UnsafeStoreError(TablelogError):
    """The store doesn't prevent two writers from overwriting each other here; the message says what to do."""

    condition = "TABLELOG_UNSAFE_STORE"


class StorageError(TablelogError, OSError):
    """The storage refused or failed a request; a conditional write was certainly not applied."""

    condition = "TABLELOG_STORAGE_ERROR"


class StorageAccessError(StorageError):
    """Credentials are missing, wrong or expired, a permission is missing, or this machine's clock is wrong."""

    condition = "TABLELOG_STORAGE_ACCESS"


class StorageMissingError(StorageError):
    """The bucket, container or file system doesn't exist."""

    condition = "TABLELOG_STORAGE_MISSING"


class StorageUnavailableError(StorageError):
    """The storage is unreachable, overloaded or failing, also after retries; try the request again later."""

    condition = "TABLELOG_STORAGE_UNAVAILABLE"


class CorruptLogError(TablelogError):
    """The log contains something that no correct writer writes."""

    condition = "DELTA_STATE_RECOVER_ERROR"


class MissingCommitError(CorruptLogError):
    """The versions in the log are not contiguous; the message names the missing version."""

    condition = "DELTA_VERSIONS_NOT_CONTIGUOUS"


class ChecksumMismatchError(CorruptLogError):
    """The version checksum (`.crc`) doesn't match the replayed state; the message says where."""

    condition = "DELTA_TXN_LOG_FAILED_INTEGRITY"


class MissingDataFileError(TablelogError):
    """A data file that the log refers to doesn't exist; the message names table, version and file."""

    condition = "FAILED_READ_FILE.FILE_NOT_EXIST"


class UnreadableDataFileError(TablelogError):
    """A data file isn't Parquet, is damaged, or has other types than its table; the message names all three."""

    condition = "FAILED_READ_FILE"


class SourceRowsLostError(TablelogError):
    """Executors lost stored source rows of a MERGE at each of its attempts; nothing was committed."""

    condition = "DELTA_MERGE_MATERIALIZE_SOURCE_FAILED_REPEATEDLY"
