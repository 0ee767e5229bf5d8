"""Azurite (Azure Blob Storage). It has no dfs endpoint: a hierarchical namespace can't be tested on it."""

from pathlib import Path
from typing import Any, ClassVar

from . import install
from .base import BUCKET, StorageServer

ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""The account and the key that Azurite's documentation gives to everybody."""


class Azurite(StorageServer):
    """One Azurite with its blobs in memory.

    `fs.azure.abfs.endpoint` is Hadoop's own key for an endpoint by address and port; the account is then in the path.
    """

    name: ClassVar[str] = "azurite"

    @classmethod
    def install(cls) -> Path:
        return install.npm_package("azurite", "3.35.0") / "dist" / "src" / "blob" / "main.js"

    def command(self) -> list[str]:
        return [
            install.tool("node"),
            str(self.install()),
            *("--disableTelemetry", "--skipApiVersionCheck", "--silent", "--inMemoryPersistence"),
            *("--blobHost", "127.0.0.1", "--blobPort", str(self.port)),
        ]

    @property
    def root(self) -> str:
        return f"abfs://{BUCKET}@{ACCOUNT}.dfs.core.windows.net"

    @property
    def conf(self) -> dict[str, str]:
        return {
            f"fs.azure.account.key.{ACCOUNT}.dfs.core.windows.net": KEY,
            "fs.azure.account.auth.type": "SharedKey",
            "fs.azure.abfs.endpoint": f"127.0.0.1:{self.port}",
            "fs.azure.always.use.https": "false",
        }

    @property
    def connection_string(self) -> str:
        """What the portal would show."""
        blob = f"{self.endpoint}/{ACCOUNT}"
        return f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={KEY};BlobEndpoint={blob};"

    @property
    def storage_options(self) -> dict[str, Any]:
        return {"connection_string": self.connection_string}

    @property
    def environment(self) -> dict[str, str]:
        return {"AZURE_STORAGE_CONNECTION_STRING": self.connection_string}

    def client(self) -> Any:
        """The SDK's client of the container, which sends each request once."""
        from azure.storage.blob import ContainerClient

        return ContainerClient.from_connection_string(self.connection_string, BUCKET, retry_total=0)

    def prepare(self) -> None:
        with self.client() as client:
            if not client.exists():
                client.create_container()
