"""Bytes at rest: the stores under `_delta_log`. Knows no Delta and no Spark."""
