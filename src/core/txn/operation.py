"""What a commit says of itself in `commitInfo`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Operation:
    """The operation behind a commit (PROTOCOL.md, "Commit Provenance Information").

    `name` is Delta's (`WRITE`, `DELETE`, ...). `parameters` are JSON values: strings, numbers and booleans are written
    as they are, a list or an object as JSON text, `None` not at all. `metrics` are written as strings.
    `changes_data` is False for an operation that by its nature only rearranges rows (OPTIMIZE): under
    WriteSerializable only such a one may fall back to snapshot isolation. `replaces_table` allows it to change the
    partition columns and the table's id, as an overwrite with overwriteSchema or a REPLACE does. `lowers_protocol`
    allows it to take features away from the table; such a commit holds on no other version than the one it read.
    `restates_files`: its files are files of the table, said again to say more of them.
    """

    name: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, int | str] = field(default_factory=dict)
    changes_data: bool = True
    replaces_table: bool = False
    lowers_protocol: bool = False
    restates_files: bool = False
