"""Errors of the service that gives the SDK its credentials, which come up in a request to another service."""

import os
from urllib.parse import urlsplit

from ...errors import StorageAccessError, StorageError, StorageUnavailableError

_TOKEN_FILE = "AWS_WEB_IDENTITY_TOKEN_FILE"
_STS_ENDPOINT = "AWS_ENDPOINT_URL_STS"
_CHECK = f"check {_TOKEN_FILE} and AWS_ROLE_ARN (or role_arn of the profile), and the trust policy of the role"


def error_of_source(error: BaseException, where: str) -> StorageError | None:
    """The error if a role couldn't be assumed; `None` for an error of the request itself.

    `error` is one of botocore's, or one of s3fs with such a cause; `where` says what was done to which file.
    """
    cause = error.__cause__ or error
    operation = getattr(cause, "operation_name", None) or ""
    if operation.startswith("AssumeRole"):
        code = getattr(cause, "response", {}).get("Error", {}).get("Code", "")
        return StorageAccessError(
            f"{where}: STS, which gives the credentials, answered {code} to {operation}: {_CHECK}"
        )
    if isinstance(error, OSError) and error.filename is not None and error.filename == os.environ.get(_TOKEN_FILE):
        return StorageAccessError(f"{where}: the file of {_TOKEN_FILE} can't be read ({error.strerror}): {_CHECK}")
    asked = urlsplit(str(getattr(error, "kwargs", {}).get("endpoint_url", ""))).netloc
    if asked and _is_sts(asked):
        return StorageUnavailableError(
            f"{where}: STS, which gives the credentials, can't be reached ({type(error).__name__}): check "
            f"{_STS_ENDPOINT}, the region and the network, or try again later"
        )
    return None


def _is_sts(host: str) -> bool:
    return host == urlsplit(os.environ.get(_STS_ENDPOINT, "")).netloc or host.startswith(("sts.", "sts-fips."))
