"""Plans what the Arrow route reads: the files that Spark's filters leave, with the columns and constants of each."""

import base64
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from ....core.protocol import column_mapping
from ....core.protocol import schema as schemas
from ....core.protocol.column_mapping import ColumnMapping
from ....core.protocol.partition_values import typed_columns
from ....core.protocol.paths import absolute, absolute_uri
from ....core.skipping import predicates, pruning
from ....logstore.data_files import path_in

DELETED = "deleted"
_SPLIT_SIZE, _COST_OF_OPENING = 128 << 20, 4 << 20
# Types whose filter values have an unambiguous representation in the data source API.
_PUSHED = (
    schemas.BYTE,
    schemas.SHORT,
    schemas.INTEGER,
    schemas.LONG,
    schemas.STRING,
    schemas.BOOLEAN,
    schemas.DATE,
)


def place_of(uri: str) -> str:
    """`scheme://authority` of a URI."""
    scheme, _, rest = uri.partition("://")
    return f"{scheme}://{rest.partition('/')[0]}"


def unpacked(packed: str) -> pa.Table:
    """The table of files in an option of the data source."""
    return pa.ipc.open_stream(base64.b64decode(packed)).read_all()


def grouped(files: Iterable[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Divides planned files into the tasks that read them."""
    groups: list[list[dict[str, Any]]] = []
    room = 0
    for file in sorted(files, key=lambda file: -file["size"]):
        if not groups or room < file["size"]:
            groups.append([])
            room = _SPLIT_SIZE
        groups[-1].append(file)
        room -= file["size"] + _COST_OF_OPENING
    return groups


def plan(spec: Mapping[str, Any], files: pa.Table, predicate: Any = predicates.TRUE) -> list[dict[str, Any]]:
    """The read plan of each file: `path` for its file system, `place` (see `place_of`), `size`, how a message
    has it `named`, the constant values of the file, the bitmap of `deleted` rows, and the name of the row index column.
    The constants are arrays of one value, because Arrow pickles a scalar as a Python value, and Python can't represent
    all values.
    """
    mapping = _mapping(spec)
    numbers = pa.array(range(files.num_rows), pa.int32())
    physical, names, zone = mapping.physical, mapping.physical_partition_columns, spec["zone"]
    if predicate != predicates.TRUE:
        predicate = predicates.with_columns(predicate, mapping.to_physical)
        keep = pruning.may_match(files, predicate, physical, names, time_zone=zone)
        files, numbers = files.filter(keep), numbers.filter(keep)
    values = typed_columns(files, physical, names, time_zone=zone)
    columns = dict(zip(mapping.partition_columns, values.columns, strict=True))
    columns |= {name: files.column(column) for name, column in spec["per_file"]}
    deleted = files[DELETED].to_pylist() if DELETED in files.column_names else [None] * files.num_rows
    if spec["number"] is not None:
        columns[spec["number"]] = numbers
    planned = []
    for i, (path, size) in enumerate(zip(files["path"].to_pylist(), files["size"].to_pylist(), strict=True)):
        location, uri = absolute(spec["table"], path), absolute_uri(spec["table"], path)
        named = f"the file {location}, which is part of version {spec['version']} of {spec['table']},"
        constants = {name: column.take([i]) for name, column in columns.items()}
        planned.append(
            {
                "path": path_in(uri),
                "place": place_of(uri),
                "size": size,
                "constants": constants,
                "named": named,
                "deleted": deleted[i],
                "row_index": spec["row_index"],
            }
        )
    return planned


def _mapping(spec: Mapping[str, Any]) -> ColumnMapping:
    return ColumnMapping(spec["mode"], schemas.parse_schema(spec["schema"]), tuple(spec["partition_columns"]))


def marked(spec: Mapping[str, Any], shown: schemas.StructType) -> pa.Schema:
    """The Arrow schema of these columns; each field has the `id` or the `name` of the column in files as metadata."""
    mapping = _mapping(spec)
    if not mapping.active:
        return schemas.arrow_schema(shown)
    mapped = dict(schemas.all_fields(mapping.logical))

    def marked_field(struct_field: pa.Field, at: schemas.Column) -> pa.Field:
        field = mapped.get(at)
        marks = {}
        if field is not None and mapping.mode == "id":
            marks = {"id": str(column_mapping.field_id(field))}
        elif field is not None:
            marks = {"name": column_mapping.physical_name(field)}
        return pa.field(struct_field.name, inside(struct_field.type, at), struct_field.nullable, marks)

    def inside(kind: pa.DataType, at: schemas.Column) -> pa.DataType:
        if pa.types.is_struct(kind):
            return pa.struct([marked_field(f, (*at, f.name)) for f in kind])
        if pa.types.is_list(kind):
            element = kind.value_field
            return pa.list_(element.with_type(inside(element.type, (*at, "element"))))
        if pa.types.is_map(kind):
            item = kind.item_field
            return pa.map_(inside(kind.key_type, (*at, "key")), item.with_type(inside(item.type, (*at, "value"))))
        return kind

    return pa.schema([marked_field(f, (f.name,)) for f in schemas.arrow_schema(shown)])


def predicate_of(filters: Any, schema: schemas.StructType) -> Any:
    """The predicate for the filters that Spark pushes down; unsupported filters skip no files."""
    operators = {
        "EqualTo": "=",
        "EqualNullSafe": "<=>",
        "GreaterThan": ">",
        "GreaterThanOrEqual": ">=",
        "LessThan": "<",
        "LessThanOrEqual": "<=",
    }

    def predicate_for(pushed: Any) -> Any:
        kind = type(pushed).__name__
        if kind == "Not":
            return predicates.Not(predicate_for(pushed.child))
        match = schemas.find(schema, pushed.attribute, case_sensitive=True) if hasattr(pushed, "attribute") else None
        if match is None:
            return predicates.Opaque(kind)
        column, field = match
        if field.data_type not in _PUSHED or schemas.has_collation(field):
            return predicates.Opaque(kind)
        arrow = schemas.arrow_type(field.data_type)
        if kind in operators and pushed.value is not None:
            return predicates.Compare(operators[kind], column, pa.scalar(pushed.value, arrow))  # type: ignore[arg-type]
        if kind == "In":
            return predicates.In(column, tuple(pa.scalar(value, arrow) for value in pushed.value))
        if kind == "IsNull":
            return predicates.IsNull(column)
        if kind == "IsNotNull":
            return predicates.IsNotNull(column)
        if kind == "StringStartsWith" and field.data_type == schemas.STRING:
            return predicates.StartsWith(column, pushed.value)
        return predicates.Opaque(kind)

    return predicates.all_of(predicate_for(pushed) for pushed in filters)
