"""URIs of object stores: `scheme://authority/key`, where the key is the bytes behind the percent-escapes.

A store of keys has no directories: `a//b`, `a/./b` and `a/b` are three objects there, and one place for Hadoop, fsspec
and Spark. A table can't be two places, so the canonical form has no empty parts, and `.` and `..` are refused.
"""

import re
from urllib.parse import unquote_to_bytes

from ...errors import InvalidArgumentError
from .uri import escaped, scheme_of, shown

# Signatures in the query of a URL, which someone has copied.
_SIGNED = re.compile(r"[?&](sig|X-Amz-Signature|X-Goog-Signature|Signature|X-Amz-Security-Token)=", re.IGNORECASE)


def split(path: str) -> tuple[str, str, str]:
    """(scheme in lower case, authority, key) of a URI; the key is decoded, has no slash in front and may be empty.

    Raises InvalidArgumentError where there is no authority, and for a key that no store can name.
    """
    scheme, separator, rest = path.partition("://")
    authority, _, below = rest.partition("/")
    if not separator or not authority:
        raise InvalidArgumentError(f"{shown(path)!r} names no bucket: a path there is {scheme_of(path)}://bucket/path")
    if ":" in authority.rpartition("@")[0]:
        raise InvalidArgumentError(
            f"{shown(path)!r} has user information: give credentials as settings (fs.s3a.access.key, "
            "fs.azure.account.key, or storage_options), for a path shows in logs"
        )
    if _SIGNED.search(below):
        raise InvalidArgumentError(
            f"{shown(path)!r} has a signature in its query: give it as a setting, for a path shows in logs"
        )
    try:
        authority.encode()
        key = (unquote_to_bytes(below) if "%" in below else below.encode()).decode()
    except UnicodeError:
        raise InvalidArgumentError(f"{shown(path)!r} is not UTF-8 behind its percent-escapes") from None
    parts = [part for part in key.split("/") if part]
    if "\0" in key or not {".", ".."}.isdisjoint(parts):
        raise InvalidArgumentError(
            f"{shown(path)!r} holds a part ('.', '..', or a null character) that no key may have"
        )
    return scheme.lower(), authority, "/".join(parts) + ("/" if parts and key.endswith("/") else "")


def join(scheme: str, authority: str, key: str) -> str:
    """The canonical URI of a key."""
    return f"{scheme}://{authority}/{escaped(key.encode())}"


def resolve(path: str) -> str:
    """The canonical URI of `path`: percent-escapes as ours, no empty parts, no slash at the end."""
    scheme, authority, key = split(path)
    return join(scheme, authority, key.rstrip("/"))


def parent(key: str) -> str:
    """The "directory" of a key, with its slash at the end; empty for a key without one."""
    return key[: key.rfind("/") + 1]
