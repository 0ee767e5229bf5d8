"""Translates Spark's errors during reads to the errors of tablelog.

An error that `FileIndex` raised arrives as a Java exception with the same text; a missing data file arrives as a failed
job. `translate` recognizes both from the text of the Java exception. `Translation` patches PySpark's conversion of Java
exceptions; exceptions that are not related to a Delta table are not changed.
"""

import os
import re
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, TypedDict, Unpack, cast
from urllib.parse import unquote

from ... import errors
from ...core.protocol.paths import canonical
from ...errors import (
    MissingDataFileError,
    StorageAccessError,
    TablelogError,
    UnreadableDataFileError,
    UnsupportedEnvironmentError,
)
from ...logstore.common.uri import local_path, scheme_of
from ..jvm import worker_python
from ..jvm.connection.callbacks import raised_for
from ..jvm.connection.java_errors import frames_with_causes, is_failed_query, text_with_causes, with_visible_cause
from ..jvm.registry import patching
from ..storage import access_errors
from .bulk_listing import Listing, uris

_FAILED = "FAILED_READ_FILE"
_FILE = re.compile(r"\[FAILED_READ_FILE\.(\w+)\] Encountered error while reading file (\S+?)\.?\s+(.*)")
_OF_TABLE = re.compile(r"the file (.+?), which is part of version (\d+) of (.+?), (?:doesn't|can't) ")
_OF_STORAGE = re.compile(r"(?:reading|writing) (.+?): ")
_CAUSE = re.compile(r"^(?:Caused by: )?[\w.$]+(?:Exception|Error): (.+)", re.MULTILINE)
_NAMED = re.compile(r"tablelog\.errors\.(\w+): (.*)")
_NOT_INSTALLED = "No module named 'tablelog"
_OTHER_PYTHON = "[PYTHON_VERSION_MISMATCH]"
_PYTHON_READ = ".PythonPartitionReaderFactory"
"""A Java class below a task that reads by Python, as the route arrow does."""
_REMEMBERED = 256
_LONGEST_REASON = 500

_lock = threading.Lock()
# (table, version) of the most recently planned scans, with their listings while these are referenced.
_planned: "OrderedDict[tuple[str, int], weakref.ref[Listing] | None]" = OrderedDict()


def remember(table: str, version: int, listing: Listing | None = None) -> None:
    """Record that a scan of this version of a table was planned."""
    key = (table, version)
    with _lock:
        _planned[key] = None if listing is None else weakref.ref(listing)
        _planned.move_to_end(key)
        while len(_planned) > _REMEMBERED:
            _planned.popitem(last=False)


def _owner(file: str) -> tuple[str, int] | None:
    """The (table, version) of the newest plan that lists the file, else of one whose directory contains the file."""
    name = canonical(file)
    with _lock:
        plans = [
            (*key, reference() if reference is not None else None) for key, reference in reversed(_planned.items())
        ]
    for table, version, listing in plans:
        if listing is not None and any(canonical(uri) == name for uri in uris(table, listing.files)):
            return table, version
    for table, version, _ in plans:
        if name.startswith(canonical(table).rstrip("/") + "/"):
            return table, version
    return None


def translate(text: str) -> BaseException | None:
    """The error for the text of a Java exception; `None` if it isn't about a Delta table."""
    raised_error = raised_for(text)
    if raised_error is not None:
        return raised_error
    named = _NAMED.search(text)
    if named is not None:  # raised by Python workers of the Arrow route
        kind = getattr(errors, named[1], None)
        if isinstance(kind, type) and getattr(kind, "__init__", None) is errors.TablelogError.__init__:
            fields = _fields(named[2])
            if kind is MissingDataFileError and _is_here(fields.get("path", "")):
                return _other_disk(**fields)
            message = access_errors.of_worker(named[2]) if kind is StorageAccessError else named[2]
            return cast(TablelogError, kind(message)).with_context(**fields)
    if _NOT_INSTALLED in text:
        return UnsupportedEnvironmentError(
            "the Python of Spark's workers (PYSPARK_PYTHON) doesn't have tablelog, which plans reads by the route "
            "arrow on the driver's machine: install it for that Python, or send its wheel with --py-files"
        )
    if _PYTHON_READ in text:
        reason = worker_python.unusable(text, "reads the data files")
        if reason is not None:
            return UnsupportedEnvironmentError(f"the Python of Spark's executors {reason}")
    match = _FILE.search(text) if _FAILED in text else None
    owner = None if match is None else _owner(match[2])
    return None if match is None or owner is None else _of_file(match, text, *owner)


