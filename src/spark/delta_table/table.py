"""`DeltaTable`, with the methods of `delta.tables.DeltaTable` that tablelog supports."""

from collections.abc import Iterable, Mapping, Sequence

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.types import DataType, StructField, StructType

from ...core.deltalog import DeltaLog
from ...core.schema_evolution.changes import column_of
from ...core.table.snapshot import Snapshot
from ...dml.alter.constraints import add_constraint, drop_constraint
from ...dml.alter.create import CreateMode
from ...dml.alter.drop_feature import drop_feature
from ...dml.alter.properties import set_properties, unset_properties
from ...dml.alter.protocol import add_feature, upgrade_protocol
from ...dml.alter.schema_changes import add_columns, alter_column, drop_columns, rename_column
from ...dml.change.delete import delete
from ...dml.change.update import update
from ...dml.maintain.clone import clone
from ...dml.maintain.cluster_by import cluster_by
from ...dml.maintain.manifest import generate
from ...dml.maintain.optimize_layout import OptimizeLayout
from ...dml.maintain.restore import restore
from ...dml.maintain.vacuum import Mode, vacuum
from ...engine.jvm.connection.sessions import is_classic
from ...engine.read import own_columns, scan
from ...engine.write import view_inserts
from ...errors import InvalidArgumentError, TablelogError, UnsupportedEnvironmentError, UnsupportedFeatureError
from ...pages import escaped
from ...report.card import card
from .. import names
from ..arguments import assignments_of, checked, names_of
from ..boundary import with_pyspark_errors
from ..conf import delta_log, session_conf
from ..connect import tables
from ..not_on_connect import refused
from ..reader import can_be_read, find_table, missing_table
from ..time_travel import timestamp_ms
from ..writer import commit_of, session_commit
from . import describe, maintenance_results
from .columns import column_change, new_columns
from .convert import converted, named
from .create import DeltaTableBuilder
from .merge import DeltaMergeBuilder
from .optimize import DeltaOptimizeBuilder, run_optimize


