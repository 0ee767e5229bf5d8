"""Creates a target from command-line arguments: a URL with its settings, a class, or a factory."""

import inspect
import json
import os
import re
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit

from tablelog.errors import TablelogError
from tablelog.logstore import LogStore, new_store_for, store_for
from tablelog.logstore.common.uri import local_uri, scheme_of, shown
from tablelog.logstore.wrappers.prefixed import PrefixedLogStore

from .model import Factory, Target
from .secrecy import secrets_among, shown_setting

_ENDPOINT_NAME = re.compile(r"(^|[._])(endpoint|endpoint_url|root\.url|account_host|connection_string)$", re.I)
_TLS_NAME = re.compile(r"(^|[._])(ssl\.enabled|always\.use\.https|use_ssl)$")
_ADDRESS = re.compile(r"(?:https?://)?[\w.\-\[\]]+:\d+|https?://[\w.\-\[\]]+")


class WrongTargetError(ValueError):
    """The arguments don't name a store that can be tested; the message says why."""


@dataclass(frozen=True)
class Asked:
    """A target, the arguments for it that may be shown, and the secrets that must not be shown."""

    target: Target
    words: tuple[str, ...]
    secrets: frozenset[str]


def from_url(url: str, options: Mapping[str, Any], conf: Mapping[str, str], store: str | None = None) -> Asked:
    """The store for `url` that the registry selects, or the class `store` (`package:Class`).

    `options` are storage options with fsspec's names, `conf` Hadoop's keys. Raises `WrongTargetError`, and
    `LogStoreConfigurationError` if the registry has no store for it.
    """
    words = [shown(url)]
    if store is not None:
        importable(store)
        conf = {**conf, f"spark.delta.logStore.{scheme_of(url)}.impl": store}
        words = ["--store", store, "--root", shown(url)]
    url = _absolute(url).rstrip("/")
    words += [word for name, value in options.items() for word in ("--option", shown_setting(name, value))]
    words += [
        word
        for name, value in conf.items()
        if store is None or not name.endswith(".impl")
        for word in ("--conf", shown_setting(name, value))
    ]
    make: Factory = partial(_configured, url, dict(conf), dict(options))
    endpoint, through = _stood_before(url, dict(conf), dict(options))
    what = type(make()).__name__ + (f" on {urlsplit(endpoint).netloc or endpoint}" if endpoint else "")
    target = Target(make, url, what, endpoint, through)
    # The parts of the URL itself aren't secrets, even if a key equals the name of the bucket.
    secrets = frozenset(word for word in secrets_among({**options, **conf}) if word not in shown(url))
    return Asked(target, tuple(words), secrets)


def from_factory(name: str, root: str | None) -> Asked:
    """The store that the callable `name` (`package:factory`) creates; it takes no argument, or `endpoint`.

    The default of the parameter `endpoint` is the address of the service; the suite replaces it by a proxy's. Without
    `root`, the factory's attribute `root` is used, or a new local directory if the store supports it. Raises
    `WrongTargetError`.
    """
    factory = importable(name)
    if not callable(factory):
        raise WrongTargetError(f"{name} can't be called; a factory takes no argument and returns a LogStore")
    try:
        store = _made_by(name)
    except TablelogError:
        raise
    except Exception as error:
        raise WrongTargetError(f"{name} failed with {type(error).__name__}: {error}") from error
    if not isinstance(store, LogStore):
        raise WrongTargetError(f"{name} returned a {type(store).__name__}, not a tablelog.logstore.LogStore")
    root = root or getattr(factory, "root", None)
    words = ["--factory", name, *(["--root", shown(root)] if root else [])]
    if root is None:
        if store.schemes is not None and "file" not in store.schemes:
            raise WrongTargetError(
                f"{type(store).__name__} doesn't support local paths: set a location with --root URL"
            )
        root = tempfile.mkdtemp(prefix="tablelog-conformance-")
        os.rmdir(root)  # the run creates it again, and then also removes it
    endpoint = _default_endpoint(factory)
    through = None if endpoint is None else partial(_factory_through, name)
    what = type(store).__name__ + (f" on {urlsplit(endpoint).netloc}" if endpoint else "")
    return Asked(
        Target(partial(_made_by, name), _absolute(root).rstrip("/"), what, endpoint, through), tuple(words), frozenset()
    )


def named(asked: Asked, what: str | None) -> Asked:
    """The same target with the name `what`, if there is one, such as `MinIO RELEASE.2025-10-15`."""
    return replace(asked, target=replace(asked.target, what=what)) if what else asked


def setting(text: str) -> tuple[str, str]:
    """Parse `name=value` of a configuration. Raises `ValueError`."""
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise ValueError("expected name=value")  # the text may be a secret
    return name, value


def option(text: str) -> tuple[str, Any]:
    """Parse a storage option like `setting`, but `true`, `false` and JSON objects become values of their types."""
    name, value = setting(text)
    if value in {"true", "false"} or value.startswith("{"):
        try:
            return name, json.loads(value)
        except ValueError:
            raise ValueError(f"the value of {name} isn't JSON") from None
    return name, value


