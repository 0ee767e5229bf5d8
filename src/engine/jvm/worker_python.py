"""tablelog in Spark's Python workers: how it gets there, and the check that it is the driver's version."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

from ...settings.spark_own import SUBMITTED_PYTHON
from .connection import settings
from .connection.serialization import pickled

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Work: TypeAlias = Callable[[Iterator[Any]], Iterator[Any]]
"""A task function for `mapInArrow`."""


def include_wheel(spark: "SparkSession") -> None:
    """Put a wheel of tablelog from `--py-files` on the path of Python workers; PySpark does so only for other archives.

    `spark` is a classic session.
    """
    included = spark.sparkContext._python_includes
    assert included is not None  # a running context has a list
    for path in settings.of(spark, SUBMITTED_PYTHON).split(","):
        name = path.rpartition("/")[2]
        if name.startswith("tablelog-") and name.endswith(".whl") and name not in included:
            included.append(name)


def with_tablelog(work: Work) -> Work:
    """`work`, which needs tablelog, as a function that any Python worker can load.

    Without tablelog of the driver's version, or without a package that it needs, the task fails with one line that
    names what to install.
    """
    from ... import __version__

    content, version = pickled(work), __version__

    def run(batches: Iterator[Any]) -> Iterator[Any]:  # it uses only names defined inside
        import pickle
        from importlib import import_module

        def failure(what: str) -> ImportError:
            return ImportError(
                f"tablelog.errors.UnsupportedEnvironmentError: the Python of Spark's executors {what}: install "
                f"tablelog {version} there, or send it with --py-files or spark.archives"
            )

        try:
            found = import_module("tablelog").__version__
        except ImportError:
            raise failure("doesn't have tablelog") from None
        if found != version:
            raise failure(f"has tablelog {found}, and the driver's has {version}")
        try:
            loaded = pickle.loads(content)
        except ModuleNotFoundError as error:
            raise failure(f"lacks the package {error.name}, which tablelog needs") from None
        yield from loaded(batches)

    return run
