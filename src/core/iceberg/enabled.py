"""Whether a table has Iceberg metadata, and what setting that property requires."""

from collections.abc import Callable, Iterable, Mapping
from importlib.util import find_spec
from typing import Any, Final

from ...errors import InvalidArgumentError, UnsupportedEnvironmentError
from ..protocol import iceberg_compat, properties
from ..protocol.actions import Action, AddFile, Metadata, RemoveFile

KEY: Final = "delta.universalFormat.enabledFormats"
_HOW = (
    "create the table with both properties, or set delta.enableIcebergCompatV2 first, then rewrite all files (INSERT "
    f"OVERWRITE the table by itself), then set {KEY}"
)


def is_enabled(metadata: Metadata) -> bool:
    """Whether each commit writes Iceberg's metadata."""
    return "iceberg" in properties.get(metadata.configuration, "universalFormat.enabledFormats")


def check(
    metadata: Metadata,
    old: Metadata | None,
    actions: Iterable[Action],
    table: str,
    live: Callable[[], Iterable[Mapping[str, Any]]],
) -> None:
    """Check a commit to a table with Iceberg metadata; does nothing for another table.

    Args:
        metadata: The metadata after the commit.
        old: The current metadata; `None` for a new table.
        actions: The actions of the commit.
        table: The table's URI, for messages.
        live: Returns the path and the tags of each current file; called if this commit enables the metadata.

    Raises:
        InvalidArgumentError: Iceberg compatibility isn't enabled, or a file wasn't written for it.
        UnsupportedEnvironmentError: pyiceberg isn't installed.
    """
    if not is_enabled(metadata):
        return
    if not iceberg_compat.versions(metadata.configuration):
        raise InvalidArgumentError(
            f"{table} can't have {KEY}=iceberg: this needs delta.enableIcebergCompatV2 to be true",
            condition="DELTA_UNIVERSAL_FORMAT_VIOLATION",
            parameters={"violation": "icebergCompat isn't enabled"},
        )
    added = {a.path: dict(a.tags or {}) for a in actions if isinstance(a, AddFile)}
    if old is None or not is_enabled(old):
        if find_spec("pyiceberg") is None:
            raise UnsupportedEnvironmentError(
                f"{table} can't have {KEY}=iceberg: pyiceberg isn't installed. Install tablelog[iceberg]"
            )
        removed = {a.path for a in actions if isinstance(a, RemoveFile)}
        for row in live():
            if row["path"] not in removed:
                added.setdefault(row["path"], dict(row["tags"] or {}))
    for path, tags in added.items():
        if iceberg_compat.TAG not in tags:
            raise InvalidArgumentError(
                f"{table} has {KEY}=iceberg, but the file {path} wasn't written for Iceberg (it has no tag "
                f"{iceberg_compat.TAG}): {_HOW}",
                condition="DELTA_ICEBERG_COMPAT_VIOLATION",
                parameters={"version": iceberg_compat.versions(metadata.configuration)[0]},
            )
