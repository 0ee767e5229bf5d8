"""The stores on S3: with conditional requests, with one driver and a lock, or with DynamoDB."""

from .conditional import S3LogStore
from .dynamodb import S3DynamoDBLogStore
from .single_driver import S3SingleDriverLogStore

__all__ = ["S3DynamoDBLogStore", "S3LogStore", "S3SingleDriverLogStore"]
