"""The part of the registry (see `internals`) that is in the JVM: classes of Spark, Scala, Parquet's reader and Py4J.

Public interfaces of the JDK and of Hadoop aren't listed.
"""

from .classes import CLOUD_COMMIT_PROTOCOL, CLOUD_PARQUET_COMMITTER
from .internals import JvmInternal

_SPARK = "org.apache.spark."
_SQL = "org.apache.spark.sql."
_CATALYST = "org.apache.spark.sql.catalyst."
_CATALOG = "org.apache.spark.sql.catalyst.catalog."
_EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions."
_ANALYSIS = "org.apache.spark.sql.catalyst.analysis."
_LOGICAL = "org.apache.spark.sql.catalyst.plans.logical."
_EXECUTION = "org.apache.spark.sql.execution."
_SOURCES = "org.apache.spark.sql.execution.datasources."
_CONNECTOR = "org.apache.spark.sql.connector."


def _of(package: str, name: str, use: str, *members: str) -> JvmInternal:
    return JvmInternal(package + name, use, members)


OPTIONAL = frozenset({CLOUD_COMMIT_PROTOCOL, CLOUD_PARQUET_COMMITTER})
"""Classes of spark-hadoop-cloud. `Gateway.has_class` asks for them where they would be used."""

JVM: tuple[JvmInternal, ...] = (
    # values
    _of("scala.", "Option", "optional values", "apply", "empty", "isDefined", "get"),
    _of("scala.runtime.", "ScalaRunTime", "arrays as sequences, and as text", "wrapRefArray", "stringOf"),
    _of(_SPARK, "api.python.PythonUtils", "sequences and maps of Scala", "toSeq", "toScalaMap"),
    _of(_SQL, "types.DataType", "schemas from JSON", "fromJson", "json"),
    _of(_SQL, "types.DataTypes", "types by name", "IntegerType"),
    _of(_SQL, "types.ObjectType", "the type of a JVM object"),
    _of(_SQL, "types.StructType", "schemas", "getFieldIndex",
        "getFieldIndexCaseInsensitive", "asNullable", "fieldNames", "apply"),
    _of(_SQL, "util.CaseInsensitiveStringMap", "options of a relation", "empty", "get"),
    _of(_CATALYST, "InternalRow", "rows of partition values", "empty"),
    _of(_CATALYST, "types.DataTypeUtils", "attributes of a schema", "toAttributes"),
    # sessions
    _of(_SPARK, "SparkContext", "the query that runs, jobs to be ended", "getOrCreate", "getLocalProperty",
        "statusTracker", "statusStore", "killTaskAttempt", "getRDDStorageInfo", "unpersistRDD"),
    _of(_SPARK, "SparkThrowable", "conditions of errors", "getCondition", "getMessageParameters"),
    _of(_SPARK, "TaskContext", "the number of tasks of a stage", "get", "numPartitions"),
    _of(_SPARK, "SparkStatusTracker", "jobs of a command", "getJobIdsForTag", "getJobInfo", "getStageInfo"),
    _of(_SPARK, "status.api.v1.TaskStatus", "running tasks", "RUNNING"),
    _of(_SPARK, "status.api.v1.TaskSorting", "running tasks", "ID"),
    _of(_SPARK, "util.Utils", "whether a class is there", "classForName"),
    _of(_SPARK, "rdd.ParallelCollectionRDD", "small lists of a user"),
    _of(_SQL, "classic.SparkSession", "plans, expressions and copies of a session", "sessionUUID", "sessionState",
        "expression", "cloneSession", "baseRelationToDataFrame", "createDataFrame", "conf",
        "resolveAndValidateParameters"),
    _of(_SQL, "internal.SessionState", "parser, catalog and configuration", "sqlParser", "catalog", "catalogManager",
        "conf", "newHadoopConf", "executePlan"),
    _of(_SQL, "classic.Dataset", "frames of a plan", "ofRows", "queryExecution"),
    _of(_SQL, "classic.ExpressionUtils", "Columns of an expression", "column"),
    _of(_SQL, "classic.DataFrameReader", "what is set on a reader", "extraOptions", "userSpecifiedSchema", "source"),
    _of(_SQL, "classic.DataFrameWriterV2", "the table and the options, by its fields `tableName` and `options`"),
    _of(_SQL, "classic.MergeIntoWriter", "the statement of a merge", "mergeCommand"),
    _of(_SQL, "classic.DataFrameWriter", "what is set on a writer", "extraOptions", "source", "curmode",
        "partitioningColumns", "clusteringColumns", "numBuckets", "sortColumnNames"),
    # the catalog
    _of(_CATALOG, "SessionCatalog", "tables by name", "tableExists", "getTableMetadata", "databaseExists",
        "defaultTablePath", "listPartitions", "createTable", "dropTable", "alterTable", "refreshTable",
        "lookupFunctionInfo"),
    _of(_CATALOG, "CatalogTable", "an entry of the catalog", "identifier", "provider", "storage", "tableType",
        "bucketSpec", "partitionSchema", "tracksPartitionsInCatalog", "copy"),
    _of(_CATALOG, "CatalogTableType", "managed and external tables", "MANAGED", "EXTERNAL"),
    _of(_CATALOG, "CatalogStorageFormat", "where a table lies", "empty", "locationUri", "serde", "copy"),
    _of(_CATALOG, "CatalogUtils", "locations as URIs", "URIToString", "stringToURI"),
    _of(_CATALYST, "TableIdentifier", "the name of a table", "table", "database", "unquotedString"),
    _of(_CATALYST, "FunctionIdentifier", "the name of a function"),
    _of(_EXPRESSIONS, "ExpressionInfo", "whose a function is", "getClassName", "getSource"),
    _of(_ANALYSIS, "FunctionRegistry$", "the names of Spark's functions", "MODULE$", "functionSet"),
    # expressions
    _of(_CATALYST, "parser.ParserInterface", "statements, expressions and names", "parsePlan", "parseExpression",
        "parseMultipartIdentifier", "parsePlanWithParameters"),
    _of(_CATALYST, "parser.NamedParameterContext", "values of parameters"),
    _of(_CATALYST, "parser.PositionalParameterContext", "values of parameters"),
    _of(_CATALYST, "trees.TreeNode", "walks through plans and expressions", "children", "transform", "transformDown",
        "containsPattern", "collectLeaves", "makeCopy", "fastEquals", "getTagValue", "setTagValue", "nodeName",
        "simpleString", "toJSON"),
    _of(_CATALYST, "trees.TreeNodeTag", "texts on the nodes of a plan"),
    _of(_CATALYST, "trees.TreePattern", "whether a plan asks for the time", "CURRENT_LIKE"),
    _of(_CATALYST, "optimizer.ComputeCurrentTime", "one instant for a command", "apply"),
    _of(_EXPRESSIONS, "Expression", "types and columns of an expression", "dataType", "references", "resolved",
        "deterministic", "sql"),
    _of(_EXPRESSIONS, "AttributeReference", "columns", "name", "exprId", "metadata"),
    _of(_EXPRESSIONS, "Alias", "named values", "child", "toAttribute"),
    _of(_EXPRESSIONS, "And", "conditions joined"),
    _of(_EXPRESSIONS, "Literal", "the limit of a plan"),
    _of(_EXPRESSIONS, "BindReferences", "conditions over rows", "bindReference"),
    _of(_EXPRESSIONS, "package.AttributeSeq", "conditions over rows"),
    _of(_EXPRESSIONS, "InterpretedPredicate", "conditions over rows", "eval"),
    _of(_EXPRESSIONS, "SubqueryExpression", "whether there is a subquery", "hasSubquery"),
    _of(_EXPRESSIONS, "PlanExpression", "the plan of a subquery", "withNewPlan"),
    _of(_EXPRESSIONS, "Cast$", "casts by the rules of ANSI", "MODULE$", "apply"),
    _of(_EXPRESSIONS, "CheckOverflowInTableInsert", "the column in the error of an overflow"),
    _of(_EXPRESSIONS, "objects.StaticInvoke", "the number of tasks of a stage"),
    _of(_EXPRESSIONS, "objects.Invoke", "the number of tasks of a stage"),
    _of(_ANALYSIS, "TableOutputResolver$", "values as Spark stores them", "MODULE$", "resolveOutputColumns",
        "resolveOutputColumns$default$6"),
    _of(_ANALYSIS, "UnresolvedAttribute", "the parts of a column's name", "parseAttributeName", "nameParts"),
    _of(_ANALYSIS, "UnresolvedFunction", "functions that a rule calls", "nameParts"),
    _of(_ANALYSIS, "UnresolvedExtractValue", "fields that a rule names"),
    _of(_ANALYSIS, "UnresolvedStar", "columns that a rule names"),
    _of(_ANALYSIS, "UnresolvedRelation", "the target of an INSERT", "multipartIdentifier"),
    # plans
    _of(_LOGICAL, "LogicalPlan", "bounds and columns of a plan", "output", "schema", "maxRows", "stats"),
    _of(_CATALYST, "plans.QueryPlan", "subqueries of a plan", "expressions", "outputSet", "subqueries",
        "subqueriesAll", "transformExpressions", "transformUpWithSubqueries"),
    _of(_LOGICAL, "LocalLimit", "a bounded frame"),
    _of(_LOGICAL, "LocalRelation", "rows on the driver"),
    _of(_LOGICAL, "Project", "columns of a frame", "projectList"),
    _of(_LOGICAL, "Filter", "conditions", "condition"),
    _of(_LOGICAL, "Command", "what a statement is"),
    _of(_LOGICAL, "ParsedStatement", "what a statement is"),
    _of(_LOGICAL, "UnresolvedWith", "the common tables of a statement", "child"),
    _of(_LOGICAL, "SubqueryAlias", "the name of a table in conditions", "alias", "child"),
    _of(_CATALYST, "AliasIdentifier", "the name of a table in conditions"),
    _of(_LOGICAL, "InsertIntoStatement", "INSERT", "table", "byName", "userSpecifiedCols", "partitionSpec"),
    _of(_LOGICAL, "DeleteFromTable", "DELETE", "table", "condition"),
    _of(_LOGICAL, "UpdateTable", "UPDATE", "table", "assignments", "condition"),
    _of(_LOGICAL, "MergeIntoTable", "MERGE", "targetTable", "sourceTable", "mergeCondition", "matchedActions",
        "notMatchedActions", "notMatchedBySourceActions", "withSchemaEvolution"),
    _of(_LOGICAL, "Assignment", "assignments of UPDATE and MERGE", "key", "value"),
    _of(_LOGICAL, "TruncateTable", "TRUNCATE TABLE", "table"),
    _of(_LOGICAL, "TruncatePartition", "TRUNCATE TABLE with a partition", "table"),
    _of(_EXECUTION, "QueryExecution", "the plans of a frame", "analyzed", "withCachedData", "optimizedPlan",
        "executedPlan"),
    _of(_EXECUTION, "CommandExecutionMode", "statements resolved and not run", "SKIP"),
    _of(_EXECUTION, "LogicalRDD", "frames of an RDD", "rdd", "maxRows"),
    _of(_EXECUTION, "SparkPlan", "rows on the driver", "executeCollect"),
    _of(_EXECUTION, "FileSourceScanExec", "the filters of a scan", "partitionFilters", "dataFilters", "relation"),
    _of(_EXECUTION, "adaptive.AdaptiveSparkPlanExec", "the plan inside an adaptive one", "executedPlan"),
    # tables
    _of(_SOURCES, "HadoopFsRelation", "a table as a relation of files", "location", "copy"),
    _of(_SOURCES, "FileIndex", "the interface by which Spark asks for files"),
    _of(_SOURCES, "PartitionDirectory", "files with their partition values", "apply"),
    _of(_SOURCES, "LogicalRelation", "scans of a table", "relation"),
    _of(_SOURCES, "SQLHadoopMapReduceCommitProtocol", "files written by Spark"),
    _of(_SOURCES, "parquet.ParquetFileFormat", "Parquet, and its metadata columns", "metadataSchemaFields",
        "readSchemaFromFooter"),
    _of(_SOURCES, "parquet.ParquetToSparkSchemaConverter", "the schema of a footer"),
    _of(_SOURCES, "v2.DataSourceV2Relation", "the table of an INSERT, and scans by Python", "create", "options"),
    _of("org.apache.parquet.hadoop.", "ParquetFileReader", "the footer of a file", "open", "getFooter"),
    _of("org.apache.parquet.hadoop.", "util.HadoopInputFile", "the footer of a file", "fromPath"),
    _of("org.apache.parquet.hadoop.", "Footer", "the footer of a file"),
    _of(_CONNECTOR, "catalog.Table", "the interface of a table that an INSERT names"),
    _of(_CONNECTOR, "catalog.Column", "columns of that table", "create"),
    _of(_CONNECTOR, "catalog.ColumnDefaultValue", "defaults of that table"),
    _of(_CONNECTOR, "catalog.TableCapability", "what that table can", "BATCH_WRITE", "TRUNCATE", "OVERWRITE_BY_FILTER",
        "OVERWRITE_DYNAMIC"),
    _of(_CONNECTOR, "catalog.constraints.Constraint", "constraints of that table: none"),
    _of(_CONNECTOR, "expressions.Expressions", "partitions of that table", "identity"),
    _of(_CONNECTOR, "expressions.Transform", "partitions of that table"),
    _of(_CONNECTOR, "expressions.LiteralValue", "defaults of that table"),
    # calls from the JVM
    _of("py4j.", "CallbackClient", "idle connections, by its fields `lock` and `connections`"),
    *(JvmInternal(name, "commits on object stores") for name in sorted(OPTIONAL)),
)  # fmt: skip
