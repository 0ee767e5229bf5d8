"""SQL statements, from the plans of Spark's parser: their kind, their target and their directory."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ....settings.spark_own import SOURCE_DEFAULT
from ..catalog import location_text
from ..connection import settings
from ..connection.compiled import compiled_instance
from ..connection.gateway import Gateway, JavaObject
from ..connection.java_errors import thrown_by_java
from ..connection.sessions import hadoop_configuration, is_instance, jvm_session, parsed_by, session_state
from ..registry.classes import class_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# For a temporary view, Spark's planner refuses these statements with errors that don't name the view.
_SUBJECTS = {"AddCheckConstraint": "child"}
_PRIVILEGES = "__required_write_privileges__"  # an option of Spark's own
_WITH_SPECIFICATION = ("CreateTable", "CreateTableAsSelect", "ReplaceTable", "ReplaceTableAsSelect")


@contextmanager
def formatted(spark: "SparkSession", text: str, named: Mapping[str, object]) -> Iterator[str]:
    """A statement with its `{name}` placeholders replaced; within the context, DataFrames are temporary views."""
    from pyspark.sql.sql_formatter import SQLStringFormatter

    formatter = SQLStringFormatter(spark)
    try:
        yield formatter.format(text, **named)
    finally:
        formatter.clear()


def parsed(spark: "SparkSession", text: str) -> JavaObject:
    """The plan of a statement. Raises Spark's ParseException."""
    return parsed_by(spark, "parsePlan", text)


def parsed_or_none(spark: "SparkSession", text: str) -> JavaObject | None:
    """The plan of a statement; None if Spark's parser refuses it."""
    from pyspark.errors import PySparkException

    try:
        return parsed(spark, text)
    except PySparkException:
        return None


def parsed_with_values(spark: "SparkSession", text: str, args: "Mapping[str, object] | Sequence[object]") -> JavaObject:
    """The plan of a statement with values in place of its parameter markers, by name or by position.

    Spark's parser puts the values in. Raises Spark's ParseException, and its AnalysisException for a marker without a
    value or a value that is not a constant. With `spark.sql.legacy.parameterSubstitution.constantsOnly` the parser
    leaves the markers in the plan, and Spark's analyzer refuses them later.
    """
    from pyspark.sql import functions as F

    gateway = Gateway.of(spark)
    named = dict(args) if isinstance(args, Mapping) else {f"_pos_{i}": value for i, value in enumerate(args)}
    expressions = {name: gateway.expression(spark, F.lit(value)) for name, value in named.items()}
    literals = jvm_session(spark).resolveAndValidateParameters(gateway.scala_map(expressions))
    contexts = gateway.jvm.org.apache.spark.sql.catalyst.parser
    if isinstance(args, Mapping):
        context = contexts.NamedParameterContext(literals)
    else:
        context = contexts.PositionalParameterContext(gateway.seq(literals.apply(name) for name in named))
    return parsed_by(spark, "parsePlanWithParameters", text, context)


def is_temporary_view(spark: "SparkSession", name_parts: JavaObject) -> bool:
    """Whether the name is that of a temporary view, of the session or global."""
    return bool(session_state(spark).catalog().isTempView(name_parts))


SCRIPT = "CompoundBody"
"""The result of `kind_of` for `BEGIN ... END`."""

EXECUTE_IMMEDIATE = "UnresolvedExecuteImmediate"

UNKNOWN_NAMES = ("PlanWithUnresolvedIdentifier", "UnresolvedInsert")
"""The results of `kind_of` if the name of the table is an expression (an IDENTIFIER clause)."""

_INSERTS = ("InsertIntoStatement", "OverwriteByExpression", "InsertIntoDir", *UNKNOWN_NAMES)


CHANGING_FILES = frozenset(
    {
        "AddPartitions",
        "CreateNamespace",
        "CreateTableLike",
        "CreateTableLikeCommand",
        "DropNamespace",
        "LoadData",
        "SetNamespaceLocation",
        "SetTableLocation",
        "TruncatePartition",
        "TruncateTable",
        *_INSERTS,
        *_WITH_SPECIFICATION,
    }
)
"""The results of `kind_of` for which `destinations`, `written` or `dropped_schema` may name something."""


@dataclass(frozen=True)
class Part:
    """A statement in a parsed text, and the class name of its plan; `FROM ... INSERT ... INSERT` has several."""

    kind: str
    plan: JavaObject


def parts_of(plan: JavaObject) -> list[Part]:
    """The statements of a parsed text, without their WITH clause. A query is one too, by the class of its plan."""
    kind = class_name(plan)
    if kind == "UnresolvedWith":
        return parts_of(plan.child())
    if kind == "Union" and class_name(plan.children().apply(0)) in _INSERTS:
        return [part for child in Gateway.elements(plan.children()) for part in parts_of(child)]
    return [Part(kind, plan)]


def kind_of(plan: JavaObject) -> str:
    """The class name of a parsed statement, without its WITH clause; of several INSERTs that of the first."""
    return parts_of(plan)[0].kind


def kinds_of(spark: "SparkSession", text: str) -> list[str] | None:
    """The class names of the statements in a text, as `parts_of` has them, by one call; None if Spark can't parse it.

    The members of a UNION are among them too.
    """
    kinds = _compiled(spark).of(jvm_session(spark), text)
    return None if kinds is None else str(kinds).split()


