"""Shared code of the two Hadoop clients on Spark's JVM: translation of Java's errors, and bulk transfer of listings."""

from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import ClassVar

from ...errors import StorageUnavailableError
from ...logstore.common.uri import escaped, shown
from ...logstore.hdfs.errors import error_for
from ..jvm.connection.gateway import Gateway, JavaObject
from ..jvm.connection.java_errors import java_exception, raised_by_calls, thrown_by_java
from ..jvm.connection.jvm_values import JvmValues

_STATUS = "org.apache.hadoop.fs.FileStatus"
_PATH = "org.apache.hadoop.fs.Path"
_WRAPPERS = frozenset(
    "java.lang.reflect.UndeclaredThrowableException java.util.concurrent.ExecutionException "
    "java.util.concurrent.CompletionException java.lang.reflect.InvocationTargetException "
    "java.lang.RuntimeException".split()
)


@contextmanager
def translated(doing: str, uri: str) -> Iterator[None]:
    """Convert Java's exceptions inside to Python errors of the `StorageError` group."""
    try:
        yield
    except raised_by_calls() as error:
        thrown = java_exception(error)
        if thrown is not None:
            raise _error_of(thrown, doing, uri) from error
        if isinstance(error, thrown_by_java()):
            raise
        raise StorageUnavailableError(
            f"{doing} {shown(uri)}: Spark's JVM no longer responds", path=shown(uri)
        ) from error


def _error_of(thrown: JavaObject, doing: str, uri: str) -> Exception:
    name = thrown.getClass().getName()
    while name in _WRAPPERS and thrown.getCause() is not None:
        thrown = thrown.getCause()
        name = thrown.getClass().getName()
    if name == "org.apache.hadoop.ipc.RemoteException":
        name = thrown.getClassName()
    return error_for(name, thrown.getMessage() or "", doing, uri)


def uri_of(path: str) -> str:
    """The percent-encoded URI for the text of Hadoop's `Path.toString`."""
    scheme, separator, rest = path.partition("://")
    if not separator:  # file:/x
        scheme, _, rest = path.partition(":")
        return f"{scheme}://{escaped(rest.encode())}"
    authority, slash, below = rest.partition("/")
    return f"{scheme}://{authority}{slash}{escaped(below.encode())}"


class Statuses:
    """Reads `java.util.List`s of Hadoop's FileStatus in about a dozen calls, independent of their length."""

    _of_jvms: ClassVar = JvmValues["Statuses"]()

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    @classmethod
    def of(cls, gateway: Gateway) -> "Statuses":
        """The shared instance of a JVM, which caches its JVM functions."""
        return cls._of_jvms.get(gateway.py4j, lambda: cls(gateway))

    def files(self, statuses: JavaObject) -> Iterator[tuple[str, int, int]]:
        """Path (unescaped), size and modification time (ms) of the statuses that are files."""
        return self._of(statuses.stream().filter(self._is_file).toList())

    def directories(self, statuses: JavaObject) -> Iterator[tuple[str, int, int]]:
        """The same for the statuses that are directories."""
        return self._of(statuses.stream().filter(self._is_directory).toList())

    def _of(self, files: JavaObject) -> Iterator[tuple[str, int, int]]:
        if not files.size():
            return iter(())
        joined = files.stream().map(self._path).collect(self._gateway.jvm.java.util.stream.Collectors.joining("\0"))
        return zip(
            joined.split("\0"),
            self._longs(files.stream().mapToLong(self._size).toArray()),
            self._longs(files.stream().mapToLong(self._modified).toArray()),
            strict=True,
        )

    def _longs(self, values: JavaObject) -> "array[int]":
        nio = self._gateway.jvm.java.nio
        buffer = nio.ByteBuffer.allocate(8 * len(values)).order(nio.ByteOrder.nativeOrder())
        buffer.asLongBuffer().put(values)
        return array("q", bytes(buffer.array()))

    @cached_property
    def _path(self) -> JavaObject:
        path = self._getter(_STATUS, "getPath", _PATH)
        text = self._getter(_PATH, "toString", "java.lang.String")
        return self._function(
            "java.util.function.Function", self._gateway.handles.filterReturnValue(path, text), "java.lang.Object"
        )

    @cached_property
    def _size(self) -> JavaObject:
        return self._function("java.util.function.ToLongFunction", self._getter(_STATUS, "getLen", "long"), "long")

    @cached_property
    def _modified(self) -> JavaObject:
        getter = self._getter(_STATUS, "getModificationTime", "long")
        return self._function("java.util.function.ToLongFunction", getter, "long")

    @cached_property
    def _is_file(self) -> JavaObject:
        return self._function("java.util.function.Predicate", self._getter(_STATUS, "isFile", "boolean"), "boolean")

    @cached_property
    def _is_directory(self) -> JavaObject:
        getter = self._getter(_STATUS, "isDirectory", "boolean")
        return self._function("java.util.function.Predicate", getter, "boolean")

    def deleted(self, file_system: JavaObject, uris: list[str]) -> int:
        """Delete files in the JVM, one by one; returns how many of them existed."""
        gateway = self._gateway
        delete = gateway.lookup.findVirtual(
            gateway.type("org.apache.hadoop.fs.FileSystem"), "delete", gateway.signature("boolean", _PATH, "boolean")
        ).bindTo(file_system)
        flat = gateway.handles.insertArguments(delete, 1, gateway.array(gateway.jvm.java.lang.Object, [False]))
        remove = self._function("java.util.function.Predicate", flat, "boolean")
        return int(self._paths(uris).filter(remove).count())

    def paths(self, uris: list[str]) -> JavaObject:
        """A `java.util.List` of Hadoop's Path for percent-encoded URIs."""
        return self._paths(uris).toList()

    def _paths(self, uris: list[str]) -> JavaObject:
        names = self._gateway.jvm.java.util.regex.Pattern.compile("\0").splitAsStream("\0".join(uris))
        return names.map(self._make_path)

    @cached_property
    def _make_path(self) -> JavaObject:
        gateway = self._gateway
        text, uri = "java.lang.String", "java.net.URI"
        to_uri = gateway.lookup.findConstructor(gateway.type(uri), gateway.signature("void", text))
        to_path = gateway.lookup.findConstructor(gateway.type(_PATH), gateway.signature("void", uri))
        make = gateway.handles.filterReturnValue(to_uri, to_path)
        return self._function("java.util.function.Function", make, "java.lang.Object")

    def _getter(self, owner: str, name: str, result: str) -> JavaObject:
        gateway = self._gateway
        return gateway.lookup.findVirtual(gateway.type(owner), name, gateway.signature(result))

    def _function(self, interface: str, handle: JavaObject, result: str) -> JavaObject:
        gateway = self._gateway
        erased = handle.asType(gateway.signature(result, "java.lang.Object"))
        return gateway.jvm.java.lang.invoke.MethodHandleProxies.asInterfaceInstance(gateway.type(interface), erased)
