"""The store on HDFS, with Spark's Hadoop client or hdfs-native."""

from .store import HDFSLogStore

__all__ = ["HDFSLogStore"]
