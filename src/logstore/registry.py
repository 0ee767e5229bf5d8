"""Selects the store for a path, by the configuration that Delta users write.

The first that applies is used: `spark.delta.logStore.class` (for every path), `spark.delta.logStore.<scheme>.impl`, the
built-in store for the scheme, the entry point in the group `tablelog.logstores` with the scheme's name. Each key may be
written without `spark.` too. A value is the dotted path of a `LogStore` (`package.module.Class`, or
`package.module:Class`) or the JVM class name of one of Delta's stores.

Delta's HDFSLogStore is also its default for `file:`, so configurations name it for local paths. For these, tablelog
uses its LocalLogStore, which writes the same files and is also safe between processes. In all other cases a path is
only served by the store that was configured for it.
"""

import inspect
import os
import threading
from collections import OrderedDict
from collections.abc import Hashable, Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any
from weakref import WeakValueDictionary

from ..errors import LogStoreConfigurationError
from ..settings.declarations import LOG_STORE
from .azure.store import AzureLogStore
from .base import LogStore
from .common.schemes import SCHEMES, Backend
from .common.uri import scheme_of, shown
from .gcs.store import GCSLogStore
from .hdfs.store import HDFSLogStore
from .local.store import LocalLogStore
from .memory import MemoryLogStore
from .s3.conditional_put_store import S3LogStore
from .s3.dynamodb_store import S3DynamoDBLogStore
from .s3.single_driver_store import S3SingleDriverLogStore

ENTRY_POINT_GROUP = "tablelog.logstores"

_STORES: dict[Backend, type[LogStore]] = {
    "local": LocalLogStore,
    "memory": MemoryLogStore,
    "s3": S3LogStore,
    "hdfs": HDFSLogStore,
    "azure": AzureLogStore,
    "gcs": GCSLogStore,
}
_BUILT_IN = {name: _STORES[scheme.backend] for name, scheme in SCHEMES.items() if scheme.backend is not None}
_GONE = {
    "adl": "Azure retired Data Lake Storage Gen1 in 2024; Gen2 is abfss://container@account.dfs.core.windows.net/…"
}

_JVM_PACKAGES = ("org.apache.spark.sql.delta.storage.", "io.delta.storage.")
_JVM_STORES: dict[str, type[LogStore] | None] = {
    "LocalLogStore": LocalLogStore,
    "S3DynamoDBLogStore": S3DynamoDBLogStore,
    "S3SingleDriverLogStore": S3SingleDriverLogStore,
    "HDFSLogStore": HDFSLogStore,
    "AzureLogStore": AzureLogStore,
    "GCSLogStore": GCSLogStore,
    **dict.fromkeys(
        (
            "IBMCOSLogStore",
            "OracleCloudLogStore",
        )
    ),
}
_JVM_DELEGATING = "org.apache.spark.sql.delta.storage.DelegatingLogStore"
_DECLARATIONS = ("exclusion", "partial_writes_visible", "atomic_overwrite")

_PREFIX = LOG_STORE.prefix.removeprefix("spark.")
_EVERY_SCHEME = "*"
_KEPT = 64
"""The number of unused stores that are kept for later calls."""

# `_alive` has all stores in use, so that equal arguments return the same store; `_recent` keeps the last ones used.
# A store in neither is deleted together with its connections: otherwise hourly new credentials would leak clients.
_alive: "WeakValueDictionary[Hashable, LogStore]" = WeakValueDictionary()
_recent: "OrderedDict[Hashable, LogStore]" = OrderedDict()
_in_memory: dict[Hashable, MemoryLogStore] = {}
"""Stores in memory, one for each scheme; they are kept for ever, because their files would be lost with them."""
_lock = threading.Lock()


def _after_fork() -> None:
    global _lock  # noqa: PLW0603 - the thread that held it doesn't exist in the child
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)


