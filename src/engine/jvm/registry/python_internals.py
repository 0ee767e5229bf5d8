"""The registry of all internals of PySpark, Py4J and Spark's JVM that tablelog uses or replaces.

They may change with any version of Spark. `environment` checks that they exist. tests/test_internals.py checks that no
other folder uses one, that each entry is used, and that each used internal has an entry.
"""

from dataclasses import dataclass

from ....settings import spark_own

_PY4J = "py4j.java_gateway"
_CONTEXT = "pyspark.core.context"
_READWRITER = "pyspark.sql.readwriter"
_STREAMING = "pyspark.sql.streaming.readwriter"
_CAPTURED = "pyspark.errors.exceptions.captured"
_DATAFRAME = "pyspark.sql.classic.dataframe"


@dataclass(frozen=True)
class PythonInternal:
    """An attribute of a class, or of a module if `owner` is "". `versions`: the Spark versions with it; () for all."""

    module: str
    owner: str
    attribute: str
    use: str
    versions: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return ".".join(part for part in (self.module, self.owner, self.attribute) if part)


@dataclass(frozen=True)
class JvmInternal:
    """A class of the JVM, with the methods and fields that are used. `versions`: as in `PythonInternal`."""

    name: str
    use: str
    members: tuple[str, ...] = ()
    versions: tuple[str, ...] = ()


@dataclass(frozen=True)
class Patch:
    """An attribute of a class or module that tablelog replaces. `*`: each public method without its own patch.

    `by`: the file below `src` that replaces it. `on_instances`: the attribute is replaced on single objects for their
    lifetime, and not by `patching`.
    """

    module: str
    owner: str
    attribute: str
    by: str
    why: str
    on_instances: bool = False

    @property
    def name(self) -> str:
        return f"{self.owner or self.module.rpartition('.')[2]}.{self.attribute}"


PYTHON: tuple[PythonInternal, ...] = (
    PythonInternal("pyspark.sql.session", "SparkSession", "_jsparkSession", "the JVM's session"),
    PythonInternal(_CONTEXT, "SparkContext", "_jsc", "the JVM's context: status of jobs, Hadoop's configuration"),
    PythonInternal(_CONTEXT, "SparkContext", "_jvm", "classes of the JVM, while a command is interrupted"),
    PythonInternal(_CONTEXT, "SparkContext", "_python_includes", "a wheel on the path of Python workers"),
    PythonInternal(_CONTEXT, "SparkContext", "_active_spark_context", "the master, for an error about access"),
    PythonInternal(_CONTEXT, "SparkContext", "_gateway", "the Py4J gateway of the process"),
    PythonInternal("pyspark.java_gateway", "", "ensure_callback_server_started", "calls from the JVM"),
    PythonInternal("pyspark.cloudpickle", "", "dumps", "the settings of Python workers as bytes"),
    PythonInternal("pyspark.sql.sql_formatter", "SQLStringFormatter", "format", "values for braces in a statement"),
    PythonInternal("pyspark.sql.sql_formatter", "SQLStringFormatter", "clear", "the views of these values"),
    PythonInternal(_DATAFRAME, "DataFrame", "_jdf", "the plans of a frame"),
    PythonInternal(_DATAFRAME, "DataFrame", "_collect_as_arrow", "rows as Arrow, without the cast of toArrow"),
    PythonInternal("pyspark.sql.classic.column", "Column", "_jc", "the expression of a Column"),
    PythonInternal(_READWRITER, "DataFrameReader", "_jreader", "the settings of a reader"),
    PythonInternal(_READWRITER, "DataFrameReader", "_spark", "the session of a reader"),
    PythonInternal(_READWRITER, "DataFrameWriter", "_jwrite", "the settings of a writer"),
    PythonInternal(_READWRITER, "DataFrameWriter", "_df", "the rows of a writer"),
    PythonInternal(_READWRITER, "DataFrameWriter", "_spark", "the session of a writer"),
    PythonInternal(_READWRITER, "DataFrameWriterV2", "_jwriter", "the settings of a writer"),
    PythonInternal(_READWRITER, "DataFrameWriterV2", "_df", "the rows of a writer"),
    PythonInternal(_READWRITER, "DataFrameWriterV2", "_spark", "the session of a writer"),
    PythonInternal(_STREAMING, "DataStreamReader", "_jreader", "the format of a stream"),
    PythonInternal(_STREAMING, "DataStreamReader", "_spark", "the session of a stream"),
    PythonInternal(_STREAMING, "DataStreamWriter", "_jwrite", "the format of a stream"),
    PythonInternal(_STREAMING, "DataStreamWriter", "_spark", "the session of a stream"),
    PythonInternal("pyspark.sql.merge", "MergeIntoWriter", "_spark", "the session of a merge"),
    PythonInternal("pyspark.sql.merge", "MergeIntoWriter", "_jwriter", "the clauses of a merge"),
    PythonInternal("pyspark.sql.catalog", "Catalog", "_sparkSession", "the session of a catalog"),
    PythonInternal(_CAPTURED, "CapturedException", "_origin", "the Java exception behind an error"),
    PythonInternal(_CAPTURED, "CapturedException", "_desc", "the message of an error, to remove plans and ids"),
    PythonInternal(_CAPTURED, "CapturedException", "_cause", "what ended a streaming query"),
    PythonInternal("py4j.protocol", "Py4JJavaError", "java_exception", "the Java exception behind an error"),
    PythonInternal("py4j.protocol", "", "Py4JError", "the errors of Py4J"),
    PythonInternal("py4j.protocol", "", "Py4JNetworkError", "a connection that Ctrl-C interrupted"),
    PythonInternal(_PY4J, "", "is_instance_of", "classes of JVM objects"),
    PythonInternal(_PY4J, "", "JavaPackage", "names that are looked up once"),
    PythonInternal(_PY4J, "", "JavaClass", "names that are looked up once"),
    PythonInternal(_PY4J, "", "JavaMember", "names that are looked up once"),
    PythonInternal(_PY4J, "JavaGateway", "new_array", "arrays of the JVM"),
    PythonInternal(_PY4J, "JavaGateway", "java_gateway_server", "the connections of callbacks"),
    PythonInternal(_PY4J, "JavaGateway", "_gateway_client", "the connection of a thread"),
    PythonInternal("py4j.clientserver", "JavaClient", "get_thread_connection", "the connection of a thread"),
    PythonInternal("py4j.clientserver", "ClientServerConnection", "_call_proxy", "whether a connection is in use"),
    PythonInternal(
        "py4j.clientserver", "ClientServerConnection", "initiated_from_client", "which side opened a connection"
    ),
    PythonInternal("py4j.clientserver", "ClientServerConnection", "socket", "the port of a connection"),
)

