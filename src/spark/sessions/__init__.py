"""Enabling sessions: the methods of PySpark that are replaced, for which sessions, and for programs that make them."""
