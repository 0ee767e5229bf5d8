"""Conditions on partition columns: a file has one value for all its rows, so the result is exact."""

from typing import TYPE_CHECKING

from ..protocol.schema import PrimitiveType
from .bounds import compare, literal_of
from .file_masks import FilesToPrune, Leaf, MayMatch
from .predicates import (
    Compare,
    In,
    IsNotNull,
    IsNull,
    StartsWith,
)

if TYPE_CHECKING:
    import pyarrow as pa


def _certain(result: "pa.Array") -> MayMatch:
    """The masks for a three-valued result that is the same for every row of a file."""
    import pyarrow.compute as pc

    return MayMatch(pc.fill_null(result, False), pc.fill_null(pc.invert(result), False))


def by_partition_value(files: FilesToPrune, values: "pa.Array", data_type: PrimitiveType, node: Leaf) -> MayMatch:
    """The masks of `node`, whose column has the values `values`, one for each file."""
    import pyarrow as pa
    import pyarrow.compute as pc

    match node:
        case IsNull():
            return _certain(pc.is_null(values))
        case IsNotNull():
            return _certain(pc.is_valid(values))
        case StartsWith(_, prefix):
            if data_type.name != "string":
                return files.unknown()
            return _certain(pc.starts_with(values, prefix))
        case Compare(op, _, value):
            literal = literal_of(value, data_type)
            if literal is None:
                return files.unknown()
            if op == "<=>":
                if not literal.is_valid:
                    return _certain(pc.is_null(values))
                return _certain(pc.fill_null(compare(values, "=", literal), False))
            if not literal.is_valid:
                return files.never()
            return _certain(compare(values, op, literal))
        case In(_, listed):
            result: pa.Array = files.all(False)
            for value in listed:
                literal = literal_of(value, data_type)
                if literal is None:
                    return files.unknown()
                equal = compare(values, "=", literal) if literal.is_valid else pa.nulls(files.rows, pa.bool_())
                result = pc.or_kleene(result, equal)
            return _certain(result)
