"""The client of `HDFSLogStore` with a Spark session: Hadoop's own, with the user's configuration and login.

It uses FileContext, whose rename is exclusive on HDFS (FileSystem's public rename has no such guarantee), with its own
configuration, so that timeouts are bounded independently of Spark's.
"""

from collections.abc import Generator, Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from ...errors import UnsafeStoreError, UnsupportedEnvironmentError
from ...logstore.common.spool import Content, chunks
from ...logstore.common.uri import scheme_of, shown
from ...logstore.hdfs.client import HdfsEntry
from ...logstore.hdfs.store import PROCESS_CLIENTS
from ..jvm.connection.gateway import Gateway, JavaObject
from ..jvm.connection.sessions import is_classic, java_context
from .hadoop_jvm import Statuses, translated

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_EXCLUSIVE = {
    "hdfs": "org.apache.hadoop.fs.Hdfs",
    "viewfs": "org.apache.hadoop.fs.viewfs.ViewFs",
    "ofs": "org.apache.hadoop.fs.ozone.RootedOzFs",
}
"""By scheme, the AbstractFileSystem whose rename is decided atomically by the NameNode (or Ozone Manager)."""

_PIECE = 8 << 20  # bytes

_PATIENCE = {
    "ipc.client.connect.timeout": "5000",
    "ipc.client.connect.max.retries": "3",
    "ipc.client.connect.max.retries.on.timeouts": "3",
    "ipc.client.rpc-timeout.ms": "60000",
    # The initial wait for DataNodes to report a block, doubled each time: small commits should not wait long.
    "dfs.client.block.write.locateFollowingBlock.initial.delay.ms": "10",
    "dfs.client.block.write.locateFollowingBlock.retries": "12",
}
"""Timeouts in ms unless the user sets them: with Hadoop's defaults, an unresponsive host blocks for 15 minutes."""

_served: list[Any] = []


def serve(spark: "SparkSession") -> None:
    """Route the HDFS logs of this process through the session's JVM; does nothing for Spark Connect."""
    if not is_classic(spark):
        return
    context = spark.sparkContext
    if not _served or _served[0] is not context:
        _served[:] = [context]
        PROCESS_CLIENTS.use(partial(SparkFiles, Gateway.of(spark), java_context(spark).hadoopConfiguration()))


