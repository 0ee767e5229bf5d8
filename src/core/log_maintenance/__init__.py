"""Maintenance of the log: checkpoints, compactions, cleanup of expired files, diagnosis."""
