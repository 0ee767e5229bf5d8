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
"""The columns that the feed has in addition to the table's columns."""

INSERT: Final = "insert"
DELETE: Final = "delete"

DIRECTORY: Final = "_change_data"
"""The directory of change data files, below the table."""


def check_names(metadata: Metadata, table: str) -> None:
    """Raise SchemaMismatchError if a table with change data feed has a column with a name of the feed."""
    if not TableProperties.of(metadata).enable_change_data_feed:
        return
    columns = parse_schema(metadata.schema_string)
    taken = [name for name in COLUMNS if columns.get(name) is not None]
    if taken:
        raise SchemaMismatchError(
            f"{table} can't have a change data feed (delta.enableChangeDataFeed) with the columns {', '.join(taken)}: "
            "the feed uses these names. Rename the columns, or leave out the property",
            condition="RESERVED_CDC_COLUMNS_ON_WRITE",
            parameters={"columnList": ", ".join(taken)},
        )
