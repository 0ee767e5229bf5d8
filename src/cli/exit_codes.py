"""The exit codes of the command, and the code of each error."""

import errno

from ..errors import (
    CommitStateUnknownError,
    CorruptLogError,
    DeltaConcurrentModificationException,
    LogStoreConfigurationError,
    MissingDataFileError,
    StorageError,
    TableAlreadyExistsError,
    TablelogError,
    TableNotFoundError,
    TimestampOutOfRangeError,
    UnreadableDataFileError,
    UnsafeStoreError,
    UnsupportedEnvironmentError,
    UnsupportedFeatureError,
    UntrustedTableError,
    VersionNotFoundError,
    WriteOutcomeUnknown,
)

OK = 0
PROBLEMS = 1
USAGE = 2
STORAGE = 3
NOT_FOUND = 4
DAMAGED = 5
CONFLICT = 6
UNSUPPORTED = 7
UNKNOWN_OUTCOME = 8
INTERNAL = 70
INTERRUPTED = 130

MEANINGS = {
    OK: "the command did what it says",
    PROBLEMS: "`check`, `doctor` or `conformance` found a problem, or `repair` can't repair one",
    USAGE: "wrong arguments or settings",
    STORAGE: "the storage refuses, fails or can't be reached; conformance: something isn't established",
    NOT_FOUND: "there is no such table, version or timestamp, or the target exists already",
    DAMAGED: "the table is damaged: the message names what to restore",
    CONFLICT: "another writer was faster: run the command again",
    UNSUPPORTED: "the table, or this environment, lacks or has something that the command can't work with",
    UNKNOWN_OUTCOME: "it is unknown whether the commit was made: the message says how to find out",
    INTERNAL: "an error of tablelog itself: run again with --verbose, and report it",
    INTERRUPTED: "interrupted by Ctrl-C",
}

_CODES: tuple[tuple[type[BaseException], int], ...] = (
    (CommitStateUnknownError, UNKNOWN_OUTCOME),
    (WriteOutcomeUnknown, UNKNOWN_OUTCOME),
    (DeltaConcurrentModificationException, CONFLICT),
    (TableNotFoundError, NOT_FOUND),
    (TableAlreadyExistsError, NOT_FOUND),
    (VersionNotFoundError, NOT_FOUND),
    (TimestampOutOfRangeError, NOT_FOUND),
    (UnsupportedFeatureError, UNSUPPORTED),
    (UntrustedTableError, UNSUPPORTED),
    (UnsupportedEnvironmentError, UNSUPPORTED),
    (UnsafeStoreError, UNSUPPORTED),
    (LogStoreConfigurationError, USAGE),
    (StorageError, STORAGE),
    (CorruptLogError, DAMAGED),
    (MissingDataFileError, DAMAGED),
    (UnreadableDataFileError, DAMAGED),
    (TablelogError, USAGE),
    (OSError, STORAGE),
)


def code_of(error: BaseException) -> int:
    """The exit code for an error that ends the command."""
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    return next((code for kind, code in _CODES if isinstance(error, kind)), INTERNAL)


def is_broken_pipe(error: BaseException) -> bool:
    """Whether the reader of standard output has gone, as `head` does when it has enough lines."""
    return isinstance(error, OSError) and error.errno == errno.EPIPE