@with_pyspark_errors
@checked
class DeltaTable:
    """A Delta table in a Spark session; create it by `forPath` or `forName`. The session needs no `enable`.

    On Spark Connect, methods that need the JVM raise UnsupportedFeatureError.
    """

    def __init__(self, spark: SparkSession, log: DeltaLog, alias: str | None = None) -> None:
        self._spark = spark
        self._log = log
        self._alias = alias

    @classmethod
    def forPath(
        cls, sparkSession: SparkSession, path: str, hadoopConf: Mapping[str, str] | None = None
    ) -> "DeltaTable":
        """The table at `path`.

        Args:
            sparkSession: a classic session, or one of Spark Connect.
            path: the URI or the local path of the table.
            hadoopConf: Hadoop settings for the table's storage; only keys `fs.*` and `dfs.*`.

        Raises:
            TableNotFoundError: there is no Delta table at the path.
            InvalidArgumentError: the path is a partition directory of a table.
        """
        conf, file_system = session_conf(sparkSession, path), _file_system(hadoopConf)
        table = find_table(path, conf, file_system)
        if table is None:
            raise missing_table(path, conf, file_system)
        return cls(sparkSession, table)

    @classmethod
    def forName(cls, sparkSession: SparkSession, tableOrViewName: str) -> "DeltaTable":
        """The table with this name in Spark's catalog, or at the path in `` delta.`/path` ``.

        On Spark Connect, the name is looked up in the server's session catalog by one request.

        Raises:
            TableNotFoundError: there is no such table, or it isn't a Delta table.
        """
        named_by_path = names.by_path(tableOrViewName)
        if named_by_path is not None and named_by_path[0] == "delta":
            return cls.forPath(sparkSession, named_by_path[1])
        if not is_classic(sparkSession):
            return cls(sparkSession, tables.log_of(sparkSession, tableOrViewName))
        return cls(sparkSession, names.log_of(sparkSession, names.delta_entry(sparkSession, tableOrViewName)))

    @classmethod
    def isDeltaTable(cls, sparkSession: SparkSession, identifier: str) -> bool:
        """Whether the path `identifier` is a Delta table, or a partition directory of one, which can be read."""
        return can_be_read(identifier, session_conf(sparkSession, identifier))

    @classmethod
    def convertToDelta(
        cls,
        sparkSession: SparkSession,
        identifier: str,
        partitionSchema: str | StructType | None = None,
        *,
        collectStats: bool = True,
    ) -> "DeltaTable":
        """Convert Parquet files to a Delta table in place; a table that is Delta already is not changed.

        Args:
            sparkSession: a classic Spark session.
            identifier: a directory as `` parquet.`path` ``, or a Parquet table of Spark's catalog, whose entry is
                changed to Delta.
            partitionSchema: the partition columns of a directory; for a catalog table, the catalog has them.
            collectStats: whether to derive statistics from the files' footers.

        Returns:
            The table.
        """
        return cls(sparkSession, converted(sparkSession, identifier, partitionSchema, statistics=collectStats))

    @classmethod
    def create(cls, sparkSession: SparkSession | None = None) -> "DeltaTableBuilder[DeltaTable]":
        """A builder that creates a table; `execute` raises TableAlreadyExistsError if it exists."""
        return cls._builder(sparkSession, "create")

    @classmethod
    def createIfNotExists(cls, sparkSession: SparkSession | None = None) -> "DeltaTableBuilder[DeltaTable]":
        """A builder that creates a table if there is none; an existing table is not changed."""
        return cls._builder(sparkSession, "createIfNotExists")

    @classmethod
    def replace(cls, sparkSession: SparkSession | None = None) -> "DeltaTableBuilder[DeltaTable]":
        """A builder that replaces a table by an empty one; `execute` raises TableNotFoundError if there is none."""
        return cls._builder(sparkSession, "replace")

    @classmethod
    def createOrReplace(cls, sparkSession: SparkSession | None = None) -> "DeltaTableBuilder[DeltaTable]":
        """A builder that creates a table, or replaces an existing one by an empty one."""
        return cls._builder(sparkSession, "createOrReplace")

    @classmethod
    def _builder(cls, spark: SparkSession | None, mode: CreateMode) -> "DeltaTableBuilder[DeltaTable]":
        session = spark or SparkSession.getActiveSession()
        if session is None:
            raise UnsupportedEnvironmentError("There is no active Spark session: create one, or pass one.")
        return DeltaTableBuilder(session, mode, lambda log: cls(session, log))

    def _repr_html_(self) -> str:
        """The table in a notebook: its name, version, size and columns, or why it can't be read."""
        try:
            return card(self._log.snapshot())
        except TablelogError as error:
            return f"<pre>{escaped(error)}</pre>"

    def toDF(self) -> DataFrame:
        """The table as a DataFrame; each execution reads the newest version."""
        rows = own_columns.note(scan.frame(self._spark, self._log), self._log.table, by_handle=True)
        frame = view_inserts.mark(rows, self._log, None)
        return frame.alias(self._alias) if self._alias else frame

    def alias(self, aliasName: str) -> "DeltaTable":
        """The same table with an alias for use in conditions and expressions."""
        return DeltaTable(self._spark, self._log, aliasName)

    def delete(self, condition: str | Column | None = None) -> None:
        """Delete rows.

        Args:
            condition: SQL text or a Column; rows for which it is TRUE are deleted. None: all rows.
        """
        own_columns.check(self._spark, [condition], self._log.table)
        with session_commit(self._spark) as options:
            delete(self._spark, self._log, condition, alias=self._alias, options=options)

    def update(
        self,
        condition: str | Column | None = None,
        set: Mapping[str, str | Column] | None = None,  # noqa: A002
    ) -> None:
        """Update columns of rows.

        Args:
            condition: SQL text or a Column; rows for which it is TRUE are updated. None: all rows.
            set: maps columns or struct fields (`a.b`) to SQL expressions or Columns over the row before the update.
        """
        values = assignments_of(set, "set")
        own_columns.check(self._spark, [condition, *values.values()], self._log.table)
        with session_commit(self._spark) as options:
            update(self._spark, self._log, values, condition, alias=self._alias, options=options)

    def merge(self, source: DataFrame, condition: str | Column) -> DeltaMergeBuilder:
        """A builder for a MERGE of `source`; rows match if `condition` (SQL text or a Column) is TRUE."""
        return DeltaMergeBuilder(self._spark, self._log, self._alias, source, condition)

    def vacuum(
        self,
        retentionHours: float | None = None,
        *,
        dryRun: bool = False,
        mode: Mode | None = None,
        inventory: DataFrame | None = None,
    ) -> DataFrame:
        """Delete the files in the table's directory that no version within the retention period needs.

        Args:
            retentionHours: the retention period; default: `delta.deletedFileRetentionDuration` of the table.
            dryRun: only list the files, delete nothing.
            mode: "FULL" lists the directory, "LITE" reads the candidates from the log; default: the session's setting.
            inventory: a listing of the directory, with the columns path, length, isDir and modificationTime.

        Returns:
            With `dryRun`, the `path` of each file and directory that would be deleted; else an empty frame.
        """
        if inventory is not None:
            _needs_jvm(self._spark, "vacuum with an inventory", "vacuum without one")
        options = commit_of(self._spark)
        result = vacuum(
            self._spark, self._log, retentionHours, dry_run=dryRun, mode=mode, inventory=inventory, options=options
        )
        return maintenance_results.removable(self._spark, self._log, result, shown=dryRun)

    def setProperties(self, properties: Mapping[str, str]) -> None:
        """Set table properties, as ALTER TABLE SET TBLPROPERTIES does."""
        set_properties(self._spark, self._log, properties, commit_of(self._spark))

    def unsetProperties(self, keys: str | Sequence[str], ifExists: bool = False) -> None:
        """Unset table properties (UNSET TBLPROPERTIES); missing keys are an error unless `ifExists`."""
        names = [keys] if isinstance(keys, str) else list(keys)
        unset_properties(self._spark, self._log, names, if_exists=ifExists, options=commit_of(self._spark))

    def addConstraint(self, name: str, expression: str) -> None:
        """Add a CHECK constraint: writes fail for rows for which the SQL `expression` isn't TRUE.

        PROTOCOL.md, "CHECK Constraints".

        Raises:
            ConstraintViolationError: existing rows violate it; then it is not added.
        """
        add_constraint(self._spark, self._log, name, expression, options=commit_of(self._spark))

    def dropConstraint(self, name: str, ifExists: bool = False) -> None:
        """Drop a CHECK constraint; a missing one is an error unless `ifExists`."""
        drop_constraint(self._spark, self._log, name, if_exists=ifExists, options=commit_of(self._spark))

    def upgradeTableProtocol(self, readerVersion: int, writerVersion: int) -> None:
        """Upgrade the protocol to support the features of these versions (PROTOCOL.md, "Protocol Evolution")."""
        upgrade_protocol(self._spark, self._log, readerVersion, writerVersion, commit_of(self._spark))

    def addFeatureSupport(self, featureName: str) -> None:
        """Add a feature to the table's protocol (PROTOCOL.md, "Table Features")."""
        add_feature(self._spark, self._log, featureName, commit_of(self._spark))

    def generate(self, mode: str) -> None:
        """Write the manifests (`mode`: `symlink_format_manifest`) by which engines for Hive tables find the files."""
        generate(self._spark, self._log, mode)

    def clone(
        self, target: str, isShallow: bool = False, replace: bool = False, properties: Mapping[str, str] | None = None
    ) -> "DeltaTable":
        """A shallow clone: a new table that references the data files of this one.

        Args:
            target: a path, `` delta.`path` ``, or a name in Spark's catalog.
            isShallow: must be True, as in Delta.
            replace: whether an existing table at the target may be replaced.
            properties: table properties that differ from this table's.

        Returns:
            The clone.
        """
        return self._clone(self._log.snapshot(), target, isShallow, replace, properties)

    def cloneAtVersion(
        self,
        version: int,
        target: str,
        isShallow: bool = False,
        replace: bool = False,
        properties: Mapping[str, str] | None = None,
    ) -> "DeltaTable":
        """`clone` of an older version."""
        return self._clone(self._log.snapshot(version), target, isShallow, replace, properties)

    def cloneAtTimestamp(
        self,
        timestamp: str,
        target: str,
        isShallow: bool = False,
        replace: bool = False,
        properties: Mapping[str, str] | None = None,
    ) -> "DeltaTable":
        """`clone` of the version that was current at a timestamp, in the session's time zone."""
        at = self._log.snapshot(timestamp=timestamp_ms(self._spark, timestamp))
        return self._clone(at, target, isShallow, replace, properties)

    def _clone(
        self, snapshot: Snapshot, target: str, isShallow: bool, replace: bool, properties: Mapping[str, str] | None
    ) -> "DeltaTable":
        if not isShallow:
            raise UnsupportedFeatureError(
                "Only shallow clones are supported, as in Delta: use isShallow=True, or write the table's rows to "
                "another path.",
                ("deep clone",),
                condition="DELTA_UNSUPPORTED_DEEP_CLONE",
            )
        place = names.target(self._spark, target)
        log = delta_log(place.path, session_conf(self._spark, place.path))
        clone(self._spark, named(snapshot), log, replaces=replace, overrides=properties, options=commit_of(self._spark))
        place.enter(self._spark)
        return DeltaTable(self._spark, log)

    def restoreToVersion(self, version: int) -> DataFrame:
        """Restore an older version by a new commit; the frame has the metrics."""
        options = commit_of(self._spark)
        return maintenance_results.restored(
            self._spark, restore(self._spark, self._log, version=version, options=options)
        )

    def restoreToTimestamp(self, timestamp: str) -> DataFrame:
        """Restore the version at a timestamp, `yyyy-MM-dd HH:mm:ss` or `yyyy-MM-dd` in the session's time zone."""
        at = timestamp_ms(self._spark, timestamp), timestamp
        options = commit_of(self._spark)
        metrics = restore(self._spark, self._log, timestamp=at, options=options)
        return maintenance_results.restored(self._spark, metrics)

    def dropFeatureSupport(self, featureName: str, truncateHistory: bool | None = None) -> None:
        """Drop a feature from the table's protocol.

        Older versions stay readable: their checkpoints are protected. With `truncateHistory`, versions that need the
        feature must expire and are deleted instead.

        Raises:
            FeatureInHistoryError: such versions have not expired yet; the message has the retention period.
        """
        options = commit_of(self._spark)
        drop_feature(self._spark, self._log, featureName, truncate_history=bool(truncateHistory), options=options)

    def history(self, limit: int | None = None) -> DataFrame:
        """The latest `limit` commits (None: all), newest first, with the columns of DESCRIBE HISTORY."""
        return describe.history(self._spark, self._log, limit)

    def detail(self) -> DataFrame:
        """One row about the table, with the columns of DESCRIBE DETAIL."""
        return describe.detail(self._spark, self._log)

    def optimize(self) -> DeltaOptimizeBuilder:
        """A builder for OPTIMIZE: merges small files, or lays out rows for data skipping."""
        return DeltaOptimizeBuilder(self._spark, self._log)

    def clusterBy(self, *cols: str | list[str] | tuple[str, ...]) -> None:
        """Set the clustering columns for `optimize()` (names, or one list of them; empty: no clustering)."""
        cluster_by(self._spark, self._log, names_of(cols), options=commit_of(self._spark))

    def reorg(self, where: str | None = None) -> DataFrame:
        """Rewrite the files that have deletion vectors, without the deleted rows; returns one row of metrics.

        It is REORG TABLE ... APPLY (PURGE). `where` is a condition on partition columns.
        """
        return run_optimize(self._spark, self._log, OptimizeLayout.of(self._spark, purge=True), where)

    def addColumns(self, columns: str | StructType | Iterable[StructField], position: str | None = None) -> None:
        """Add nullable columns by one commit; no data is read.

        Args:
            columns: DDL text or fields; a name `a.b` is a field of the struct `a`.
            position: FIRST, or AFTER another column of the same struct; default: at the end.
        """
        wanted = new_columns(columns, position)
        add_columns(self._spark, self._log, wanted, options=commit_of(self._spark))

    def renameColumn(self, column: str, newName: str) -> None:
        """Rename a column or a struct field; requires column mapping and changes no data file."""
        new = column_of(newName)
        if len(new) != 1:
            raise InvalidArgumentError(f"The new name {newName!r} has {len(new)} parts: use only the last one.")
        rename_column(self._spark, self._log, column_of(column), new[0], options=commit_of(self._spark))

    def dropColumn(self, *columns: str) -> None:
        """Drop columns or struct fields; requires column mapping. The data stays in the files, but isn't read."""
        drop_columns(self._spark, self._log, [column_of(name) for name in columns], options=commit_of(self._spark))

    def alterColumn(
        self,
        column: str,
        *,
        dataType: str | DataType | None = None,
        nullable: bool | None = None,
        comment: str | None = None,
        position: str | None = None,
        default: str | None = None,
        dropDefault: bool = False,
    ) -> None:
        """Change a column or a struct field; arguments that are None are not changed.

        Args:
            column: the name; `a.b` is a field of the struct `a`.
            dataType: a wider type, as DDL or as a type.
            nullable: True drops NOT NULL.
            comment: the new comment; an empty one removes it.
            position: FIRST, or AFTER another column of the same struct.
            default: the new default value, as SQL.
            dropDefault: whether to drop the default value.
        """
        change = column_change(
            column,
            data_type=dataType,
            nullable=nullable,
            comment=comment,
            position=position,
            default=default,
            drop_default=dropDefault,
        )
        alter_column(self._spark, self._log, change, options=commit_of(self._spark))


def _needs_jvm(spark: SparkSession, operation: str, instead: str = "a classic session") -> None:
    """Raise UnsupportedFeatureError on Spark Connect."""
    if not is_classic(spark):
        raise refused(f"DeltaTable.{operation}", instead)


def _file_system(hadoopConf: Mapping[str, str] | None) -> dict[str, str]:
    wrong = [key for key in hadoopConf or {} if not key.startswith(("fs.", "dfs."))]
    if wrong:
        raise InvalidArgumentError(
            f"hadoopConf only supports keys that start with 'fs.' or 'dfs.', not {wrong}.",
            condition="DELTA_TABLE_FOR_PATH_UNSUPPORTED_HADOOP_CONF",
            parameters={"allowedPrefixes": "fs., dfs.", "unsupportedOptions": ", ".join(wrong)},
        )
    return dict(hadoopConf or {})
