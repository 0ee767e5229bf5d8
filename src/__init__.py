"""tablelog: Delta Lake tables from PySpark on any storage, in Python.

`tablelog.core` works with no Spark; `tablelog.spark` is what a PySpark user imports. Importing this package
imports neither.
"""

from importlib.metadata import version

__version__ = version("tablelog")
