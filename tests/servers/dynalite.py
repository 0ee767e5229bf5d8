"""dynalite (DynamoDB), whose conditional put is atomic."""

from pathlib import Path
from typing import Any, ClassVar

from . import install
from .base import Server
from .s3 import ACCESS_KEY, REGION, SECRET_KEY


class Dynalite(Server):
    """One dynalite with its tables in memory; a new table is there at once.

    Delta's settings have no key for an endpoint: the SDK's own variable `AWS_ENDPOINT_URL_DYNAMODB` has it.
    """

    name: ClassVar[str] = "dynalite"

    @classmethod
    def install(cls) -> Path:
        return install.npm_package("dynalite", "4.0.0") / "cli.js"

    def command(self) -> list[str]:
        return [
            install.tool("node"),
            str(self.install()),
            *("--host", "127.0.0.1", "--port", str(self.port)),
            *("--createTableMs", "0", "--deleteTableMs", "0", "--updateTableMs", "0"),
        ]

    @property
    def conf(self) -> dict[str, str]:
        return {"spark.io.delta.storage.S3DynamoDBLogStore.ddb.region": REGION}

    @property
    def storage_options(self) -> dict[str, Any]:
        return {}

    @property
    def environment(self) -> dict[str, str]:
        return {
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
            "AWS_REGION": REGION,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_ENDPOINT_URL_DYNAMODB": self.endpoint,
        }

    def client(self) -> Any:
        """A botocore client that sends each request once."""
        import botocore.session
        from botocore.config import Config

        return botocore.session.Session().create_client(
            "dynamodb",
            region_name=REGION,
            endpoint_url=self.endpoint,
            aws_access_key_id=ACCESS_KEY,
            aws_secret_access_key=SECRET_KEY,
            config=Config(retries={"total_max_attempts": 1}, max_pool_connections=32),
        )
