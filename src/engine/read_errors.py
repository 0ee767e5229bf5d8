"""What Spark reports of a failure, as the error that tablelog means by it.

An error that `FileIndex` raised comes out of Spark as a Java exception with its text; a data file that is gone comes
out of a task as a failed job. `translate` tells both by the Java exception alone. `install` makes PySpark use it where
it turns Java exceptions into Python's; exceptions that have nothing to do with a Delta table pass through untouched.
"""

import re
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

from ..core.protocol.paths import canonical
from ..errors import MissingDataFileError
from .callbacks import raised_for

_MISSING = "FAILED_READ_FILE.FILE_NOT_EXIST"
_FILE = re.compile(r"\[FAILED_READ_FILE\.FILE_NOT_EXIST\] Encountered error while reading file (\S+?)\.? File does not")
_REMEMBERED = 256

_lock = threading.Lock()
_tables: OrderedDict[str, int] = OrderedDict()  # canonical root -> version that was planned last


def remember(table: str, version: int) -> None:
    """Note that a scan of this version of a table was planned."""
    with _lock:
        _tables[table] = version
        _tables.move_to_end(table)
        while len(_tables) > _REMEMBERED:
            _tables.popitem(last=False)


def _owner(file: str) -> tuple[str, int] | None:
    """(table, version) of the table that a file lies in, the innermost where tables lie in each other."""
    name = canonical(file)
    with _lock:
        tables = list(_tables.items())
    inside = [(table, version) for table, version in tables if name.startswith(canonical(table).rstrip("/") + "/")]
    return max(inside, key=lambda found: len(found[0]), default=None)


def translate(text: str) -> BaseException | None:
    """The error behind the text of a Java exception; `None` where it isn't about a Delta table."""
    found = raised_for(text)
    if found is not None:
        return found
    match = _FILE.search(text) if _MISSING in text else None
    if match is None:
        return None
    owner = _owner(match[1])
    if owner is None:
        return None
    table, version = owner
    return MissingDataFileError(
        f"the file {unquote(match[1])}, which version {version} of {table} lists, is gone from storage. Restore it, or "
        "take it out of the table; it may have been removed by VACUUM with too short a retention, or by hand."
    )


# --- PySpark's conversion of Java exceptions ----------------------------------------------------------------------

_installed = 0
_original: Callable[..., Any] | None = None


def install() -> None:
    """Have PySpark raise tablelog's errors. Counted: `uninstall` as often undoes it."""
    global _installed, _original  # noqa: PLW0603
    from pyspark.errors.exceptions import captured

    with _lock:
        _installed += 1
        if _installed > 1:
            return
        original: Callable[..., Any] = captured.convert_exception
        _original = original

        def convert_exception(error: Any, *args: Any, **kwargs: Any) -> Any:
            found = translate(str(error.toString()))
            return original(error, *args, **kwargs) if found is None else found

        captured.convert_exception = convert_exception  # type: ignore[assignment]


def uninstall() -> None:
    """Undo one `install`."""
    global _installed, _original  # noqa: PLW0603
    from pyspark.errors.exceptions import captured

    with _lock:
        _installed = max(_installed - 1, 0)
        if _installed == 0 and _original is not None:
            captured.convert_exception = _original
            _original = None
