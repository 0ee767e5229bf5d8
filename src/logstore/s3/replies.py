"""What S3's replies and errors mean: the verdict on a write, whether to repeat a request, and the typed errors."""

from ...errors import (
    InvalidArgumentError,
    StorageAccessError,
    StorageError,
    StorageMissingError,
    StorageUnavailableError,
    TablelogError,
    UnsafeStoreError,
    WriteOutcomeUnknown,
)
from ...settings.declarations import LOG_STORE
from ..common import http_clients
from ..common.conditional_put import Answer, Verdict
from ..common.http_clients import INVALID_HEADER, distrusts, has_invalid_header
from ..common.uri import shown
from .credential_sources import error_of_source
from .settings import DISTRUST, EXPIRED, sdk

REDIRECTIONS = frozenset({301, 302, 307, 308})
_CLOCK = frozenset({"RequestTimeTooSkewed", "RequestExpired"})
_CREDENTIALS = frozenset(
    {
        *("InvalidAccessKeyId", "SignatureDoesNotMatch", "AuthorizationHeaderMalformed", "InvalidSecurity"),
        *("InvalidClientTokenId", "UnrecognizedClientException", "InvalidSignatureException", "NotSignedUp"),
        *("MissingAuthenticationToken", "IncompleteSignature"),
    }
)
_ABSENT = frozenset({"NoSuchKey", "NotFound", "404", ""})
"""Codes of a 404 for a missing object; the answer to a HEAD has no code. Some services reject credentials with 404."""
_FORBIDDEN = frozenset({"AccessDenied", "AccessDeniedException", "AllAccessDisabled", "AccountProblem"})
_IN_HANDSHAKE = "CERTIFICATE_VERIFY_FAILED", "WRONG_VERSION_NUMBER", "UNKNOWN_PROTOCOL"
"""OpenSSL's reasons for a failed handshake, before any request is sent."""


class ForeignReplyError(OSError):
    """A reply that isn't the service's: a proxy or a portal between this machine and the service has sent it."""


def verdict_of(status: int, code: str) -> Verdict:
    """The verdict for the reply to a conditional PutObject. `code` is the error code in the body, if any.

    Of the 5xx replies only SlowDown means that nothing was done; MinIO's SlowDownWrite is a write that too few of its
    drives confirmed. MinIO before 2024-04 replied 304 instead of 412.
    """
    if status in {412, 304}:
        return Verdict.EXISTS
    if status in {409, 429} or (status == 503 and code == "SlowDown"):
        return Verdict.NOT_APPLIED
    if (status >= 500 and status != 501) or status == 408 or code == "RequestTimeout":
        return Verdict.AMBIGUOUS
    return Verdict.FAILED


def reply_of(error: Exception) -> tuple[int, str] | None:
    """(status, code) of the service's reply in `error`; None: there was no reply."""
    response = getattr(error, "response", None)
    if not isinstance(response, dict):
        return None
    code = str(response.get("Error", {}).get("Code", ""))
    return int(response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)), code


def never_sent(error: Exception) -> bool:
    """Whether `error`, without a reply, was raised before the request was sent."""
    exceptions = sdk().exceptions
    if isinstance(error, exceptions.SSLError):
        return any(reason in str(error) for reason in _IN_HANDSHAKE)
    if has_invalid_header(error):
        return True
    if isinstance(error, exceptions.ProxyConnectionError):
        return http_clients.never_sent(error)
    if isinstance(error, exceptions.HTTPClientError):  # any error after the connection was made
        return False
    return isinstance(error, exceptions.BotoCoreError)


def is_transport(error: Exception) -> bool:
    """Whether `error` is a network error, or a reply that isn't the service's. Errors of our own are neither."""
    if isinstance(error, TablelogError):
        return False
    botocore = sdk()
    network = (
        botocore.exceptions.ConnectionError,
        botocore.exceptions.HTTPClientError,
        botocore.exceptions.IncompleteReadError,
        botocore.parsers.ResponseParserError,
        OSError,
    )
    return isinstance(error, network)


def passing(error: Exception) -> bool:
    """Whether a request that may be repeated should be repeated after `error`."""
    reply = reply_of(error)
    if reply is None:
        return is_transport(error) and not distrusts(error) and not has_invalid_header(error)
    return verdict_of(*reply) in {Verdict.AMBIGUOUS, Verdict.NOT_APPLIED}


def busy(error: Exception) -> bool:
    """Whether the service replied that it has too much to do; its answer to a HEAD has no code."""
    reply = reply_of(error)
    return reply is not None and (reply[0] == 503 or verdict_of(*reply) is Verdict.NOT_APPLIED)


def is_absent(error: Exception) -> bool:
    """Whether the service replied that there is no such object."""
    status, code = reply_of(error) or (0, "")
    return status == 404 and code in _ABSENT


def described(error: Exception) -> str:
    """A description of `error` without any text of the service or the SDK."""
    reply = reply_of(error)
    return f"{reply[0]} {reply[1]}".strip() if reply else type(error).__name__


