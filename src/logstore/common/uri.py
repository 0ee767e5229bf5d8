"""Paths of the stores: schemes, local paths and their `file:` URIs, and removing secrets from paths for messages."""

import os
import re
from functools import lru_cache
from urllib.parse import quote_from_bytes, unquote_to_bytes, urlsplit

from ...errors import InvalidArgumentError, LogStoreConfigurationError
from .schemes import about

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*):")
_PLAIN = re.compile(rb"[A-Za-z0-9/._\-]*").fullmatch
_HOST_AND_PORT = re.compile(r"[\w.\-]+:\d{1,5}").fullmatch
_SAFE = "/!$&'()*+,;=:@~"


def scheme_of(path: str) -> str:
    """The scheme of `path` in lower case; `file` for a path without a scheme."""
    match = _SCHEME.match(path)
    return match[1].lower() if match else "file"


def shown(path: str) -> str:
    """`path` for messages: without user information and query, which may contain secrets."""
    scheme, separator, rest = path.partition("://")
    if not separator:
        return path
    if scheme_of(path) == "file":
        host, slash, below = rest.partition("/")
        return f"{scheme}://{without_user(host)}{slash}{below}"
    is_hosts = about(scheme.lower()).backend == "hdfs" and _HOST_AND_PORT(rest.partition("/")[0])
    if not is_hosts and ":" in rest.partition("/")[0] and "@" in rest:
        # A secret key may have unescaped slashes and other characters: after "key:", everything up to the last @ is
        # removed.
        rest = rest.rpartition("@")[2]
    rest = rest.partition("?")[0]
    user, at, _ = rest.partition("/")[0].rpartition("@")
    if at and not about(scheme.lower()).has_container:
        rest = rest[len(user) + 1 :]
    return f"{scheme}://{rest}"


def without_user(authority: str) -> str:
    """The authority of a URI without its user information, which may contain a password."""
    return authority.rpartition("@")[2]


def checked_endpoint(setting: str, url: str) -> str:
    """Check the URL of a service from `setting`; errors of clients may quote it.

    Raises LogStoreConfigurationError for an invalid URL, and for user information, which no service accepts.
    """
    try:
        parts = urlsplit(url)
        host, port, user = parts.hostname, parts.port, parts.username
    except ValueError:
        host, port, user = None, None, None
    if not host or port == 0:
        raise LogStoreConfigurationError(f"{setting} isn't the URL of a host: write https://host:port")
    if user is not None or "@" in parts.netloc:
        raise LogStoreConfigurationError(
            f"{setting} has user information before its host, which isn't sent: give credentials by their own settings"
        )
    return url


def local_path(path: str) -> str:
    """The path on this machine for `path`: a bare path, or `file:/x`, `file:///x`, `file://localhost/x`.

    The percent-escapes of a URI are decoded; a bare path is used as it is. A trailing slash is kept. Raises
    `InvalidArgumentError` for another scheme or host, a relative URI, an empty path and a null character.
    """
    if "\0" in path or ("%00" in path and path[:5].lower() == "file:"):
        raise InvalidArgumentError(f"the path {path!r} contains a null character: remove it")
    if path.startswith("/"):
        return path
    if not path:
        raise InvalidArgumentError("the path is empty: give the path or URI of a table")
    scheme = _SCHEME.match(path)
    if scheme is None:
        return path
    if scheme[1].lower() != "file":
        raise InvalidArgumentError(
            f"{shown(path)!r} is not a path on this machine; write a relative path that contains a colon as './a:b'"
        )
    rest = path[scheme.end() :]
    if rest.startswith("//"):
        host, _, below = rest[2:].partition("/")
        if host and host.lower() != "localhost":
            raise InvalidArgumentError(
                f"a file: URI has no host, but this one has {host.rpartition('@')[2]!r}; a local path has three "
                "slashes: file:///path"
            )
        rest = "/" + below
    if not rest.startswith("/"):
        raise InvalidArgumentError(f"{path!r} is relative; a file: URI is absolute: file:///path")
    return os.fsdecode(unquote_to_bytes(rest)) if "%" in rest else rest


def escaped(path: bytes) -> str:
    """`path` with percent-escapes for the bytes that a URI can't contain."""
    return path.decode("ascii") if _PLAIN(path) else quote_from_bytes(path, safe=_SAFE)


@lru_cache(maxsize=256)
def local_uri(path: str) -> str:
    """The URI `file:///…` of an absolute local path, with percent-escapes of its bytes."""
    return "file://" + escaped(b"/" + os.fsencode(path).lstrip(b"/"))
