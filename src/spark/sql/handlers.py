"""Which statements tablelog runs itself, by the class of the plan that Spark's parser makes."""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from pyspark.sql import DataFrame

from .statement import Statement
from .statements import alter, changes, create, describe, explain, inserts, merge, show_create

Handler: TypeAlias = Callable[[Statement], DataFrame | None]
"""Runs a statement and returns its answer; None if the statement isn't about a Delta table: Spark runs it then."""

HANDLERS: Mapping[str, Handler] = {
    **create.HANDLERS,
    **alter.HANDLERS,
    **describe.HANDLERS,
    **show_create.HANDLERS,
    **inserts.HANDLERS,
    **changes.HANDLERS,
    **merge.HANDLERS,
    **explain.HANDLERS,
}
