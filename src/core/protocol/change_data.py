"""The names of the change data feed (PROTOCOL.md, "Change Data Files", "Add CDC File")."""

from typing import Final

from ...errors import SchemaMismatchError
from .actions import Metadata
from .properties import TableProperties
from .schema import parse_schema

CHANGE_TYPE: Final = "_change_type"
COMMIT_VERSION: Final = "_commit_version"
COMMIT_TIMESTAMP: Final = "_commit_timestamp"
COLUMNS: Final = (CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP)
"""What the feed has beside the table's columns."""

INSERT: Final = "insert"
DELETE: Final = "delete"

DIRECTORY: Final = "_change_data"
"""Where change files lie, below the table."""


def check_names(metadata: Metadata, table: str) -> None:
    """SchemaMismatchError where a table that records its changes has a column that its feed would have."""
    if not TableProperties.of(metadata).enable_change_data_feed:
        return
    columns = parse_schema(metadata.schema_string)
    taken = [name for name in COLUMNS if columns.get(name) is not None]
    if taken:
        raise SchemaMismatchError(
            f"{table} can't record its changes (delta.enableChangeDataFeed) while it has the columns "
            f"{', '.join(taken)}, which are the change data feed's own: rename them, or leave the property out",
            condition="RESERVED_CDC_COLUMNS_ON_WRITE",
            parameters={"columnList": ", ".join(taken)},
        )
