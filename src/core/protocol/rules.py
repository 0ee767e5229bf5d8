"""The rules for a table's rows, and the values of columns that a write leaves out.

PROTOCOL.md, "Column Invariants", "CHECK Constraints", "Generated Columns", "Default Columns", "Identity Columns". Rules
are SQL texts and numbers here; the engine evaluates them with Spark.
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
    """A condition that must be TRUE for each row. `what` is its name in messages: "the CHECK constraint adult"."""

    what: str
    sql: str


@dataclass(frozen=True, slots=True)
class Identity:
    """An identity column: its values are start + k * step, with k from 0 on, each of them once.

    `mark` is the last generated value (`None`: none yet). `explicit`: a write may set values itself.
    """

    start: int
    step: int
    mark: int | None = None
    explicit: bool = False

    @property
    def first(self) -> int:
        """The first value of the next write; `ConstraintViolationError` if it isn't a bigint."""
        value = self.start if self.mark is None else self._upwards(self.mark) + self.step
        if not _LOWEST <= value <= _HIGHEST:
            raise ConstraintViolationError(f"an identity column has no more values: {value} exceeds bigint")
        return value

    def moved(self, furthest: int) -> int | None:
        """The mark after `furthest` was written, or `None` if it doesn't change.

        A value before the start doesn't change it, otherwise values from the start on would never be used. A value that
        a user set may be between two values of the column.
        """
        if (furthest - self.start) * self.step < 0:
            return None
        candidate = self._upwards(furthest)
        if self.mark is not None and (candidate - self.mark) * self.step <= 0:
            return None
        return candidate

    def _upwards(self, value: int) -> int:
        """The value itself if it is one of the column's values, else the next one."""
        return self.start - (self.start - value) // self.step * self.step


def identity_of(struct_field: StructField) -> Identity | None:
    """The identity settings of the column, if it has any; `CorruptLogError` if they are incomplete."""
    if not any(key.startswith(IDENTITY_PREFIX) for key in struct_field.metadata):
        return None
    try:
        mark = struct_field.metadata.get(MARK)
        identity = Identity(
            int(struct_field.metadata[START]),
            int(struct_field.metadata[STEP]),
            None if mark is None else int(mark),
            struct_field.metadata[EXPLICIT],
        )
    except (KeyError, TypeError, ValueError) as error:
        raise CorruptLogError(
            f"the identity column {struct_field.name} has a missing or invalid setting: {error}"
        ) from None
    if identity.step == 0:
        raise CorruptLogError(f"the identity column {struct_field.name} has the step 0")
    return identity


@dataclass(frozen=True)
class Rules:
    """The rules of a table, by its columns' names. Every text is SQL over the table's columns."""

    checks: tuple[Check, ...] = ()
    generated: Mapping[str, str] = field(default_factory=dict)
    identity: Mapping[str, Identity] = field(default_factory=dict)
    defaults: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, protocol: Protocol, metadata: Metadata) -> "Rules":
        """The rules that the protocol enforces; as in Delta, rules of features that it doesn't have are ignored."""
        schema = parse_schema(metadata.schema_string)
        has = features.supported(protocol)
        generated = schema.fields if "generatedColumns" in has else ()
        identity = schema.fields if "identityColumns" in has else ()
        return cls(
            (*(_constraints(metadata) if "checkConstraints" in has else ()), *_invariants(schema)),
            {f.name: f.metadata[GENERATION_KEY] for f in generated if GENERATION_KEY in f.metadata},
            {f.name: settings for f in identity if (settings := identity_of(f)) is not None},
            {f.name: f.metadata[DEFAULT_KEY] for f in schema if DEFAULT_KEY in f.metadata},
        )


NO_RULES = Rules()
"""For rows that are in the table already."""


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
    for name, struct_field in all_fields(schema):
        if INVARIANTS_KEY in struct_field.metadata:
            yield Check(
                f"the invariant of the column {dotted(name)}",
                _invariant(str(struct_field.metadata[INVARIANTS_KEY]), name),
            )


def _invariant(text: str, column: Column) -> str:
    try:
        value = json.loads(text)["expression"]["expression"]
    except (ValueError, KeyError, TypeError):
        value = None
    if not isinstance(value, str):
        raise CorruptLogError(f"the metadata {INVARIANTS_KEY} of the column {dotted(column)} isn't valid: {text}")
    return value


def without_leftovers(metadata: Metadata, protocol: Protocol) -> Metadata:
    """The metadata without column rules of features that the table's protocol doesn't have.

    Writers that copied a DataFrame's metadata wrote them, and no row was checked. As in Delta, a change of the metadata
    removes them instead of enabling them.
    """
    has = features.supported(protocol)
    unsupported_keys = [] if "generatedColumns" in has else [GENERATION_KEY]
    unsupported_keys += [] if "identityColumns" in has else [START, STEP, MARK, EXPLICIT]
    if not any(key in metadata.schema_string for key in unsupported_keys):
        return metadata
    columns = parse_schema(metadata.schema_string)
    kept = (replace(f, metadata={k: v for k, v in f.metadata.items() if k not in unsupported_keys}) for f in columns)
    return replace(metadata, schema_string=to_json(StructType(tuple(kept))))


def moved_marks(schema: StructType, names: Collection[str], adds: Iterable[AddFile]) -> StructType:
    """The schema after `adds` were written with new values of the identity columns `names`.

    The new marks come from the files' statistics, which always include identity columns.
    """
    files = [json.loads(add.stats) for add in adds if add.stats]
    return StructType(tuple(_moved(f, files) if f.name in names else f for f in schema))


def _moved(struct_field: StructField, files: Sequence[Mapping[str, Any]]) -> StructField:
    identity = identity_of(struct_field)
    assert identity is not None
    side, furthest = ("maxValues", max) if identity.step > 0 else ("minValues", min)
    name = struct_field.metadata.get(PHYSICAL_NAME, struct_field.name)
    values = [bounds[name] for stats in files if name in (bounds := stats.get(side) or {})]
    mark = identity.moved(furthest(values)) if values else None
    return struct_field if mark is None else replace(struct_field, metadata={**struct_field.metadata, MARK: mark})
