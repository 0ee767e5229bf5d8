"""Java classes of tablelog, compiled by the Janino compiler that Spark contains."""

import re
import threading
from importlib import resources
from typing import Any

from .gateway import Gateway, JavaObject

_SINCE_4_3 = re.compile(r"// since 4\.3\n.*?// end\n", re.DOTALL)

_lock = threading.Lock()
_compiled: dict[tuple[int, str], tuple[Any, JavaObject]] = {}


def compiled_class(gateway: Gateway, name: str) -> JavaObject:
    """The `java.lang.Class` of `tablelog.name`, from the file `name.java`, compiled once for each JVM."""
    key = (id(gateway.py4j), name)
    with _lock:
        known = _compiled.get(key)
        if known is not None and known[0] is gateway.py4j:
            return known[1]
    compiled = compiled_source(gateway, name).getClassLoader().loadClass(f"tablelog.{name}")
    with _lock:
        return _compiled.setdefault(key, (gateway.py4j, compiled))[1]


def compiled_source(gateway: Gateway, name: str) -> JavaObject:
    """Janino's compiler after it compiled the file `name.java`: it has the classes and their bytes."""
    compiler = gateway.jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(gateway.jvm.java.lang.Thread.currentThread().getContextClassLoader())
    source = resources.files(__package__).joinpath(f"{name}.java").read_text("utf-8")
    if not gateway.has_class("org.apache.spark.sql.connector.catalog.TableContext"):
        source = _SINCE_4_3.sub("", source)
    compiler.cook(source)
    return compiler
