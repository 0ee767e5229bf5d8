"""`DeltaTable`, which mirrors `delta.tables.DeltaTable` call for call, as far as it is built."""

from collections.abc import Iterable, Mapping, Sequence

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.types import DataType, StructField, StructType

from ..core.deltalog import DeltaLog
from ..core.schema_evolution.changes import column_of
from ..core.table.snapshot import Snapshot
from ..dml.alter.constraints import add_constraint, drop_constraint
from ..dml.alter.create import Mode as Creation
from ..dml.alter.drop_feature import drop_feature
from ..dml.alter.properties import set_properties, unset_properties
from ..dml.alter.protocol import add_feature, upgrade_protocol
from ..dml.alter.schema_changes import add_columns, alter_column, drop_columns, rename_column
from ..dml.change.delete import delete
from ..dml.change.update import update
from ..dml.maintain.clone import clone
from ..dml.maintain.cluster_by import cluster_by
from ..dml.maintain.manifest import generate
from ..dml.maintain.optimize import OptimizeLayout
from ..dml.maintain.restore import restore
from ..dml.maintain.vacuum import Mode, vacuum
from ..engine.jvm.sessions import is_classic
from ..engine.read import scan
from ..engine.write import view_inserts as inserts
from ..errors import InvalidArgumentError, TableNotFoundError, UnsupportedEnvironmentError, UnsupportedFeatureError
from . import describe, names, upkeep
from .arguments import assignments_of, checked, names_of
from .boundary import with_pyspark_errors
from .columns import column_change, new_columns
from .conf import delta_log, session_conf
from .convert import converted, named
from .create import DeltaTableBuilder
from .merge import DeltaMergeBuilder
from .optimize import DeltaOptimizeBuilder
from .optimize import run as optimized
from .reader import find_table, not_a_table
from .time_travel import timestamp_ms
from .writer import commit_of, session_commit


