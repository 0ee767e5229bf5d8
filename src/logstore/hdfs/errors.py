"""From the Java exception that a Hadoop service answers with to an error of ours, whichever client carried it over."""

from ...errors import (
    InvalidArgumentError,
    StorageAccessError,
    StorageError,
    StorageUnavailableError,
    TablelogError,
    UnsupportedEnvironmentError,
)
from ..common.uri import shown

_ACCESS = frozenset(
    "AccessControlException AuthorizationException AuthenticationException SaslException KerberosAuthException "
    "LoginException GSSException InvalidToken InvalidBlockTokenException InvalidEncryptionKeyException "
    "AccessDeniedException".split()
)
_QUOTA = frozenset(
    "QuotaExceededException NSQuotaExceededException DSQuotaExceededException QuotaByStorageTypeExceededException "
    "ClusterStorageCapacityExceededException MaxDirectoryItemsExceededException".split()
)
_BAD_PATH = frozenset(
    "InvalidPathException InvalidPathNameException PathComponentTooLongException IllegalArgumentException "
    "URISyntaxException ParentNotDirectoryException PathIsNotDirectoryException".split()
)
_NO_CLIENT = frozenset(
    "UnsupportedFileSystemException UnsupportedOperationException ClassNotFoundException NoClassDefFoundError".split()
)
_SAID = {
    "SafeModeException": "the NameNode is in safe mode: it is starting, or an administrator put it there",
    "StandbyException": "no NameNode is active",
    "UnknownHostException": "the host has no address: is the name right, and are its dfs.ha.* keys set?",
    "ConnectException": "nobody answers at the address",
    "NoRouteToHostException": "there is no way to the address",
    "ConnectTimeoutException": "the address didn't answer in time",
    "SocketTimeoutException": "the server didn't answer in time",
}


def error_for(exception: str, message: str, doing: str, path: str) -> Exception:
    """The error for the Java class `exception` and its message, met while `doing` something to `path`.

    FileNotFoundError and FileExistsError stand for Java's own two; anything that isn't known is a service that fails.
    """
    name = exception.rpartition(".")[2].rpartition("$")[2]
    what = f"{doing} {shown(path)}"
    first = message.partition("\n")[0].strip()  # what follows is Java's stack
    said = f"{name}: {first[:500]}" if first else name
    if name == "IllegalArgumentException" and "UnknownHostException" in message:
        name = "UnknownHostException"
    if name in ("FileNotFoundException", "NoSuchFileException"):
        return FileNotFoundError(f"{shown(path)}: {said}")
    if name == "FileAlreadyExistsException":
        return FileExistsError(f"{shown(path)}: {said}")
    return _kind(name)(f"{what}: {_SAID[name]} ({said})" if name in _SAID else f"{what}: {_advice(name)} ({said})")


def _kind(name: str) -> type[TablelogError]:
    if name in _ACCESS:
        return StorageAccessError
    if name in _QUOTA:
        return StorageError
    if name in _BAD_PATH:
        return InvalidArgumentError
    if name in _NO_CLIENT:
        return UnsupportedEnvironmentError
    return StorageUnavailableError


def _advice(name: str) -> str:
    if name in _ACCESS:
        return "access was refused; check the user, the permissions and the Kerberos ticket"
    if name in _QUOTA:
        return "a quota or the space is used up; remove data or raise it"
    if name in _BAD_PATH:
        return "the file system has no such path, or takes none"
    if name in _NO_CLIENT:
        return "there is no Hadoop client for this here; check the jars and fs.<scheme>.impl"
    return "the file system failed; try again later"
