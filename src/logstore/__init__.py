"""Stores of the files in `_delta_log`. This package depends neither on Delta nor on Spark."""

from .azure import AzureLogStore
from .base import Exclusion, FileStatus, LogStore
from .common.listing import without_false_gaps
from .common.uri import local_path, local_uri
from .gcs import GCSLogStore
from .hdfs import HDFSLogStore
from .local import LocalLogStore
from .local.store import remove_stale_temporaries
from .memory import MemoryLogStore
from .registry import new_store_for, store_for
from .s3 import S3DynamoDBLogStore, S3LogStore, S3SingleDriverLogStore
from .wrappers.counting import CountingLogStore
from .wrappers.prefixed import PrefixedLogStore
from .wrappers.retrying import RetryingLogStore
from .wrappers.throttled import ThrottledLogStore
from .wrappers.wrapper import LogStoreWrapper

__all__ = [
    "AzureLogStore",
    "CountingLogStore",
    "Exclusion",
    "FileStatus",
    "GCSLogStore",
    "HDFSLogStore",
    "LocalLogStore",
    "LogStore",
    "LogStoreWrapper",
    "MemoryLogStore",
    "PrefixedLogStore",
    "RetryingLogStore",
    "S3DynamoDBLogStore",
    "S3LogStore",
    "S3SingleDriverLogStore",
    "ThrottledLogStore",
    "local_path",
    "local_uri",
    "new_store_for",
    "remove_stale_temporaries",
    "store_for",
    "without_false_gaps",
]
