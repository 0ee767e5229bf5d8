"""From a path to the store that serves it, by the configuration that a Delta user writes.

First that applies: `spark.delta.logStore.class` (every path), `spark.delta.logStore.<scheme>.impl`, the store built in
for the scheme, the entry point of the group `tablelog.logstores` that bears the scheme's name. Each key may be written
without `spark.` too. A value is the dotted path of a `LogStore` (`package.module.Class`, or `package.module:Class`) or
the JVM class name of one of Delta's own stores.

Delta's HDFSLogStore is also its default for `file:`, so configurations name it for local paths. There it means our
LocalLogStore, which writes the same files and is safe between processes as well. Nothing else is ever served by a
store that wasn't asked for.
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
from ..settings.honoured import LOG_STORE
from .azure.store import AzureLogStore
from .base import LogStore
from .common.schemes import SCHEMES, Backend
from .common.uri import scheme_of, shown
from .gcs.store import GCSLogStore
from .hdfs.store import HDFSLogStore
from .local.store import LocalLogStore
from .memory import MemoryLogStore
from .s3.conditional import S3LogStore
from .s3.dynamodb import S3DynamoDBLogStore
from .s3.single_driver import S3SingleDriverLogStore

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
"""How many stores that nobody uses are kept for who asks next."""

# All stores that somebody has, so that two who ask for one get one; and those that were asked for last. A store that
# is in neither is gone, with its connections: credentials that change every hour would else leave clients behind.
_alive: "WeakValueDictionary[Hashable, LogStore]" = WeakValueDictionary()
_recent: "OrderedDict[Hashable, LogStore]" = OrderedDict()
_in_memory: dict[Hashable, MemoryLogStore] = {}
"""The stores whose files would go with them: one for a scheme."""
_lock = threading.Lock()


def _after_fork() -> None:
    global _lock  # noqa: PLW0603 - the thread that held it isn't in the child
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)


def store_for(
    path: str, *, conf: Mapping[str, str] | None = None, storage_options: Mapping[str, Any] | None = None
) -> LogStore:
    """The store that serves `path`: one instance for each class, scheme and set of options, as long as one is in use.

    Raises `LogStoreConfigurationError` where the configuration contradicts itself, names no usable store, or no store
    serves the scheme.
    """
    conf, storage_options = conf or {}, storage_options or {}
    scheme = scheme_of(path)
    found, source = _store_class(path, scheme, conf)
    relevant = _relevant(found, conf)
    try:
        key: Hashable = (found, scheme, _frozen(relevant), _frozen(storage_options))
        hash(key)
    except TypeError:  # an option that can't be compared, such as a client: its store isn't shared
        return _made(found, source, scheme, relevant, storage_options)
    with _lock:
        store = _alive.get(key)
    if store is None:
        store = _made(found, source, scheme, relevant, storage_options)
    with _lock:
        return _noted(key, store)


def _noted(key: Hashable, store: LogStore) -> LogStore:
    """The one store for the key, noted as asked for last."""
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
    """Another instance of the store that serves `path`, which nobody else has; raises as `store_for` does."""
    scheme = scheme_of(path)
    found, source = _store_class(path, scheme, conf or {})
    return _made(found, source, scheme, _relevant(found, conf or {}), storage_options or {})


def _relevant(found: type[LogStore], conf: Mapping[str, str]) -> dict[str, str]:
    return {key: conf[key] for key in conf if key.startswith(found.configuration_prefixes)}


def _store_class(path: str, scheme: str, conf: Mapping[str, str]) -> tuple[type[LogStore], str]:
    """The class for `scheme`, and what named it."""
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
    """The keys about stores: `*` or the scheme in lower case -> (value, key as it was written)."""
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
                f"{settings[kind][1]} = {settings[kind][0]} and {key} = {value} mean the same key and differ; "
                "keep one of them"
            )
        settings[kind] = (value, key)
    return settings


def _named(name: str, key: str, scheme: str) -> Any:
    """What the configured `name` refers to."""
    for package in _JVM_PACKAGES:
        store = name.removeprefix(package)
        if store in _JVM_STORES and store != name:
            if store == "HDFSLogStore" and scheme == "file":
                return LocalLogStore
            found = _JVM_STORES[store]
            if found is None:
                raise LogStoreConfigurationError(
                    f"{key} names Delta's {store}, which this version of tablelog doesn't have; it has "
                    f"{_served()}. Give the dotted path of a tablelog.logstore.LogStore instead, or remove the key"
                )
            return found
    module, _, attribute = name.partition(":") if ":" in name else name.rpartition(".")
    if not module or not attribute or module.startswith("."):
        raise LogStoreConfigurationError(f"{key} = {name!r} is not the dotted path of a class (package.module.Class)")
    try:
        return getattr(import_module(module), attribute)
    except Exception as error:  # whatever the module does when it is imported: the key is at fault, and is named
        hint = "; it looks like a JVM class, and tablelog needs a Python one" if _looks_like_jvm(module) else ""
        raise LogStoreConfigurationError(
            f"{key} = {name} can't be loaded: {type(error).__name__}: {error}{hint}"
        ) from error


def _looks_like_jvm(module: str) -> bool:
    return module.startswith(("com.", "org.", "io.", "net."))


def _checked(found: Any, source: str, scheme: str) -> tuple[type[LogStore], str]:
    """`found`, if it is a store that can serve `scheme`."""
    if not (isinstance(found, type) and issubclass(found, LogStore)):
        raise LogStoreConfigurationError(
            f"{source} names {_name(found)}, which is not a subclass of tablelog.logstore.LogStore"
        )
    if inspect.isabstract(found):
        missing = ", ".join(sorted(found.__abstractmethods__))
        raise LogStoreConfigurationError(f"{source} names {_name(found)}, which doesn't implement {missing}")
    undeclared = [name for name in _DECLARATIONS if not hasattr(found, name)]
    if undeclared:
        raise LogStoreConfigurationError(
            f"{source} names {_name(found)}, which doesn't declare {', '.join(undeclared)} (see LogStore)"
        )
    if found.schemes is not None and scheme not in found.schemes:
        raise LogStoreConfigurationError(
            f"{source} names {_name(found)}, which serves {', '.join(sorted(found.schemes))} and not {scheme}"
        )
    return found, source


def _name(found: Any) -> str:
    if isinstance(found, type):
        return f"{found.__module__}.{found.__qualname__}"
    return f"a {type(found).__name__}"


def _from_entry_point(path: str, scheme: str) -> tuple[type[LogStore], str]:
    points = _entry_points().get(scheme, ())
    if not points:
        what = _GONE.get(scheme) or f"no store serves {scheme}"
        raise LogStoreConfigurationError(
            f"{shown(path)}: {what}; served are {_served()}. Set {LOG_STORE.prefix}{scheme}.impl to the dotted "
            "path of a tablelog.logstore.LogStore, or install a package that brings one for the scheme"
        )
    if len({point.value for point in points}) > 1:
        names = ", ".join(sorted(point.value for point in points))
        raise LogStoreConfigurationError(
            f"several installed packages bring a store for {scheme}: {names}; "
            f"choose one with {LOG_STORE.prefix}{scheme}.impl"
        )
    source = f"the entry point {points[0].value}"
    try:
        found = points[0].load()
    except Exception as error:  # as in _named
        raise LogStoreConfigurationError(f"{source} can't be loaded: {type(error).__name__}: {error}") from error
    return _checked(found, source, scheme)


@cache
def _entry_points() -> dict[str, tuple[EntryPoint, ...]]:
    found: dict[str, tuple[EntryPoint, ...]] = {}
    for point in entry_points(group=ENTRY_POINT_GROUP):
        scheme = point.name.lower()
        found[scheme] = (*found.get(scheme, ()), point)
    return found


def _served() -> str:
    return ", ".join(sorted({*_BUILT_IN, *_entry_points()}))


def _made(
    found: type[LogStore], source: str, scheme: str, conf: Mapping[str, str], storage_options: Mapping[str, Any]
) -> LogStore:
    try:
        return found.configured(scheme, conf, storage_options)
    except LogStoreConfigurationError:
        raise
    except TypeError as error:  # no text of `error`: it may quote an option
        raise LogStoreConfigurationError(
            f"{source} names {_name(found)}, whose `configured` (or, without one, whose constructor with no "
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
