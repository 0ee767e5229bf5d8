"""The version that a stream begins with, from the options startingVersion and startingTimestamp."""

from ...errors import TimestampOutOfRangeError, VersionNotFoundError
from ..table import changes
from ..table.changes import Bound
from ..table.readable_log import ReadableLog


def chosen_version(log: ReadableLog, start: Bound, *, lenient: bool) -> int:
    """The first version at or after `start`.

    Args:
        log: The log of the table.
        start: The version or the time that the user chose.
        lenient: Whether a start after the newest version is allowed.

    Raises:
        TimestampOutOfRangeError: The time is after the newest version.
        VersionNotFoundError: The log doesn't have the version.
    """
    newest = log.snapshot().version
    version = changes.first_version(log, start)
    if version > newest and not lenient:
        if start.timestamp_ms is not None:
            raise TimestampOutOfRangeError(
                f"The startingTimestamp is after version {newest}, the newest of {log.table}. Use a time at "
                "or before it, or startingVersion=latest.",
                condition="DELTA_TIMESTAMP_GREATER_THAN_COMMIT",
                parameters={"providedTimestamp": start.timestamp_ms},
                table=log.table,
            )
        raise _not_in_log(log.table, version, newest)
    if start.version is not None and version <= newest:
        commits = log.reader.list(0).commits
        if version not in commits:
            raise _not_in_log(log.table, version, newest, min(commits, default=None))
    return version


def _not_in_log(table: str, version: int, newest: int, earliest: int | None = None) -> VersionNotFoundError:
    available = f"up to {newest}" if earliest is None else f"from {earliest} to {newest}"
    return VersionNotFoundError(
        f"The stream can't start with version {version} of {table}: its log has those {available}.",
        condition="DELTA_VERSION_NOT_FOUND",
        parameters={"userVersion": version, "earliest": earliest, "latest": newest},
        table=table,
        version=version,
    )
