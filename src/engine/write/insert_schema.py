"""The schema of a table after an INSERT with schema evolution."""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from ...core.protocol import schema as schemas
from ...core.protocol.schema import StructType
from ...core.schema_evolution import merging
from ..jvm.types import read_schema

if TYPE_CHECKING:
    from ...core.deltalog import DeltaLog
    from ...core.table.snapshot import Snapshot


def evolved(
    log: "DeltaLog",
    snapshot: "Snapshot",
    data: StructType,
    *,
    listed: Sequence[str],
    by_name: bool,
    static: Collection[str],
) -> StructType:
    """The table's columns after the INSERT: new columns are added, and with type widening types are widened.

    `data` is the schema of the rows. `listed`: the columns that the statement lists, to which nothing is added.
    `by_name`: the rows' columns are matched by name; otherwise by position, and columns after the table's last one are
    new. `static`: partition columns whose value is in the statement and not in the rows.
    Raises what `merging.merged` raises.
    """
    metadata = snapshot.metadata
    known = {f.name.lower() for f in snapshot.schema}
    if listed:
        names: Sequence[str] = listed
    elif by_name:
        names = data.names
    else:
        fixed = {name.lower() for name in static}
        names = [f.name for f in read_schema(snapshot.schema) if f.name.lower() not in fixed]
    fields = [schemas.with_name(f, names[i]) if i < len(names) else f for i, f in enumerate(data)]
    if listed:
        fields = [f for f in fields if f.name.lower() in known]
    # A number in a statement is an INT, which must not make the SMALLINT of a table without type widening an INT.
    rows = merging.as_nullable(StructType(tuple(fields)))
    changed = merging.merged(metadata, rows, protocol=snapshot.protocol, conf=log.conf, integers=False)
    return schemas.parse_schema(changed.schema_string)
