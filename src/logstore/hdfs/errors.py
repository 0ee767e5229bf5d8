"""Converts the Java exceptions of a Hadoop service to our errors, for both clients."""

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
_EXPLANATIONS = {
    "SafeModeException": "the NameNode is in safe mode: it is starting, or an administrator enabled safe mode",
    "StandbyException": "no NameNode is active",
    "UnknownHostException": "the host name can't be resolved: check the name and the dfs.ha.* keys",
    "ConnectException": "the connection to the address was refused",
    "NoRouteToHostException": "there is no route to the address",
    "ConnectTimeoutException": "the address didn't answer in time",
    "SocketTimeoutException": "the server didn't answer in time",
}


def error_for(exception: str, message: str, doing: str, path: str) -> Exception:
    """The error for the Java class `exception` and its message, raised while `doing` something to `path`.

    FileNotFoundError and FileExistsError stand for Java's two classes; an unknown exception counts as a failing
    service.
    """
    name = exception.rpartition(".")[2].rpartition("$")[2]
    context = f"{doing} {shown(path)}"
    first = message.partition("\n")[0].strip()  # the rest is Java's stack trace
    reply = f"{name}: {first[:500]}" if first else name
    if name == "IllegalArgumentException" and "UnknownHostException" in message:
        name = "UnknownHostException"
    if name in ("FileNotFoundException", "NoSuchFileException"):
        return FileNotFoundError(f"{shown(path)}: {reply}")
    if name == "FileAlreadyExistsException":
        return FileExistsError(f"{shown(path)}: {reply}")
    return _kind(name)(
        f"{context}: {_EXPLANATIONS[name]} ({reply})"
        if name in _EXPLANATIONS
        else f"{context}: {_advice(name)} ({reply})",
        path=shown(path),
    )


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
        return "the path doesn't exist, or isn't valid in this file system; check it"
    if name in _NO_CLIENT:
        return "there is no Hadoop client for this scheme; check the jars and fs.<scheme>.impl"
    return "the file system failed; try again later"
