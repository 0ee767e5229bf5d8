"""The parts of a path on S3."""

from typing import NamedTuple

from ...errors import InvalidArgumentError
from ..common import object_uri
from ..common.uri import shown


class S3Location(NamedTuple):
    """The parts of a path."""

    scheme: str
    bucket: str
    key: str

    @property
    def uri(self) -> str:
        """The canonical URI."""
        return object_uri.join(self.scheme, self.bucket, self.key)

    @property
    def directory(self) -> str:
        """The key up to and including its last slash."""
        return object_uri.parent(self.key)

    def beside(self, name: str) -> "S3Location":
        """Another key in the same directory."""
        return S3Location(self.scheme, self.bucket, self.directory + name)


def place_of(path: str) -> S3Location:
    """The parts of `path`. Raises InvalidArgumentError."""
    scheme, bucket, key = object_uri.split(path)
    if "@" in bucket or ":" in bucket:
        raise InvalidArgumentError(
            f"{shown(path)!r} has more than a bucket before its first slash: set credentials with fs.s3a.access.key "
            "and fs.s3a.secret.key (or storage_options), and the endpoint with fs.s3a.endpoint"
        )
    return S3Location(scheme, bucket, key)
