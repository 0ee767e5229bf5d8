"""The store on Azure Blob Storage."""

from .store import AzureLogStore

__all__ = ["AzureLogStore"]
