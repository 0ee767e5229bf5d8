"""What rows of a table must meet, and what fills the columns that a write leaves out.

PROTOCOL.md, "Column Invariants", "CHECK Constraints", "Generated Columns", "Default Columns", "Identity Columns". Rules
are SQL texts and numbers here; the engine has Spark evaluate them.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ...errors import ConstraintViolationError, CorruptLogError
from . import features
from .actions import AddFile, Metadata, Protocol
from .column_mapping import PHYSICAL_NAME
from .properties import CONSTRAINT_PREFIX
from .schema import (
    DEFAULT_KEY,
    GENERATION_KEY,
    IDENTITY_PREFIX,
    INVARIANTS_KEY,
    Column,
    StructField,
    StructType,
    all_fields,
    dotted,
    parse_schema,
    to_json,
)

START, STEP = f"{IDENTITY_PREFIX}start", f"{IDENTITY_PREFIX}step"
MARK, EXPLICIT = f"{IDENTITY_PREFIX}highWaterMark", f"{IDENTITY_PREFIX}allowExplicitInsert"

_LOWEST, _HIGHEST = -(2**63), 2**63 - 1


@dataclass(frozen=True, slots=True)
class Check:
    """A condition that is TRUE for each row of the table. `what` names it in messages: "the CHECK constraint adult"."""

    what: str
    sql: str


@dataclass(frozen=True, slots=True)
class Identity:
    """An identity column: its values are start + k * step, k from 0 on, each of them once.

    `mark` is the furthest value that was generated (`None`: none yet). `explicit`: a write may bring values of its own.
    """

    start: int
    step: int
    mark: int | None = None
    explicit: bool = False

    @property
    def first(self) -> int:
        """The first value of the next write; `ConstraintViolationError` where a bigint can't hold it."""
        value = self.start if self.mark is None else self._upwards(self.mark) + self.step
        if not _LOWEST <= value <= _HIGHEST:
            raise ConstraintViolationError(f"an identity column is used up: {value} is no bigint")
        return value

    def moved(self, furthest: int) -> int | None:
        """The mark after `furthest` was written, or `None` where it stays.

        A value before the start moves nothing, or values from the start on would never be used; one that a user gave
        may lie between two values of the column.
        """
        if (furthest - self.start) * self.step < 0:
            return None
        candidate = self._upwards(furthest)
        if self.mark is not None and (candidate - self.mark) * self.step <= 0:
            return None
        return candidate

    def _upwards(self, value: int) -> int:
        """The value itself where it is one of the column's, else the next one that is."""
        return self.start - (self.start - value) // self.step * self.step


def identity_of(f: StructField) -> Identity | None:
    """What makes the column an identity column; `CorruptLogError` where some of it is missing."""
    if not any(key.startswith(IDENTITY_PREFIX) for key in f.metadata):
        return None
    try:
        mark = f.metadata.get(MARK)
        found = Identity(
            int(f.metadata[START]), int(f.metadata[STEP]), None if mark is None else int(mark), f.metadata[EXPLICIT]
        )
    except (KeyError, TypeError, ValueError) as error:
        raise CorruptLogError(f"the identity column {f.name} lacks, or has a bad, {error}") from None
    if found.step == 0:
        raise CorruptLogError(f"the identity column {f.name} has the step 0")
    return found


@dataclass(frozen=True)
class Rules:
    """The rules of a table, by its columns' names. Every text is SQL over the table's columns."""

    checks: tuple[Check, ...] = ()
    generated: Mapping[str, str] = field(default_factory=dict)
    identity: Mapping[str, Identity] = field(default_factory=dict)
    defaults: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, protocol: Protocol, metadata: Metadata) -> "Rules":
        """The rules that the protocol enforces; marks in the metadata of other tables are leftovers, as in Delta."""
        schema = parse_schema(metadata.schema_string)
        has = features.supported(protocol)
        generated = schema.fields if "generatedColumns" in has else ()
        identity = schema.fields if "identityColumns" in has else ()
        return cls(
            (*(_constraints(metadata) if "checkConstraints" in has else ()), *_invariants(schema)),
            {f.name: f.metadata[GENERATION_KEY] for f in generated if GENERATION_KEY in f.metadata},
            {f.name: found for f in identity if (found := identity_of(f)) is not None},
            {f.name: f.metadata[DEFAULT_KEY] for f in schema if DEFAULT_KEY in f.metadata},
        )


NO_RULES = Rules()
"""Of rows that the table holds already."""


def constraints(metadata: Metadata) -> dict[str, str]:
    """Name and SQL of each CHECK constraint."""
    return {
        key[len(CONSTRAINT_PREFIX) :]: value
        for key, value in metadata.configuration.items()
        if key.lower().startswith(CONSTRAINT_PREFIX)
    }


def _constraints(metadata: Metadata) -> Iterator[Check]:
    for name, sql in constraints(metadata).items():
        yield Check(f"the CHECK constraint {name}", sql)


def _invariants(schema: StructType) -> Iterator[Check]:
    for name, f in all_fields(schema):
        if INVARIANTS_KEY in f.metadata:
            yield Check(
                f"the invariant of the column {dotted(name)}", _invariant(str(f.metadata[INVARIANTS_KEY]), name)
            )


def _invariant(text: str, column: Column) -> str:
    try:
        value = json.loads(text)["expression"]["expression"]
    except (ValueError, KeyError, TypeError):
        value = None
    if not isinstance(value, str):
        raise CorruptLogError(f"the metadata {INVARIANTS_KEY} of the column {dotted(column)} is no invariant: {text}")
    return value


def without_leftovers(metadata: Metadata, protocol: Protocol) -> Metadata:
    """The metadata without the rules of columns that the table's protocol doesn't know.

    Writers that copied a frame's metadata left them, and no row was held to them: a change of the metadata, which would
    put them in force, takes them out instead, as in Delta.
    """
    has = features.supported(protocol)
    gone = [] if "generatedColumns" in has else [GENERATION_KEY]
    gone += [] if "identityColumns" in has else [START, STEP, MARK, EXPLICIT]
    if not any(key in metadata.schema_string for key in gone):
        return metadata
    columns = parse_schema(metadata.schema_string)
    kept = (replace(f, metadata={k: v for k, v in f.metadata.items() if k not in gone}) for f in columns)
    return replace(metadata, schema_string=to_json(StructType(tuple(kept))))


def moved_marks(schema: StructType, names: Collection[str], adds: Iterable[AddFile]) -> StructType:
    """The schema after `adds` were written with new values of the identity columns `names`.

    How far the values go is told by the files' statistics, which all files have of identity columns.
    """
    files = [json.loads(add.stats) for add in adds if add.stats]
    return StructType(tuple(_moved(f, files) if f.name in names else f for f in schema))


def _moved(f: StructField, files: Sequence[Mapping[str, Any]]) -> StructField:
    found = identity_of(f)
    assert found is not None
    side, furthest = ("maxValues", max) if found.step > 0 else ("minValues", min)
    name = f.metadata.get(PHYSICAL_NAME, f.name)
    values = [bounds[name] for one in files if name in (bounds := one.get(side) or {})]
    mark = found.moved(furthest(values)) if values else None
    return f if mark is None else replace(f, metadata={**f.metadata, MARK: mark})
