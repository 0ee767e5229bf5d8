"""Values that exist once for each JVM, such as a class that was compiled in it."""

import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class JvmValues(Generic[T]):
    """Values by the JVM and a name. Threads share it; each value is created once."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._values: dict[tuple[int, str], tuple[Any, T]] = {}

    def get(self, py4j: Any, create: Callable[[], T], name: str = "") -> T:
        """The value for the JVM of a Py4J gateway, created by `create` at the first call.

        The gateway is kept with its value, because another one may get the same `id` after it is gone.
        """
        with self._lock:
            known = self._values.get((id(py4j), name))
            if known is None:
                known = self._values[id(py4j), name] = (py4j, create())
            return known[1]
