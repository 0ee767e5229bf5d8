"""The stores on S3: with conditional requests, with one driver and a lock, or with DynamoDB."""

from .conditional_put_store import S3LogStore
from .dynamodb_store import S3DynamoDBLogStore
from .single_driver_store import S3SingleDriverLogStore

__all__ = ["S3DynamoDBLogStore", "S3LogStore", "S3SingleDriverLogStore"]
