"""Restrictions for tables whose files can be read as an Iceberg table too (PROTOCOL.md, "Iceberg Compatibility").

`core/iceberg` writes Iceberg's metadata beside the log, for `delta.universalFormat.enabledFormats`.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from ...errors import InvalidArgumentError
from . import column_mapping, features, nested_ids, properties, row_tracking, type_widening
from .actions import Action, AddFile, Metadata, Protocol
from .change_data import CHANGE_TYPE
from .record_count import num_records
from .schema import ArrayType, Column, DataType, MapType, PrimitiveType, StructType, all_fields, dotted, parse_schema

TAG: Final = "ICEBERG_COMPAT_VERSION"
"""The tag of an `add` whose file has all ids and the partition columns."""

_VERSIONS: Final = (1, 2, 3)
_CHANGE_TYPE: Final = 2_147_483_543
_ROW_ID: Final = 2_147_483_540
_LAST_UPDATED_SEQUENCE_NUMBER: Final = 2_147_483_539
_TYPES: Final = frozenset(
    "byte short integer long float double string binary boolean timestamp timestamp_ntz date".split()
)


def versions(configuration: Mapping[str, str]) -> list[int]:
    """The enabled versions of the compatibility; more than one isn't valid."""
    return [version for version in _VERSIONS if properties.get(configuration, f"enableIcebergCompatV{version}")]


def with_ids(metadata: Metadata, old: Metadata | None, protocol: Protocol | None, *, replaces_table: bool) -> Metadata:
    """The metadata with ids for all columns, if it maps them, and for elements, keys and values, if Iceberg needs them.

    See `column_mapping.assigned`.
    """
    metadata = column_mapping.assigned(metadata, old, protocol, replaces_table=replaces_table)
    nested = any(version > 1 for version in versions(metadata.configuration))
    return nested_ids.assigned(metadata) if nested and column_mapping.mode_of(metadata) != "none" else metadata


def tags(configuration: Mapping[str, str]) -> Mapping[str, str] | None:
    """The tags of a file that was written as the compatibility requires; the name is Delta's."""
    return next(({TAG: str(version)} for version in versions(configuration)), None)


def reserved_ids(configuration: Mapping[str, str]) -> dict[str, int]:
    """The ids, by the names in data files, of columns that aren't in the schema; empty without the compatibility.

    pyiceberg reads no file that has a column without an id. These are the ids that Iceberg's specification reserves
    for columns of such a meaning.
    """
    if not versions(configuration):
        return {}
    names = {
        configuration.get(row_tracking.ROW_ID_COLUMN): _ROW_ID,
        configuration.get(row_tracking.ROW_COMMIT_VERSION_COLUMN): _LAST_UPDATED_SEQUENCE_NUMBER,
        CHANGE_TYPE: _CHANGE_TYPE,
    }
    return {name: number for name, number in names.items() if name is not None}


def with_defaults(configuration: Mapping[str, str]) -> Mapping[str, str]:
    """The properties of a new table, with column mapping by name if Iceberg compatibility needs it."""
    if column_mapping.MODE in configuration or not versions(configuration):
        return configuration
    return {**configuration, column_mapping.MODE: "name"}


def materialises(protocol: Protocol, metadata: Metadata) -> bool:
    """Whether data files also contain the partition columns, after all other columns."""
    return (
        "materializePartitionColumns" in features.supported(protocol)
        or bool(versions(metadata.configuration))
        or bool(properties.get(metadata.configuration, "writePartitionColumnsToParquet"))
    )


def check(protocol: Protocol, metadata: Metadata, old: Metadata | None, actions: Iterable[Action], table: str) -> None:
    """Check the restrictions of the enabled compatibility; does nothing if none is enabled.

    `protocol` and `metadata` are those after the commit, `old` is the current metadata. InvalidArgumentError for a
    violation.
    """
    enabled = versions(metadata.configuration)
    if not enabled:
        return
    version = enabled[0]
    name = f"icebergCompatV{version}"

    def refuse(reason: str) -> InvalidArgumentError:
        return InvalidArgumentError(
            f"{table} has {name} enabled: {reason}",
            condition="DELTA_ICEBERG_COMPAT_VIOLATION",
            parameters={"version": version},
        )

    if len(enabled) > 1:
        raise refuse(f"it can't have icebergCompatV{enabled[1]} at the same time")
    if column_mapping.mode_of(metadata) == "none":
        raise refuse(f"this needs {column_mapping.MODE} to be name or id")
    if "deletionVectors" in features.supported(protocol):
        raise refuse("this excludes deletion vectors: drop the feature deletionVectors")
    if old is not None and old.partition_columns and old.partition_columns != metadata.partition_columns:
        raise refuse(
            f"its partition columns can't change from {list(old.partition_columns)} to "
            f"{list(metadata.partition_columns)}"
        )
    if old is None or old.schema_string != metadata.schema_string or not versions(old.configuration):
        schema = parse_schema(metadata.schema_string)
        for column, data_type in _unknown(schema):
            raise refuse(f"the column {dotted(column)} has a type that Iceberg doesn't have: {data_type}")
        for column, field in all_fields(schema):
            for change in type_widening.changes_of(field):
                if not type_widening.can_widen(change.old, change.new, iceberg=True):
                    raise refuse(f"the column {dotted(column)} was widened in a way that Iceberg doesn't support")
            if version == 1 and isinstance(field.data_type, ArrayType | MapType):
                raise refuse(f"this excludes arrays and maps: {dotted(column)}")
    for action in actions:
        if isinstance(action, AddFile):
            if num_records(action.stats) is None:
                raise refuse(f"the statistics of the file {action.path} don't have its number of rows")
            if action.deletion_vector is not None:
                raise refuse(f"the file {action.path} has a deletion vector")


def _unknown(schema: StructType) -> Iterator[tuple[Column, str]]:
    def inside(column: Column, data_type: DataType) -> Iterator[tuple[Column, str]]:
        if isinstance(data_type, ArrayType):
            yield from inside(column, data_type.element_type)
        elif isinstance(data_type, MapType):
            yield from inside(column, data_type.key_type)
            yield from inside(column, data_type.value_type)
        elif isinstance(data_type, PrimitiveType) and not (data_type.decimal or data_type.name in _TYPES):
            yield column, data_type.name

    for column, field in all_fields(schema):
        yield from inside(column, field.data_type)