def store_for(
    path: str, *, conf: Mapping[str, str] | None = None, storage_options: Mapping[str, Any] | None = None
) -> LogStore:
    """The store that serves `path`; equal class, scheme and options return the same instance while it is in use.

    Args:
        path: A URI or a local path.
        conf: Settings with Spark's names.
        storage_options: Options of the storage, with fsspec's names.

    Raises:
        LogStoreConfigurationError: The configuration contradicts itself, names no usable store, or no store supports
            the scheme.
    """
    conf, storage_options = conf or {}, storage_options or {}
    scheme = scheme_of(path)
    store_class, source = _store_class(path, scheme, conf)
    relevant = _relevant(store_class, conf)
    try:
        key: Hashable = (store_class, scheme, _frozen(relevant), _frozen(storage_options))
        hash(key)
    except TypeError:  # an option that can't be hashed, such as a client: the store isn't shared
        return _created(store_class, source, scheme, relevant, storage_options)
    with _lock:
        store = _alive.get(key)
    if store is None:
        store = _created(store_class, source, scheme, relevant, storage_options)
    with _lock:
        return _remembered(key, store)


def configuration_prefixes(path: str, conf: Mapping[str, str]) -> tuple[str, ...]:
    """What the keys begin with that the store for `path` reads; raises the errors of `store_for`."""
    return _store_class(path, scheme_of(path), conf)[0].configuration_prefixes


def _remembered(key: Hashable, store: LogStore) -> LogStore:
    """The shared store for the key, marked as requested last."""
    store = _alive.setdefault(key, store)
    if isinstance(store, MemoryLogStore):
        _in_memory[key] = store
        return store
    _recent[key] = store
    _recent.move_to_end(key)
    while len(_recent) > _KEPT:
        _recent.popitem(last=False)
    return store


def new_store_for(
    path: str, *, conf: Mapping[str, str] | None = None, storage_options: Mapping[str, Any] | None = None
) -> LogStore:
    """A new instance of the store for `path` that isn't shared; raises the errors of `store_for`."""
    scheme = scheme_of(path)
    store_class, source = _store_class(path, scheme, conf or {})
    return _created(store_class, source, scheme, _relevant(store_class, conf or {}), storage_options or {})


def _relevant(store_class: type[LogStore], conf: Mapping[str, str]) -> dict[str, str]:
    return {key: conf[key] for key in conf if key.startswith(store_class.configuration_prefixes)}


def _store_class(path: str, scheme: str, conf: Mapping[str, str]) -> tuple[type[LogStore], str]:
    """The class for `scheme`, and the setting that selected it."""
    settings = _settings(conf)
    name, key = settings.pop(_EVERY_SCHEME, (None, ""))
    if name is not None and settings:
        others = ", ".join(sorted(key for _, key in settings.values()))
        raise LogStoreConfigurationError(
            f"{key} (one store for every path) and {others} (by scheme) are both set; unset one of the two kinds"
        )
    if name is None:
        name, key = settings.get(scheme, (None, ""))
    if name is not None and name != _JVM_DELEGATING:
        return _checked(_named(name, key, scheme), key, scheme)
    built_in = _BUILT_IN.get(scheme)
    if built_in is not None:
        return built_in, "the default"
    return _from_entry_point(path, scheme)


