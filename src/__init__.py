"""tablelog: Delta Lake tables from PySpark on any storage, in Python.

`tablelog.core` works without Spark; PySpark users import `tablelog.spark`. Importing this package imports neither of
them.
"""

from importlib.metadata import version

__version__ = version("tablelog")
