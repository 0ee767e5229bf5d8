"""Spark's Python workers: how tablelog gets there, and the checks of their Python and of its packages."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

from ...errors import UnsupportedEnvironmentError
from ...settings.spark_own import SUBMITTED_PYTHON
from .connection import settings
from .connection.serialization import pickled

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Work: TypeAlias = Callable[[Iterator[Any]], Iterator[Any]]
"""A task function for `mapInArrow`."""


_SECONDS = 60
_VERSIONS = re.compile(r"\[PYTHON_VERSION_MISMATCH\] .*?(\d+\.\d+)\D+?(\d+\.\d+)", re.DOTALL)
_NO_PYARROW = "No module named 'pyarrow'"
_PROBE = "import sys; print('{}.{}'.format(*sys.version_info)); import pyarrow"


def check_planner(spark: "SparkSession") -> None:
    """Raise UnsupportedEnvironmentError if the Python of workers can't plan a read on the driver's machine.

    Spark starts it there for each read by a Python data source. `spark` is a classic session.
    """
    program = spark.sparkContext.pythonExec
    found = shutil.which(program)
    if found is None:
        raise UnsupportedEnvironmentError(
            f"Spark can't start {program}, the Python of its workers (PYSPARK_PYTHON), on the driver's machine, where "
            "it plans reads by the route arrow. Use a path that is valid on the driver and on the executors, or the "
            "route native"
        )
    if os.path.dirname(found) != os.path.dirname(sys.executable):
        reason = _unusable(found, spark.sparkContext.environment.get("PYTHONPATH"))
        if reason is not None:
            raise UnsupportedEnvironmentError(
                f"{program}, the Python of Spark's workers (PYSPARK_PYTHON), {reason} on the driver's machine, where "
                "it plans reads by the route arrow"
            )


@cache
def _unusable(program: str, path: str | None) -> str | None:
    """Why PySpark can't use this Python; `None` if it can. It is started once for each process.

    `path` is the PYTHONPATH of workers, if the session sets one.
    """
    try:
        done = subprocess.run(
            [program, "-c", _PROBE],
            capture_output=True,
            text=True,
            check=False,
            timeout=_SECONDS,
            stdin=subprocess.DEVNULL,
            env={**os.environ, **({} if path is None else {"PYTHONPATH": path})},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"doesn't start ({type(error).__name__})"
    own = "{}.{}".format(*sys.version_info)
    version = done.stdout.strip()
    if version and version != own:
        return f"is Python {version}, and the driver's is {own}, but PySpark needs the same minor version,"
    if done.returncode == 0:
        return None
    return "lacks pyarrow" if _NO_PYARROW in done.stderr else "doesn't run"


def unusable(text: str, doing: str) -> str | None:
    """What is wrong with the Python of executors, by the text of the error of a task; `None` for other errors."""
    if _NO_PYARROW in text:
        return f"lacks pyarrow, which {doing}: install it there, or send it with spark.archives"
    versions = _VERSIONS.search(text)
    if versions is None:
        return None
    return (
        f"is Python {versions[1]}, and the driver's is {versions[2]}: PySpark needs the same minor version. Set "
        "PYSPARK_PYTHON to such a Python, or send one with spark.archives"
    )


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
