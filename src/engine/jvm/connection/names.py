"""Lookup of the JVM's packages and classes by name, each only once."""

from typing import Any


class Names:
    """The members of a JVM, a package or a class: `names.java.lang.Math.max(1, 2)`.

    Py4J calls the JVM for each part of a name at each use: five calls for this example. This class caches packages,
    classes and static methods, but not static fields. Use it only for names that exist: Py4J takes an unknown class
    for a package, and that would be cached.
    """

    def __init__(self, holder: Any) -> None:
        self._holder = holder

    def __getattr__(self, name: str) -> Any:  # called only for names that aren't cached
        from py4j.java_gateway import JavaClass, JavaMember, JavaPackage  # a Spark Connect client may lack Py4J

        member = getattr(self._holder, name)
        if isinstance(member, JavaPackage | JavaClass):
            member = Names(member)
        elif not isinstance(member, JavaMember):
            return member
        setattr(self, name, member)
        return member

    def __call__(self, *arguments: Any) -> Any:
        """Construct an object of the class."""
        return self._holder(*arguments)
