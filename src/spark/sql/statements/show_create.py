"""SHOW CREATE TABLE of a Delta table: Spark's answer, with what Spark doesn't know of the columns and the layout."""

import re

from pyspark.sql import DataFrame

from ....core.protocol import schema as schemas
from ....core.protocol.properties import CONSTRAINT_PREFIX, PROPERTIES
from ....core.protocol.rules import identity_of
from ....core.table.snapshot import Snapshot
from ....dml.maintain import cluster_by
from ....engine.jvm.registry.classes import class_name
from .. import tables
from ..statement import Statement

_PROPERTIES = "TBLPROPERTIES ("
_PROPERTY = re.compile(r"  '(.+?)' = '")
_LINE = re.compile(r"""(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`(?:[^`]|``)*`|[^'"`\n])+""", re.DOTALL)
"""A line of the statement; strings and names in quotes may have line feeds."""


def _show_create_table(statement: Statement) -> DataFrame | None:
    """The statement that creates an empty table like this one, and one more for each of its constraints."""
    child = statement.plan.child()
    if statement.plan.asSerde() or class_name(child) != "UnresolvedTableOrView":
        return None
    table = tables.find(statement.spark, child.multipartIdentifier())
    if table is None or table.by_view:
        return None
    shown = statement.frame(statement.plan)
    (row,) = shown.collect()
    return statement.spark.createDataFrame([(_completed(row[0], table.log.snapshot()),)], shown.schema)


def _completed(text: str, snapshot: Snapshot) -> str:
    """Spark's statement, which has a line for each column and each property, and a comma or a bracket at its end."""
    header, *lines = _LINE.findall(text)
    fields = list(snapshot.schema)
    columns = [line[:-1] + _generated(field) for line, field in zip(lines, fields, strict=False)]
    clauses = lines[len(fields) :]
    start = clauses.index(_PROPERTIES)
    properties = [line for line in (line[:-1] for line in clauses[start + 1 :]) if _is_editable(line)]
    clauses = clauses[:start]
    clustered = cluster_by.current(snapshot)
    if clustered:
        clauses.insert(1, f"CLUSTER BY ({', '.join(map(schemas.dotted, clustered))})")
    created = "\n".join([header, _listed(columns), *clauses, _PROPERTIES, _listed(properties)])
    name = header.removeprefix("CREATE TABLE ").removesuffix(" (")
    constraints = [
        f"ALTER TABLE {name} ADD CONSTRAINT {schemas.dotted((key[len(CONSTRAINT_PREFIX) :],))} CHECK ({condition})"
        for key, condition in sorted(snapshot.metadata.configuration.items())
        if key.startswith(CONSTRAINT_PREFIX)
    ]
    return ";\n".join([created, *constraints]) + "\n"


def _listed(lines: list[str]) -> str:
    return ",\n".join(lines) + ")"


def _generated(field: schemas.StructField) -> str:
    expression, identity = field.metadata.get(schemas.GENERATION_KEY), identity_of(field)
    if expression is not None:
        return f" GENERATED ALWAYS AS ({expression})"
    if identity is None:
        return ""
    how = "BY DEFAULT" if identity.explicit else "ALWAYS"
    return f" GENERATED {how} AS IDENTITY (START WITH {identity.start} INCREMENT BY {identity.step})"


def _is_editable(line: str) -> bool:
    """Whether CREATE TABLE takes the property: tablelog sets the others, or they are clauses and statements."""
    named = _PROPERTY.match(line)
    key = "" if named is None else named[1]
    known = PROPERTIES.get(key.lower().removeprefix("delta."))
    elsewhere = key == "clusteringColumns" or key.startswith(CONSTRAINT_PREFIX)
    return not elsewhere and (known is None or known.editable)


HANDLERS = {"ShowCreateTable": _show_create_table}
