"""URIs of object stores: `scheme://authority/key`, where the key is the decoded bytes.

An object store has no directories: `a//b`, `a/./b` and `a/b` are three objects there, but one path for Hadoop, fsspec
and Spark. One table must have one path, so the canonical form has no empty parts, and `.` and `..` are rejected.
"""

import re
from urllib.parse import unquote_to_bytes

from ...errors import InvalidArgumentError
from .uri import escaped, scheme_of, shown

# Signatures in the query of a copied URL.
_SIGNED = re.compile(r"[?&](sig|X-Amz-Signature|X-Goog-Signature|Signature|X-Amz-Security-Token)=", re.IGNORECASE)


def split(path: str) -> tuple[str, str, str]:
    """(scheme in lower case, authority, key) of a URI; the key is decoded, has no leading slash and may be empty.

    Raises InvalidArgumentError if there is no authority, or if the key isn't valid in a store.
    """
    scheme, separator, rest = path.partition("://")
    authority, _, below = rest.partition("/")
    if not separator or not authority:
        raise InvalidArgumentError(f"{shown(path)!r} names no bucket: write {scheme_of(path)}://bucket/path")
    if ":" in authority.rpartition("@")[0]:
        raise InvalidArgumentError(
            f"{shown(path)!r} has user information: give credentials as settings (fs.s3a.access.key, "
            "fs.azure.account.key, or storage_options), because paths appear in logs"
        )
    if _SIGNED.search(below):
        raise InvalidArgumentError(
            f"{shown(path)!r} has a signature in its query: give it as a setting, because paths appear in logs"
        )
    try:
        authority.encode()
        key = (unquote_to_bytes(below) if "%" in below else below.encode()).decode()
    except UnicodeError:
        raise InvalidArgumentError(f"{shown(path)!r} isn't UTF-8 after its percent-escapes are decoded") from None
    parts = [part for part in key.split("/") if part]
    if "\0" in key or not {".", ".."}.isdisjoint(parts):
        raise InvalidArgumentError(
            f"{shown(path)!r} has a part ('.', '..', or a null character) that isn't allowed in a key"
        )
    return scheme.lower(), authority, "/".join(parts) + ("/" if parts and key.endswith("/") else "")


def join(scheme: str, authority: str, key: str) -> str:
    """The canonical URI of a key."""
    return f"{scheme}://{authority}/{escaped(key.encode())}"


def resolve(path: str) -> str:
    """The canonical URI of `path`: canonical percent-escapes, no empty parts, no trailing slash."""
    scheme, authority, key = split(path)
    return join(scheme, authority, key.rstrip("/"))


def parent(key: str) -> str:
    """The "directory" of a key, with its trailing slash; empty for a key without one."""
    return key[: key.rfind("/") + 1]
