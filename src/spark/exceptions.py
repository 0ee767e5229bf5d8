"""The errors of `tablelog.spark`: each is an error of `tablelog.errors` and one of PySpark's.

They have the names of `tablelog.errors`; the conflict errors have those of `delta.exceptions`. An error also has the
class of `pyspark.errors` that Delta raises with the same condition (`tablelog.error_conditions`), so that
`except AnalysisException` catches the same errors as with Delta. `as_spark` converts errors of the core.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

import pyspark.errors
from pyspark.errors import PySparkException, QueryContext

from .. import error_conditions, errors
from ..engine.storage import access_errors
from ..errors import CommandInterrupted, CommitInterrupted


class TablelogError(errors.TablelogError, PySparkException):
    """The base class of all errors of tablelog."""

    query_context: tuple[QueryContext, ...] = ()

    def getErrorClass(self) -> str:
        """The error condition: the older name of `getCondition`."""
        return self.condition

    def getMessageParameters(self) -> dict[str, str]:
        """The message parameters, by the names in Delta's message for the condition."""
        return self.message_parameters

    def getSqlState(self) -> str:
        """The SQLSTATE of the condition."""
        return self.sql_state

    def getMessage(self) -> str:
        """The condition and the message."""
        return f"[{self.condition}] {Exception.__str__(self)}"

    def getQueryContext(self) -> list[QueryContext]:
        """The part of a statement that the error is about; empty where the message describes the location."""
        return list(self.query_context)

    def getBreakingChangeInfo(self) -> None:
        """Always None: no error describes a breaking change."""

    def __str__(self) -> str:
        return self.getMessage()

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (_core_class(type(self)), self.args, self.__dict__)


class DeltaConcurrentModificationException(errors.DeltaConcurrentModificationException, TablelogError):
    """A concurrent commit invalidates what this transaction read or wrote; nothing was committed."""


class ConcurrentWriteException(errors.ConcurrentWriteException, DeltaConcurrentModificationException):
    """Other writers committed each time this transaction tried to, or since the data to write was read."""


class MetadataChangedException(errors.MetadataChangedException, DeltaConcurrentModificationException):
    """A concurrent transaction changed the table's metadata."""


class ProtocolChangedException(errors.ProtocolChangedException, DeltaConcurrentModificationException):
    """A concurrent transaction changed the table's protocol."""


class ConcurrentAppendException(errors.ConcurrentAppendException, DeltaConcurrentModificationException):
    """A concurrent transaction added files that this one would have read."""


class ConcurrentDeleteReadException(errors.ConcurrentDeleteReadException, DeltaConcurrentModificationException):
    """A concurrent transaction removed files that this one read."""


class ConcurrentDeleteDeleteException(errors.ConcurrentDeleteDeleteException, DeltaConcurrentModificationException):
    """A concurrent transaction removed files that this one removes too."""


class ConcurrentTransactionException(errors.ConcurrentTransactionException, DeltaConcurrentModificationException):
    """A concurrent transaction advanced the same application's `txn`, or the same metadata domain."""


class WriteOutcomeUnknown(errors.WriteOutcomeUnknown, TablelogError):
    """The store can't say whether its conditional write was applied (guarantee 4 of `LogStore`)."""


class CommitStateUnknownError(errors.CommitStateUnknownError, TablelogError):
    """The commit may or may not have been made; `DeltaLog.find_commit(token)` says when the store answers again."""


class TableNotFoundError(errors.TableNotFoundError, TablelogError):
    """There is no Delta table at the path."""


class TableAlreadyExistsError(errors.TableAlreadyExistsError, TablelogError):
    """A table, or data, is at the path already."""


class VersionNotFoundError(errors.VersionNotFoundError, TablelogError):
    """The log doesn't have the version, or no longer; the message names the range that it has."""


class TimestampOutOfRangeError(errors.TimestampOutOfRangeError, TablelogError):
    """The timestamp is before the first or after the last version; the message names the range."""


class ChangeDataMissingError(errors.ChangeDataMissingError, TablelogError):
    """A version in the range of a change data feed has no change data; the message names the version."""


class InvalidArgumentError(errors.InvalidArgumentError, TablelogError):
    """An option, predicate, path or argument that isn't valid."""


class ArgumentTypeError(errors.ArgumentTypeError, InvalidArgumentError):
    """An argument has the wrong type; a ValueError and a TypeError, because delta.tables raises either."""


class SchemaMismatchError(errors.SchemaMismatchError, TablelogError):
    """The data's columns or types don't fit the table's schema."""


class SchemaChangedError(errors.SchemaChangedError, TablelogError):
    """The table's schema changed, so its rows no longer fit the schema of a DataFrame; create the DataFrame again."""


class ChangeFeedSchemaError(errors.ChangeFeedSchemaError, TablelogError):
    """The schema changed within the range of a change data feed, so one schema can't read the whole range."""


class ConstraintViolationError(errors.ConstraintViolationError, TablelogError):
    """A row violates NOT NULL, an invariant or a constraint of the table; nothing was written."""


class AppendOnlyTableError(errors.AppendOnlyTableError, TablelogError):
    """`delta.appendOnly` forbids changing or removing data."""


class FeatureInHistoryError(errors.FeatureInHistoryError, TablelogError):
    """Versions in the log still need the feature to drop; drop it again when they have expired."""


