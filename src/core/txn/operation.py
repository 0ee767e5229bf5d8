"""The operation of a commit, as `commitInfo` describes it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Operation:
    """The operation of a commit (PROTOCOL.md, "Commit Provenance Information").

    Args:
        name: Delta's name of the operation (`WRITE`, `DELETE`, ...).
        parameters: JSON values: strings, numbers and booleans are written as they are, a list or an object as JSON
            text; `None` values are left out.
        metrics: Written as strings.
        changes_data: False for an operation that only rearranges rows (OPTIMIZE): under WriteSerializable only such
            an operation may be checked at snapshot isolation.
        replaces_table: The operation may change the partition columns and the table's id, as an overwrite with
            overwriteSchema or a REPLACE does.
        lowers_protocol: The operation may remove features from the table; any concurrent commit conflicts with it.
        restates_files: The operation adds existing files of the table again, with more information about them.
        names_absent_version: `commitInfo.readVersion` is -1 where there was no table, as Delta's CONVERT and CLONE
            write it; other operations leave it out then.
        readds_files: The operation adds files that an earlier version had. A VACUUM may delete them meanwhile.
    """

    name: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, int | str] = field(default_factory=dict)
    changes_data: bool = True
    replaces_table: bool = False
    lowers_protocol: bool = False
    restates_files: bool = False
    names_absent_version: bool = False
    readds_files: bool = False
