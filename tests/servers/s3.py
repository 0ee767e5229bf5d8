"""What the servers that speak S3 have in common."""

from typing import Any, ClassVar

from .base import BUCKET, StorageServer

ACCESS_KEY, SECRET_KEY, REGION = "tablelog", "tablelog-secret", "us-east-1"


class S3Server(StorageServer):
    """A server that speaks S3, with one bucket."""

    bucket: ClassVar[str] = BUCKET
    access_key: ClassVar[str] = ACCESS_KEY
    secret_key: ClassVar[str] = SECRET_KEY

    @property
    def root(self) -> str:
        return f"s3a://{self.bucket}"

    @property
    def conf(self) -> dict[str, str]:
        return {
            "fs.s3a.endpoint": self.endpoint,
            "fs.s3a.endpoint.region": REGION,
            "fs.s3a.access.key": self.access_key,
            "fs.s3a.secret.key": self.secret_key,
            "fs.s3a.path.style.access": "true",
            "fs.s3a.connection.ssl.enabled": "false",
        }

    @property
    def storage_options(self) -> dict[str, Any]:
        return {
            "key": self.access_key,
            "secret": self.secret_key,
            "endpoint_url": self.endpoint,
            "client_kwargs": {"region_name": REGION},
        }

    @property
    def environment(self) -> dict[str, str]:
        return {
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.secret_key,
            "AWS_REGION": REGION,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_ENDPOINT_URL": self.endpoint,
        }

    def client(self, service: str = "s3") -> Any:
        """A botocore client that sends each request once."""
        import botocore.session
        from botocore.config import Config

        return botocore.session.Session().create_client(
            service,
            region_name=REGION,
            endpoint_url=self.endpoint,
            aws_access_key_id=self.access_key,
            aws_secret_access_key=self.secret_key,
            config=Config(s3={"addressing_style": "path"}, retries={"total_max_attempts": 1}, max_pool_connections=32),
        )

    def prepare(self) -> None:
        client = self.client()
        names = [bucket["Name"] for bucket in client.list_buckets()["Buckets"]]
        if self.bucket not in names:
            client.create_bucket(Bucket=self.bucket)
        client.close()
