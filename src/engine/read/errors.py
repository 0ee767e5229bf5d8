"""What Spark reports of a failure, as the error that tablelog means by it.

An error that `FileIndex` raised comes out of Spark as a Java exception with its text; a data file that is gone comes
out of a task as a failed job. `translate` tells both by the Java exception alone. `install` makes PySpark use it where
it turns Java exceptions into Python's; exceptions that have nothing to do with a Delta table pass through untouched.
"""

import re
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, cast
from urllib.parse import unquote

from ... import errors
from ...core.protocol.paths import canonical
from ...errors import MissingDataFileError, TablelogError, UnreadableDataFileError
from ..jvm import patches
from ..jvm.callbacks import raised_for
from .bulk_listing import Listing, uris

_FAILED = "FAILED_READ_FILE"
_FILE = re.compile(r"\[FAILED_READ_FILE\.(\w+)\] Encountered error while reading file (\S+?)\.?\s+(.*)")
_CAUSE = re.compile(r"^(?:Caused by: )?[\w.$]+(?:Exception|Error): (.+)", re.MULTILINE)
_NAMED = re.compile(r"tablelog\.errors\.(\w+): (.*)")
_REMEMBERED = 256
_CAUSES = 8
_LONGEST_REASON = 500

_lock = threading.Lock()
# (table, version) of the scans that were planned last, with what they listed as long as somebody holds it.
_planned: "OrderedDict[tuple[str, int], weakref.ref[Listing] | None]" = OrderedDict()


def remember(table: str, version: int, listing: Listing | None = None) -> None:
    """Note that a scan of this version of a table was planned."""
    key = (table, version)
    with _lock:
        _planned[key] = None if listing is None else weakref.ref(listing)
        _planned.move_to_end(key)
        while len(_planned) > _REMEMBERED:
            _planned.popitem(last=False)


def _owner(file: str) -> tuple[str, int] | None:
    """(table, version) of the newest plan that lists the file, else of one whose table it lies in."""
    name = canonical(file)
    with _lock:
        plans = [(*key, found() if found is not None else None) for key, found in reversed(_planned.items())]
    for table, version, listing in plans:
        if listing is not None and any(canonical(uri) == name for uri in uris(table, listing.files)):
            return table, version
    for table, version, _ in plans:
        if name.startswith(canonical(table).rstrip("/") + "/"):
            return table, version
    return None


def translate(text: str) -> BaseException | None:
    """The error behind the text of a Java exception; `None` where it isn't about a Delta table."""
    found = raised_for(text)
    if found is not None:
        return found
    named = _NAMED.search(text)
    if named is not None:  # from Python workers of the Arrow route
        kind = getattr(errors, named[1], None)
        if isinstance(kind, type) and getattr(kind, "__init__", None) is errors.TablelogError.__init__:
            return cast(BaseException, kind(named[2]))
    match = _FILE.search(text) if _FAILED in text else None
    owner = None if match is None else _owner(match[2])
    return None if match is None or owner is None else _of_file(match, text, *owner)


def _of_file(match: re.Match[str], text: str, table: str, version: int) -> TablelogError:
    file = f"the file {unquote(match[2])}, which version {version} of {table} lists,"
    if match[1] == "FILE_NOT_EXIST":
        return MissingDataFileError(
            f"{file} is gone from storage. Restore it, or take it out of the table; it may have been removed by VACUUM "
            "with too short a retention, or by hand."
        )
    told = match[3].rpartition("SQLSTATE")[0].strip() or match[3]
    causes = _CAUSE.findall(text, match.end())
    reason = told if "MISMATCH" in match[1] or not causes else causes[-1]
    return UnreadableDataFileError(
        f"{file} can't be read as a Parquet file of that table: {reason[:_LONGEST_REASON].strip()}. Restore the file, "
        "or take it out of the table."
    )


# --- PySpark's conversion of Java exceptions ----------------------------------------------------------------------

_installed = 0
_patch: patches.Applied | None = None


def _text(error: Any) -> str:
    """What a Java exception and its causes say."""
    texts: list[str] = []
    while error is not None and len(texts) < _CAUSES:
        texts.append(str(error.toString()))
        error = error.getCause()
    return "\n".join(texts)


def install(raised: Callable[[BaseException], BaseException] = lambda error: error) -> None:
    """Have PySpark raise tablelog's errors, as `raised` makes them. Counted: `uninstall` as often undoes it."""
    global _installed, _patch  # noqa: PLW0603

    def translating(original: Callable[..., Any]) -> Callable[..., Any]:
        def convert_exception(error: Any, *args: Any, **kwargs: Any) -> Any:
            active = _patch is not None and _patch.has(convert_exception)
            found = translate(_text(error)) if active else None
            return original(error, *args, **kwargs) if found is None else raised(found)

        return convert_exception

    with _lock:
        _installed += 1
        if _installed == 1:
            _patch = patches.apply({"captured.convert_exception": translating})


def uninstall() -> None:
    """Undo one `install`. A function that another library has put in front of ours since stays, and ours translates
    nothing any more.
    """
    global _installed, _patch  # noqa: PLW0603
    with _lock:
        _installed = max(_installed - 1, 0)
        if _installed == 0 and _patch is not None:
            patches.remove(_patch)
            _patch = None
