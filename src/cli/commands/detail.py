"""`tablelog detail`: what a table is."""

from typing import TYPE_CHECKING, Any

import click

from ...units import size
from .. import text
from ..output import Output
from ..parameters import Command, Location, at_option, on_table, snapshot_at, writes_output

if TYPE_CHECKING:
    from ...core.table.snapshot import Snapshot


@click.command(
    cls=Command,
    examples=("tablelog detail ./events", "tablelog detail gs://bucket/events --at 7 --json"),
)
@on_table
@at_option
@writes_output
def command(location: Location, at: str | None, output: Output) -> None:
    """Show what TABLE is: its version, size, partitioning, protocol and properties.

    The keys of the JSON are the columns of DESCRIBE DETAIL, with `version`, `numRecords` and `numDeletedRecords`.
    """
    detail = document(snapshot_at(location.log(), at))
    if output.as_json:
        output.json(detail)
        return
    output.line(detail["name"] or detail["location"], "bold")
    output.facts(facts(detail))
    if detail["properties"]:
        output.heading("properties")
        output.facts(detail["properties"])


def document(snapshot: "Snapshot") -> dict[str, Any]:
    """A version of a table with the names of DESCRIBE DETAIL."""
    from ...core.protocol import features
    from ...core.table import clustering
    from ..rows import live_rows

    metadata, protocol = snapshot.metadata, snapshot.protocol
    clustered = (
        clustering.columns_of(snapshot.domain_metadata) if "clustering" in features.supported(protocol) else None
    )
    totals = live_rows(snapshot)
    return {
        "format": "delta",
        "id": metadata.id,
        "name": metadata.name,
        "description": metadata.description,
        "location": text.shown(snapshot.table),
        "createdAt": text.iso(metadata.created_time),
        "lastModified": text.iso(snapshot.timestamp_ms),
        "partitionColumns": list(metadata.partition_columns),
        "clusteringColumns": [".".join(snapshot.mapping.to_logical(column)) for column in clustered or ()],
        "numFiles": snapshot.num_files,
        "sizeInBytes": snapshot.size_in_bytes,
        "properties": dict(metadata.configuration),
        "minReaderVersion": protocol.min_reader_version,
        "minWriterVersion": protocol.min_writer_version,
        "tableFeatures": sorted(features.supported(protocol)),
        "version": snapshot.version,
        "numRecords": totals.live,
        "numDeletedRecords": totals.deleted,
    }


def facts(detail: dict[str, Any]) -> dict[str, str]:
    """The details for people."""
    files = detail["numFiles"]
    mean = f", {size(detail['sizeInBytes'] // files)} each" if files else ""
    deleted = f" ({text.count(detail['numDeletedRecords'])} more are deleted by vectors)" * bool(
        detail["numDeletedRecords"]
    )
    optional = {
        "description": detail["description"],
        "partitioned by": ", ".join(detail["partitionColumns"]),
        "clustered by": ", ".join(detail["clusteringColumns"]),
        "features": ", ".join(detail["tableFeatures"]),
    }
    return {
        "location": detail["location"],
        "version": f"{detail['version']} of {(detail['lastModified'] or 'unknown time').replace('T', ' ')}",
        "rows": f"{text.count(detail['numRecords'])}{deleted}",
        "files": f"{text.count(files)}, {size(detail['sizeInBytes'])}{mean}",
        **{name: value for name, value in optional.items() if value},
        "protocol": f"reader {detail['minReaderVersion']}, writer {detail['minWriterVersion']}",
        **({"created": detail["createdAt"].replace("T", " ")} if detail["createdAt"] else {}),
        "id": detail["id"],
    }
