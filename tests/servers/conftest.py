"""The servers as fixtures."""

from .fixtures import azurite, ceph, dynalite, gcs_server, hdfs, minio, moto_server, pytest_terminal_summary

__all__ = ["azurite", "ceph", "dynalite", "gcs_server", "hdfs", "minio", "moto_server", "pytest_terminal_summary"]
