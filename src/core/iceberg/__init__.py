"""Iceberg's metadata for the versions of a table, written by pyiceberg beside the log (optional)."""
