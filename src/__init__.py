"""tablelog: Delta Lake tables from PySpark on any storage, in Python.

`tablelog.core` works without Spark; PySpark users import `tablelog.spark`. Importing this package imports neither of
them. `retrying` runs a command of either again after a conflict.
"""

from importlib.metadata import version

from .retries import retrying

__all__ = ["__version__", "retrying"]

__version__ = version("tablelog")