def _settings(conf: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """The settings of stores: `*` or the scheme in lower case -> (value, key as it was written)."""
    settings: dict[str, tuple[str, str]] = {}
    for key in conf:
        plain = key.removeprefix("spark.")
        if not plain.startswith(_PREFIX):
            continue
        kind = plain.removeprefix(_PREFIX)
        if kind == "class":
            kind = _EVERY_SCHEME
        elif kind.endswith(".impl"):
            kind = kind.removesuffix(".impl").lower()
        else:
            continue
        value = str(conf[key]).strip()
        if kind in settings and settings[kind][0] != value:
            raise LogStoreConfigurationError(
                f"{settings[kind][1]} = {settings[kind][0]} and {key} = {value} set the same key to different values; "
                "keep one of them"
            )
        settings[kind] = (value, key)
    return settings


def _named(name: str, key: str, scheme: str) -> Any:
    """The object that the configured `name` refers to."""
    for package in _JVM_PACKAGES:
        store = name.removeprefix(package)
        if store in _JVM_STORES and store != name:
            if store == "HDFSLogStore" and scheme == "file":
                return LocalLogStore
            jvm_store = _JVM_STORES[store]
            if jvm_store is None:
                raise LogStoreConfigurationError(
                    f"{key} names Delta's {store}, which this version of tablelog doesn't have; it has "
                    f"{_served()}. Give the dotted path of a tablelog.logstore.LogStore instead, or remove the key"
                )
            return jvm_store
    module, _, attribute = name.partition(":") if ":" in name else name.rpartition(".")
    if not module or not attribute or module.startswith("."):
        raise LogStoreConfigurationError(f"{key} = {name!r} is not the dotted path of a class (package.module.Class)")
    try:
        return getattr(import_module(module), attribute)
    except Exception as error:  # importing the module may raise anything: the error names the key
        hint = "; it looks like a JVM class, but tablelog needs a Python class" if _looks_like_jvm(module) else ""
        raise LogStoreConfigurationError(
            f"{key} = {name} can't be loaded: {type(error).__name__}: {error}{hint}"
        ) from error


def _looks_like_jvm(module: str) -> bool:
    return module.startswith(("com.", "org.", "io.", "net."))


def _checked(store_class: Any, source: str, scheme: str) -> tuple[type[LogStore], str]:
    """`store_class`, if it is a store that supports `scheme`."""
    if not (isinstance(store_class, type) and issubclass(store_class, LogStore)):
        raise LogStoreConfigurationError(
            f"{source} names {_name(store_class)}, which is not a subclass of tablelog.logstore.LogStore"
        )
    if inspect.isabstract(store_class):
        missing = ", ".join(sorted(store_class.__abstractmethods__))
        raise LogStoreConfigurationError(f"{source} names {_name(store_class)}, which doesn't implement {missing}")
    undeclared = [name for name in _DECLARATIONS if not hasattr(store_class, name)]
    if undeclared:
        raise LogStoreConfigurationError(
            f"{source} names {_name(store_class)}, which doesn't declare {', '.join(undeclared)} (see LogStore)"
        )
    if store_class.schemes is not None and scheme not in store_class.schemes:
        raise LogStoreConfigurationError(
            f"{source} names {_name(store_class)}, which supports "
            f"{', '.join(sorted(store_class.schemes))} but not {scheme}"
        )
    return store_class, source


def _name(value: Any) -> str:
    if isinstance(value, type):
        return f"{value.__module__}.{value.__qualname__}"
    return f"a {type(value).__name__}"


def _from_entry_point(path: str, scheme: str) -> tuple[type[LogStore], str]:
    points = _entry_points().get(scheme, ())
    if not points:
        reason = _GONE.get(scheme) or f"no store supports {scheme}"
        raise LogStoreConfigurationError(
            f"{shown(path)}: {reason}; the supported schemes are {_served()}. Set {LOG_STORE.prefix}{scheme}.impl "
            "to the dotted path of a tablelog.logstore.LogStore, or install a package with a store for the scheme"
        )
    if len({point.value for point in points}) > 1:
        names = ", ".join(sorted(point.value for point in points))
        raise LogStoreConfigurationError(
            f"several installed packages have a store for {scheme}: {names}; "
            f"choose one with {LOG_STORE.prefix}{scheme}.impl"
        )
    source = f"the entry point {points[0].value}"
    try:
        store_class = points[0].load()
    except Exception as error:  # as in _named
        raise LogStoreConfigurationError(f"{source} can't be loaded: {type(error).__name__}: {error}") from error
    return _checked(store_class, source, scheme)


@cache
def _entry_points() -> dict[str, tuple[EntryPoint, ...]]:
    points: dict[str, tuple[EntryPoint, ...]] = {}
    for point in entry_points(group=ENTRY_POINT_GROUP):
        scheme = point.name.lower()
        points[scheme] = (*points.get(scheme, ()), point)
    return points


def _served() -> str:
    return ", ".join(sorted({*_BUILT_IN, *_entry_points()}))


def _created(
    store_class: type[LogStore], source: str, scheme: str, conf: Mapping[str, str], storage_options: Mapping[str, Any]
) -> LogStore:
    try:
        return store_class.configured(scheme, conf, storage_options)
    except LogStoreConfigurationError:
        raise
    except TypeError as error:  # the text of `error` is left out: it may quote an option
        raise LogStoreConfigurationError(
            f"{source} names {_name(store_class)}, whose `configured` (or, without one, whose constructor with no "
            "arguments) failed with a TypeError"
        ) from error


def _frozen(value: Any) -> Hashable:
    """`value` in a form that can be compared and hashed."""
    if isinstance(value, Mapping):
        return frozenset((key, _frozen(item)) for key, item in value.items())
    if isinstance(value, list | tuple):
        return tuple(_frozen(item) for item in value)
    if isinstance(value, set | frozenset):
        return frozenset(_frozen(item) for item in value)
    return (type(value), value)
