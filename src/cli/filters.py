"""The rows of a batch for which a predicate is true."""

from typing import TYPE_CHECKING, Any

from ..errors import InvalidArgumentError

if TYPE_CHECKING:
    import pyarrow as pa

    from ..core.skipping.predicates import Column, Predicate

_FUNCTIONS = {
    "=": "equal",
    "!=": "not_equal",
    "<": "less",
    "<=": "less_equal",
    ">": "greater",
    ">=": "greater_equal",
}


def matching(batch: "pa.RecordBatch", predicate: "Predicate") -> "pa.RecordBatch":
    """The rows for which each of the conditions that `conditions.parse` knows is true."""
    from ..core.skipping.predicates import conjuncts

    for part in conjuncts(predicate):
        batch = batch.filter(_mask(batch, part))
    return batch


def _mask(batch: "pa.RecordBatch", part: "Predicate") -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    from ..core.skipping.predicates import Compare, IsNotNull, IsNull

    if isinstance(part, IsNull):
        return pc.is_null(_column(batch, part.column))
    if isinstance(part, IsNotNull):
        return pc.is_valid(_column(batch, part.column))
    if isinstance(part, Compare) and part.op in _FUNCTIONS:
        values = _column(batch, part.column)
        value = part.value.cast(values.type)
        if pa.types.is_floating(values.type):
            return _float_mask(values, part.op, value)
        return pc.call_function(_FUNCTIONS[part.op], [values, value])
    raise InvalidArgumentError(f"a condition of the kind {type(part).__name__} can't be evaluated on rows")


def _float_mask(values: Any, operator: str, value: Any) -> Any:
    """As in Spark, NaN equals NaN and is larger than all other numbers; for Arrow, each comparison with it is false."""
    import pyarrow.compute as pc

    is_nan = pc.is_nan(values)
    if value.as_py() == value.as_py():
        mask = pc.call_function(_FUNCTIONS[operator], [values, value])
        return pc.or_(mask, is_nan) if operator in (">", ">=", "!=") else mask
    if operator in ("=", ">="):
        return is_nan
    if operator in ("!=", "<"):
        return pc.invert(is_nan)
    return pc.and_(pc.is_valid(values), operator == "<=")


def _column(batch: "pa.RecordBatch", column: "Column") -> Any:
    import pyarrow.compute as pc

    values = batch.column(column[0])
    for name in column[1:]:
        values = pc.struct_field(values, name)
    return values
