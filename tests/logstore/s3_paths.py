"""The paths of a log in the fake of S3."""

LOG = "s3a://bucket/t/_delta_log"
KEY = "/bucket/t/_delta_log"


def commit(version: int) -> str:
    return f"{LOG}/{version:020}.json"