def _is_here(path: str) -> bool:
    """Whether a file that a task didn't find is on a disk of this process."""
    return bool(path) and scheme_of(path) == "file" and os.path.isfile(local_path(path))


class _Fields(TypedDict, total=False):
    table: str
    version: int
    path: str


def _other_disk(**fields: Unpack[_Fields]) -> UnsupportedEnvironmentError:
    return UnsupportedEnvironmentError(
        f"Spark's executors don't find the file {fields.get('path')}, which is part of version {fields.get('version')} "
        f"of {fields.get('table')}, and the driver finds it: by this path, they reach different disks. Use a path or "
        "URL that is the same storage on each machine, such as hdfs:, s3a: or a shared mount",
        **fields,
    )


def _fields(text: str) -> _Fields:
    """The fields in the message of an error that a Python worker raised: the driver gets only the message."""
    if of_table := _OF_TABLE.match(text):
        return {"path": of_table[1], "version": int(of_table[2]), "table": of_table[3]}
    of_storage = _OF_STORAGE.match(text)
    return {} if of_storage is None else {"path": of_storage[1]}


def _of_file(match: re.Match[str], text: str, table: str, version: int) -> TablelogError:
    path = unquote(match[2])
    file = f"the file {path}, which is part of version {version} of {table},"
    if match[1] == "FILE_NOT_EXIST" and _is_here(match[2]):
        return _other_disk(table=table, version=version, path=path)
    if match[1] == "FILE_NOT_EXIST":
        return MissingDataFileError(
            f"{file} doesn't exist. Restore it, or remove it from the table; it may have been deleted by VACUUM "
            "with too short a retention, or by hand.",
            table=table,
            version=version,
            path=path,
        )
    denied = access_errors.of_task(text, f"{file} can't be read")
    if denied is not None:
        return denied.with_context(table=table, version=version, path=path)
    message = match[3].rpartition("SQLSTATE")[0].strip() or match[3]
    causes = _CAUSE.findall(text, match.end())
    reason = message if "MISMATCH" in match[1] or not causes else causes[-1]
    return UnreadableDataFileError(
        f"{file} can't be read as a Parquet file of that table: {reason[:_LONGEST_REASON].strip()}. Restore the file, "
        "or remove it from the table.",
        table=table,
        version=version,
        path=path,
    )


# --- PySpark's conversion of Java exceptions ----------------------------------------------------------------------


class Translation:
    """The patch of PySpark's conversion that raises tablelog's errors.

    `translate` gives the error for the text of a Java exception, or `None`.
    """

    def __init__(self, translate: Callable[[str], BaseException | None] = translate) -> None:
        self._translate = translate
        self._lock = threading.Lock()
        self._installed = 0
        self._patch: patching.Applied | None = None

    def install(self, raised: Callable[[BaseException], BaseException] = lambda error: error) -> None:
        """Patch PySpark; `raised` converts each error. Calls are counted: undo each by `uninstall`."""

        def translating(original: Callable[..., Any]) -> Callable[..., Any]:
            def convert_exception(error: Any, *args: Any, **kwargs: Any) -> Any:
                active = self._patch is not None and self._patch.has(convert_exception)
                text = text_with_causes(error) if active else ""
                if is_failed_query(text):
                    return with_visible_cause(original(error, *args, **kwargs))
                if _OTHER_PYTHON in text:  # its message doesn't say what the task did
                    text = f"{text}\n{frames_with_causes(error)}"
                translated = self._translate(text) if active else None
                return original(error, *args, **kwargs) if translated is None else raised(translated)

            return convert_exception

        with self._lock:
            self._installed += 1
            if self._installed == 1:
                self._patch = patching.apply({"captured.convert_exception": translating})

    def uninstall(self) -> None:
        """Undo one `install`. If another library has since replaced the function, its function stays, and the patched
        function no longer translates anything.
        """
        with self._lock:
            self._installed = max(self._installed - 1, 0)
            if self._installed == 0 and self._patch is not None:
                patching.remove(self._patch)
                self._patch = None


TRANSLATION = Translation()
"""The patch of this process, for `enable` and `disable`."""
