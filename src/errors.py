"""Every error that tablelog raises on purpose, grouped by what the caller does next.

::

    TablelogError
    ├── the operation lost a race: run it again on the new snapshot
    │   └── DeltaConcurrentModificationException
    │       ├── ConcurrentWriteException
    │       ├── MetadataChangedException
    │       ├── ProtocolChangedException
    │       ├── ConcurrentAppendException
    │       ├── ConcurrentDeleteReadException
    │       ├── ConcurrentDeleteDeleteException
    │       └── ConcurrentTransactionException
    ├── nobody knows yet: ask `DeltaLog.find_commit(token)` before anything else
    │   ├── WriteOutcomeUnknown            (one write of a store; the core resolves it)
    │   └── CommitStateUnknownError        (a whole commit; names table, version and token)
    │   (CommitInterrupted and CommandInterrupted, below, are KeyboardInterrupts and stand outside of the tree)
    ├── the table or the version isn't there
    │   ├── TableNotFoundError
    │   ├── TableAlreadyExistsError
    │   ├── VersionNotFoundError
    │   ├── TimestampOutOfRangeError
    │   └── ChangeDataMissingError         (a version recorded no changes)
    ├── the request is wrong: change it
    │   ├── InvalidArgumentError
    │   │   └── ArgumentTypeError
    │   ├── SchemaMismatchError
    │   ├── SchemaChangedError             (make the DataFrame anew)
    │   ├── ChangeFeedSchemaError          (read the versions before and after the change on their own)
    │   ├── ConstraintViolationError
    │   ├── AppendOnlyTableError
    │   └── FeatureInHistoryError          (wait until the versions before have expired)
    ├── the table needs what this version of tablelog doesn't have
    │   └── UnsupportedFeatureError
    ├── the table asks for what this session doesn't trust it with: change the table, or the setting that is named
    │   └── UntrustedTableError
    ├── the configuration is wrong: change it
    │   ├── LogStoreConfigurationError
    │   ├── UnsupportedEnvironmentError
    │   └── UnsafeStoreError               (this store would lose commits)
    ├── the storage doesn't serve: mend the access, or wait; nothing was written
    │   └── StorageError
    │       ├── StorageAccessError         (credentials, permissions, a clock that is off)
    │       ├── StorageMissingError        (no such bucket, container or file system)
    │       └── StorageUnavailableError    (out of reach, overloaded, failing)
    └── the table is damaged: restore what the message names
        ├── CorruptLogError
        │   ├── MissingCommitError         (a hole in the log)
        │   └── ChecksumMismatchError
        ├── MissingDataFileError
        └── UnreadableDataFileError

`condition` is the name of Delta's error condition where Delta has one (`error_conditions` lists them). Conflicts bear
the names of `delta.exceptions`. What a user calls through `tablelog.spark` raises these errors as the classes of
`tablelog.spark.exceptions`, which are PySpark's errors too.
No message holds a secret: paths are shown without user information and options never.
"""

from collections.abc import Mapping
from typing import Any

from . import error_conditions


class TablelogError(Exception):
    """The root of the tree.

    Args:
        condition: The name of the condition, where it is more exact than the one of the class.
        parameters: What differs from case to case, by the names that the condition's message in Delta gives it.
    """

    condition: str = "TABLELOG_ERROR"
    message_parameters: dict[str, str]

    def __init__(
        self, *args: object, condition: str | None = None, parameters: Mapping[str, object] | None = None
    ) -> None:
        super().__init__(*args)
        if condition is not None:
            self.condition = condition
        self.message_parameters = {name: str(value) for name, value in (parameters or {}).items()}

    @property
    def sql_state(self) -> str:
        """The SQLSTATE of the condition."""
        return error_conditions.of(self.condition).sql_state

    def getCondition(self) -> str:
        """The error condition, as `PySparkException.getCondition` gives it."""
        return self.condition

    def __reduce__(self) -> tuple[Any, ...]:
        return restored, (type(self), self.args, self.__dict__)


def restored(kind: type[TablelogError], args: tuple[object, ...], fields: Mapping[str, object]) -> TablelogError:
    """An error as it was pickled: of a class, with its arguments and fields."""
    error = kind.__new__(kind)
    TablelogError.__init__(error, *args)
    error.__dict__.update(fields)
    return error