@with_pyspark_errors
@checked
class DeltaTable:
    """A Delta table in a Spark session. Made by `forPath`; works whether or not the session is enabled."""

    def __init__(self, spark: SparkSession, log: DeltaLog, alias: str | None = None) -> None:
        self._spark = spark
        self._log = log
        self._alias = alias

    @classmethod
    def forPath(
        cls, sparkSession: SparkSession, path: str, hadoopConf: Mapping[str, str] | None = None
    ) -> "DeltaTable":
        """The table at `path`, or the one that has `path` as a partition directory.

        `hadoopConf` may hold `fs.*` and `dfs.*` keys only. Raises TableNotFoundError where there is no table.
        """
        _check_session(sparkSession)
        table = find_table(path, session_conf(sparkSession, path), _file_system(hadoopConf))
        if table is None:
            raise not_a_table(path, condition="DELTA_MISSING_DELTA_TABLE", parameters={"tableName": path})
        return cls(sparkSession, table)

    @classmethod
    def forName(cls, sparkSession: SparkSession, tableOrViewName: str) -> "DeltaTable":
        """A table by its name in Spark's catalog, or by ``delta.`/path```. Raises TableNotFoundError."""
        _check_session(sparkSession)
        named_by_path = names.by_path(tableOrViewName)
        if named_by_path is not None and named_by_path[0] == "delta":
            return cls.forPath(sparkSession, named_by_path[1])
        entry = names.found(sparkSession, tableOrViewName)
        log = delta_log(entry.location, session_conf(sparkSession, entry.location))
        if not log.exists():
            raise TableNotFoundError(
                f"{entry.name} lies at {entry.location}, where there is no Delta table.",
                condition="DELTA_MISSING_DELTA_TABLE",
                parameters={"tableName": entry.name},
            )
        return cls(sparkSession, log)

    @classmethod
    def isDeltaTable(cls, sparkSession: SparkSession, identifier: str) -> bool:
        """Whether there is a Delta table at the path `identifier`."""
        _check_session(sparkSession)
        return find_table(identifier, session_conf(sparkSession, identifier), {}) is not None

    @classmethod
    def convertToDelta(
        cls,
        sparkSession: SparkSession,
        identifier: str,
        partitionSchema: str | StructType | None = None,
        *,
        collectStats: bool = True,
    ) -> "DeltaTable":
        """Make a table of Parquet files where they lie; one that is Delta already is fine.

        `identifier` is a directory, as ``parquet.`path```, or a table of Spark's catalog, which becomes Delta's.
        `partitionSchema` says by which columns the directories are partitioned (of a table the catalog knows). Without
        `collectStats` the files get no statistics.
        """
        _check_session(sparkSession)
        return cls(sparkSession, converted(sparkSession, identifier, partitionSchema, statistics=collectStats))

    @classmethod
    def create(cls, sparkSession: SparkSession | None = None) -> "DeltaTableBuilder[DeltaTable]":
        """A builder that creates a table where there is none: TableAlreadyExistsError."""
        return cls._builder(sparkSession, "create")

    @classmethod
    def createIfNotExists(cls, sparkSession: SparkSession | None = None) -> "DeltaTableBuilder[DeltaTable]":
        """A builder that creates a table, or leaves the one that is there as it is."""
        return cls._builder(sparkSession, "createIfNotExists")

    @classmethod
    def replace(cls, sparkSession: SparkSession | None = None) -> "DeltaTableBuilder[DeltaTable]":
        """A builder that replaces a table and all its rows by an empty one: TableNotFoundError."""
        return cls._builder(sparkSession, "replace")

    @classmethod
    def createOrReplace(cls, sparkSession: SparkSession | None = None) -> "DeltaTableBuilder[DeltaTable]":
        """A builder that creates a table, or replaces the one that is there by an empty one."""
        return cls._builder(sparkSession, "createOrReplace")

    @classmethod
    def _builder(cls, spark: SparkSession | None, mode: Creation) -> "DeltaTableBuilder[DeltaTable]":
        session = spark or SparkSession.getActiveSession()
        if session is None:
            raise UnsupportedEnvironmentError("There is no active Spark session: make one, or pass one.")
        _check_session(session)
        return DeltaTableBuilder(session, mode, lambda log: cls(session, log))

    def toDF(self) -> DataFrame:
        """The table as a DataFrame; each execution reads the newest version."""
        frame = inserts.mark(scan.frame(self._spark, self._log), self._log, None)
        return frame.alias(self._alias) if self._alias else frame

    def alias(self, aliasName: str) -> "DeltaTable":
        """The table under another name, for use in conditions."""
        return DeltaTable(self._spark, self._log, aliasName)

    def delete(self, condition: str | Column | None = None) -> None:
        """Delete the rows for which `condition` (SQL text or a Column) is TRUE; all rows where it is left out."""
        with session_commit(self._spark) as options:
            delete(self._spark, self._log, condition, alias=self._alias, options=options)

    def update(
        self,
        condition: str | Column | None = None,
        set: Mapping[str, str | Column] | None = None,  # noqa: A002
    ) -> None:
        """Set columns of the rows for which `condition` (SQL text or a Column) is TRUE; of all where it is left out.

        The keys of `set` are columns, or fields of structs; its values SQL expressions or Columns over the old row.
        """
        values = assignments_of(set, "set")
        with session_commit(self._spark) as options:
            update(self._spark, self._log, values, condition, alias=self._alias, options=options)

    def merge(self, source: DataFrame, condition: str | Column) -> DeltaMergeBuilder:
        """Merge `source` into the table: the builder says what becomes of rows that match by `condition`, or don't."""
        return DeltaMergeBuilder(self._spark, self._log, self._alias, source, condition)

    def vacuum(
        self,
        retentionHours: float | None = None,
        *,
        dryRun: bool = False,
        mode: Mode | None = None,
        inventory: DataFrame | None = None,
    ) -> DataFrame:
        """Remove the files that no version within the retention needs; the frame that it gives is empty.

        With `dryRun` nothing is removed, and the frame has the `path` of each file and directory that would go. `mode`
        LITE looks at the log instead of listing the directory; `inventory` is a listing made elsewhere.
        """
        options = commit_of(self._spark)
        done = vacuum(
            self._spark, self._log, retentionHours, dry_run=dryRun, mode=mode, inventory=inventory, options=options
        )
        return upkeep.removable(self._spark, self._log, done, shown=dryRun)

    def setProperties(self, properties: Mapping[str, str]) -> None:
        """Set table properties, as ALTER TABLE SET TBLPROPERTIES does."""
        set_properties(self._spark, self._log, properties, commit_of(self._spark))

    def unsetProperties(self, keys: str | Sequence[str], ifExists: bool = False) -> None:
        """Take table properties away; those that aren't set are an error unless `ifExists`."""
        names = [keys] if isinstance(keys, str) else list(keys)
        unset_properties(self._spark, self._log, names, if_exists=ifExists, options=commit_of(self._spark))

    def addConstraint(self, name: str, expression: str) -> None:
        """Have the table refuse rows for which the SQL `expression` isn't TRUE (ALTER TABLE ADD CONSTRAINT ... CHECK).

        ConstraintViolationError, and no constraint, where a row of the table breaks it.
        """
        add_constraint(self._spark, self._log, name, expression, options=commit_of(self._spark))

    def dropConstraint(self, name: str, ifExists: bool = False) -> None:
        """Drop a CHECK constraint."""
        drop_constraint(self._spark, self._log, name, if_exists=ifExists, options=commit_of(self._spark))

    def upgradeTableProtocol(self, readerVersion: int, writerVersion: int) -> None:
        """Have the table support all that the protocol versions stand for."""
        upgrade_protocol(self._spark, self._log, readerVersion, writerVersion, commit_of(self._spark))

    def addFeatureSupport(self, featureName: str) -> None:
        """Have the table support a feature, and raise its protocol as that needs."""
        add_feature(self._spark, self._log, featureName, commit_of(self._spark))

    def generate(self, mode: str) -> None:
        """Write the manifests (`symlink_format_manifest`) by which engines of Hive tables find the table's files."""
        generate(self._spark, self._log, mode)

    def clone(
        self, target: str, isShallow: bool = False, replace: bool = False, properties: Mapping[str, str] | None = None
    ) -> "DeltaTable":
        """A table over this one's files, none of which is copied.

        `target` is a path, ``delta.`path```, or a name in Spark's catalog. `isShallow` must be True, as in Delta.
        `replace` lets it take the place of a table, `properties` differ from this one's.
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
        """`clone` of a version."""
        return self._clone(self._log.snapshot(version), target, isShallow, replace, properties)

    def cloneAtTimestamp(
        self,
        timestamp: str,
        target: str,
        isShallow: bool = False,
        replace: bool = False,
        properties: Mapping[str, str] | None = None,
    ) -> "DeltaTable":
        """`clone` of the version that was the newest at a time in the session's time zone."""
        at = self._log.snapshot(timestamp=timestamp_ms(self._spark, timestamp))
        return self._clone(at, target, isShallow, replace, properties)

    def _clone(
        self, of: Snapshot, target: str, isShallow: bool, replace: bool, properties: Mapping[str, str] | None
    ) -> "DeltaTable":
        if not isShallow:
            raise UnsupportedFeatureError(
                "A clone with copies of all files isn't supported, as in Delta: clone with isShallow=True, or write "
                "the table's rows to another path.",
                ("deep clone",),
                condition="DELTA_UNSUPPORTED_DEEP_CLONE",
            )
        place = names.target(self._spark, target)
        log = delta_log(place.path, session_conf(self._spark, place.path))
        clone(self._spark, named(of), log, replaces=replace, overrides=properties, options=commit_of(self._spark))
        place.enter(self._spark)
        return DeltaTable(self._spark, log)

    def restoreToVersion(self, version: int) -> DataFrame:
        """Make the table what it was at a version; the frame has the metrics."""
        options = commit_of(self._spark)
        return upkeep.restored(self._spark, restore(self._spark, self._log, version=version, options=options))

    def restoreToTimestamp(self, timestamp: str) -> DataFrame:
        """Make the table what it was at a time, `yyyy-MM-dd HH:mm:ss` or `yyyy-MM-dd` in the session's time zone."""
        at = timestamp_ms(self._spark, timestamp), timestamp
        options = commit_of(self._spark)
        return upkeep.restored(self._spark, restore(self._spark, self._log, timestamp=at, options=options))

    def dropFeatureSupport(self, featureName: str, truncateHistory: bool | None = None) -> None:
        """Take a feature from the table and lower its protocol as far as that allows.

        What readers need a feature for stays readable in older versions: their checkpoints are protected, or, with
        `truncateHistory`, these versions have to expire first (FeatureInHistoryError says how long).
        """
        options = commit_of(self._spark)
        drop_feature(self._spark, self._log, featureName, truncate_history=bool(truncateHistory), options=options)

    def history(self, limit: int | None = None) -> DataFrame:
        """The latest `limit` commits (all: None), newest first, with the columns of DESCRIBE HISTORY."""
        return describe.history(self._spark, self._log, limit)

    def detail(self) -> DataFrame:
        """One row about the table, with the columns of DESCRIBE DETAIL."""
        return describe.detail(self._spark, self._log)

    def optimize(self) -> DeltaOptimizeBuilder:
        """A builder to rewrite the table's files: fewer and larger ones, or laid out for filters."""
        return DeltaOptimizeBuilder(self._spark, self._log)

    def clusterBy(self, *cols: str | list[str] | tuple[str, ...]) -> None:
        """Have `optimize()` cluster the table by these columns (names, or one list of them; none: not at all)."""
        cluster_by(self._spark, self._log, names_of(cols), options=commit_of(self._spark))

    def reorg(self, where: str | None = None) -> DataFrame:
        """Rewrite the files that have deleted rows, without these (REORG TABLE ... APPLY (PURGE)). A row of metrics."""
        return optimized(self._spark, self._log, OptimizeLayout.of(self._spark, purge=True), where)

    def addColumns(self, columns: str | StructType | Iterable[StructField], position: str | None = None) -> None:
        """Add nullable columns, given in DDL or as fields; `a.b` is a field of the struct a. One commit, no data read.

        `position` is FIRST or AFTER another column of the struct; else they go to its end.
        """
        wanted = new_columns(columns, position)
        add_columns(self._spark, self._log, wanted, options=commit_of(self._spark))

    def renameColumn(self, column: str, newName: str) -> None:
        """Call a column, or a field of a struct, otherwise. It takes column mapping, and touches no data file."""
        new = column_of(newName)
        if len(new) != 1:
            raise InvalidArgumentError(f"The new name {newName!r} is one of {len(new)} parts: give the last one alone.")
        rename_column(self._spark, self._log, column_of(column), new[0], options=commit_of(self._spark))

    def dropColumn(self, *columns: str) -> None:
        """Drop columns, or fields of structs. It takes column mapping; their data stays in the files, unread."""
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
        """Change what is given of a column or a field of a struct: its type to a wider one, its default (SQL), ..."""
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


def _check_session(spark: SparkSession) -> None:
    if not is_classic(spark):
        raise UnsupportedEnvironmentError(
            "DeltaTable needs a classic Spark session; Spark Connect comes with a later version of tablelog."
        )


def _file_system(hadoopConf: Mapping[str, str] | None) -> dict[str, str]:
    wrong = [key for key in hadoopConf or {} if not key.startswith(("fs.", "dfs."))]
    if wrong:
        raise InvalidArgumentError(
            f"hadoopConf takes keys that begin with 'fs.' or 'dfs.' only, not {wrong}.",
            condition="DELTA_TABLE_FOR_PATH_UNSUPPORTED_HADOOP_CONF",
            parameters={"allowedPrefixes": "fs., dfs.", "unsupportedOptions": ", ".join(wrong)},
        )
    return dict(hadoopConf or {})
