"""The schema log of a stream (the option `schemaTrackingLocation`), in Delta's form.

The newest entry has the columns with which a query reads its source. An entry is a file that is named by its number and
never replaced. delta-spark reads what tablelog writes, and the reverse.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ...errors import CorruptLogError, InvalidArgumentError
from ...logstore.base import LogStore
from ..protocol import codec
from ..protocol.actions import Metadata, Protocol
from ..protocol.schema import StructType, parse_schema, to_json

_FORM = 1


@dataclass(frozen=True, slots=True)
class TrackedSchema:
    """An entry: the columns, the properties and the protocol of a table from a version on.

    `source_path` is the directory of the source in the query's checkpoint. `previous` is the number of the entry that
    this one follows, if that isn't the one before it.
    """

    table_id: str
    version: int
    schema_string: str
    partition_columns: tuple[str, ...]
    source_path: str
    configuration: Mapping[str, str] | None = None
    protocol: Protocol | None = None
    previous: int | None = None

    @classmethod
    def of(cls, metadata: Metadata, protocol: Protocol, version: int, source_path: str) -> "TrackedSchema":
        """The entry for a version of a table."""
        return cls(
            metadata.id,
            version,
            metadata.schema_string,
            tuple(metadata.partition_columns),
            source_path,
            dict(metadata.configuration),
            protocol,
        )

    def metadata(self, base: Metadata) -> Metadata:
        """`base`, the table's metadata, with the columns and properties of this entry."""
        configuration = base.configuration if self.configuration is None else self.configuration
        return replace(
            base,
            schema_string=self.schema_string,
            partition_columns=self.partition_columns,
            configuration=configuration,
        )

    def to_bytes(self) -> bytes:
        """The content of the file."""
        columns = parse_schema(self.schema_string)
        partitions = [f for name in self.partition_columns if (f := columns.get(name)) is not None]
        fields: dict[str, Any] = {
            "tableId": self.table_id,
            "deltaCommitVersion": self.version,
            "dataSchemaJson": self.schema_string,
            "partitionSchemaJson": to_json(StructType(tuple(partitions))),
            "sourceMetadataPath": self.source_path,
        }
        if self.configuration is not None:
            fields["tableConfigurations"] = dict(self.configuration)
        if self.protocol is not None:
            fields["protocolJson"] = codec.to_json(self.protocol)
        if self.previous is not None:
            fields["previousMetadataSeqNum"] = self.previous
        return f"v{_FORM}\n{json.dumps(fields, separators=(',', ':'))}".encode()


class SchemaLog:
    """The schema log of one source of a query. It knows the entries that there were when it was opened, and its own.

    Args:
        store: The store that serves `location`.
        location: The directory of the entries, as a URI.
        table: The table that the source reads, for messages.
        table_id: Its id.

    Raises:
        CorruptLogError: An entry can't be read, or is of another table.
    """

    def __init__(self, store: LogStore, location: str, *, table: str, table_id: str) -> None:
        self._store = store
        self._table = table
        self.location = location
        try:
            names = [status.path.rsplit("/", 1)[1] for status in store.list_from(f"{location}/0")]
        except FileNotFoundError:
            names = []
        self._number = max((int(name) for name in names if re.fullmatch(r"\d{1,18}", name)), default=-1)
        self.current = self._read(self._number)
        if self.current is not None and self.current.table_id != table_id:
            raise CorruptLogError(
                f"The schema log {location} belongs to a table with the id {self.current.table_id}, but {table} has "
                f"the id {table_id}. Choose another schemaTrackingLocation.",
                condition="DELTA_STREAMING_SCHEMA_LOG_INCOMPATIBLE_DELTA_TABLE_ID",
                parameters={"persistedId": self.current.table_id, "tableId": table_id},
                table=table,
            )

    def previous(self) -> TrackedSchema | None:
        """The entry that the newest one follows."""
        return None if self.current is None else self._read(self._previous_number())

    def add(self, entry: TrackedSchema) -> None:
        """Add an entry unless the newest one is equal. Raises InvalidArgumentError if another source adds one."""
        if entry == self.current:
            return
        try:
            self._store.write(f"{self.location}/{self._number + 1}", entry.to_bytes())
        except FileExistsError:
            raise InvalidArgumentError(
                f"Another source uses the schema log {self.location} of {self._table} at the same time. Give each "
                "stream a schemaTrackingLocation of its own, or each source of a query a streamingSourceTrackingId.",
                condition="DELTA_STREAMING_SCHEMA_LOCATION_CONFLICT",
                parameters={"loc": self.location, "table": self._table},
                table=self._table,
            ) from None
        self._number += 1
        self.current = entry

    def replace(self, entry: TrackedSchema) -> None:
        """Add an entry that takes the place of the newest one."""
        self.add(entry if self.current is None else replace(entry, previous=self._previous_number()))

    def _previous_number(self) -> int:
        known = None if self.current is None else self.current.previous
        return self._number - 1 if known is None else known

    def _read(self, number: int) -> TrackedSchema | None:
        if number < 0:
            return None
        try:
            data = self._store.read(f"{self.location}/{number}")
        except FileNotFoundError:
            return None
        return _parsed(data, f"{self.location}/{number}")


def _parsed(data: bytes, path: str) -> TrackedSchema:
    try:
        form, _, line = data.decode().partition("\n")
        if not re.fullmatch(r"v\d{1,9}", form) or not 1 <= int(form[1:]) <= _FORM:
            raise ValueError(form)
        fields = json.loads(line.split("\n", 1)[0])
        configuration = fields.get("tableConfigurations")
        previous = fields.get("previousMetadataSeqNum")
        columns = parse_schema(fields["dataSchemaJson"])
        found = [columns.get(f.name) for f in parse_schema(fields["partitionSchemaJson"]).fields]
        partitions = tuple(f.name for f in found if f is not None)  # spelled as the columns are
        if len(partitions) < len(found):
            raise ValueError("a partition column isn't a column")
        return TrackedSchema(
            str(fields["tableId"]),
            int(fields["deltaCommitVersion"]),
            str(fields["dataSchemaJson"]),
            partitions,
            str(fields["sourceMetadataPath"]),
            None if configuration is None else {str(key): str(value) for key, value in configuration.items()},
            _protocol(fields.get("protocolJson")),
            None if previous is None else int(previous),
        )
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError, CorruptLogError):
        raise CorruptLogError(
            f"The entry {path} of a stream's schema log can't be read. Restore the file from a copy, or choose another "
            "schemaTrackingLocation.",
            condition="DELTA_STREAMING_SCHEMA_LOG_DESERIALIZE_FAILED",
            parameters={"location": path},
            path=path,
        ) from None


def _protocol(text: str | None) -> Protocol | None:
    action = None if text is None else codec.parse_line(text)
    if text is not None and not isinstance(action, Protocol):
        raise ValueError(text)
    return action if isinstance(action, Protocol) else None
