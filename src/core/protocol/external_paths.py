"""Checks which files outside the table's directory may be read, if the table's log refers to such files.

A path in an action may be absolute, or leave the directory by "..". PROTOCOL.md, "Add File and Remove File",
"Deletion Vectors".
"""

import os
from collections.abc import Iterable
from typing import Any, Literal, TypeAlias
from urllib.parse import quote

from ...logstore.common.schemes import about
from . import paths

Policy: TypeAlias = Literal["allow", "sameStore", "refuse"]
"""`sameStore` allows files of the table's store: with the scheme and the bucket, container or host of its path."""

_DEFAULT_PORTS = {"hdfs": ":8020"}
_SCHEME = r"^([A-Za-z][A-Za-z0-9+.\-]*:)"
# Other paths are relative, without escapes and in normal form.
_ODD = "%|:|//|/\\.|^[/.]"


def refused(table_root: str, in_log: Iterable[str], policy: Policy) -> str | None:
    """The first of the paths in a log that the policy doesn't allow to read; `None`: it allows all.

    Under `refuse`, links of local files are resolved, which needs access to the file system.
    """
    if policy == "allow":
        return None
    return next((path for path in in_log if not _allowed(table_root, path, policy)), None)


def odd(column: Any) -> list[str]:
    """The paths in an Arrow column that may be outside the table's directory."""
    import pyarrow.compute as pc

    chosen: list[str] = column.filter(pc.match_substring_regex(column, _ODD)).to_pylist()
    return chosen


def one_of_each_store(column: Any) -> list[str]:
    """One path for each scheme and authority in an Arrow column of paths; paths without a scheme are left out."""
    import pyarrow.compute as pc

    absolute = column.filter(pc.match_substring_regex(column, _SCHEME))
    heads = pc.replace_substring_regex(absolute, rf"(?s){_SCHEME}(//[^/]*)?.*", r"\1\2")
    examples: list[str] = absolute.take(pc.index_in(heads.unique(), value_set=heads)).to_pylist()
    return examples


def _allowed(table_root: str, path: str, policy: Policy) -> bool:
    own, other = _store(paths.absolute_uri(table_root, "")), _store(paths.absolute_uri(table_root, path))
    if own != other:
        return False
    if policy == "sameStore":
        return True
    if own[0] != "file":
        return paths.below(table_root, path) is not None
    root = os.path.realpath(paths.absolute(table_root, ""))
    return os.path.realpath(paths.absolute(table_root, path)).startswith(root.rstrip("/") + "/")


def _store(uri: str) -> tuple[str, str]:
    scheme, _, rest = uri.partition("://")
    scheme, authority = scheme.lower() or "file", rest.partition("/")[0]
    scheme = about(scheme).same_as or scheme
    if not about(scheme).has_container:
        authority = authority.rpartition("@")[2]
    authority = authority.lower().removesuffix(_DEFAULT_PORTS.get(scheme, "\0"))
    return scheme, "" if scheme == "file" and authority == "localhost" else authority


def shown(path: str) -> str:
    """A path of the log for messages, without control characters."""
    return quote(path, safe="/:%@~-._=+,;!*'()&$?#[] ")
