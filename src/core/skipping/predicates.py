"""Predicates as values: the conditions on rows that the core can evaluate.

The logic is SQL's: TRUE, FALSE or unknown (null). A predicate doesn't define its evaluation: `pruning` uses it to find
the files that may have a row, `core.txn.conflict` to decide whether a concurrent commit touched what was read. A
literal is an Arrow scalar of the column's type (a null scalar is SQL's NULL). Columns have their exact logical names.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    import pyarrow as pa

Column: TypeAlias = tuple[str, ...]
"""The logical name of a column: one part for each struct level."""

Operator: TypeAlias = Literal["=", "!=", "<", "<=", ">", ">=", "<=>"]


@dataclass(frozen=True, slots=True)
class Compare:
    """`column op value`; `<=>` is the null-safe equality, which is never unknown."""

    op: Operator
    column: Column
    value: "pa.Scalar"

    def __reduce__(self) -> tuple[Any, ...]:
        return _compare, (self.op, self.column, _arrays([self.value]))


@dataclass(frozen=True, slots=True)
class In:
    """`column IN (values)`."""

    column: Column
    values: tuple["pa.Scalar", ...]

    def __reduce__(self) -> tuple[Any, ...]:
        return _in, (self.column, _arrays(self.values))


def _arrays(values: "Iterable[pa.Scalar]") -> "list[pa.Array]":
    """The values as arrays, for pickling: a pickled scalar becomes a Python value, and Python lacks most years."""
    import pyarrow as pa

    return [pa.repeat(value, 1) for value in values]


def _compare(op: Operator, column: Column, values: "list[pa.Array]") -> Compare:
    return Compare(op, column, values[0][0])


def _in(column: Column, values: "list[pa.Array]") -> In:
    return In(column, tuple(value[0] for value in values))


@dataclass(frozen=True, slots=True)
class IsNull:
    column: Column


@dataclass(frozen=True, slots=True)
class IsNotNull:
    column: Column


@dataclass(frozen=True, slots=True)
class StartsWith:
    """`column LIKE 'prefix%'`, case-sensitive."""

    column: Column
    prefix: str


@dataclass(frozen=True, slots=True)
class And:
    """The conjunction of `children`; TRUE if there are none."""

    children: tuple["Predicate", ...]


@dataclass(frozen=True, slots=True)
class Or:
    """The disjunction of `children`; FALSE if there are none."""

    children: tuple["Predicate", ...]


@dataclass(frozen=True, slots=True)
class Not:
    child: "Predicate"


@dataclass(frozen=True, slots=True)
class Constant:
    """TRUE, FALSE, or unknown (`None`)."""

    value: bool | None


@dataclass(frozen=True, slots=True)
class Opaque:
    """A condition that only Spark can evaluate, so its value is unknown here. `text` is for messages.

    `columns` are the columns in it; `None`: unknown, so it may use any column.
    """

    text: str
    columns: frozenset[Column] | None = None


Predicate: TypeAlias = Compare | In | IsNull | IsNotNull | StartsWith | And | Or | Not | Constant | Opaque

TRUE = Constant(True)


def walk(predicate: Predicate) -> Iterator[Predicate]:
    """The predicate and all predicates inside it, outermost first."""
    pending = [predicate]
    while pending:
        node = pending.pop()
        yield node
        if isinstance(node, And | Or):
            pending.extend(reversed(node.children))
        elif isinstance(node, Not):
            pending.append(node.child)


def columns(predicate: Predicate) -> frozenset[Column]:
    """The columns in the predicate, including those of `Opaque` parts if they are known."""
    names: set[Column] = set()
    for node in walk(predicate):
        if isinstance(node, Compare | In | IsNull | IsNotNull | StartsWith):
            names.add(node.column)
        elif isinstance(node, Opaque) and node.columns is not None:
            names |= node.columns
    return frozenset(names)


def with_columns(predicate: Predicate, renamed: Callable[[Column], Column]) -> Predicate:
    """The predicate with renamed columns."""
    if isinstance(predicate, And | Or):
        return type(predicate)(tuple(with_columns(child, renamed) for child in predicate.children))
    if isinstance(predicate, Not):
        return Not(with_columns(predicate.child, renamed))
    if isinstance(predicate, Compare | In | IsNull | IsNotNull | StartsWith):
        return replace(predicate, column=renamed(predicate.column))
    if isinstance(predicate, Opaque) and predicate.columns is not None:
        return replace(predicate, columns=frozenset(map(renamed, predicate.columns)))
    return predicate


def partition_only(predicate: Predicate, partition_columns: Iterable[str]) -> bool:
    """Whether the predicate depends only on partition columns, so that all rows of a file have the same result."""
    names = {(name,) for name in partition_columns}
    for node in walk(predicate):
        if isinstance(node, Compare | In | IsNull | IsNotNull | StartsWith):
            if node.column not in names:
                return False
        elif isinstance(node, Opaque) and (node.columns is None or not node.columns <= names):
            return False
    return True


def is_translated(predicate: Predicate) -> bool:
    """Whether no part of the predicate is `Opaque`."""
    return not any(isinstance(node, Opaque) for node in walk(predicate))


def conjuncts(predicate: Predicate) -> Iterator[Predicate]:
    """The parts that must all be TRUE for the predicate to be TRUE."""
    pending = [predicate]
    while pending:
        node = pending.pop()
        if isinstance(node, And):
            pending.extend(reversed(node.children))
        else:
            yield node


def all_of(parts: Iterable[Predicate]) -> Predicate:
    """The conjunction of the parts, with nested `And`s flattened; TRUE if there are none."""
    flat = [part for predicate in parts for part in conjuncts(predicate) if part != TRUE]
    if not flat:
        return TRUE
    return flat[0] if len(flat) == 1 else And(tuple(flat))


def split(predicate: Predicate, partition_columns: Iterable[str]) -> tuple[Predicate, Predicate]:
    """(partition part, data part) whose conjunction is the predicate; an empty part is `TRUE`.

    Conjuncts that `partition_only` accepts form the first part, all others the second.
    """
    names = tuple(partition_columns)
    partition: list[Predicate] = []
    data: list[Predicate] = []
    for part in conjuncts(predicate):
        (partition if partition_only(part, names) else data).append(part)
    return all_of(partition), all_of(data)
