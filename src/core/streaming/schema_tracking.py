"""Follows the schema of a stream's source by a schema log, by Delta's rules.

A batch ends before a version with other columns, properties or protocol. When it is written, the new columns are added
to the schema log, and the query ends with an error: the restarted query is analysed with the new columns.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ...errors import InvalidArgumentError, SchemaChangedError
from ..protocol import codec
from ..protocol.actions import Action, AddCDCFile, AddFile, Metadata, Protocol, RemoveFile
from ..protocol.schema import GENERATION_KEY, IDENTITY_PREFIX, parse_schema, type_json
from ..table.readable_log import ReadableLog
from ..table.snapshot import Snapshot
from .schema_changes import Permissions, change_between, check_allowed
from .schema_log import SchemaLog, TrackedSchema


class SchemaTracking:
    """The schema log of a running stream; `read` is the newest version of the table, with the columns to read with.

    Raises:
        InvalidArgumentError: Another source of a query uses the schema log.
        SchemaChangedError: The newest entry has changes that `permissions` don't allow.
    """

    def __init__(self, log: SchemaLog, newest: Snapshot, permissions: Permissions) -> None:
        self._log = log
        self._source_path = permissions.source_path
        self._table = newest.table
        self._start = log.current
        self.read = as_tracked(newest, self._start)
        if self._start is None:
            return
        if self._start.source_path != self._source_path:
            raise InvalidArgumentError(
                f"The schema log {log.location} belongs to the source {self._start.source_path}, and not to "
                f"{self._source_path}. Give each stream a schemaTrackingLocation of its own, or each source of a query "
                "a streamingSourceTrackingId.",
                condition="DELTA_STREAMING_SCHEMA_LOCATION_CONFLICT",
                parameters={"loc": log.location, "table": self._table},
                table=self._table,
            )
        previous = log.previous()
        if previous is not None:
            check_allowed(previous, self._start, permissions, self._table)

    @property
    def active(self) -> bool:
        """Whether the schema log has an entry."""
        return self._log.current is not None

    def covers(self, version: int) -> bool:
        """Whether the stream reads with columns of this version or of an older one."""
        return version >= (self.read.version if self._start is None else self._start.version)

    def differs(self, metadata: Metadata | None, protocol: Protocol | None, version: int) -> bool:
        """Whether a version with these actions has other columns, properties or another protocol than the stream."""
        if self._start is not None and self._start.version >= version:
            return False
        if protocol is not None and _fields(protocol) != _fields(self.read.protocol):
            return True
        read = self.read.metadata
        return metadata is not None and (
            _for_readers(metadata) != _for_readers(read)
            or tuple(metadata.partition_columns) != tuple(read.partition_columns)
            or _properties(metadata) != _properties(read)
        )

    def begin(self, metadata: Metadata, protocol: Protocol, version: int) -> None:
        """Add the first entry. Raises SchemaChangedError if the query was analysed with other columns."""
        self._log.add(TrackedSchema.of(metadata, protocol, version, self._source_path))
        if self.differs(metadata, protocol, version):
            raise self._evolved(version)

    def evolve(
        self, metadata: Metadata | None, protocol: Protocol | None, version: int, *, replaces: bool = False
    ) -> None:
        """Add an entry and raise SchemaChangedError if a version differs. `replaces`: it replaces the newest entry."""
        if not self.differs(metadata, protocol, version):
            return
        entry = TrackedSchema.of(
            metadata or self.read.metadata, protocol or self.read.protocol, version, self._source_path
        )
        (self._log.replace if replaces else self._log.add)(entry)
        raise self._evolved(version)

    def _evolved(self, version: int) -> SchemaChangedError:
        current = self._log.current
        assert current is not None
        assert current.protocol is not None
        return SchemaChangedError(
            f"The columns, properties or protocol of {self._table} changed in version {version}. The schema log "
            f"{self._log.location} has the new ones: create the streaming DataFrame again, and restart the query with "
            "the same checkpoint location.",
            condition="DELTA_STREAMING_METADATA_EVOLUTION",
            parameters={
                "schema": current.schema_string,
                "config": ", ".join(f"{key}:{value}" for key, value in (current.configuration or {}).items()),
                "protocol": codec.to_json(current.protocol),
            },
            table=self._table,
            version=version,
        )


def as_tracked(newest: Snapshot, entry: TrackedSchema | None) -> Snapshot:
    """The newest version with the columns of an entry, which are older or the same."""
    if entry is None:
        return newest
    return newest.with_header(entry.metadata(newest.metadata), entry.protocol or newest.protocol)


def merge_changes(log: ReadableLog, schema_log: SchemaLog) -> None:
    """Replace the newest entry by that after the last of the versions that follow it and only change the metadata.

    A query would otherwise end at each of them.
    """
    current = schema_log.current
    if current is None:
        return
    metadata, protocol, last = None, None, current.version
    commits = log.reader.list(current.version).commits
    version = current.version
    while version in commits:
        data = log.reader.read(commits[version])
        actions: Sequence[Action] = () if data is None else log.reader.parsed(version, data)
        changed = [action for action in actions if isinstance(action, Metadata | Protocol)]
        if not changed or any(isinstance(action, AddFile | RemoveFile | AddCDCFile) for action in actions):
            break
        for action in changed:
            if isinstance(action, Metadata):
                metadata = action
            else:
                protocol = action
        last = version
        version += 1
    if last == current.version:
        return
    merged = replace(current, version=last, protocol=protocol or current.protocol)
    if metadata is not None:
        merged = replace(
            merged,
            schema_string=metadata.schema_string,
            partition_columns=tuple(metadata.partition_columns),
            configuration=dict(metadata.configuration),
        )
    schema_log.replace(merged)


def common(
    versions: Sequence[tuple[Metadata, Protocol]], first: int, last: int, table: str
) -> tuple[Metadata, Protocol]:
    """The metadata and protocol that can read all of `versions`: a batch that was planned without a schema log.

    Raises SchemaChangedError if there is none.
    """
    metadata, protocol = versions[-1]
    newest = parse_schema(metadata.schema_string)
    for older, older_protocol in versions[:-1]:
        change = change_between(parse_schema(older.schema_string), newest)
        changed = change.renamed or change.dropped or change.widened or change.incompatible
        if changed or not _features(older_protocol) <= _features(protocol):
            raise SchemaChangedError(
                f"The schema log of {table} can't begin with the unfinished batch of versions {first} to {last}, "
                "because the columns or the protocol changed in it. Start the query with a new checkpoint location.",
                condition="DELTA_STREAMING_SCHEMA_LOG_INIT_FAILED_INCOMPATIBLE_METADATA",
                parameters={"a": first, "b": last},
                table=table,
                version=last,
            )
    return metadata, protocol


def _features(protocol: Protocol) -> frozenset[str]:
    return (protocol.reader_features or frozenset()) | (protocol.writer_features or frozenset())


def _fields(protocol: Protocol) -> tuple[Any, ...]:
    return (
        protocol.min_reader_version,
        protocol.min_writer_version,
        protocol.reader_features or frozenset(),
        protocol.writer_features or frozenset(),
    )


def _properties(metadata: Metadata) -> dict[str, str]:
    return {key: value for key, value in metadata.configuration.items() if key.startswith("delta.")}


def _for_readers(metadata: Metadata) -> Any:
    """The schema without what only writers use: generation expressions and identity columns."""
    return _without_writers_keys(type_json(parse_schema(metadata.schema_string)))


def _without_writers_keys(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_writers_keys(one) for one in value]
    if not isinstance(value, dict):
        return value
    return {
        key: _without_writers_keys(one)
        for key, one in value.items()
        if key != GENERATION_KEY and not key.startswith(IDENTITY_PREFIX)
    }
