"""What a table must not do if its files are to be read as an Iceberg table too (PROTOCOL.md, "Iceberg Compatibility").

The metadata of Iceberg itself is nobody's business here: `delta.universalFormat.enabledFormats` is refused.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from ...errors import InvalidArgumentError, UnsupportedFeatureError
from . import column_mapping, features, properties, type_widening
from .actions import Action, AddFile, Metadata, Protocol
from .record_count import num_records
from .schema import ArrayType, Column, DataType, MapType, PrimitiveType, StructType, all_fields, dotted, parse_schema

_VERSIONS: Final = (1, 2, 3)
_TYPES: Final = frozenset(
    "byte short integer long float double string binary boolean timestamp timestamp_ntz date".split()
)


def versions(configuration: Mapping[str, str]) -> list[int]:
    """The versions of the compatibility that are enabled; more than one is an error of whoever set them."""
    return [version for version in _VERSIONS if properties.get(configuration, f"enableIcebergCompatV{version}")]


def with_defaults(configuration: Mapping[str, str]) -> Mapping[str, str]:
    """The properties of a new table, which maps its columns by name where Iceberg wants them mapped."""
    if column_mapping.MODE in configuration or not versions(configuration):
        return configuration
    return {**configuration, column_mapping.MODE: "name"}


def materialises(protocol: Protocol, metadata: Metadata) -> bool:
    """Whether data files hold the partition columns too, after all others."""
    return (
        "materializePartitionColumns" in features.supported(protocol)
        or bool(versions(metadata.configuration))
        or bool(properties.get(metadata.configuration, "writePartitionColumnsToParquet"))
    )


def check(protocol: Protocol, metadata: Metadata, old: Metadata | None, actions: Iterable[Action], table: str) -> None:
    """InvalidArgumentError for what the enabled compatibility forbids; nothing where none is enabled.

    `protocol` and `metadata` are those that will be in force, `old` is what the table has now.
    UnsupportedFeatureError for what it asks of files and Spark's writer can't do.
    """
    found = versions(metadata.configuration)
    if not found:
        return
    version = found[0]
    name = f"icebergCompatV{version}"

    def refuse(reason: str) -> InvalidArgumentError:
        return InvalidArgumentError(
            f"{table} has {name} enabled, and {reason}",
            condition="DELTA_ICEBERG_COMPAT_VIOLATION",
            parameters={"version": version},
        )

    if len(found) > 1:
        raise refuse(f"can't have icebergCompatV{found[1]} at the same time")
    if column_mapping.mode_of(metadata) == "none":
        raise refuse(f"that needs {column_mapping.MODE} to be name or id")
    if "deletionVectors" in features.supported(protocol):
        raise refuse("that rules out deletion vectors: drop the feature deletionVectors")
    if old is not None and old.partition_columns and old.partition_columns != metadata.partition_columns:
        raise refuse(
            f"can't be partitioned by {list(metadata.partition_columns)} in place of {list(old.partition_columns)}"
        )
    if old is None or old.schema_string != metadata.schema_string or not versions(old.configuration):
        schema = parse_schema(metadata.schema_string)
        for column, data_type in _unknown(schema):
            raise refuse(f"the column {dotted(column)} is of a type that Iceberg doesn't have: {data_type}")
        for column, f in all_fields(schema):
            for change in type_widening.changes_of(f):
                if not type_widening.can_widen(change.old, change.new, iceberg=True):
                    raise refuse(f"the column {dotted(column)} was widened as Iceberg can't do it")
            if isinstance(f.data_type, ArrayType | MapType):
                if version == 1:
                    raise refuse(f"that rules out arrays and maps: {dotted(column)}")
                raise UnsupportedFeatureError(
                    f"{table} has {name} enabled, by which the elements of arrays and maps need ids in the files, "
                    f"which Spark's writer can't give them: {dotted(column)}",
                    (name,),
                )
    for action in actions:
        if isinstance(action, AddFile):
            if num_records(action.stats) is None:
                raise refuse(f"the statistics of the file {action.path} don't say how many rows it has")
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

    for column, f in all_fields(schema):
        yield from inside(column, f.data_type)
