"""The store on Google Cloud Storage."""

from .store import GCSLogStore

__all__ = ["GCSLogStore"]
