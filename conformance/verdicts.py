"""The verdict for the result of a check: whether the store, the storage or the suite itself is at fault."""

import traceback
from types import TracebackType

from tablelog.errors import StorageError, TablelogError, UnsafeStoreError, WriteOutcomeUnknown
from tablelog.logstore import LogStore

from .failures import GuaranteeBrokenError, NotEstablishedError
from .model import Verdict


def verdict_of(error: BaseException | None) -> tuple[Verdict, str]:
    """The verdict on a check that ended with `error` (None: it returned), and its explanation.

    A broken guarantee is FAIL, and so is an error from the store's code that isn't part of the interface. A storage
    that can't be reached or rejects requests shows nothing about its guarantees; nor does an error of the suite.
    """
    if error is None:
        return Verdict.PASS, ""
    if isinstance(error, GuaranteeBrokenError):
        return Verdict.FAIL, str(error)
    if isinstance(error, NotEstablishedError):
        return Verdict.NOT_ESTABLISHED, str(error)
    text = f"{type(error).__name__}: {error}"
    if isinstance(error, UnsafeStoreError):
        return Verdict.FAIL, f"the store refuses to keep a log here: {error}"
    if isinstance(error, FileNotFoundError):
        return Verdict.FAIL, f"a file that was written doesn't exist: {text}"
    if isinstance(error, FileExistsError):
        return Verdict.FAIL, f"a file exists that no writer had written: {text}"
    if isinstance(error, OSError | StorageError | WriteOutcomeUnknown):
        return Verdict.NOT_ESTABLISHED, f"the storage isn't available: {text}"
    if isinstance(error, TablelogError):
        return Verdict.NOT_ESTABLISHED, f"the store refuses the operation: {text}"
    if _raised_by_store(error.__traceback__):
        return Verdict.FAIL, f"an error that isn't part of the contract: {text}"
    return Verdict.NOT_ESTABLISHED, f"the suite itself failed: {text}"


def _raised_by_store(trace: TracebackType | None) -> bool:
    return any(isinstance(frame.f_locals.get("self"), LogStore) for frame, _ in traceback.walk_tb(trace))
