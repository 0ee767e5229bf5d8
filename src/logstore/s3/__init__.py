"""The stores on S3: conditional requests, one driver with a lock, or DynamoDB as the judge."""

from .conditional import S3LogStore
from .dynamodb import S3DynamoDBLogStore
from .single_driver import S3SingleDriverLogStore

__all__ = ["S3DynamoDBLogStore", "S3LogStore", "S3SingleDriverLogStore"]
