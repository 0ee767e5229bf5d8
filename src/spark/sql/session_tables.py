"""Gives Spark's analyzer the Delta tables that a statement names."""

from datetime import UTC, datetime, timedelta
from threading import Lock
from typing import Any
from weakref import WeakSet

from pyspark.sql import SparkSession

from ...dml.maintain import cluster_by
from ...engine.jvm.catalog import SessionCatalog
from ...engine.jvm.connection.gateway import Gateway
from ...engine.jvm.connection.sessions import session_id
from ...engine.jvm.statements import table_catalog
from ...engine.jvm.statements.table_catalog import InstalledCatalog, TableRequest, Use
from ...engine.jvm.statements.table_functions import InstalledFunctions
from ...errors import TableNotFoundError
from .. import reader
from ..conf import session_conf
from ..options import Options
from . import table_functions, tables


class SessionTables:
    """Implements `table_catalog.Tables` for one session."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def __call__(self, request: TableRequest) -> Any:
        """The JVM's table for a request of Spark's analyzer.

        Raises:
            UnsupportedFeatureError: a command of Spark's own would change the table.
            TableNotFoundError: there is no Delta table at the location.
        """
        location = self._location(request)
        if request.use is Use.EXISTS:
            return location if reader.can_be_read(location, session_conf(self._spark, location)) else None
        if request.use is Use.QUERY:
            try:
                frame = self._frame(location, request)
            except TableNotFoundError as error:
                if request.entry is not None:
                    raise
                raise tables.no_relation(self._spark, location) from error
            return table_catalog.query_table(self._spark, frame, request)
        if request.use is Use.COMMAND:
            snapshot = reader.existing_table(self._spark, location).snapshot()
            clustered_by = cluster_by.current(snapshot)
            return table_catalog.DescribedTable(Gateway.of(self._spark), request, snapshot, clustered_by)
        raise table_catalog.own_command_refused(request)

    def _frame(self, location: str, request: TableRequest) -> Any:
        options = dict(request.options)
        if request.version is not None:
            options["versionAsOf"] = request.version
        elif request.timestamp_us is not None:
            moment = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=request.timestamp_us)
            options["timestampAsOf"] = moment.isoformat()
        return reader.frame(self._spark, location, Options(options))

    def _location(self, request: TableRequest) -> str:
        """The path of the table, as the reader takes it."""
        if request.entry is None:
            return request.name[-1]
        return SessionCatalog(self._spark).location_of(request.entry)


_lock = Lock()
_installed: dict[str, tuple[InstalledCatalog, InstalledFunctions]] = {}
_sessions: WeakSet[SparkSession] = WeakSet()
"""Objects of sessions that are in `_installed`: to ask the JVM for the id of a session costs a round trip."""


def install(spark: SparkSession) -> None:
    """Have Spark's analyzer ask tablelog for the Delta tables of this session, and give it tablelog's table functions.

    No effect if the session has both already.
    """
    if spark in _sessions:
        return
    key = session_id(spark)
    with _lock:
        if key not in _installed:
            _installed[key] = InstalledCatalog(spark, SessionTables(spark)), table_functions.install(spark)
        _sessions.add(spark)


def remove(spark: SparkSession) -> None:
    """Undo `install`."""
    with _lock:
        installed = _installed.pop(session_id(spark), ())
        _sessions.clear()
    for patch in installed:
        patch.remove()
