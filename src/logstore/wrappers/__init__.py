"""Stores that wrap another store: they count, retry, throttle, or show a part of it."""
