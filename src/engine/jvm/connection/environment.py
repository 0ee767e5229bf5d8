"""Checks that tablelog supports this Spark: its version, and that the internals of the registry exist.

For a release of a supported version only the Python internals are checked, once per process, without a call to the
JVM. A vendor's build (4.3.0-vendor-1) and an unsupported version are compared with the whole registry.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib import import_module
from types import FunctionType
from typing import TYPE_CHECKING, Any

from ....errors import UnsupportedEnvironmentError
from ..registry.jvm_internals import JVM, OPTIONAL
from ..registry.python_internals import PATCHES, PYTHON, SETTINGS, JvmInternal, PythonInternal
from .java_errors import thrown_by_java
from .sessions import py4j_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SUPPORTED = ("4.1", "4.2", "4.3")

_RELEASE = re.compile(r"\d+\.\d+\.\d+")
_SHOWN = 12  # the number of missing internals that the message names
_compared: dict[str, list[str]] = {}
"""Cache: the missing JVM internals of each version that was compared with the registry. Comparing takes seconds."""


def check_environment(spark: "SparkSession") -> None:
    """Raise `UnsupportedEnvironmentError` if the session's Spark isn't supported or lacks an internal."""
    _check(spark.version, lambda: _missing_of_session(spark))


def check_version(version: str) -> None:
    """Raise `UnsupportedEnvironmentError` if this version of Spark isn't supported."""
    _check(version, list)


def _check(version: str, in_jvm: Callable[[], list[str]]) -> None:
    supported = is_supported(version)
    missing = list(_missing_here(minor_of(version)))
    if not supported or not _RELEASE.fullmatch(version):
        missing += in_jvm()
    if supported and not missing:
        return
    lacks = ""
    if missing:
        more = f", and {len(missing) - _SHOWN} more" if len(missing) > _SHOWN else ""
        lacks = f". It lacks internals of Spark that tablelog uses: {', '.join(missing[:_SHOWN])}{more}"
    raise UnsupportedEnvironmentError(
        f"tablelog supports Spark {', '.join(SUPPORTED)}; this session runs Spark {version}: "
        f"install a release of one of these versions of pyspark{lacks}"
    )


def minor_of(version: str) -> str:
    """The first two parts of a version: "4.3" for "4.3.1"."""
    return ".".join(version.split(".")[:2])


def is_supported(version: str) -> bool:
    """Whether tablelog supports this version of Spark."""
    return minor_of(version) in SUPPORTED


# --- Python -------------------------------------------------------------------------------------------------------


@cache
def _missing_here(version: str) -> tuple[str, ...]:
    return tuple(missing_in_python(version))


def missing_in_python(version: str, declared: Sequence[PythonInternal] = PYTHON) -> Iterator[str]:
    """The names of missing Python internals, including patched attributes, that this version should have."""
    patched = (PythonInternal(patch.module, patch.owner, patch.attribute, patch.why) for patch in PATCHES)
    for internal in (*declared, *patched):
        if not internal.versions or version in internal.versions:
            try:
                exists = _has(internal)
            except ImportError:
                exists = False
            if not exists:
                yield f"{internal.name} ({internal.use})"


def _has(internal: PythonInternal) -> bool:
    owner: Any = import_module(internal.module)
    for part in filter(None, internal.owner.split(".")):
        owner = getattr(owner, part, None)
    if owner is None:
        return False
    return (
        internal.attribute == "*" or hasattr(owner, internal.attribute) or _is_set_by_methods(owner, internal.attribute)
    )


def _is_set_by_methods(owner: Any, attribute: str) -> bool:
    """Whether a method of the class uses the attribute. An attribute that `__init__` sets isn't on the class."""
    members = (member for base in getattr(owner, "__mro__", ()) for member in vars(base).values())
    return any(attribute in member.__code__.co_names for member in members if isinstance(member, FunctionType))


# --- the JVM ------------------------------------------------------------------------------------------------------


def _missing_of_session(spark: "SparkSession") -> list[str]:
    missing = _compared.get(spark.version)
    if missing is None:
        version = minor_of(spark.version)
        missing = [*missing_in_jvm(py4j_of(spark).jvm, version), *missing_settings(spark)]
        _compared[spark.version] = missing
    return missing


def missing_in_jvm(jvm: Any, version: str, declared: Sequence[JvmInternal] = JVM) -> Iterator[str]:
    """The names of missing JVM classes and members that this version should have. Makes a few calls for each class."""
    forName, printed = jvm.java.lang.Class.forName, jvm.scala.runtime.ScalaRunTime.stringOf
    for internal in declared:
        if internal.name in OPTIONAL or (internal.versions and version not in internal.versions):
            continue
        java_class = None
        for name in _binary_names(internal.name):
            try:
                java_class = forName(name)
            except thrown_by_java():
                continue
            break
        if java_class is None:
            yield f"{internal.name} ({internal.use})"
        elif internal.members:
            public = printed(java_class.getMethods()) + printed(java_class.getFields())
            own = printed(java_class.getDeclaredMethods()) + printed(java_class.getDeclaredFields())  # private ones too
            names = set(re.findall(r"\.([\w$]+)(?=[(,)])", public + own))
            yield from (
                f"{internal.name}.{member} ({internal.use})" for member in internal.members if member not in names
            )


def _binary_names(name: str) -> Iterator[str]:
    """The possible binary names of a class: `$` joins a nested class to its class or Scala object."""
    yield name
    package, _, last = name.rpartition(".")
    yield f"{package}${last}"


def missing_settings(spark: "SparkSession") -> Iterator[str]:
    """The Spark SQL keys of the registry that the session doesn't know."""
    from pyspark.errors import PySparkException

    for setting in SETTINGS:
        try:
            spark.conf.get(setting.key)
        except PySparkException:
            yield setting.key
