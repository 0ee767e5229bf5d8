"""Reads the definition of a table from the nodes of Spark's parser: columns, partitioning, and changes of columns."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ....core.protocol import rules
from ....core.protocol import schema as schemas
from .. import types
from ..catalog import location_text
from ..connection.gateway import Gateway, JavaObject
from ..registry.classes import class_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Spark's keys in the metadata of a column that it parsed, and the keys of the Delta log.
_KEYS = {
    "GENERATION_EXPRESSION": schemas.GENERATION_KEY,
    "identity.start": rules.START,
    "identity.step": rules.STEP,
    "identity.allowExplicitInsert": rules.EXPLICIT,
}
_EXISTING_DEFAULT = "EXISTS_DEFAULT"


@dataclass(frozen=True)
class TableSpecification:
    """The clauses of CREATE TABLE that aren't columns. `serde`: the table has the format of Hive."""

    provider: str | None
    location: str | None
    comment: str | None
    collation: str | None
    properties: Mapping[str, str]
    options: Mapping[str, str]
    serde: bool
    constraints: int


@dataclass(frozen=True)
class Partitioning:
    """PARTITIONED BY and CLUSTER BY. `unsupported` are the other transforms, such as "bucket"."""

    columns: tuple[str, ...] = ()
    cluster_by: tuple[schemas.Column, ...] | None = None
    unsupported: tuple[str, ...] = ()


@dataclass(frozen=True)
class AddedColumn:
    """A column of ADD or REPLACE COLUMNS. `position`: empty for FIRST, else the column that precedes it."""

    parent: schemas.Column
    field: schemas.StructField
    position: schemas.Column | None


@dataclass(frozen=True)
class AlteredColumn:
    """A change of ALTER COLUMN; None keeps the current value.

    `default` is SQL, empty to drop the default. `position` is empty for FIRST, else the column that precedes it.
    """

    column: schemas.Column
    type: schemas.StructField | None
    nullable: bool | None
    comment: str | None
    position: schemas.Column | None
    default: str | None


@dataclass(frozen=True)
class TableLike:
    """CREATE TABLE LIKE. `name` and `source` are Scala `Seq`s of the parts of names; `serde`: as above."""

    name: JavaObject
    source: JavaObject
    provider: str | None
    location: str | None
    properties: Mapping[str, str]
    if_not_exists: bool
    serde: bool


def option(value: JavaObject) -> Any:
    """The value of a Scala `Option`, None for an empty one."""
    return value.get() if value.isDefined() else None


def strings(sequence: JavaObject) -> tuple[str, ...]:
    """The texts of a Scala `Seq`."""
    return tuple(str(part) for part in Gateway.elements(sequence))


def texts(scala_map: JavaObject) -> dict[str, Any]:
    """A Scala `Map` of texts; a null stays None."""
    pairs = [(pair._1(), pair._2()) for pair in Gateway.elements(scala_map.toSeq())]
    return {str(key): value if value is None else str(value) for key, value in pairs}


def specification(spec: JavaObject) -> TableSpecification:
    """The clauses of a `UnresolvedTableSpec`."""
    options = {
        str(pair._1()): str(pair._2().toString()) for pair in Gateway.elements(spec.optionExpression().options())
    }
    return TableSpecification(
        option(spec.provider()),
        option(spec.location()),
        option(spec.comment()),
        option(spec.collation()),
        texts(spec.properties()),
        options,
        bool(spec.serde().isDefined()),
        int(spec.constraints().size()),
    )


def columns(spark: "SparkSession", definitions: JavaObject) -> schemas.StructType:
    """The columns of CREATE TABLE, a `Seq` of `ColumnDefinition`."""
    kind = Gateway.of(spark).jvm.org.apache.spark.sql.types.StructType
    struct = kind(
        Gateway.of(spark).array(
            _struct_field(spark), [definition.toV1Column() for definition in _elements(definitions)]
        )
    )
    return _declared(json.loads(struct.json())["fields"])


def partitioning(transforms: JavaObject) -> Partitioning:
    """The clauses of a `Seq` of `Transform`."""
    names: list[str] = []
    unsupported: list[str] = []
    cluster_by: tuple[schemas.Column, ...] | None = None
    for transform in _elements(transforms):
        kind = str(transform.name())
        if kind == "identity":
            parts = strings(transform.ref().parts())
            names.append(parts[0] if len(parts) == 1 else schemas.dotted(parts))  # the latter is refused by this name
        elif kind == "cluster_by":
            cluster_by = tuple(strings(column.parts()) for column in _elements(transform.columnNames()))
        else:
            unsupported.append(kind)
    return Partitioning(tuple(names), cluster_by, tuple(unsupported))