def error_of(error: Exception, doing: str, path: str, service: str = "S3") -> Exception:
    """The typed error for `error`, after which nothing was written; an unknown error is returned unchanged."""
    typed = _typed(error, doing, path, service)
    return typed.with_context(path=shown(path)) if isinstance(typed, TablelogError) else typed


def _typed(error: Exception, doing: str, path: str, service: str) -> Exception:
    if isinstance(error, TablelogError):
        return error
    of_source = error_of_source(error, f"{doing} {shown(path)}")
    if of_source is not None:
        return of_source
    reply, head = reply_of(error), f"{doing} {shown(path)}: {service}"
    if reply is not None:
        return _refusal(reply[0], reply[1], f"{head} answered {described(error)}")
    exceptions = sdk().exceptions
    if isinstance(error, exceptions.ParamValidationError):
        return InvalidArgumentError(f"{doing} {shown(path)}: this bucket or key isn't valid on {service}")
    if distrusts(error):
        return StorageAccessError(f"{doing} {shown(path)}: {DISTRUST}")
    if has_invalid_header(error):
        return StorageAccessError(f"{doing} {shown(path)}: {INVALID_HEADER}")
    if is_transport(error):
        return StorageUnavailableError(
            f"{head} can't be reached ({described(error)}); check the endpoint (fs.s3a.endpoint, or endpoint_url), the "
            "proxy and the network, or try again later"
        )
    if isinstance(error, exceptions.BotoCoreError):
        return StorageAccessError(
            f"{doing} {shown(path)}: no usable credentials ({described(error)}); set fs.s3a.access.key and "
            "fs.s3a.secret.key, or key and secret in storage_options, or use the SDK's own sources (environment, "
            "profile, instance role)"
        )
    return error


def _refusal(status: int, code: str, answer: str) -> TablelogError:
    if code in _CLOCK:
        return StorageAccessError(
            f"{answer}: the clock of this machine differs too much from the service's; correct this machine's clock"
        )
    if code in EXPIRED - _CREDENTIALS:
        return StorageAccessError(
            f"{answer}: the session token has expired or isn't valid; set a new one, or leave out the keys and use a "
            "source of the SDK that renews them (a profile, a web identity, an instance role)"
        )
    if code in _CREDENTIALS or status == 401:
        return StorageAccessError(
            f"{answer}: the access key, its secret or the region is wrong; check fs.s3a.access.key, "
            "fs.s3a.secret.key and fs.s3a.endpoint.region, or the same in storage_options"
        )
    if code in _FORBIDDEN or status == 403:
        return StorageAccessError(
            f"{answer}: these credentials don't allow it. A table needs s3:ListBucket (without it a missing object is "
            "reported as forbidden), s3:GetObject, s3:PutObject and s3:DeleteObject"
        )
    if code == "NoSuchBucket" or status == 404:
        return StorageMissingError(f"{answer}: create the bucket, or correct the path or the endpoint")
    if status in REDIRECTIONS:
        return StorageError(
            f"{answer}, and it can't be followed; set fs.s3a.endpoint and fs.s3a.endpoint.region to the bucket's"
        )
    if verdict_of(status, code) in {Verdict.AMBIGUOUS, Verdict.NOT_APPLIED}:
        return StorageUnavailableError(f"{answer}, also after retries; try again later")
    return StorageError(f"{answer}: the request was rejected")


def answer_of(error: Exception, path: str, *, verdict: Verdict | None = None, service: str = "S3") -> Answer:
    """The answer for an error of a write; `verdict` if the reply was classified before."""
    reply = reply_of(error)
    if verdict is None:
        if error_of_source(error, path) is not None:  # no request without credentials
            verdict = Verdict.FAILED
        elif reply is not None:
            verdict = verdict_of(*reply)
        elif isinstance(error, WriteOutcomeUnknown):
            verdict = Verdict.AMBIGUOUS
        elif never_sent(error) or not is_transport(error):
            verdict = Verdict.FAILED
        else:
            verdict = Verdict.AMBIGUOUS
    if verdict is not Verdict.FAILED:
        return Answer(verdict, f"{service} answered {described(error)}" if reply else described(error))
    typed = error_of(error, "writing", path, service)
    if not isinstance(typed, TablelogError):
        raise typed
    return Answer.failed(typed)


def answer_to_condition(error: Exception, path: str) -> Answer:
    reply = reply_of(error)
    if reply is not None and reply[0] == 501:
        return Answer.failed(no_condition(path, f"it answers a conditional write with {described(error)}"))
    return answer_of(error, path)


def no_condition(path: str, observation: str) -> UnsafeStoreError:
    """The error for a service without conditional writes."""
    return UnsafeStoreError(
        f"{shown(path)} was not written: its S3 service doesn't enforce the condition of a write (If-None-Match: *): "
        f"{observation}, so two writers could overwrite each other's commits. Use a newer version of the service "
        f"(MinIO from 2024-05-07 on), or set {LOG_STORE.prefix}<scheme>.impl to io.delta.storage.S3DynamoDBLogStore "
        "(several drivers), or to io.delta.storage.S3SingleDriverLogStore (only one driver)",
        path=shown(path),
    )