class DeltaConcurrentModificationException(TablelogError):
    """A concurrent commit invalidates what this transaction read or wrote; nothing was committed."""

    condition = "TABLELOG_CONCURRENT_MODIFICATION"


class ConcurrentWriteException(DeltaConcurrentModificationException):
    """A concurrent transaction wrote data since this one read the table."""

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
        super().__init__(f"it is unknown whether {path} was written: {reason}")
        self.path = path
        self.reason = reason


class CommitStateUnknownError(TablelogError):
    """The commit may or may not have been made; `DeltaLog.find_commit(token)` says when the store answers again.

    That it finds the token is final. That it finds none is final once the table has the version that the error names,
    or a later one: until then a request that was delayed may still arrive.
    """

    condition = "TABLELOG_COMMIT_STATE_UNKNOWN"

    def __init__(self, table: str, version: int, token: str, reason: str) -> None:
        super().__init__(
            f"it is unknown whether version {version} of {table} was committed by this writer: {reason}. "
            f"Don't repeat the operation blindly: DeltaLog.for_path(...).find_commit({token!r}) tells what became "
            "of it."
        )
        self.table = table
        self.version = version
        self.token = token
        self.reason = reason


class CommitInterrupted(KeyboardInterrupt):
    """Ctrl-C reached a commit after its first write; `committed` says what became of it.

    True: the version is in the log. False: it isn't, and never will be. None: nobody knows yet, as with
    `CommitStateUnknownError`. It is no `Exception`, so that it ends a program as an interrupt does. Only where
    `committed` is False may the data files of the commit be removed.
    """

    def __init__(self, table: str, version: int, token: str, committed: bool | None) -> None:
        said = {
            True: f"version {version} of {table} was committed",
            False: f"nothing was committed to {table}",
            None: _unknown(table, version, token),
        }
        super().__init__(f"interrupted; {said[committed]}")
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
    """Ctrl-C reached a command, which may take several commits; `versions` are those that it has made, and they stay.

    `committed` is False where there are none: the command can be run again. True: `versions` are all, and the message
    has the operation of each. None: it is not known yet whether `version` was committed too; `token` finds it, as with
    `CommitStateUnknownError`. `version` is -1 where nothing was written.
    """

    def __init__(
        self, operation: str, table: str, commits: tuple[tuple[int, str], ...], unknown: tuple[int, str] | None = None
    ) -> None:
        """`commits` are the version and the operation of each commit, `unknown` the version and the token of another
        one.
        """
        version, token = unknown or (commits[-1][0] if commits else -1, "")
        super().__init__(table, version, token, None if unknown else bool(commits))
        said = [committed_text(table, commits)] if commits else []
        if unknown:
            said.append(_unknown(table, *unknown))
        self.args = (
            f"{operation} on {table} was interrupted: its Spark jobs are cancelled, and "
            f"{'; '.join(said) or 'nothing was committed'}.",
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
    """What a command has committed, for a message: versions in a row of one operation are put together."""
    runs: list[tuple[int, int, str]] = []
    for version, operation in commits:
        if runs and runs[-1][1:] == (version - 1, operation):
            runs[-1] = runs[-1][0], version, operation
        else:
            runs.append((version, version, operation))
    if len(commits) == 1:
        return f"version {commits[0][0]} of {table} was committed ({commits[0][1]}) and stays"
    parts = [f"{f'{first} to {last}' if last > first else first} ({operation})" for first, last, operation in runs]
    return f"the versions {', '.join(parts)} of {table} were committed and stay"


def _unknown(table: str, version: int, token: str) -> str:
    return (
        f"it is unknown whether version {version} of {table} was committed: "
        f"DeltaLog.for_path(...).find_commit({token!r}) tells"
    )


class TableNotFoundError(TablelogError, FileNotFoundError):
    """There is no Delta table at the path."""

    condition = "DELTA_TABLE_NOT_FOUND"


class TableAlreadyExistsError(TablelogError, FileExistsError):
    """A table, or data, is at the path already."""

    condition = "DELTA_PATH_EXISTS"


class VersionNotFoundError(TablelogError):
    """The version is not, or no longer, in the log; the message names the range that is."""

    condition = "DELTA_VERSION_NOT_FOUND"


class TimestampOutOfRangeError(TablelogError):
    """The timestamp lies before the first or after the last version; the message names the range."""

    condition = "DELTA_TIMESTAMP_INVALID"


class ChangeDataMissingError(TablelogError):
    """A version in the range of a change data feed didn't record its changes; the message names it."""

    condition = "DELTA_MISSING_CHANGE_DATA"


class InvalidArgumentError(TablelogError, ValueError):
    """An option, predicate, path or argument that can't be honoured as it was given."""

    condition = "DELTA_ILLEGAL_OPTION"


class ArgumentTypeError(InvalidArgumentError, TypeError):
    """An argument of another type than the method takes; a ValueError and a TypeError, as delta.tables has either."""


class SchemaMismatchError(TablelogError, ValueError):
    """The data's columns or types don't fit the table's schema."""

    condition = "DELTA_METADATA_MISMATCH"


class SchemaChangedError(TablelogError):
    """The table's schema changed under a DataFrame in a way that its rows can't be read by; make the frame anew."""

    condition = "DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS"


class ChangeFeedSchemaError(TablelogError, ValueError):
    """The schema changed within the range of a change data feed, so that no one schema reads all of it."""

    condition = "DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE"


class ConstraintViolationError(TablelogError, ValueError):
    """A row breaks NOT NULL, an invariant or a constraint of the table; nothing was written."""

    condition = "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"


class AppendOnlyTableError(TablelogError):
    """`delta.appendOnly` forbids to change or remove data."""

    condition = "DELTA_CANNOT_MODIFY_APPEND_ONLY"


class FeatureInHistoryError(TablelogError):
    """Versions that the log still holds need the feature that is to be dropped; run it again once they have expired."""

    condition = "DELTA_FEATURE_DROP_WAIT_FOR_RETENTION_PERIOD"


class UnsupportedFeatureError(TablelogError):
    """The table needs protocol features that this version of tablelog doesn't have, named in `features`."""

    condition = "DELTA_OPERATION_NOT_ALLOWED"

    def __init__(
        self,
        message: str,
        features: tuple[str, ...] = (),
        *,
        condition: str | None = None,
        parameters: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(message, condition=condition, parameters=parameters)
        self.features = features


class UntrustedTableError(TablelogError):
    """The table's log asks for other code to be run, or for files outside of the table; the message names which."""

    condition = "TABLELOG_UNTRUSTED_TABLE"


class LogStoreConfigurationError(TablelogError, ValueError):
    """The configuration names no store, or one that can't serve."""

    condition = "DELTA_INVALID_LOGSTORE_CONF"


class UnsupportedEnvironmentError(TablelogError):
    """This file system, Spark or session can't do safely what was asked; the message says what would."""

    condition = "TABLELOG_UNSUPPORTED_ENVIRONMENT"


class UnsafeStoreError(TablelogError):
    """The store doesn't keep two writers apart, here and now; nothing was written, and the message says what to do."""

    condition = "TABLELOG_UNSAFE_STORE"


class StorageError(TablelogError, OSError):
    """The storage refused or failed a request; a conditional write that it was surely did not happen."""

    condition = "TABLELOG_STORAGE_ERROR"


class StorageAccessError(StorageError):
    """Credentials are missing, wrong or expired, a permission is missing, or this machine's clock is off."""

    condition = "TABLELOG_STORAGE_ACCESS"


class StorageMissingError(StorageError):
    """There is no such bucket, container or file system."""

    condition = "TABLELOG_STORAGE_MISSING"


class StorageUnavailableError(StorageError):
    """The storage is out of reach, overloaded or failing, and stayed so; the request can be made again later."""

    condition = "TABLELOG_STORAGE_UNAVAILABLE"


class CorruptLogError(TablelogError):
    """The log holds something that no correct writer leaves."""

    condition = "DELTA_STATE_RECOVER_ERROR"


class MissingCommitError(CorruptLogError):
    """The versions in the log are not contiguous; the message names the hole."""

    condition = "DELTA_VERSIONS_NOT_CONTIGUOUS"


class ChecksumMismatchError(CorruptLogError):
    """The version checksum (`.crc`) disagrees with the replayed state; the message says where."""

    condition = "DELTA_TXN_LOG_FAILED_INTEGRITY"


class MissingDataFileError(TablelogError):
    """A data file that the log lists is gone from storage; the message names table, version and file."""

    condition = "FAILED_READ_FILE.FILE_NOT_EXIST"


class UnreadableDataFileError(TablelogError):
    """A data file is no Parquet file, damaged, or of other types than its table; the message names all three."""

    condition = "FAILED_READ_FILE"