def like(spark: "SparkSession", plan: JavaObject) -> TableLike | None:
    """The clauses of CREATE TABLE LIKE; None if a name is not resolved. Before Spark 4.2, the plan is a V1 command."""
    provider, properties = option(plan.provider()), texts(plan.properties())
    if class_name(plan) == "CreateTableLikeCommand":
        storage = plan.fileFormat()
        uri = option(storage.locationUri())
        location = None if uri is None else location_text(Gateway.of(spark), uri)
        name, source = (_parts(spark, identifier) for identifier in (plan.targetTable(), plan.sourceTable()))
        serde = bool(storage.inputFormat().isDefined())
        return TableLike(name, source, provider, location, properties, bool(plan.ifNotExists()), serde)
    if class_name(plan.name()) != "UnresolvedIdentifier":
        return None
    if class_name(plan.source()) != "UnresolvedTableOrView":
        return None
    return TableLike(
        plan.name().nameParts(),
        plan.source().multipartIdentifier(),
        provider,
        option(plan.location()),
        properties,
        bool(plan.ifNotExists()),
        bool(plan.serdeInfo().isDefined()),
    )


def clustering(plan: JavaObject) -> tuple[schemas.Column, ...]:
    """The columns of ALTER TABLE CLUSTER BY; empty for NONE."""
    cluster_by = option(plan.clusterBySpec())
    return (
        () if cluster_by is None else tuple(strings(column.parts()) for column in _elements(cluster_by.columnNames()))
    )


def added_columns(definitions: JavaObject) -> list[AddedColumn]:
    """The columns of ADD and REPLACE COLUMNS, a `Seq` of `QualifiedColType`."""
    added = []
    for definition in _elements(definitions):
        metadata = {}
        comment, default, position = (
            option(definition.comment()),
            option(definition.default()),
            option(definition.position()),
        )
        if comment is not None:
            metadata["comment"] = str(comment)
        if default is not None:
            metadata[schemas.DEFAULT_KEY] = str(default.originalSQL())
        (field,) = _declared(
            [_json(str(definition.colName()), definition.dataType(), bool(definition.nullable()), metadata)]
        ).fields
        path = option(definition.path())
        parent = () if path is None else strings(path.name())
        added.append(AddedColumn(parent, field, None if position is None else _preceding(position)))
    return added


def altered_columns(specifications: JavaObject) -> list[AlteredColumn]:
    """The changes of ALTER COLUMN, a `Seq` of `AlterColumnSpec`."""
    altered = []
    for specification in _elements(specifications):
        kind, comment = option(specification.newDataType()), option(specification.newComment())
        default, position = option(specification.newDefaultExpression()), option(specification.newPosition())
        field = None
        if kind is not None:
            (field,) = _declared([_json("c", kind, True, {})]).fields
        new_default = "" if specification.dropDefault() else None if default is None else str(default.originalSQL())
        altered.append(
            AlteredColumn(
                strings(specification.column().name()),
                field,
                option(specification.newNullability()),
                None if comment is None else str(comment),
                None if position is None else _preceding(position),
                new_default,
            )
        )
    return altered


def entry_columns(table: JavaObject) -> schemas.StructType:
    """The columns of a `CatalogTable` of another format."""
    return _declared(json.loads(table.schema().json())["fields"])


def _parts(spark: "SparkSession", identifier: JavaObject) -> JavaObject:
    """The parts of a `TableIdentifier`, as a Scala `Seq`."""
    parts = (option(identifier.catalog()), option(identifier.database()), str(identifier.table()))
    return Gateway.of(spark).seq([part for part in parts if part is not None])


def _elements(sequence: JavaObject) -> list[JavaObject]:
    return Gateway.elements(sequence)


def _struct_field(spark: "SparkSession") -> JavaObject:
    return Gateway.of(spark).jvm.org.apache.spark.sql.types.StructField


def _json(name: str, kind: JavaObject, nullable: bool, metadata: Mapping[str, str]) -> dict[str, Any]:
    return {"name": name, "type": json.loads(kind.json()), "nullable": nullable, "metadata": dict(metadata)}


def _declared(fields: list[dict[str, Any]]) -> schemas.StructType:
    from pyspark.sql.types import StructType

    for field in fields:
        metadata = field["metadata"]
        field["metadata"] = {_KEYS.get(key, key): metadata[key] for key in metadata if key != _EXISTING_DEFAULT}
    return types.declared(StructType.fromJson({"type": "struct", "fields": fields}))


def _preceding(position: JavaObject) -> schemas.Column:
    """The column after which a column is to be; empty for FIRST."""
    after = position.position()
    return () if class_name(after) == "First" else (str(after.column()),)
