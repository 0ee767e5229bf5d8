"""The JVM's packages and classes by name, each looked up once."""

from typing import Any

from py4j.java_gateway import JavaClass, JavaMember, JavaPackage


class Names:
    """What is below a JVM, a package or a class: `names.java.lang.Math.max(1, 2)`.

    Py4J asks the JVM again for each part of a name each time that it is written: five calls for that one. Here
    packages, classes and static methods are kept; static fields are read anew. For names that are there from the
    start, for a class that isn't found counts as a package from then on.
    """

    def __init__(self, holder: Any) -> None:
        self._holder = holder

    def __getattr__(self, name: str) -> Any:  # called for what isn't kept yet
        found = getattr(self._holder, name)
        if isinstance(found, JavaPackage | JavaClass):
            found = Names(found)
        elif not isinstance(found, JavaMember):
            return found
        setattr(self, name, found)
        return found

    def __call__(self, *arguments: Any) -> Any:
        """Construct an object of the class."""
        return self._holder(*arguments)
