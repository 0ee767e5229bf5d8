"""Predicates as values: what the core understands of a condition on rows.

Logic is SQL's: TRUE, FALSE or unknown (null). A predicate says nothing about how it is evaluated: `pruning` decides
by it which files may hold a row, `core.txn.conflict` whether a concurrent commit touched what was read. A literal is
an Arrow scalar of the column's own type (a null scalar is SQL's NULL); columns bear their exact logical names.
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
    """`column op value`; `<=>` is the equality that takes two nulls for equal and is never unknown."""

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
    """The values as Arrow pickles them whole: it makes Python's of a scalar, and Python lacks most years."""
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
    """All of `children`; of none: TRUE."""

    children: tuple["Predicate", ...]


@dataclass(frozen=True, slots=True)
class Or:
    """Any of `children`; of none: FALSE."""

    children: tuple["Predicate", ...]


@dataclass(frozen=True, slots=True)
class Not:
    child: "Predicate"


@dataclass(frozen=True, slots=True)
class Constant:
    """TRUE, FALSE or, as `None`, unknown."""

    value: bool | None


@dataclass(frozen=True, slots=True)
class Opaque:
    """A condition that only Spark can evaluate: anything may be its value. `text` is for messages.

    `columns` are those that it names; `None` where that isn't known, so that it may name any.
    """

    text: str
    columns: frozenset[Column] | None = None


Predicate: TypeAlias = Compare | In | IsNull | IsNotNull | StartsWith | And | Or | Not | Constant | Opaque

TRUE = Constant(True)


def walk(predicate: Predicate) -> Iterator[Predicate]:
    """The predicate and all inside it, outermost first."""
    pending = [predicate]
    while pending:
        node = pending.pop()
        yield node
        if isinstance(node, And | Or):
            pending.extend(reversed(node.children))
        elif isinstance(node, Not):
            pending.append(node.child)


def columns(predicate: Predicate) -> frozenset[Column]:
    """The columns that the predicate names, those of an `Opaque` part as far as they are known."""
    found: set[Column] = set()
    for node in walk(predicate):
        if isinstance(node, Compare | In | IsNull | IsNotNull | StartsWith):
            found.add(node.column)
        elif isinstance(node, Opaque) and node.columns is not None:
            found |= node.columns
    return frozenset(found)


def with_columns(predicate: Predicate, renamed: Callable[[Column], Column]) -> Predicate:
    """The predicate with each column called otherwise."""
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
    """Whether nothing but partition columns decides the predicate, so that a file matches as a whole or not at all."""
    names = {(name,) for name in partition_columns}
    for node in walk(predicate):
        if isinstance(node, Compare | In | IsNull | IsNotNull | StartsWith):
            if node.column not in names:
                return False
        elif isinstance(node, Opaque) and (node.columns is None or not node.columns <= names):
            return False
    return True


def translated(predicate: Predicate) -> bool:
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
    """The conjunction of the parts, with nested `And`s made flat; of none: TRUE."""
    flat = [part for given in parts for part in conjuncts(given) if part != TRUE]
    if not flat:
        return TRUE
    return flat[0] if len(flat) == 1 else And(tuple(flat))


def split(predicate: Predicate, partition_columns: Iterable[str]) -> tuple[Predicate, Predicate]:
    """(partition part, data part) whose conjunction is the predicate; a part with nothing in it is `TRUE`.

    Conjuncts that `partition_only` accepts form the first part, all others the second.
    """
    names = tuple(partition_columns)
    partition: list[Predicate] = []
    data: list[Predicate] = []
    for part in conjuncts(predicate):
        (partition if partition_only(part, names) else data).append(part)
    return all_of(partition), all_of(data)
