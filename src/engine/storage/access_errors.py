"""Executors without access to a storage that the driver can access: recognized in the error of a failed task."""

import re

from ...errors import StorageAccessError

_DENIED = re.compile(
    r"\b(?:AccessDenied|AccessControl|NoAuthWithAWS|NoAwsCredentials|CredentialInitialization)Exception: (.+)"
)
OF_CLIENTS = (
    "PermissionError",
    "NoCredentialsError",
    "PartialCredentialsError",
    "CredentialRetrievalError",
    "ClientAuthenticationError",
    "DefaultCredentialsError",
    "RefreshError",
)
"""Exceptions by which the clients of fsspec (botocore, azure-core, google-auth) say that they have no credentials."""
_LONGEST = 300
REMEDY = (
    "Spark's executors have no access there, and the driver has. Give the credentials in Spark's configuration, which "
    "the driver sends to executors, or to the executors too (by environment variables with spark.executorEnv, or by a "
    "role of their machines)"
)


def of_task(text: str, doing: str) -> StorageAccessError | None:
    """The error for `text`, the messages of a Java exception and of its causes; `None` if no access was denied."""
    match = _DENIED.search(text)
    return None if match is None else StorageAccessError(f"{doing}: {match[1][:_LONGEST].strip()}. {REMEDY}")
