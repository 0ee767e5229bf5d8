"""Whether tablelog can work with this Spark: its version, and that the internals of the registry are there.

For a release of a supported version only the Python half is checked, once in the process, with no call to the JVM.
A build of another vendor (4.3.0-vendor-1) and a version that isn't supported are compared with the whole registry.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib import import_module
from types import FunctionType
from typing import TYPE_CHECKING, Any

from ...errors import UnsupportedEnvironmentError
from .internals import PATCHES, PYTHON, SETTINGS, JvmInternal, PythonInternal
from .java_errors import thrown_by_java
from .jvm_internals import JVM, OPTIONAL
from .sessions import py4j_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SUPPORTED = ("4.1", "4.2", "4.3")

_RELEASE = re.compile(r"\d+\.\d+\.\d+")
_SHOWN = 12  # names of what is missing, in the message
_compared: dict[str, list[str]] = {}
"""What the JVM of a version lacks, for versions that were compared with the registry: that takes seconds."""


def check_environment(spark: "SparkSession") -> None:
    """`UnsupportedEnvironmentError` for a Spark that tablelog doesn't support or that lacks an internal it uses."""
    _check(spark.version, lambda: _missing_of_session(spark))


def check_version(version: str) -> None:
    """The same of a version alone."""
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
    """4.3 of 4.3.1."""
    return ".".join(version.split(".")[:2])


def is_supported(version: str) -> bool:
    """Whether the version is one that tablelog is tested with."""
    return minor_of(version) in SUPPORTED


# --- Python -------------------------------------------------------------------------------------------------------


@cache
def _missing_here(version: str) -> tuple[str, ...]:
    return tuple(missing_in_python(version))


def missing_in_python(version: str, declared: Sequence[PythonInternal] = PYTHON) -> Iterator[str]:
    """The names of Python internals, patched attributes among them, that a supported version should have and lacks."""
    patched = (PythonInternal(one.module, one.owner, one.attribute, one.why) for one in PATCHES)
    for one in (*declared, *patched):
        if not one.versions or version in one.versions:
            try:
                found = _has(one)
            except ImportError:
                found = False
            if not found:
                yield f"{one.name} ({one.use})"


def _has(one: PythonInternal) -> bool:
    owner: Any = import_module(one.module)
    if one.owner:
        owner = getattr(owner, one.owner, None)
    if owner is None:
        return False
    return one.attribute == "*" or hasattr(owner, one.attribute) or _is_set_by_methods(owner, one.attribute)


def _is_set_by_methods(owner: Any, attribute: str) -> bool:
    """Whether a method of the class names the attribute: that is all there is of one that `__init__` sets."""
    members = (member for base in getattr(owner, "__mro__", ()) for member in vars(base).values())
    return any(attribute in member.__code__.co_names for member in members if isinstance(member, FunctionType))


# --- the JVM ------------------------------------------------------------------------------------------------------


def _missing_of_session(spark: "SparkSession") -> list[str]:
    found = _compared.get(spark.version)
    if found is None:
        version = minor_of(spark.version)
        found = [*missing_in_jvm(py4j_of(spark).jvm, version), *missing_settings(spark)]
        _compared[spark.version] = found
    return found


def missing_in_jvm(jvm: Any, version: str, declared: Sequence[JvmInternal] = JVM) -> Iterator[str]:
    """The names of classes and members in the JVM that a supported version should have and lacks; a few calls each."""
    forName, printed = jvm.java.lang.Class.forName, jvm.scala.runtime.ScalaRunTime.stringOf
    for one in declared:
        if one.name in OPTIONAL or (one.versions and version not in one.versions):
            continue
        found = None
        for name in _binary_names(one.name):
            try:
                found = forName(name)
            except thrown_by_java():
                continue
            break
        if found is None:
            yield f"{one.name} ({one.use})"
        elif one.members:
            public = printed(found.getMethods()) + printed(found.getFields())
            names = set(re.findall(r"\.([\w$]+)(?=[(,)])", public))
            yield from (f"{one.name}.{member} ({one.use})" for member in one.members if member not in names)


def _binary_names(name: str) -> Iterator[str]:
    """What the JVM may call a class: one inside of a class or of a Scala object is joined to that by `$`."""
    yield name
    package, _, last = name.rpartition(".")
    yield f"{package}${last}"


def missing_settings(spark: "SparkSession") -> Iterator[str]:
    """The keys of Spark SQL in the registry that the session doesn't know."""
    from pyspark.errors import PySparkException

    for setting in SETTINGS:
        try:
            spark.conf.get(setting.key)
        except PySparkException:
            yield setting.key
