"""The files of another table as files of a clone: with absolute paths, by column."""

from typing import TYPE_CHECKING

from ..protocol import deletion_vectors, paths
from ..protocol.actions import DeletionVectorDescriptor

if TYPE_CHECKING:
    import pyarrow as pa

# Such a path is the same in a URI: it is relative, in normal form, and without escapes.
_PLAIN = r"^[\w=-][\w=.-]*(/[\w=-][\w=.-]*)*$"


def adopted_vector(vector: DeletionVectorDescriptor | None, source: str) -> DeletionVectorDescriptor | None:
    """A deletion vector of the table at `source` for another table: with an absolute path, unless it is inline."""
    if vector is None or vector.storage_type == "i":
        return vector
    place = paths.absolute_uri(source, deletion_vectors.path_of(vector))
    return DeletionVectorDescriptor("p", place, vector.size_in_bytes, vector.cardinality, vector.offset)


def adopted(files: "pa.Table", source: str) -> "pa.Table":
    """Rows of the table at `source` for another table: with absolute paths, as new data, and without row ids."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from ..log.columns import DELETION_VECTOR, deletion_vector_of, vector_struct

    names, rows = files.column_names, files.num_rows
    vectors = files.column("deletionVector")
    storage = pc.struct_field(vectors, "storageType")
    if pc.any(pc.not_equal(storage, "i")).as_py():
        moved = [vector_struct(adopted_vector(deletion_vector_of(one), source)) for one in vectors.to_pylist()]
        files = files.set_column(names.index("deletionVector"), "deletionVector", pa.array(moved, DELETION_VECTOR))
    for name, value in (
        ("path", _absolute(files.column("path"), source)),
        ("dataChange", pa.repeat(pa.scalar(True), rows)),
        ("baseRowId", pa.nulls(rows, pa.int64())),
        ("defaultRowCommitVersion", pa.nulls(rows, pa.int64())),
    ):
        files = files.set_column(names.index(name), name, value)
    return files


def _absolute(column: "pa.ChunkedArray", source: str) -> "pa.Array":
    """`paths.absolute_uri` of each path."""
    import pyarrow as pa
    import pyarrow.compute as pc

    values = column.combine_chunks()
    if isinstance(values, pa.ChunkedArray):
        values = pa.concat_arrays(values.chunks) if values.num_chunks else pa.array([], values.type)
    result = pc.binary_join_element_wise(paths.absolute_uri(source, "x")[:-1], values, "")
    odd = pc.invert(pc.match_substring_regex(values, _PLAIN))
    if not pc.any(odd).as_py():
        return result
    fixed = [paths.absolute_uri(source, path) for path in values.filter(odd).to_pylist()]
    return pc.replace_with_mask(result, odd, pa.array(fixed, result.type))
