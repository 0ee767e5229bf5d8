"""A storage that a part of a Spark program can't access: the errors say which part that is, and what to do.

The driver reads and writes the log by its Python; Spark's JVM or Python workers read and write the data files. Each of
these processes may have credentials of its own.
"""

import re
from collections.abc import Callable

from ...errors import StorageAccessError
from ..jvm.connection.sessions import master

_DENIED = re.compile(
    r"\b(?:AccessDenied|AccessControl|NoAuthWithAWS|NoAwsCredentials|CredentialInitialization)Exception: (.+)"
)
_UNTRUSTED = re.compile(r"\bSSLHandshakeException\b.*\bPKIX path (?:building|validation) failed")
_TRUST = (
    "Java doesn't trust the certificate of the service. If its authority is private, put the certificate of the "
    "authority into a trust store, and add -Djavax.net.ssl.trustStore=FILE to the extra Java options of the driver and "
    "of the executors"
)
_NESTED = re.compile(r"\b[A-Z]\w*Exception: .+")
_FURTHER = re.compile(r" : [\w.]+Exception: ")
_LONGEST = 300
_NO_TOKEN = re.compile(r"\bWebIdentityToken\w*\(\): java\.nio\.file\.(?:NoSuchFile|AccessDenied)Exception: ([^,\]\n]+)")
"""In the list of the AWS SDK of what each of its providers lacks."""
_HOST = re.compile(r"\bLost task \S+ in stage \S+ \(TID \d+\) \((\S+) ")
_FAILED_TASK = "Lost task"
"""In the message of a job that an error of a task ended."""

_EXECUTORS, _JVM, _DRIVER = "Spark's executors have no", "Spark's JVM and its Python workers", "Spark's driver has no"
_OF_EXECUTORS = (
    f"{_EXECUTORS} access there, and the driver has. Give the credentials in Spark's configuration, which the driver "
    "sends to executors, or to the executors too (by environment variables with spark.executorEnv, or by a role of "
    "their machines)"
)
_OF_JVM = (
    f"{_JVM} have no access there, and the driver's Python has: they have the environment in which the JVM was "
    "started, and Hadoop's client looks for credentials in fewer places than the SDK (set "
    "fs.s3a.aws.credentials.provider). Or give the credentials in Spark's configuration, which all of them use"
)
_OF_DRIVER = (
    f"{_DRIVER} access there: it reads and writes the log itself, also where executors have access. Give the "
    "credentials in Spark's configuration, which executors get too, or to the driver (by environment variables of its "
    "process, or by a role of its machine)"
)


def remedy() -> str:
    """What the error of a task without access has at its end: who lacks the access that the driver has."""
    return _OF_JVM if _is_local(master()) else _OF_EXECUTORS


def of_worker(message: str) -> str:
    """The message of an access error that a task's Python raised, with `remedy` if it has none."""
    return message if _names_a_part(message) else f"{message}. {remedy()}"


def _names_a_part(message: str) -> bool:
    return any(part in message for part in (_EXECUTORS, _JVM, _DRIVER))


def refusal_in_task() -> Callable[[Exception], str | None]:
    """A function for tasks: why a client of fsspec has no access, on one line; `None` for other errors.

    It is defined inside, so that it is pickled by value.
    """
    of_clients = (  # of botocore, azure-core and google-auth
        *("PermissionError", "NoCredentialsError", "PartialCredentialsError", "CredentialRetrievalError"),
        *("ClientAuthenticationError", "DefaultCredentialsError", "RefreshError"),
    )

    def refusal(error: Exception) -> str | None:
        import os
        import socket

        cause: object = error.__cause__ or error
        operation = getattr(cause, "operation_name", None) or ""
        if operation.startswith("AssumeRole"):
            code = getattr(cause, "response", {}).get("Error", {}).get("Code", "")
            return f"STS, which gives the credentials, answered {code} to {operation}"
        token = os.environ.get("AWS_WEB_IDENTITY_TOKEN_FILE")
        if isinstance(error, OSError) and token is not None and error.filename == token:
            return f"the file of AWS_WEB_IDENTITY_TOKEN_FILE, {token}, can't be read on the host {socket.gethostname()}"
        name = type(error).__name__
        if name not in of_clients:
            return None
        # The text of this one has what a program of the user printed.
        return name if name == "CredentialRetrievalError" else " ".join(f"{name}: {error}".split())

    return refusal


def _is_local(name: str | None) -> bool:
    """Whether tasks run in the driver's JVM; a client of Spark Connect doesn't know the master."""
    return name is not None and (name == "local" or name.startswith("local["))


def of_task(text: str, doing: str) -> StorageAccessError | None:
    """The error for `text`, the messages of a Java exception of a task and of its causes; `None` if no access was
    denied."""
    if _UNTRUSTED.search(text) is not None:
        return StorageAccessError(f"{doing}: {_TRUST}")
    reason = _reason(text)
    return None if reason is None else StorageAccessError(f"{doing}: {reason}. {remedy()}")


def of_job(text: str, doing: str) -> StorageAccessError | None:
    """The same for a job, which may also fail on the driver, before its tasks."""
    if _FAILED_TASK in text or _UNTRUSTED.search(text) is not None:
        return of_task(text, doing)
    reason = _reason(text)
    return None if reason is None else StorageAccessError(f"{doing}: {reason}. {_OF_JVM}")


def _reason(text: str) -> str | None:
    """The cause without the paths and the packages of classes before it."""
    match = _DENIED.search(text)
    if match is None:
        return None
    token = _NO_TOKEN.search(text)
    if token is not None:
        host = _HOST.search(text)
        where = "" if host is None else f" on the host {host[1]}"
        return f"the file of AWS_WEB_IDENTITY_TOKEN_FILE, {token[1]}, can't be read{where}"
    nested = _NESTED.search(match[1])
    return _FURTHER.split(match[1] if nested is None else nested[0])[0][:_LONGEST].strip()


def of_user(message: str) -> str:
    """The message of an access error that reaches the user: on a cluster it is about the driver if it names no part."""
    name = master()
    return message if name is None or _is_local(name) or _names_a_part(message) else f"{message}. {_OF_DRIVER}"
