"""Upkeep of the log: checkpoints and compactions written, expired files removed, damage found, VACUUM decided."""
