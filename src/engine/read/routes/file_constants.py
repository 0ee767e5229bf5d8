"""The columns of a scan that are constant in each file, for routes that join them to the rows by the file's path."""

from collections.abc import Sequence

import pyarrow as pa

from ....core.protocol import schema as schemas
from ....core.protocol.partition_values import typed_columns
from ..deletion_vectors import Hidden
from ..scan_spec import ScanSpec


def file_constants(
    spec: ScanSpec,
    files: pa.Table,
    schema: schemas.StructType,
    partition_columns: Sequence[str],
    hidden: Hidden | None,
    *,
    time_zone: str,
) -> tuple[list[schemas.StructField], dict[str, pa.Array]]:
    """The fields and, by name, the values of each file: partitions, other constants, file number, deletion vector.

    Args:
        spec: The scan.
        files: The files of the scan.
        schema: The columns of the table, by their physical names.
        partition_columns: The partition columns whose values are taken from the log.
        hidden: The deleted rows; `None` if no file has any.
        time_zone: The time zone of partition timestamps that name none.
    """
    typed = typed_columns(files, schema, partition_columns, time_zone=time_zone)
    fields = [schemas.StructField(f.name, f.data_type) for f in schema.select(partition_columns)]
    values = {f.name: typed.column(f.name) for f in fields}
    for field, column in zip(spec.extra.per_file_fields, spec.extra.values(files), strict=True):
        fields.append(field)
        values[field.name] = column
    if spec.file_number is not None:
        fields.append(schemas.StructField(spec.file_number, schemas.INTEGER))
        values[spec.file_number] = pa.array(range(files.num_rows), pa.int32())
    if hidden is not None:
        fields.extend(hidden.fields)
        (values[hidden.deleted],) = hidden.values(files)
    return fields, values
