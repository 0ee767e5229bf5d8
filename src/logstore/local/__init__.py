"""The store on a local file system."""

from .store import LocalLogStore

__all__ = ["LocalLogStore"]
