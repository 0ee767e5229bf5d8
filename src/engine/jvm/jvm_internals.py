"""The JVM part of the registry (see `internals`): classes of Spark, Scala, Parquet and Py4J.

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


_V43 = ("4.3",)

OPTIONAL = frozenset({CLOUD_COMMIT_PROTOCOL, CLOUD_PARQUET_COMMITTER})
"""Classes of spark-hadoop-cloud. `Gateway.has_class` checks for them before they are used."""

JVM: tuple[JvmInternal, ...] = (
    # values
    _of("scala.", "Option", "optional values", "apply", "empty", "isDefined", "get"),
    _of("scala.", "Some", "optional values", "apply"),
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
    # tables for Spark's analyzer
    _of(_CATALYST, "QualifiedTableName", "names in the cache of relations", "apply"),
    _of(_CATALYST, "analysis.RelationResolution", "whether a query asks for a table", "resolveRelation"),
    _of(_CONNECTOR, "catalog.DelegatingCatalogExtension", "the base of DeltaSessionCatalog", "setDelegateCatalog"),
    _of(_CONNECTOR, "catalog.TableCatalog", "tables of a catalog", "loadTable", "tableExists", "PROP_PROVIDER"),
    JvmInternal(_CONNECTOR + "catalog.TableContext", "time travel", ("timeTravel", "writePrivileges"), _V43),
    JvmInternal(_CONNECTOR + "catalog.TimeTravel", "versions and timestamps of a table", (), _V43),
    _of(_CONNECTOR, "catalog.TruncatableTable", "the table of a command", "truncateTable"),
    _of(_CONNECTOR, "metric.CustomMetric", "metrics of a command, of which there are none"),
    _of(_CONNECTOR, "metric.CustomTaskMetric", "metrics of a command, of which there are none"),
    _of(_CONNECTOR, "catalog.V1Table", "the table of a query"),
    _of(_SPARK, "unsafe.Platform", "exceptions that are raised again", "throwException"),
    # sessions
    _of(_SPARK, "SparkContext", "the running query, jobs to cancel", "getOrCreate", "getLocalProperty",
        "statusTracker", "statusStore", "killTaskAttempt", "getRDDStorageInfo", "unpersistRDD"),
    _of(_SPARK, "SparkThrowable", "conditions of errors", "getCondition", "getMessageParameters"),
    _of(_SPARK, "TaskContext", "the number of tasks of a stage", "get", "numPartitions"),
    _of(_SPARK, "SparkStatusTracker", "jobs of a command", "getJobIdsForTag", "getJobInfo", "getStageInfo"),
    _of(_SPARK, "status.api.v1.TaskStatus", "running tasks", "RUNNING"),
    _of(_SPARK, "status.api.v1.TaskSorting", "running tasks", "ID"),
    _of(_SPARK, "util.Utils", "whether a class exists", "classForName"),
    _of(_SPARK, "rdd.ParallelCollectionRDD", "small lists of a user"),
    _of(_SQL, "classic.SparkSession", "plans, expressions and copies of a session", "sessionUUID", "sessionState",
        "expression", "cloneSession", "baseRelationToDataFrame", "createDataFrame", "conf",
        "resolveAndValidateParameters"),
    _of(_SQL, "internal.SessionState", "parser, catalog and configuration", "sqlParser", "catalog", "catalogManager",
        "conf", "newHadoopConf", "executePlan"),
    _of(_SQL, "classic.Dataset", "frames of a plan", "ofRows", "queryExecution"),
    _of(_SQL, "classic.ExpressionUtils", "Columns of an expression", "column"),
    _of(_SQL, "classic.DataFrameReader", "the settings of a reader", "extraOptions", "userSpecifiedSchema", "source"),
    _of(_SQL, "classic.DataFrameWriter", "the settings of a writer", "extraOptions", "source", "curmode",
        "partitioningColumns", "clusteringColumns", "numBuckets", "sortColumnNames"),
    _of(_SQL, "classic.MergeIntoWriter", "the statement of a merge", "mergeCommand"),
    # the catalog
    _of(_CATALOG, "SessionCatalog", "tables by name", "tableExists", "getTableMetadata", "databaseExists",
        "defaultTablePath", "listPartitions", "createTable", "dropTable", "alterTable", "renameTable", "refreshTable",
        "lookupFunctionInfo"),
    _of(_CATALOG, "CatalogTable", "an entry of the catalog", "identifier", "provider", "storage", "tableType",
        "bucketSpec", "partitionSchema", "tracksPartitionsInCatalog", "comment", "createTime", "properties", "copy"),
    _of(_CATALOG, "CatalogTableType", "managed and external tables", "MANAGED", "EXTERNAL"),
    _of(_CATALOG, "CatalogStorageFormat", "the location of a table", "empty", "locationUri", "serde", "copy"),
    _of(_CATALOG, "CatalogUtils", "locations as URIs", "URIToString", "stringToURI"),
    _of(_CATALYST, "TableIdentifier", "the name of a table", "table", "database", "unquotedString"),
    _of(_CATALYST, "FunctionIdentifier", "the name of a function"),
    _of(_EXPRESSIONS, "ExpressionInfo", "the class and origin of a function", "getClassName", "getSource"),
    _of(_ANALYSIS, "FunctionRegistry$", "the names of Spark's functions", "MODULE$", "functionSet"),
    # what a statement says about a table
    _of(_LOGICAL, "ColumnDefinition", "columns of CREATE TABLE", "toV1Column"),
    _of(_LOGICAL, "UnresolvedTableSpec", "clauses of CREATE TABLE", "provider", "location", "comment", "collation",
        "properties", "optionExpression", "serde", "constraints"),
    _of(_LOGICAL, "OptionList", "clauses of CREATE TABLE", "options"),
    _of(_LOGICAL, "QualifiedColType", "columns of ALTER TABLE", "path", "colName", "dataType", "nullable", "comment",
        "position", "default"),
    _of(_LOGICAL, "AlterColumnSpec", "changes of columns", "column", "newDataType", "newNullability", "newComment",
        "newPosition", "newDefaultExpression", "dropDefault"),
    _of(_LOGICAL, "DefaultValueExpression", "default values", "originalSQL"),
    _of(_LOGICAL, "AlterTableClusterBy", "clustering columns", "clusterBySpec"),
    _of(_CATALOG, "ClusterBySpec", "clustering columns", "columnNames"),
    _of(_CONNECTOR, "expressions.IdentityTransform", "partition columns", "ref"),
    _of(_CONNECTOR, "expressions.ClusterByTransform", "clustering columns", "columnNames"),
    _of(_CONNECTOR, "expressions.FieldReference", "partition columns", "parts"),
    _of(_SQL, "types.StructField", "columns of CREATE TABLE"),
    _of(_SQL, "classic.DataFrameWriterV2", "the settings of a writer of a new table, by its private fields"),
    # expressions
    _of(_CATALYST, "parser.ParserInterface", "statements, expressions and names", "parsePlan", "parseExpression",
        "parseMultipartIdentifier", "parseTableSchema", "parsePlanWithParameters"),
    _of(_CATALYST, "parser.SqlBaseLexer", "tokens of a statement", "getAllTokens", "getVocabulary"),
    _of(_CATALYST, "parser.UpperCaseCharStream", "the text of a statement for the lexer"),
    _of("org.antlr.v4.runtime.", "CharStreams", "the text of a statement for the lexer", "fromString"),
    _of("org.antlr.v4.runtime.", "Vocabulary", "the names of tokens", "getSymbolicName"),
    _of(_SQL, "internal.VariableSubstitution", "variables in a statement", "substitute"),
    _of(_CATALYST, "parser.NamedParameterContext", "values of parameters"),
    _of(_CATALYST, "parser.PositionalParameterContext", "values of parameters"),
    _of(_CATALYST, "trees.TreeNode", "walks through plans and expressions", "children", "transform", "transformDown",
        "containsPattern", "collectLeaves", "makeCopy", "fastEquals", "getTagValue", "setTagValue", "nodeName",
        "simpleString", "toJSON"),
    _of(_CATALYST, "trees.TreeNodeTag", "strings attached to the nodes of a plan"),
    _of(_CATALYST, "trees.TreePattern", "whether a plan uses the current time", "CURRENT_LIKE"),
    _of(_CATALYST, "optimizer.ComputeCurrentTime", "the same time for all queries of a command", "apply"),
    _of(_EXPRESSIONS, "Expression", "types and columns of an expression", "dataType", "references", "resolved",
        "deterministic", "sql"),
    _of(_EXPRESSIONS, "AttributeReference", "columns", "name", "exprId", "metadata"),
    _of(_EXPRESSIONS, "Alias", "named values", "child", "toAttribute"),
    _of(_EXPRESSIONS, "And", "conditions joined by AND"),
    _of(_EXPRESSIONS, "Literal", "the limit of a plan, constants in a statement", "value"),
    _of(_EXPRESSIONS, "BindReferences", "conditions over rows", "bindReference"),
    _of(_EXPRESSIONS, "package.AttributeSeq", "conditions over rows"),
    _of(_EXPRESSIONS, "InterpretedPredicate", "conditions over rows", "eval"),
    _of(_EXPRESSIONS, "SubqueryExpression", "whether there is a subquery", "hasSubquery"),
    _of(_EXPRESSIONS, "PlanExpression", "the plan of a subquery", "withNewPlan"),
    _of(_EXPRESSIONS, "Cast$", "casts by ANSI rules", "MODULE$", "apply"),
    _of(_EXPRESSIONS, "CheckOverflowInTableInsert", "the column name in the error of an overflow"),
    _of(_EXPRESSIONS, "objects.StaticInvoke", "the number of tasks of a stage"),
    _of(_EXPRESSIONS, "objects.Invoke", "the number of tasks of a stage"),
    _of(_ANALYSIS, "TableOutputResolver$", "Spark's store assignment", "MODULE$", "resolveOutputColumns",
        "resolveOutputColumns$default$6"),
    _of(_ANALYSIS, "UnresolvedAttribute", "the parts of a column's name", "parseAttributeName", "nameParts"),
    _of(_ANALYSIS, "UnresolvedFunction", "functions in a constraint or generation expression", "nameParts"),
    _of(_ANALYSIS, "UnresolvedExtractValue", "fields in a constraint or generation expression"),
    _of(_ANALYSIS, "UnresolvedStar", "`*` in a constraint or generation expression"),
    _of(_ANALYSIS, "UnresolvedRelation", "the target of an INSERT", "multipartIdentifier"),
    _of(_ANALYSIS, "NameParameterizedQuery", "parameters of an INSERT"),
    _of(_ANALYSIS, "PosParameterizedQuery", "parameters of an INSERT"),
    _of(_ANALYSIS, "NamedParameter", "markers of parameters"),
    _of(_ANALYSIS, "PosParameter", "markers of parameters"),
    # plans
    _of(_LOGICAL, "LogicalPlan", "bounds and columns of a plan", "output", "schema", "maxRows", "stats"),
    _of(_CATALYST, "plans.QueryPlan", "subqueries of a plan", "expressions", "outputSet", "subqueries",
        "subqueriesAll", "transformExpressions", "transformUpWithSubqueries"),
    _of(_LOGICAL, "LocalLimit", "a bounded frame"),
    _of(_LOGICAL, "LocalRelation", "rows on the driver"),
    _of(_LOGICAL, "Project", "columns of a frame", "projectList"),
    _of(_LOGICAL, "Filter", "conditions", "condition"),
    _of(_LOGICAL, "Command", "the kind of a statement"),
    _of(_LOGICAL, "ParsedStatement", "the kind of a statement"),
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
    _of(_EXECUTION, "CommandExecutionMode", "statements that are resolved but not run", "SKIP"),
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
    _of(_CONNECTOR, "catalog.TableCapability", "capabilities of it", "BATCH_WRITE", "TRUNCATE", "OVERWRITE_BY_FILTER",
        "OVERWRITE_DYNAMIC"),
    _of(_CONNECTOR, "catalog.constraints.Constraint", "constraints of that table: none"),
    _of(_CONNECTOR, "expressions.Expressions", "partitions of that table", "identity"),
    _of(_CONNECTOR, "expressions.Transform", "partitions of that table"),
    _of(_CONNECTOR, "expressions.LiteralValue", "defaults of that table"),
    # calls from the JVM
    _of("py4j.", "CallbackClient", "idle connections, by its fields `lock` and `connections`"),
    *(JvmInternal(name, "commits on object stores") for name in sorted(OPTIONAL)),
)  # fmt: skip
