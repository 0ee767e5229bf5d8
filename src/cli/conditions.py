"""Conditions on columns, as `--where` has them: `day = 2024-05-01`, `id >= 7`, `name is null`."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from ..errors import InvalidArgumentError
from .column_names import IN_BACKQUOTES, found

if TYPE_CHECKING:
    from ..core.protocol.schema import StructType
    from ..core.skipping.predicates import Operator, Predicate

_COLUMN = rf"(?P<column>(?:{IN_BACKQUOTES}|[^<>=!`])+?)"
_NULL = re.compile(rf"{_COLUMN}\s+is\s+(?P<negated>not\s+)?null", re.IGNORECASE | re.DOTALL)
_COMPARED = re.compile(rf"{_COLUMN}\s*(?P<operator><=|>=|!=|<>|==|=|<|>)\s*(?P<value>.*)", re.DOTALL)
_SAME_OPERATOR = {"<>": "!=", "==": "="}


def parse(texts: Sequence[str], schema: "StructType") -> "Predicate":
    """The conjunction of conditions `COLUMN OPERATOR VALUE`, `COLUMN is null` and `COLUMN is not null`.

    A value may be in single or double quotes; it is read as the type of the column.

    Raises:
        InvalidArgumentError: A text isn't a condition, there is no such column, or the value isn't of its type.
    """
    from ..core.skipping.predicates import all_of

    return all_of([_condition(text.strip(), schema) for text in texts])


def _condition(text: str, schema: "StructType") -> "Predicate":
    import pyarrow as pa

    from ..core.protocol.partition_values import typed_value
    from ..core.protocol.schema import STRING, PrimitiveType, has_collation
    from ..core.skipping.predicates import Compare, IsNotNull, IsNull

    match = _NULL.fullmatch(text) or _COMPARED.fullmatch(text)
    if match is None:
        raise InvalidArgumentError(f'--where needs COLUMN OPERATOR VALUE, such as "day = 2024-05-01", not {text!r}')
    name = match["column"]
    column, f = found(name, schema, "--where")
    if "operator" not in match.groupdict():
        return IsNotNull(column) if match["negated"] else IsNull(column)
    if not isinstance(f.data_type, PrimitiveType):
        raise InvalidArgumentError(f"--where: the column {name!r} can't be compared, because it isn't a single value")
    if has_collation(f):
        raise InvalidArgumentError(f"--where: the column {name!r} has a collation, by which only Spark can compare")
    operator = _SAME_OPERATOR.get(match["operator"], match["operator"])
    value = _unquoted(match["value"].strip())
    if not value and f.data_type == STRING:  # as a partition value, the empty text is null
        return Compare(cast("Operator", operator), column, pa.scalar("", pa.string()))
    try:
        literal = typed_value(value or None, f.data_type, time_zone="UTC")
    except Exception:
        literal = None
    if literal is None or not literal.is_valid:
        raise InvalidArgumentError(f"--where: {value!r} isn't a value of the type {f.data_type.name}")
    return Compare(cast("Operator", operator), column, literal)


def _unquoted(value: str) -> str:
    quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "'\""
    return value[1:-1] if quoted else value
