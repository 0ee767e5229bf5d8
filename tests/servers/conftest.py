"""The servers as fixtures."""

from .fixtures import azurite, dynalite, gcs_server, hdfs, minio, moto_server, pytest_terminal_summary

__all__ = ["azurite", "dynalite", "gcs_server", "hdfs", "minio", "moto_server", "pytest_terminal_summary"]
