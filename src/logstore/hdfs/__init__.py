"""The store on HDFS, over Spark's Hadoop client or hdfs-native."""

from .store import HDFSLogStore

__all__ = ["HDFSLogStore"]
