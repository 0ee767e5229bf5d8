"""The store on Azure's blob storage."""

from .store import AzureLogStore

__all__ = ["AzureLogStore"]