def importable(name: str) -> Any:
    """Import `package.module:attribute`, also from the working directory. Raises `WrongTargetError`."""
    module, _, attribute = name.partition(":") if ":" in name else name.rpartition(".")
    if not module or not attribute:
        raise WrongTargetError(f"{name!r} doesn't have the form package.module:name")
    if os.getcwd() not in sys.path and "" not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        return getattr(import_module(module), attribute)
    except Exception as error:
        raise WrongTargetError(f"{name} can't be loaded: {type(error).__name__}: {error}") from error


def _absolute(url: str) -> str:
    return local_uri(os.path.abspath(url)) if scheme_of(url) == "file" and not url.startswith("file:") else url


def _configured(url: str, conf: Mapping[str, str], options: Mapping[str, Any]) -> LogStore:
    shared = store_for(url, conf=conf, storage_options=options)
    # A store with the exclusion "process" keeps its lock in its instance: all clients must use the registry's instance.
    if shared.exclusion == "process":
        return shared
    return new_store_for(url, conf=conf, storage_options=options)


def _made_by(name: str, **arguments: Any) -> Any:
    return importable(name)(**arguments)


def _default_endpoint(factory: Callable[..., Any]) -> str | None:
    try:
        parameter = inspect.signature(factory).parameters.get("endpoint")
    except ValueError:  # a class in C, say
        return None
    return parameter.default if parameter is not None and isinstance(parameter.default, str) else None


def _factory_through(name: str, address: str) -> Factory:
    return partial(_made_by, name, endpoint=address)


def _stood_before(
    url: str, conf: dict[str, str], options: dict[str, Any]
) -> tuple[str | None, Callable[[str], Factory] | None]:
    """The address of the service, and a function that creates the factory of clients for another address."""
    settings = {**options, **conf}
    address = _address_in(settings)
    if address is not None:
        return _endpoint(address, settings), partial(_through, url, conf, options, address)
    authority = urlsplit(url).netloc
    if scheme_of(url) == "hdfs" and ":" in authority:
        return authority, partial(_through_the_url, url, conf, options)
    mounted = _mounted(authority, settings) if scheme_of(url) == "viewfs" else None
    if mounted is not None:
        return mounted, partial(_through, url, conf, options, mounted)
    return None, None


def _mounted(table: str, settings: Mapping[str, Any]) -> str | None:
    """`host:port` of the only NameNode in a mount table of viewfs; None: there are several, or none."""
    prefix = f"fs.viewfs.mounttable.{table}.link"
    leads_to = {urlsplit(value).netloc for name, value in _flat(settings) if name.startswith(prefix)}
    return leads_to.pop() if len(leads_to) == 1 and ":" in min(leads_to) else None


def _address_in(settings: Mapping[str, Any]) -> str | None:
    """The address of the service in the settings, unchanged; a bucket's own setting takes precedence."""
    for name, value in sorted(_flat(settings), key=lambda item: ".bucket." not in item[0]):
        match = _ADDRESS.search(value) if _ENDPOINT_NAME.search(name) else None
        if match is not None:
            return match[0]
    return None


def _endpoint(address: str, settings: Mapping[str, Any]) -> str:
    """`address` with the protocol of the service."""
    if "://" in address:
        return address
    plain = any(_TLS_NAME.search(name) and value.lower() == "false" for name, value in _flat(settings))
    return f"{'http' if plain else 'https'}://{address}"


def _flat(settings: Mapping[str, Any]) -> list[tuple[str, str]]:
    pairs = []
    for name, value in settings.items():
        pairs += _flat(value) if isinstance(value, Mapping) else [(name, str(value))]
    return pairs


def _through(url: str, conf: Mapping[str, str], options: Mapping[str, Any], old: str, endpoint: str) -> Factory:
    """The factory of clients that use `endpoint` where the settings have `old`."""
    new = urlsplit(endpoint).netloc if "://" in endpoint and "://" not in old else endpoint
    return partial(_configured, url, _replaced(conf, old, new), _replaced(options, old, new))


def _replaced(value: Any, old: str, new: str) -> Any:
    if isinstance(value, Mapping):
        return {key: _replaced(item, old, new) for key, item in value.items()}
    return value.replace(old, new) if isinstance(value, str) else value


def _through_the_url(url: str, conf: Mapping[str, str], options: Mapping[str, Any], address: str) -> Factory:
    """The factory of clients for `url` that use `address` where the URL has `host:port`."""
    return partial(_prefixed, url, urlsplit(url)._replace(netloc=address).geturl(), conf, options)


def _prefixed(url: str, other: str, conf: Mapping[str, str], options: Mapping[str, Any]) -> LogStore:
    return PrefixedLogStore(_configured(other, conf, options), other, shown_as=url)