_REPLACED = "spark/sessions/replaced/methods"


def _methods(module: str, owner: str, names: str, why: str) -> tuple[Patch, ...]:
    return tuple(Patch(module, owner, name, _REPLACED, why) for name in names.split())


PATCHES: tuple[Patch, ...] = (
    *_methods(_DATAFRAME, "DataFrame", "explain", "shows the files that a scan of a table reads"),
    *_methods(_READWRITER, "DataFrameReader", "load table", "reads tables"),
    *_methods(_READWRITER, "DataFrameWriter", "save saveAsTable insertInto", "writes tables"),
    *_methods(_READWRITER, "DataFrameWriter", "csv json orc parquet text xml", "refuses other formats in a table"),
    *_methods(
        _READWRITER,
        "DataFrameWriterV2",
        "create replace createOrReplace append overwrite overwritePartitions",
        "refuses tables, and names the supported operation",
    ),
    *_methods(_STREAMING, "DataStreamReader", "load table", "reads tables as streams"),
    *_methods(_STREAMING, "DataStreamWriter", "start toTable", "writes streams into tables"),
    *_methods("pyspark.sql.merge", "MergeIntoWriter", "merge", "refuses tables, and names the supported operation"),
    *_methods("pyspark.sql.session", "SparkSession", "sql table", "statements on tables, and tables by name"),
    *_methods("pyspark.sql.catalog", "Catalog", "tableExists", "finds Delta tables, which Spark doesn't know"),
    *_methods("pyspark.sql.catalog", "Catalog", "createTable refreshTable", "knows Delta tables"),
    *_methods("pyspark.sql.catalog", "Catalog", "*", "refuses tables, and names the supported operation"),
    *(
        Patch(
            "pyspark.sql.session", owner, name, "spark/sessions/new_sessions",
            "enables sessions that a program makes itself",
        )
        for owner, name in (("SparkSession.Builder", "getOrCreate"), ("SparkSession", "newSession"))
    ),
    Patch(_CAPTURED, "", "convert_exception", "engine/read/read_errors", "Java exceptions to tablelog's errors"),
    Patch(
        _CAPTURED, "CapturedException", "getMessage", "engine/jvm/connection/messages", "removes plans and ids",
        on_instances=True,
    ),
    Patch(
        _CAPTURED, "CapturedException", "getMessageParameters", "engine/jvm/connection/messages",
        "removes plans and ids", on_instances=True,
    ),
    Patch(
        "py4j.clientserver", "ClientServerConnection", "_call_proxy", "engine/jvm/connection/callbacks",
        "counts the calls on a connection, to close idle ones", on_instances=True,
    ),
)  # fmt: skip

SETTINGS = (
    spark_own.ADVISORY_PARTITION_SIZE,
    spark_own.CASE_SENSITIVE,
    spark_own.SESSION_TIME_ZONE,
    spark_own.SOURCE_DEFAULT,
)
"""Settings of Spark SQL that this folder reads or sets for a query."""
