"""SQL statements, from the plans of Spark's parser: their kind, their target and their directory."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ...settings.spark_own import SOURCE_DEFAULT
from . import plans, settings
from .gateway import Gateway, JavaObject
from .java_errors import thrown_by_java
from .sessions import hadoop_configuration, is_instance, session_state

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# The attribute that holds the target. For a temporary view as the target Spark's own errors don't name the view.
_SUBJECTS = {
    "DeleteFromTable": "table",
    "UpdateTable": "table",
    "MergeIntoTable": "targetTable",
    "AddCheckConstraint": "child",
}
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
    return session_state(spark).sqlParser().parsePlan(text)


def frame_of(spark: "SparkSession", plan: JavaObject) -> "DataFrame":
    """The DataFrame of a parsed query. Raises Spark's AnalysisException."""
    return plans.frame_of(spark, plan)


def strings(spark: "SparkSession", name_parts: JavaObject) -> list[str]:
    """The parts of a name (a Scala `Seq`)."""
    return [str(part) for part in Gateway.of(spark).elements(name_parts)]


def is_temporary_view(spark: "SparkSession", name_parts: JavaObject) -> bool:
    """Whether the name is that of a temporary view, of the session or global."""
    return bool(session_state(spark).catalog().isTempView(name_parts))


def kind_of(plan: JavaObject) -> str | None:
    """The class name of a parsed statement; None for a query."""
    logical = "org.apache.spark.sql.catalyst.plans.logical"
    kind = str(plan.getClass().getSimpleName())
    if kind == "UnresolvedWith":
        return kind_of(plan.child())
    statement = kind == "InsertIntoDir" or any(
        is_instance(plan, f"{logical}.{name}") for name in ("Command", "ParsedStatement")
    )
    return kind if statement else None


def destination(spark: "SparkSession", plan: JavaObject) -> str | None:
    """The directory that a statement writes to or creates a table in; None if it names none, or its format is Delta."""
    kind = plan.getClass().getSimpleName()
    if kind == "LoadData":
        return str(plan.path())  # Spark moves the files of this directory
    if kind == "InsertIntoDir":
        provider, location = plan.provider(), plan.storage().locationUri()
    elif kind in _WITH_SPECIFICATION:
        provider, location = plan.tableSpec().provider(), plan.tableSpec().location()
    elif kind == "CreateTableLike":
        provider, location = plan.provider(), plan.location()
    else:
        return None
    if not location.isDefined():
        return None
    source = provider.get() if provider.isDefined() else settings.in_force(spark, SOURCE_DEFAULT)
    return None if source.lower() == "delta" else str(location.get())


def name_of(relation: JavaObject) -> JavaObject | None:
    """The parts of the name of an unresolved relation; None if the relation isn't a name."""
    while relation.getClass().getSimpleName() in ("SubqueryAlias", "Filter"):
        relation = relation.child()
    return relation.multipartIdentifier() if relation.getClass().getSimpleName() == "UnresolvedRelation" else None


def subject(plan: JavaObject) -> JavaObject | None:
    """The name of the target of a DELETE, UPDATE, MERGE or ADD CONSTRAINT; None for other statements."""
    attribute = _SUBJECTS.get(plan.getClass().getSimpleName())
    return None if attribute is None else name_of(getattr(plan, attribute)())


def path_exists(spark: "SparkSession", location: str) -> bool:
    """Whether there is a file or a directory at a location that Spark takes. False if Spark can't reach it."""
    path = Gateway.of(spark).jvm.org.apache.hadoop.fs.Path(location)
    try:
        return bool(path.getFileSystem(hadoop_configuration(spark)).exists(path))
    except thrown_by_java():
        return False


def has_log(spark: "SparkSession", location: str) -> bool:
    """Whether a location is a Delta table, or a partition directory of one.

    Also False if Spark can't reach the location, because then it can't write there either.
    """
    gateway = Gateway.of(spark)
    kind = gateway.jvm.org.apache.hadoop.fs.Path
    try:
        path = kind(location)
        system = path.getFileSystem(hadoop_configuration(spark))
        while "=" in str(path.getName()) and path.getParent() is not None:
            path = path.getParent()
        return bool(system.exists(kind(path, "_delta_log")))
    except thrown_by_java():
        return False


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