def _compiled(spark: "SparkSession") -> JavaObject:
    return compiled_instance(Gateway.of(spark), "StatementKinds")


def is_query(plan: JavaObject) -> bool:
    """Whether a parsed text is a query."""
    logical = "org.apache.spark.sql.catalyst.plans.logical"
    (first, *_) = parts_of(plan)
    if first.kind in (SCRIPT, EXECUTE_IMMEDIATE, *_INSERTS):
        return False
    return not any(is_instance(first.plan, f"{logical}.{name}") for name in ("Command", "ParsedStatement"))


def destinations(spark: "SparkSession", part: Part) -> list[str]:
    """The directories that Spark will write to or delete: those that a statement writes to or gives to a table, a
    partition or a schema. Those of a table of Delta's format are not among them."""
    kind, plan = part.kind, part.plan
    if kind == "LoadData":
        return [str(plan.path())]  # Spark moves the files of this directory
    if kind in ("SetTableLocation", "SetNamespaceLocation"):
        return [str(plan.location())]
    if kind == "AddPartitions":
        return [str(spec.location().get()) for spec in Gateway.elements(plan.parts()) if spec.location().isDefined()]
    if kind == "CreateNamespace":
        location = plan.properties().get("location")
        return [str(location.get())] if location.isDefined() else []
    if kind == "InsertIntoDir":
        provider, location = plan.provider(), plan.storage().locationUri()
    elif kind in _WITH_SPECIFICATION:
        provider, location = plan.tableSpec().provider(), plan.tableSpec().location()
    elif kind == "CreateTableLike":
        provider, location = plan.provider(), plan.location()
    elif kind == "CreateTableLikeCommand":  # before Spark 4.2
        provider, location = plan.provider(), plan.fileFormat().locationUri()
    else:
        return []
    if not location.isDefined():
        return []
    place = location.get()
    text = place if isinstance(place, str) else location_text(Gateway.of(spark), place)  # a URI is encoded
    source = provider.get() if provider.isDefined() else settings.in_force(spark, SOURCE_DEFAULT)
    return [] if source.lower() == "delta" else [text]


def written(part: Part) -> JavaObject | None:
    """The parts of the name of the table that an INSERT or TRUNCATE TABLE changes; None for other statements."""
    if part.kind in ("InsertIntoStatement", "TruncateTable", "TruncatePartition"):
        return name_of(part.plan.table())
    return None


def dropped_schema(part: Part) -> JavaObject | None:
    """The parts of the name of the schema that DROP SCHEMA drops without CASCADE; None for other statements."""
    if part.kind != "DropNamespace" or part.plan.cascade():
        return None
    namespace = part.plan.namespace()
    return namespace.multipartIdentifier() if class_name(namespace) == "UnresolvedNamespace" else None


def name_of(relation: JavaObject) -> JavaObject | None:
    """The parts of the name of an unresolved relation; None if the relation isn't a name."""
    while class_name(relation) in ("SubqueryAlias", "Filter"):
        relation = relation.child()
    named = class_name(relation) in ("UnresolvedRelation", "UnresolvedTable")
    return relation.multipartIdentifier() if named else None


def options_of(relation: JavaObject) -> dict[str, str]:
    """The options that a statement gives for a table (`WITH (...)`)."""
    while class_name(relation) in ("SubqueryAlias", "Filter"):
        relation = relation.child()
    options = dict(relation.options().asCaseSensitiveMap())
    return {str(key): str(value) for key, value in options.items() if key != _PRIVILEGES}


def subject(plan: JavaObject) -> JavaObject | None:
    """The name of the target of ADD CONSTRAINT; None for other statements."""
    attribute = _SUBJECTS.get(class_name(plan))
    return None if attribute is None else name_of(getattr(plan, attribute)())


def path_exists(spark: "SparkSession", location: str) -> bool:
    """Whether there is a file or a directory at a location that Spark takes. False if Spark can't reach it."""
    path = Gateway.of(spark).jvm.org.apache.hadoop.fs.Path(location)
    try:
        return bool(path.getFileSystem(hadoop_configuration(spark)).exists(path))
    except thrown_by_java():
        return False


def has_log(spark: "SparkSession", location: str) -> bool:
    """Whether a location is a Delta table, a partition directory of one, a directory directly in one, or in its log.

    Also False if Spark can't reach the location, because then it can't write there either.
    """
    return bool(_compiled(spark).hasLog(jvm_session(spark), location))


def table_in(spark: "SparkSession", location: str, most: int) -> str | None:
    """A Delta table in a directory. None if none is found in `most` directories, or Spark can't reach the location."""
    found = _compiled(spark).tableIn(jvm_session(spark), location, most)
    return None if found is None else str(found)


def is_comment_on(plan: JavaObject) -> bool:
    """Whether a parsed ALTER COLUMN is COMMENT ON COLUMN (since Spark 4.3), whose column may have several parts."""
    return str(plan.table().commandName()) == "COMMENT ON COLUMN"


def has_files(spark: "SparkSession", location: str) -> bool:
    """Whether a file or a directory is in the directory at a location. False also where Spark can't reach it."""
    try:
        path = Gateway.of(spark).jvm.org.apache.hadoop.fs.Path(location)
        return bool(path.getFileSystem(hadoop_configuration(spark)).listStatusIterator(path).hasNext())
    except thrown_by_java():
        return False