class SparkFiles:
    """A client for all name services that the JVM can access; see `HdfsClient`. Shared by threads."""

    def __init__(self, gateway: Gateway, configuration: JavaObject, conf: Mapping[str, str]) -> None:
        self._gateway = gateway
        self._base = configuration
        self._conf = dict(conf)
        self._contexts: dict[str, JavaObject] = {}
        self._checked: set[str] = set()

    def default_file_system(self) -> str:
        with translated("reading", "fs.defaultFS"):
            return str(self._configuration.get("fs.defaultFS", ""))

    def exists(self, path: str) -> bool:
        with translated("looking for", path):
            return bool(self._reader(path).util().exists(self._gateway.path(path)))

    def read(self, path: str) -> bytes:
        with translated("reading", path):
            stream = self._reader(path).open(self._gateway.path(path))
            try:
                return bytes(stream.readAllBytes())
            finally:
                stream.close()

    def pieces(self, path: str) -> Generator[bytes, None, None]:
        with translated("reading", path):
            stream = self._reader(path).open(self._gateway.path(path))
        try:
            while True:
                with translated("reading", path):
                    piece = bytes(stream.readNBytes(_PIECE))
                if not piece:
                    return
                yield piece
        finally:
            stream.close()

    def entries(self, directory: str) -> list[HdfsEntry]:
        with translated("listing", directory):
            remote_iterator = self._reader(directory).listStatus(self._gateway.path(directory))
            statuses = self._gateway.jvm.org.apache.hadoop.util.functional.RemoteIterators.toList(remote_iterator)
            files = Statuses.of(self._gateway).files(statuses)
            return [HdfsEntry(path.rpartition("/")[2], size, modified) for path, size, modified in files]

    def write(self, path: str, content: Content) -> None:
        with translated("writing", path):
            context = self._context(path)
            stream = context.create(self._gateway.path(path), self._new_or_own, self._with_parents)
            try:
                for piece in chunks(content):
                    stream.write(bytearray(piece))
                if stream.hasCapability("hsync"):
                    stream.hsync()
            finally:
                stream.close()

    def rename(self, source: str, target: str, *, overwrite: bool) -> None:
        with translated("renaming to", target):
            context = self._context(target)
            self._check_mount(context, target)
            old, new = self._gateway.path(source), self._gateway.path(target)
            context.rename(old, new, self._overwriting if overwrite else self._exclusive)

    def delete(self, path: str) -> bool:
        with translated("removing", path):
            return bool(self._context(path).delete(self._gateway.path(path), False))

    def _context(self, path: str) -> JavaObject:
        """The FileContext for the authority of `path`; checks that its rename is exclusive."""
        scheme = scheme_of(path)
        root = f"{scheme}://{path[len(scheme) + 3 :].partition('/')[0]}"
        context = self._contexts.get(root)
        if context is None:
            uri = self._gateway.jvm.java.net.URI.create(root + "/")
            context = self._gateway.jvm.org.apache.hadoop.fs.FileContext.getFileContext(uri, self._configuration)
            implementation = context.getDefaultFileSystem().getClass().getName()
            if implementation != _EXCLUSIVE[scheme]:
                raise UnsafeStoreError(
                    f"{root}: fs.AbstractFileSystem.{scheme}.impl is {implementation}, whose rename isn't known to be "
                    f"exclusive; remove that key, or set it to {_EXCLUSIVE[scheme]}"
                )
            self._contexts[root] = context
        return context

    def _reader(self, path: str) -> JavaObject:
        """The FileContext for `path`; its reads see all earlier writes (delta-io/delta#769)."""
        context = self._context(path)
        if self._observers:
            target = context
            if scheme_of(path) == "viewfs":
                target = self._context(str(context.resolvePath(self._gateway.path(path)).toUri().toString()))
            target.getDefaultFileSystem().msync()
        return context

    def _check_mount(self, context: JavaObject, path: str) -> None:
        """Raise UnsafeStoreError for a viewfs directory that is mounted from storage without an exclusive rename."""
        directory = path.rpartition("/")[0]
        if scheme_of(path) != "viewfs" or directory in self._checked:
            return
        real = str(context.resolvePath(self._gateway.path(directory)).toUri().toString())
        if scheme_of(real) not in ("hdfs", "ofs"):
            raise UnsafeStoreError(
                f"{shown(directory)} is mounted from {shown(real)}, where a rename may replace a file: concurrent "
                "writers would overwrite each other's commits. Nothing was written; use the URI of that storage, and "
                "the log store for it",
                path=shown(directory),
            )
        self._checked.add(directory)

    @cached_property
    def _configuration(self) -> JavaObject:
        configuration = self._gateway.jvm.org.apache.hadoop.conf.Configuration(self._base)
        for key, value in self._conf.items():
            configuration.set(key, value)
        for scheme, name in _EXCLUSIVE.items():
            configuration.setIfUnset(f"fs.AbstractFileSystem.{scheme}.impl", name)
        for key, value in _PATIENCE.items():
            if all(source.endswith("-default.xml") for source in configuration.getPropertySources(key) or ()):
                configuration.set(key, value)
        overload = configuration.get("fs.hdfs.impl")
        if overload not in (None, "org.apache.hadoop.hdfs.DistributedFileSystem"):
            raise UnsupportedEnvironmentError(
                f"fs.hdfs.impl is {overload}, so hdfs:// may not refer to HDFS itself: use the URI of the underlying "
                "storage, and don't set fs.hdfs.impl"
            )
        return configuration

    @cached_property
    def _observers(self) -> bool:
        """Whether reads may be served by an observer NameNode, which lags behind."""
        providers = self._configuration.getValByRegex(r"^dfs\.client\.failover\.proxy\.provider\.")
        return any("Observer" in str(provider) for provider in providers.values())

    @cached_property
    def _new_or_own(self) -> JavaObject:
        flags = self._gateway.jvm.org.apache.hadoop.fs.CreateFlag
        return self._gateway.jvm.java.util.EnumSet.of(flags.CREATE, flags.OVERWRITE)

    @cached_property
    def _with_parents(self) -> JavaObject:
        options = self._gateway.jvm.org.apache.hadoop.fs.Options.CreateOpts
        return self._gateway.array(options, [options.createParent()])

    @cached_property
    def _exclusive(self) -> JavaObject:
        return self._rename_options("NONE")

    @cached_property
    def _overwriting(self) -> JavaObject:
        return self._rename_options("OVERWRITE")

    def _rename_options(self, name: str) -> JavaObject:
        options = self._gateway.jvm.org.apache.hadoop.fs.Options.Rename
        return self._gateway.array(options, [getattr(options, name)])
