"""The store on a file system of this machine."""

from .store import LocalLogStore

__all__ = ["LocalLogStore"]
