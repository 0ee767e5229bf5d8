"""The errors of `tablelog.spark`: each is an error of `tablelog.errors` and one of PySpark's.

They have the names of `tablelog.errors`; the conflict errors have those of `delta.exceptions`. An error also has the
class of `pyspark.errors` that Delta raises with the same condition (`tablelog.error_conditions`), so that
`except AnalysisException` catches the same errors as with Delta. `as_spark` converts errors of the core.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

import pyspark.errors
from pyspark.errors import PySparkException

from .. import error_conditions, errors
from ..errors import CommandInterrupted, CommitInterrupted


class TablelogError(errors.TablelogError, PySparkException):
    """The base class of all errors of tablelog."""

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

    def getQueryContext(self) -> list[Any]:
        """Always empty: the message describes the location."""
        return []

    def getBreakingChangeInfo(self) -> None:
        """Always None: no error describes a breaking change."""

    def __str__(self) -> str:
        return self.getMessage()

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (_core_class(type(self)), self.args, self.__dict__)


class DeltaConcurrentModificationException(errors.DeltaConcurrentModificationException, TablelogError):
    """A concurrent commit invalidates what this transaction read or wrote; nothing was committed."""


class ConcurrentWriteException(errors.ConcurrentWriteException, DeltaConcurrentModificationException):
    """A concurrent transaction wrote data since this one read the table."""


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
    """The version is not, or no longer, in the log; the message names the range that is."""


class TimestampOutOfRangeError(errors.TimestampOutOfRangeError, TablelogError):
    """The timestamp lies before the first or after the last version; the message names the range."""


class ChangeDataMissingError(errors.ChangeDataMissingError, TablelogError):
    """A version in the range of a change data feed didn't record its changes; the message names it."""


class InvalidArgumentError(errors.InvalidArgumentError, TablelogError):
    """An option, predicate, path or argument that can't be honoured as it was given."""


class ArgumentTypeError(errors.ArgumentTypeError, InvalidArgumentError):
    """An argument of another type than the method takes; a ValueError and a TypeError, as delta.tables has either."""


class SchemaMismatchError(errors.SchemaMismatchError, TablelogError):
    """The data's columns or types don't fit the table's schema."""


class SchemaChangedError(errors.SchemaChangedError, TablelogError):
    """The table's schema changed under a DataFrame in a way that its rows can't be read by; make the frame anew."""


class ChangeFeedSchemaError(errors.ChangeFeedSchemaError, TablelogError):
    """The schema changed within the range of a change data feed, so that no one schema reads all of it."""


class ConstraintViolationError(errors.ConstraintViolationError, TablelogError):
    """A row breaks NOT NULL, an invariant or a constraint of the table; nothing was written."""


class AppendOnlyTableError(errors.AppendOnlyTableError, TablelogError):
    """`delta.appendOnly` forbids to change or remove data."""


class FeatureInHistoryError(errors.FeatureInHistoryError, TablelogError):
    """Versions that the log still holds need the feature that is to be dropped; run it again once they have expired."""


class UnsupportedFeatureError(errors.UnsupportedFeatureError, TablelogError):
    """The table needs protocol features that this version of tablelog doesn't have, named in `features`."""


class UntrustedTableError(errors.UntrustedTableError, TablelogError):
    """The table's log asks for other code to be run, or for files outside of the table; the message names which."""


class LogStoreConfigurationError(errors.LogStoreConfigurationError, TablelogError):
    """The configuration names no store, or one that can't serve."""


class UnsupportedEnvironmentError(errors.UnsupportedEnvironmentError, TablelogError):
    """This file system, Spark or session can't do safely what was asked; the message says what would."""


class UnsafeStoreError(errors.UnsafeStoreError, TablelogError):
    """The store doesn't keep two writers apart, here and now; nothing was written, and the message says what to do."""


class StorageError(errors.StorageError, TablelogError):
    """The storage refused or failed a request; a conditional write that it was surely did not happen."""


class StorageAccessError(errors.StorageAccessError, StorageError):
    """Credentials are missing, wrong or expired, a permission is missing, or this machine's clock is off."""


class StorageMissingError(errors.StorageMissingError, StorageError):
    """There is no such bucket, container or file system."""


class StorageUnavailableError(errors.StorageUnavailableError, StorageError):
    """The storage is out of reach, overloaded or failing, and stayed so; the request can be made again later."""


class CorruptLogError(errors.CorruptLogError, TablelogError):
    """The log holds something that no correct writer leaves."""


class MissingCommitError(errors.MissingCommitError, CorruptLogError):
    """The versions in the log are not contiguous; the message names the hole."""


class ChecksumMismatchError(errors.ChecksumMismatchError, CorruptLogError):
    """The version checksum (`.crc`) disagrees with the replayed state; the message says where."""


class MissingDataFileError(errors.MissingDataFileError, TablelogError):
    """A data file that the log lists is gone from storage; the message names table, version and file."""


class UnreadableDataFileError(errors.UnreadableDataFileError, TablelogError):
    """A data file is no Parquet file, damaged, or of other types than its table; the message names all three."""


_TWINS: dict[type[errors.TablelogError], type[TablelogError]] = {
    one.__bases__[0]: one
    for one in list(globals().values())
    if isinstance(one, type) and issubclass(one, TablelogError)
}


def as_spark(error: BaseException) -> BaseException:
    """Convert an error of the core in place to the class of this module; other errors are unchanged."""
    if isinstance(error, errors.TablelogError) and not isinstance(error, TablelogError):
        raised = getattr(pyspark.errors, error_conditions.of(error.condition).raises)
        error.__class__ = _class(type(error), raised)  # type: ignore[arg-type]  # mypy: class isn't hashable
    return error


@cache
def _class(core: type[errors.TablelogError], raised: type[PySparkException]) -> type[TablelogError]:
    """A class derived from an error class of the core and from one of PySpark."""
    twin = next(_TWINS[one] for one in core.__mro__ if one in _TWINS)
    bases: tuple[type, ...] = (twin, raised) if twin.__bases__[0] is core else (core, twin, raised)
    if issubclass(twin, raised):
        bases = bases[:-1]
    error_class = type(core.__name__, bases, {"__module__": __name__, "__doc__": core.__doc__})
    assert issubclass(error_class, TablelogError)
    return error_class


def _core_class(kind: type) -> type[errors.TablelogError]:
    """The core's error class for an error class of this module."""
    return next(
        one for one in kind.__mro__ if issubclass(one, errors.TablelogError) and not issubclass(one, TablelogError)
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
