"""Java classes of tablelog, compiled by the Janino compiler that Spark contains."""

import re
from importlib import resources

from .gateway import Gateway, JavaObject
from .jvm_values import JvmValues

_SINCE_4_3 = re.compile(r"// since 4\.3\n.*?// end\n", re.DOTALL)

_classes = JvmValues[JavaObject]()
_instances = JvmValues[JavaObject]()


def compiled_instance(gateway: Gateway, name: str) -> JavaObject:
    """The only instance of a class without constructor parameters, or of a nested one (`Outer$Inner`)."""

    def created() -> JavaObject:
        outer = compiled_class(gateway, name.partition("$")[0])
        kind = outer.getClassLoader().loadClass(f"tablelog.{name}")
        return kind.getConstructors()[0].newInstance(gateway.array(gateway.jvm.java.lang.Object, []))

    return _instances.get(gateway.py4j, created, name)


def compiled_class(gateway: Gateway, name: str) -> JavaObject:
    """The `java.lang.Class` of `tablelog.name`, from the file `name.java`, compiled once for each JVM."""

    def compiled() -> JavaObject:
        return compiled_source(gateway, name).getClassLoader().loadClass(f"tablelog.{name}")

    return _classes.get(gateway.py4j, compiled, name)


def compiled_source(gateway: Gateway, name: str) -> JavaObject:
    """Janino's compiler after it compiled the file `name.java`: it has the classes and their bytes."""
    compiler = gateway.jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(gateway.jvm.java.lang.Thread.currentThread().getContextClassLoader())
    source = resources.files("tablelog.engine.jvm").joinpath("java", f"{name}.java").read_text("utf-8")
    if not gives_options_to_catalogs(gateway):
        source = _SINCE_4_3.sub("", source)
    compiler.cook(source)
    return compiler


def gives_options_to_catalogs(gateway: Gateway) -> bool:
    """Whether Spark gives a catalog the options with which a query names a table: since 4.3."""
    return gateway.has_class("org.apache.spark.sql.connector.catalog.TableContext")