class UnsupportedFeatureError(errors.UnsupportedFeatureError, TablelogError):
    """The table needs protocol features that this version of tablelog doesn't have; `features` names them."""


class UntrustedTableError(errors.UntrustedTableError, TablelogError):
    """The table's log refers to foreign code, or to files outside the table, that the session doesn't allow."""


class LogStoreConfigurationError(errors.LogStoreConfigurationError, TablelogError):
    """The configuration names no store, or a store that can't be used."""


class UnsupportedEnvironmentError(errors.UnsupportedEnvironmentError, TablelogError):
    """This file system, Spark version or session can't do the operation safely; the message names one that can."""


class UnsafeStoreError(errors.UnsafeStoreError, TablelogError):
    """The store doesn't prevent two writers from overwriting each other here; the message says what to do."""


class StorageError(errors.StorageError, TablelogError):
    """The storage refused or failed a request; a conditional write was certainly not applied."""


class StorageAccessError(errors.StorageAccessError, StorageError):
    """Credentials are missing, wrong or expired, a permission is missing, or this machine's clock is wrong."""


class StorageMissingError(errors.StorageMissingError, StorageError):
    """The bucket, container or file system doesn't exist."""


class StorageUnavailableError(errors.StorageUnavailableError, StorageError):
    """The storage is unreachable, overloaded or failing, also after retries; try the request again later."""


class CorruptLogError(errors.CorruptLogError, TablelogError):
    """The log contains something that no correct writer writes."""


class MissingCommitError(errors.MissingCommitError, CorruptLogError):
    """The versions in the log are not contiguous; the message names the missing version."""


class ChecksumMismatchError(errors.ChecksumMismatchError, CorruptLogError):
    """The version checksum (`.crc`) doesn't match the replayed state; the message says where."""


class MissingDataFileError(errors.MissingDataFileError, TablelogError):
    """A data file that the log refers to doesn't exist; the message names table, version and file."""


class UnreadableDataFileError(errors.UnreadableDataFileError, TablelogError):
    """A data file isn't Parquet, is damaged, or has other types than its table; the message names all three."""


class SourceRowsLostError(errors.SourceRowsLostError, TablelogError):
    """Executors lost stored source rows of a MERGE at each of its attempts; nothing was committed."""


_TWINS: dict[type[errors.TablelogError], type[TablelogError]] = {
    value.__bases__[0]: value
    for value in list(globals().values())
    if isinstance(value, type) and issubclass(value, TablelogError)
}


def as_spark(error: BaseException) -> BaseException:
    """Convert an error of the core in place to the class of this module; other errors are unchanged."""
    if isinstance(error, errors.TablelogError) and not isinstance(error, TablelogError):
        if isinstance(error, errors.StorageAccessError):
            error.args = (access_errors.of_user(Exception.__str__(error)),)
        raised = getattr(pyspark.errors, error_conditions.of(error.condition).raises)
        error.__class__ = _class(type(error), raised)  # type: ignore[arg-type]  # mypy: class isn't hashable
    return error


@cache
def _class(core: type[errors.TablelogError], raised: type[PySparkException]) -> type[TablelogError]:
    """A class derived from an error class of the core and from one of PySpark."""
    twin = next(_TWINS[base] for base in core.__mro__ if base in _TWINS)
    bases: tuple[type, ...] = (twin, raised) if twin.__bases__[0] is core else (core, twin, raised)
    if issubclass(twin, raised):
        bases = bases[:-1]
    error_class = type(core.__name__, bases, {"__module__": __name__, "__doc__": core.__doc__})
    assert issubclass(error_class, TablelogError)
    return error_class


def _core_class(kind: type) -> type[errors.TablelogError]:
    """The core's error class for an error class of this module."""
    return next(
        base for base in kind.__mro__ if issubclass(base, errors.TablelogError) and not issubclass(base, TablelogError)
    )


def _restored(
    core: type[errors.TablelogError], args: tuple[object, ...], fields: Mapping[str, object]
) -> BaseException:
    return as_spark(errors.restored(core, args, fields))


__all__ = [
    "AppendOnlyTableError",
    "ArgumentTypeError",
    "ChangeDataMissingError",
    "ChangeFeedSchemaError",
    "ChecksumMismatchError",
    "CommandInterrupted",
    "CommitInterrupted",
    "CommitStateUnknownError",
    "ConcurrentAppendException",
    "ConcurrentDeleteDeleteException",
    "ConcurrentDeleteReadException",
    "ConcurrentTransactionException",
    "ConcurrentWriteException",
    "ConstraintViolationError",
    "CorruptLogError",
    "DeltaConcurrentModificationException",
    "FeatureInHistoryError",
    "InvalidArgumentError",
    "LogStoreConfigurationError",
    "MetadataChangedException",
    "MissingCommitError",
    "MissingDataFileError",
    "ProtocolChangedException",
    "SchemaChangedError",
    "SchemaMismatchError",
    "SourceRowsLostError",
    "StorageAccessError",
    "StorageError",
    "StorageMissingError",
    "StorageUnavailableError",
    "TableAlreadyExistsError",
    "TableNotFoundError",
    "TablelogError",
    "TimestampOutOfRangeError",
    "UnreadableDataFileError",
    "UnsafeStoreError",
    "UnsupportedEnvironmentError",
    "UnsupportedFeatureError",
    "UntrustedTableError",
    "VersionNotFoundError",
    "WriteOutcomeUnknown",
]
