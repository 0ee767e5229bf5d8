"""Deletes the files of a failed write without hiding why it failed."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

logger = logging.getLogger(__name__)


@contextmanager
def errors_logged(table: str, failed: str = "write") -> Iterator[None]:
    """Around a cleanup after an error: if it fails too, it only warns, because the first error is the one to report.

    `failed` is what failed, for the message.
    """
    try:
        yield
    except Exception as error:
        logger.warning("%s: files of a failed %s could not be deleted and are left to VACUUM: %s", table, failed, error)
