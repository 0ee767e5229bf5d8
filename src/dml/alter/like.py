"""CREATE TABLE LIKE: the definition of a new, empty table that is like an existing one."""

from collections.abc import Mapping
from dataclasses import replace

from ...core.protocol import column_mapping, features, row_tracking, rules
from ...core.protocol.actions import Metadata
from ...core.protocol.properties import FEATURE_PREFIX
from ...core.protocol.schema import TYPE_CHANGES_KEY, Column, StructField, StructType, to_json
from ...core.table.snapshot import Snapshot
from .create import Definition

_OWN_PROPERTIES = frozenset(
    {"delta.columnMapping.maxColumnId", row_tracking.ROW_ID_COLUMN, row_tracking.ROW_COMMIT_VERSION_COLUMN}
)
_OWN_METADATA = ("delta.columnMapping.", TYPE_CHANGES_KEY, rules.MARK)


def definition_like(source: Snapshot, properties: Mapping[str, str]) -> Definition:
    """The definition with the columns, partitioning, properties, features and comment of `source`.

    `properties` are set in addition. As in Delta, the new table has no clustering columns.
    """
    columns = column_mapping.transformed(source.schema, _of_new_table)
    assert isinstance(columns, StructType)
    configuration = {key: value for key, value in source.metadata.configuration.items() if key not in _OWN_PROPERTIES}
    configuration |= properties
    plain = Metadata(id="", schema_string=to_json(columns), configuration=configuration)
    missing = features.supported(source.protocol) - features.supported(features.protocol_for_new_table(plain))
    wanted = {f"{FEATURE_PREFIX}{name}": "supported" for name in missing}
    return Definition(
        columns,
        tuple(source.metadata.partition_columns),
        properties={**wanted, **configuration},
        comment=source.metadata.description,
    )


def _of_new_table(field: StructField, _: Column) -> StructField:
    """The column without ids and recorded changes, which the new table doesn't have."""
    return replace(
        field, metadata={key: value for key, value in field.metadata.items() if not key.startswith(_OWN_METADATA)}
    )
