"""The local Spark session of the commands that need one; it is started when such a command runs."""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

import click

from ..errors import InvalidArgumentError, TablelogError, UnsupportedEnvironmentError
from ..settings.spark_own import HADOOP, LOCAL_SESSION
from . import environment, standard_error
from .parameters import Location
from .text import first_line

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ..spark import DeltaTable

_NUMBER = r"\s*[0-9]+\s*"
_LOCAL = rf"local(\[([0-9]*[1-9][0-9]*|\*)(\s*,\s*[0-9]+)?\]|-cluster\[{_NUMBER},{_NUMBER},{_NUMBER}\])?"
_HOST = r"([^\s:/,\[\]]+|\[[0-9:a-fA-F]+\]):[0-9]+"
_MASTER = re.compile(rf"{_LOCAL}|yarn|spark://{_HOST}(,{_HOST})*|(?!spark:)[a-z][a-z0-9]*://\S+")
"""The forms of Spark's master. Spark refuses more: which other schemes there are depends on its installation."""


@contextmanager
def local_session(location: Location, master: str) -> Iterator["SparkSession"]:
    """A session that understands Delta tables, with the settings that the user gave; it is stopped afterwards.

    Args:
        location: The table, whose storage options a session can't take.
        master: Spark's master, such as `local[*]`.

    Raises:
        UnsupportedEnvironmentError: There is no Spark or no Java, or Spark doesn't start.
        InvalidArgumentError: The master has a form that Spark doesn't take, or Spark refuses a condition, a name or a
            type that the user gave.
    """
    if _MASTER.fullmatch(master) is None:
        raise InvalidArgumentError(
            f"--master: {master!r} is no master of Spark. Give local[*], local[N], yarn, spark://HOST:PORT or k8s://URL"
        )
    if location.options:
        raise click.UsageError(
            "A command that runs Spark takes settings of the storage as --conf with Hadoop's names, not as --option."
        )
    path, major = environment.java()
    if path is None or (major is not None and major < environment.LEAST_JAVA):
        raise UnsupportedEnvironmentError(
            f"this command needs Java {environment.LEAST_JAVA} or newer for Spark: set JAVA_HOME (see tablelog doctor)"
        )
    try:
        from pyspark.sql import SparkSession

        from ..spark import enable
    except ImportError as error:
        raise UnsupportedEnvironmentError("this command needs Spark: pip install 'tablelog[spark]'") from error
    if sys.stderr.isatty():
        click.echo(f"tablelog: starting a local Spark session ({master}), which takes some seconds", err=True)
    builder = SparkSession.builder.master(master).appName("tablelog")
    for name, value in {**LOCAL_SESSION, **_for_spark(location)}.items():
        builder = builder.config(name, value)
    session = _started(builder)
    try:
        enable(session)
        with _mistakes_of_the_user():
            yield session
    finally:
        sys.stdout.flush()
        session.stop()


def _started(builder: "SparkSession.Builder") -> "SparkSession":
    """Start the session. What its JVM writes to standard error is shown only with `--verbose`."""
    verbose = click.get_current_context().find_root().params["verbose"]
    with nullcontext(str) if verbose else standard_error.kept() as reason:
        try:
            return builder.getOrCreate()
        except Exception as error:
            raise UnsupportedEnvironmentError(f"Spark doesn't start: {reason() or first_line(error)}") from error


@contextmanager
def _mistakes_of_the_user() -> Iterator[None]:
    """Replace Spark's errors about a condition, a name or a type that the user gave."""
    from pyspark.errors import AnalysisException

    try:
        yield
    except AnalysisException as error:
        if isinstance(error, TablelogError):
            raise
        raise InvalidArgumentError(first_line(error)) from error


def delta_table(session: "SparkSession", uri: str) -> "DeltaTable":
    """The table as `tablelog.spark` has it."""
    from ..spark import DeltaTable

    return DeltaTable.forPath(session, uri)


def _for_spark(location: Location) -> dict[str, str]:
    """The user's settings with the names that Spark expects: Hadoop's keys get Spark's prefix."""
    return {
        name if name.startswith("spark.") else f"{HADOOP.prefix}{name}": value for name, value in location.conf.items()
    }
